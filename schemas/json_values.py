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
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

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
    found: T = _checked(of, value, place)
    return found


def _checked(of: Any, value: Any, place: str) -> Any:
    if of is Any:
        return value
    origin, arguments = get_origin(of), get_args(of)
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        return None if value is None else _checked(inner, value, place)
    if origin is Annotated:
        return _marked(arguments[0], arguments[1], value, place)
    if origin is list:
        return [_checked(arguments[0], each, f"{place}[{n}]") for n, each in enumerate(_as(list, value, place))]
    if origin is tuple:
        return tuple(_checked(list[arguments[0]], value, place))  # type: ignore[valid-type]
    if origin in (dict, Counter):
        items = _as(dict, value, place).items()
        of_values = int if origin is Counter else arguments[1]
        return origin({name: _checked(of_values, each, _inner(place, name)) for name, each in items})
    if is_typeddict(of) or dataclasses.is_dataclass(of) or hasattr(of, "_fields"):
        return _fields(of, value, place)
    if of is int:
        return _marked(int, "count", value, place)
    if of is float:
        return _number(value, place, -1e18, 1e18, "a number")
    return _as(of, value, place)


def _fields(of: Any, value: Any, place: str) -> Any:
    """A value with named fields; of a NamedTuple also as a list."""
    hints, required = _declared(of)
    if isinstance(value, list) and hasattr(of, "_fields") and len(value) <= len(hints):
        value = dict(zip(hints, value, strict=False))
    given = _as(dict, value, place)
    for name in required:
        if name not in given:
            raise ValueError(f"{_inner(place, name)} is missing")
    own = {name: _checked(hint, given[name], _inner(place, name)) for name, hint in hints.items() if name in given}
    return {**given, **own} if is_typeddict(of) else of(**own)


@functools.cache
def _declared(of: Any) -> tuple[dict[str, Any], list[str]]:
    """The types of the fields, and the names of those that have to be given."""
    hints = get_type_hints(of, include_extras=True)
    if is_typeddict(of):
        return hints, sorted(of.__required_keys__)
    if hasattr(of, "_fields"):
        return hints, [name for name in of._fields if name not in of._field_defaults]
    own = dataclasses.fields(of)
    without = [each for each in own if each.default is each.default_factory is dataclasses.MISSING]
    return {each.name: hints[each.name] for each in own}, [each.name for each in without]


def _number(value: Any, place: str, least: float, most: float, wanted: str) -> float:
    if type(value) not in (int, float) or not least < value < most:
        raise _wrong(place, value, wanted)
    return value


def _marked(of: type, mark: str, value: Any, place: str) -> Any:
    if mark == "time":
        return _number(value, place, -1, 1e11, "a time")
    value = _as(of, value, place)
    if mark == "count" and not 0 <= value < 1 << 63:
        raise _wrong(place, value, "a count")
    if mark == "inside" and not is_inside(value):
        raise _wrong(place, value, "the path of a file inside of the folder")
    return value


def is_inside(path: str) -> bool:
    """Whether a path leads to a file inside of the folder that it is relative to.

    >>> [is_inside(path) for path in ("data/a.parquet", "../a", "data/../../a", "/a", "s3://a", "data//a", "", ".")]
    [True, False, False, False, False, False, False, False]
    """
    first = path.partition("/")[0]
    return path.isprintable() and first not in ("", ".", "..") and posixpath.normpath(path) == path


def _as(of: type, value: Any, place: str) -> Any:
    if type(value) is not of:
        raise _wrong(place, value, _NAMES[of])
    return value


_NAMES = {list: "a list", dict: "an object", str: "a text", int: "a whole number", bool: "true or false"}


def _wrong(place: str, value: Any, wanted: str) -> ValueError:
    shown = ascii(value)
    return ValueError(f"{place or 'it'} is {shown if len(shown) < 80 else shown[:77] + '...'}, not {wanted}")


def _inner(place: str, name: str) -> str:
    """The place of a field or entry, in one printable word."""
    shown = name if name.isidentifier() else ascii(name[:80])
    return f"{place}.{shown}" if place else shown
