"""JSON that is checked against types before it is used: a dataset or an unfinished run may come from anybody.

    checked(list[Shard], json_value(data))     [Shard(path="data/train-...", rows=7, ...), ...]

The types are those of Python: NamedTuples, dataclasses, TypedDicts, lists, mappings, `X | None`. An `int` is a count,
of 0 or more, unless it is `Signed`. A `str` that is `Inside` is the path of a file inside of the folder that it is
relative to. Fields that a type does not have are ignored; those that a TypedDict does not have are kept as they are.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

T = TypeVar("T")

Signed = Annotated[int, "signed"]
Inside = Annotated[str, "inside"]
UnixTime = Annotated[float, "time"]

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def json_value(data: bytes) -> Any:
    """The value of a JSON text. ValueError if it is none, or could not be written as UTF-8 again."""
    try:
        value = json.loads(data.decode(), parse_constant=_refuse)
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def checked(of: type[T], value: Any, place: str = "") -> T:
    """A JSON value as a value of a type. ValueError, which names the place, if it is not one."""
    try:
        converter: Convert = _converter(of)  # type: ignore[arg-type]
        found: T = converter(value)
    except _Wrong as error:
        raise ValueError(f"{(place + error.place).removeprefix('.') or 'it'} {error.what}") from None
    return found


class _Wrong(Exception):
    """A value that is not of its type: where it is, and what is wrong."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.what, self.place = what, place

    def within(self, place: str) -> _Wrong:
        return _Wrong(self.what, place + self.place)


Convert: TypeAlias = Callable[[Any], Any]


@functools.cache
def _converter(of: Any) -> Convert:
    """What makes a value of the type from a JSON value, or raises _Wrong."""
    origin, arguments = get_origin(of), get_args(of)
    if of is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        inner = _converter(next(each for each in arguments if each is not NoneType))
        return lambda value: None if value is None else inner(value)
    if origin is list:
        return _of_list(_converter(arguments[0]))
    if origin is tuple:
        items = _of_list(_converter(arguments[0]))
        return lambda value: tuple(items(value))
    if origin in (dict, Counter):
        return _of_object(origin, _converter(int if origin is Counter else arguments[1]))
    if is_typeddict(of) or dataclasses.is_dataclass(of) or hasattr(of, "_fields"):
        return _of_fields(of)
    return _SCALARS.get(of) or _scalar(of, lambda value: True, _NAMES[of])


def _of_list(inner: Convert) -> Convert:
    def convert(value: Any) -> list[Any]:
        found = []
        for number, each in enumerate(_as(list, value)):
            try:
                found.append(inner(each))
            except _Wrong as error:
                raise error.within(f"[{number}]") from None
        return found

    return convert


def _of_object(kind: Any, inner: Convert) -> Convert:
    def convert(value: Any) -> Any:
        found = kind()
        for name, each in _as(dict, value).items():
            try:
                found[name] = inner(each)
            except _Wrong as error:
                raise error.within(_inner(name)) from None
        return found

    return convert


def _of_fields(of: Any) -> Convert:
    """A value with named fields; of a NamedTuple also as a list."""
    hints, required = _declared(of)
    converters = {name: _converter(hint) for name, hint in hints.items()}
    is_tuple = hasattr(of, "_fields")

    def convert(value: Any) -> Any:
        if is_tuple and type(value) is list and len(value) <= len(hints):
            value = dict(zip(hints, value, strict=False))
        own = {}
        for name, inner in converters.items():
            if name in _as(dict, value):
                try:
                    own[name] = inner(value[name])
                except _Wrong as error:
                    raise error.within(_inner(name)) from None
            elif name in required:
                raise _Wrong("is missing", _inner(name))
        return {**value, **own} if is_typeddict(of) else of(**own)

    return convert


def _declared(of: Any) -> tuple[dict[str, Any], Collection[str]]:
    """The types of the fields, and the names of those that have to be given."""
    hints = get_type_hints(of, include_extras=True)
    if is_typeddict(of):
        return hints, of.__required_keys__
    if hasattr(of, "_fields"):
        return hints, {*of._fields} - {*of._field_defaults}
    own = dataclasses.fields(of)
    without = {each.name for each in own if each.default is each.default_factory is dataclasses.MISSING}
    return {each.name: hints[each.name] for each in own}, without


def is_inside(path: str) -> bool:
    """Whether a path leads to a file inside of the folder that it is relative to.

    >>> [is_inside(path) for path in ("data/a.parquet", "../a", "data/../../a", "/a", "s3://a", "data//a", "", ".")]
    [True, False, False, False, False, False, False, False]
    """
    first = path.partition("/")[0]
    return path.isprintable() and first not in ("", ".", "..") and posixpath.normpath(path) == path


def _as(of: type, value: Any) -> Any:
    if type(value) is not of:
        raise _wrong(value, _NAMES[of])
    return value


def _scalar(of: type, fits: Callable[[Any], bool], wanted: str) -> Convert:
    def convert(value: Any) -> Any:
        if not (type(value) is of or (of is float and type(value) is int)):
            raise _wrong(value, _NAMES[of])
        if not fits(value):
            raise _wrong(value, wanted)
        return value

    return convert


_NAMES = {
    list: "a list",
    dict: "an object",
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
}

_SCALARS = {
    int: _scalar(int, lambda value: 0 <= value < 1 << 63, "a count"),
    float: _scalar(float, lambda value: -1e18 < value < 1e18, "a number"),
    Signed: _scalar(int, lambda value: True, ""),
    UnixTime: _scalar(float, lambda value: 0 <= value < 1e11, "a time"),
    Inside: _scalar(str, is_inside, "the path of a file inside of the folder"),
}


def _wrong(value: Any, wanted: str) -> _Wrong:
    shown = ascii(value)
    return _Wrong(f"is {shown if len(shown) < 80 else shown[:77] + '...'}, not {wanted}")


def _inner(name: str) -> str:
    """A field or entry in a place, as printable text."""
    return f".{name if name.isidentifier() else ascii(name[:80])}"
