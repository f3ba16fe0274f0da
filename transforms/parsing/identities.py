"""What decides each parser's output, from files and packages: no model is loaded, and no library that runs it.

A function takes the options of its parser that affect the output. It raises the same error as the parser if a model is
missing, and `PackageNotFoundError` if a library is.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from schemas.errors import UserError
from transforms.parsing import corenlp_jars
from transforms.parsing.interface import ParserIdentity
from transforms.parsing.phrasemill.encoding import MAX_WORDS
from transforms.parsing.phrasemill.model_file import read_model_file
from transforms.parsing.spacy_files import check_labels, find_spacy

VERSIONS = {"phrasemill": 2, "spacy": 1, "benepar": 1, "stanza": 1, "corenlp": 1}
"""The version of our own code for each parser, raised by hand when its output changes."""

BENEPAR_MODEL, STANZA_MODEL, CORENLP_MODEL = "benepar_en3", "default", "englishSR"
"""The default models."""


def phrasemill(model: str = "", *, max_tokens: object = 1, threads: object = 1, **others: object) -> ParserIdentity:
    if not (isinstance(max_tokens, int) and 1 <= max_tokens <= MAX_WORDS):
        raise UserError(f"max_tokens: must be a whole number of 1 to {MAX_WORDS}, not {max_tokens!r}")
    if not (isinstance(threads, int) and threads >= 1):
        raise UserError(f"threads: must be a whole number of 1 or more, not {threads!r}")
    file = read_model_file(model)
    named, commit = (file.metadata.get(name, "") for name in ("name", "commit"))
    return _identity("phrasemill", named, commit, file.sha256, _versions("onnxruntime", "numpy", "spacy"))


def spacy(model: str = "", **others: object) -> ParserIdentity:
    files = find_spacy(model)
    if files.labels is not None:
        check_labels(files.folder, files.labels)
    libraries = _versions("spacy", "thinc", "numpy")
    return _identity("spacy", files.name, files.version, sha256_of_folder(files.folder), libraries)


def benepar(model: str = BENEPAR_MODEL, *, spacy_model: str = "", **others: object) -> ParserIdentity:
    libraries = _versions("benepar", "torch", "transformers", "tokenizers")
    path = locate_benepar(model)
    return _identity("benepar", path.name, "", sha256_of(path), libraries | _spacy_versions(spacy_model))


def stanza(model: str = STANZA_MODEL, *, spacy_model: str = "", **others: object) -> ParserIdentity:
    """The identity of a model file. Only Stanza knows which file the name of a package stands for."""
    libraries = _versions("stanza", "torch")
    path = Path(model)
    return _identity("stanza", path.name, "", sha256_of(path), libraries | _spacy_versions(spacy_model))


def is_stanza_file(model: str) -> bool:
    return Path(model).suffix == ".pt"


def corenlp(model: str = CORENLP_MODEL, *, endpoint: str = "", home: str = "", **others: object) -> ParserIdentity:
    """The identity of the jars' model; without release and hash for a user's server, which does not tell them."""
    libraries = _versions("stanza", "protobuf")
    release = digest = ""
    if not endpoint:
        jars = corenlp_jars.find_home(home)
        release, digest = corenlp_jars.release_of(jars), corenlp_jars.sha256_of_model(jars, corenlp_path(model))
        corenlp_jars.find_java()
    return _identity("corenlp", model, release, digest, libraries)


def corenlp_path(model: str) -> str:
    """The path of a model in the jars."""
    return model if "/" in model else f"edu/stanford/nlp/models/srparser/{model}.ser.gz"


def locate_benepar(model: str) -> Path:
    """The checkpoint at that path, or with that name in NLTK's data. LookupError if there is none."""
    if os.path.exists(model):
        return Path(model)
    if "/" in model or "." in model:
        raise LookupError(f"no benepar model {model}")
    import nltk.data

    return Path(nltk.data.find(f"models/{model}").path)


def sha256_of(path: Path) -> str:
    """The sha256 of a file, or of a folder's files with their names."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() or file == path:
            if path.is_dir():
                digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as content:
                while block := content.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


@cache
def sha256_of_folder(folder: Path) -> str:
    return sha256_of(folder)


def _identity(parser: str, model: str, model_version: str, sha256: str, libraries: dict[str, str]) -> ParserIdentity:
    return ParserIdentity(parser, VERSIONS[parser], model, model_version, sha256, libraries)


def _versions(*libraries: str) -> dict[str, str]:
    return {name: version(name) for name in libraries}


def _spacy_versions(model: str) -> dict[str, str]:
    """The versions of spaCy and its pipeline, which decide the sentences, tokens and tags."""
    files = find_spacy(model)
    return _versions("spacy") | {files.name: files.version}
