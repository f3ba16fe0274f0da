"""The file of a network: its hash and its metadata, read without ONNX Runtime."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from schemas.errors import UserError


class Format(NamedTuple):
    """What a file holds, the version of its inputs, outputs and metadata, and the shipped file."""

    holds: str
    version: str
    shipped: str


FORMAT = "1"
"""The version of a parser's file (trainers/parser/export.py)."""

PARSER = Format("a parser", FORMAT, "parser.onnx")
ENTITY_HEAD = Format("an entity finder", "entities 1", "entities.onnx")
"""trainers/entities/export.py"""

_METADATA = 14
"""`metadata_props` of ONNX's ModelProto: entries of a key (1) and a value (2)."""


class ModelFile(NamedTuple):
    """A file of a known format. `name` is for messages."""

    name: str
    content: bytes
    sha256: str
    metadata: dict[str, str]


def read_model_file(path: str | Path | None = None, format: Format = PARSER) -> ModelFile:
    """The file written by a training, by default the shipped one. UserError for any other file."""
    file = Path(path) if path else resources.files(__package__) / "model" / format.shipped
    try:
        content = file.read_bytes()
        metadata = dict(map(_entry, messages(memoryview(content), _METADATA)))
    except (OSError, ValueError) as error:
        raise not_a_network(str(file), error) from error
    if metadata.get("format") != format.version:
        raise UserError(
            f"{file}: not {format.holds} of format {format.version}; export it with this version of phrasemill"
        )
    return ModelFile(str(file), content, hashlib.sha256(content).hexdigest(), metadata)


def not_a_network(name: str, why: Exception) -> UserError:
    return UserError(f"{name}: cannot be read as a network: {why}")


def _entry(message: memoryview) -> tuple[str, str]:
    key, value = (b"".join(messages(message, number)) for number in (1, 2))
    return key.decode(), value.decode()


def messages(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The fields with the number `wanted` of a protobuf message: strings, or messages in it.

    See https://protobuf.dev/programming-guides/encoding. ValueError for what is not such a message, or is cut short.
    """
    at = 0

    def varint() -> int:
        nonlocal at
        value = 0
        for shift in range(0, 70, 7):
            if at >= len(message):
                break
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("no protobuf message, or cut short")

    while at < len(message):
        tag = varint()
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            varint()
            continue
        if kind not in (1, 2, 5):
            raise ValueError("no protobuf message")
        start, at = at, at + {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            length = varint()
            start, at = at, at + length
        if at > len(message):
            raise ValueError("no protobuf message, or cut short")
        if kind == 2 and number == wanted:
            yield message[start:at]
