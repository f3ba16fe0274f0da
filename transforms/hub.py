"""Models of the Hugging Face hub on disk: the folder of one, and what is in it, without loading it."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from transforms.parsing.identities import sha256_of

_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
_READ = ("*.json", "*.txt", "*.model")
_WEIGHTS = ("*.safetensors", "*.bin")
_OF_OTHERS = ["onnx/*", "openvino/*", "coreml/*"]


def locate_model(name: str) -> Path:
    """The folder of a model: that folder, or one of the hub (OWNER/NAME or OWNER/NAME@REVISION), fetched once.

    OSError with the remedy if there is none, ModuleNotFoundError without the hub's client.
    """
    if any((Path(name) / each).is_file() for each in ("config.json", "modules.json")):
        return Path(name).resolve()
    match = _NAME.fullmatch(name)
    if Path(name).exists() or not match:
        raise OSError(f"no model {name!r}: neither a folder with a config.json nor a name of the hub (OWNER/NAME)")
    from huggingface_hub import snapshot_download

    try:
        for weights in _WEIGHTS:
            wanted = [*_READ, weights]
            fetched = snapshot_download(match[1], revision=match[2], allow_patterns=wanted, ignore_patterns=_OF_OTHERS)
            if any(Path(fetched).rglob(weights)):
                return Path(fetched)
    except (OSError, ValueError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise OSError(
            f"no model {name!r}: it is no folder, and the hub does not give it ({said}); where there is a network, "
            f"fetch it with: hf download {match[1]} --local-dir DIR, and give DIR"
        ) from error
    raise OSError(f"no model {name!r}: what the hub has of it has no weights ({' or '.join(_WEIGHTS)})")


@cache
def sha256_of_model(folder: Path) -> str:
    """The sha256 of a model's files that are read, with their names: also of those in folders of its modules."""
    weights = next((each for each in _WEIGHTS if any(folder.rglob(each))), _WEIGHTS[0])
    found = {file.relative_to(folder) for pattern in (*_READ, weights) for file in folder.rglob(pattern)}
    names = sorted(each.as_posix() for each in found if not any(each.match(other) for other in _OF_OTHERS))
    lines = [f"{name} {sha256_of(folder / name)}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
