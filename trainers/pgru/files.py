"""The folder of a Pairwise-GRU: what is in it, and its hash. Without torch.

config.json          Config, and which model it is
words.txt            a word a line
model.safetensors    vectors [rows, dimension]; word_rows [words]: the row of each word; the weights of the GRU
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from schemas.errors import UserError
from schemas.json_values import checked
from transforms.parsing.identities import sha256_of

NAME = "pgru"
CONFIG, WORDS, WEIGHTS = "config.json", "words.txt", "model.safetensors"


class Config(NamedTuple):
    """What the files do not say.

    scale  what the vectors of words are multiplied with
    """

    units: int
    dropout: float
    scale: float


def read_config(folder: Path) -> Config | None:
    """None if there is no folder of a Pairwise-GRU. UserError if it is damaged."""
    file = folder / CONFIG
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(given, dict) or given.pop("phrasemill", None) != NAME:
        return None
    try:
        return checked(Config, given)
    except ValueError as error:
        raise UserError(f"{file}: {error}; train the model again") from None


def write_config(folder: Path, config: Config) -> None:
    (folder / CONFIG).write_text(json.dumps({"phrasemill": NAME, **config._asdict()}, indent=1) + "\n")


def sha256_of_gru(folder: Path) -> str:
    """UserError if a file is missing."""
    for each in (WORDS, WEIGHTS):
        if not (folder / each).is_file():
            raise UserError(f"{folder / each}: no such file; train the model again")
    named = (f"{each} {sha256_of(folder / each)}\n" for each in (CONFIG, WORDS, WEIGHTS))
    return hashlib.sha256("".join(named).encode()).hexdigest()
