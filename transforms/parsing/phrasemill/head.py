"""A further head on the parser's network: a small ONNX file that reads a tensor inside of the parser's graph."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.parsing.phrasemill.model_file import messages

_GRAPH = 7
"""`graph` of ONNX's ModelProto."""
_NODE, _CONSTANT = 1, 5
"""`node` and `initializer` of GraphProto."""
_INPUT, _OUTPUT = 1, 2
"""Names in a NodeProto."""
_NAME = 8
"""`name` of a TensorProto."""


def with_head(parser: bytes, head: bytes) -> bytes:
    """The model that computes the outputs of `head`, without the parts of `parser` that these do not need.

    The nodes of `head` read tensors of `parser` by their names. Concatenated protobuf messages are read as one: the
    nodes and constants of both files form one graph, with the inputs and outputs of `head`.
    """
    graph, added = (memoryview(b"".join(messages(memoryview(file), _GRAPH))) for file in (parser, head))
    wanted = {name for node in messages(added, _NODE) for name in _names(node, _INPUT)}
    kept = []
    for node in reversed([*messages(graph, _NODE)]):  # a node comes after those that it reads
        if wanted & _names(node, _OUTPUT):
            kept.append(node)
            wanted |= _names(node, _INPUT)
    constants = (each for each in messages(graph, _CONSTANT) if wanted & _names(each, _NAME))
    return _field(_GRAPH, [*(_field(_NODE, [each]) for each in reversed(kept)), *_fields(_CONSTANT, constants)]) + head


def _names(message: memoryview, number: int) -> set[bytes]:
    return {bytes(each) for each in messages(message, number)}


def _fields(number: int, contents: Iterable[memoryview]) -> list[bytes]:
    return [_field(number, [each]) for each in contents]


def _field(number: int, parts: Iterable[bytes | memoryview]) -> bytes:
    content = b"".join(parts)
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
