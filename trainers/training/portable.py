"""Models in folders that sentence-transformers 6 and transformers 5 wrote, as earlier versions read them too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transforms.encoders.options import POOLINGS


def make_portable(folder: Path) -> None:
    """Rewrite a model's folder so that earlier versions of the libraries load it."""
    make_tokenizer_portable(folder)
    modules = json.loads((folder / "modules.json").read_text())
    for each in modules:
        name = each["type"].rpartition(".")[2]
        if each["type"].startswith("sentence_transformers.") and name in _OLD:
            each["type"] = f"sentence_transformers.models.{name}"
            _OLD[name](folder / each["path"])
    _write(folder / "modules.json", modules)


def _old_transformer(folder: Path) -> None:
    file = folder / "sentence_bert_config.json"
    known = json.loads(file.read_text())
    longest = json.loads((folder / "tokenizer_config.json").read_text()).get("model_max_length")
    kept = {"max_seq_length": known.get("max_seq_length") or longest, "do_lower_case": bool(known.get("do_lower_case"))}
    _write(file, kept)


def _old_pooling(folder: Path) -> None:
    file = folder / "config.json"
    known = json.loads(file.read_text())
    if isinstance(mode := known.get("pooling_mode"), str) and mode in POOLINGS.values():
        chosen = {name: mode == each for name, each in POOLINGS.items()}
        known = {"word_embedding_dimension": known["embedding_dimension"], **chosen}
        _write(file, known)


_OLD = {"Transformer": _old_transformer, "Pooling": _old_pooling, "Normalize": lambda folder: None}


def make_tokenizer_portable(folder: Path) -> None:
    """transformers 5 has a class of its own for tokenizers that are only a file, which earlier versions do not know,
    and notes where it was loaded from.
    """
    file = folder / "tokenizer_config.json"
    said = json.loads(file.read_text())
    if said.get("tokenizer_class") == "TokenizersBackend":
        said["tokenizer_class"] = "PreTrainedTokenizerFast"
    _write(file, {name: each for name, each in said.items() if name not in ("backend", "is_local", "local_files_only")})


def _write(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n")
