"""What a parser is made from and how it learns: a TOML file, checked when read (recipe.toml is the shipped one)."""

from __future__ import annotations

import sys
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from schemas.errors import UserError
from trainers.parser.fit import Schedule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECIPE = Path(__file__).with_name("recipe.toml")
"""The recipe of the shipped weights."""

_Settings = TypeVar("_Settings")


@dataclass(frozen=True)
class Treebank:
    """Files in PTB brackets, relative to the folder of treebanks."""

    name: str
    train: str
    dev: str
    convention: int  # 0: GUM's bracketing; 7: CRAFT's


@dataclass(frozen=True)
class Network:
    """A network; `encoder` is a BERT, by hub id or path, of which the lowest layers are used."""

    encoder: str
    layers: int
    feed_forward: int  # neurons of each layer
    hidden: int  # width of the heads
    shares: dict[str, float]  # of the training data, by treebank; "soft" are the teacher's labels
    schedule: Schedule
    seed: int = 0  # of the weights outside the encoder


@dataclass(frozen=True)
class SoftLabels:
    words: int  # of raw text, approximately
    longest: int  # the most words of a sentence
    seed: int = 0


@dataclass(frozen=True)
class Recipe:
    labels: tuple[str, ...]
    treebanks: tuple[Treebank, ...]
    teacher: Network
    soft_labels: SoftLabels
    student: Network
    tuned_on: tuple[str, ...]  # treebanks whose held-out sentences decide the threshold


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file. UserError names the file and the key that is missing, unknown or of the wrong type."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a recipe: {error}") from error
    return _settings(Recipe, table, str(path))


def _settings(cls: type[_Settings], table: Any, where: str) -> _Settings:
    if not isinstance(table, dict):
        raise UserError(f"{where}: expected a table, not {table!r}")
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    for key in sorted(table.keys() - known.keys()):
        raise UserError(f"{where}: no setting {key!r}; there are {', '.join(known)}")
    types = get_type_hints(cls)
    for name, field in known.items():
        if name not in table and field.default is MISSING:
            raise UserError(f"{where}: {name!r} is missing")
    return cls(**{key: _value(types[key], value, f"{where}: {key}") for key, value in table.items()})


def _value(type_: Any, value: Any, where: str) -> Any:
    if isinstance(type_, type) and is_dataclass(type_):
        return _settings(type_, value, where)
    if get_origin(type_) is tuple and isinstance(value, list):
        return tuple(_value(get_args(type_)[0], each, f"{where} {number}") for number, each in enumerate(value, 1))
    if get_origin(type_) is dict and isinstance(value, dict):
        return {key: _value(get_args(type_)[1], each, f"{where} {key}") for key, each in value.items()}
    if type_ is float and type(value) is int:
        return float(value)
    if type(value) is not type_:
        raise UserError(f"{where}: expected {getattr(type_, '__name__', type_)}, not {value!r}")
    return value
