"""What --input names: raw files with their formats, or datasets of an earlier stage.

An input is a file, a folder (all files below it, except hidden ones), a glob (`*`, `?`, `[...]`, `**`) or an address
(s3://, gs://) of any of these. The result does not depend on their order.

Names. Ids are made from a file's stable name: its path below the given folder, or below the part of a glob before its
first wildcard, or the file's own name if the file itself is given. So ids stay the same when a corpus is moved. A file
that is named twice is read once. Of several files with one name, those with the same content are read once, and those
with different contents get the first 8 hexadecimal digits of their sha256 ("book~1a2b3c4d.txt").

Formats are recognised by name and first bytes. In a folder or a glob, files of unknown format and files about the
corpus (README, LICENSE...) are left out with a notice. Such a file given by its own name is an error, unless
--input-format names its format.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from schemas.errors import UserError
from schemas.storage.addresses import filesystem_of, is_address, parse, without_secrets
from schemas.storage.errors import StorageError
from transforms.sources.books import is_text
from transforms.sources.formats import FORMAT_OBJECTS, Format, InputFile
from transforms.sources.streams import BLOCK, Damaged, read_head


def _format(place: str) -> Format:
    module, _, name = place.partition(".")
    found: Format = getattr(importlib.import_module(f"transforms.sources.{module}"), name)
    return found


FORMATS = {name: _format(place) for name, place in FORMAT_OBJECTS.items()}
"""The formats by name, in the order in which a file is tried."""

MANIFEST = "manifest.json"

_PLAIN_NAMES = {
    "text": "_.txt",
    "wikitext-corpus": "_.tokens",
    "jsonl": "_.jsonl",
    "wikipedia-xml": "_.xml",
    "wikipedia-html": "_-NS0-ENTERPRISE-HTML.ndjson",
}
_HEAD_BYTES = 1 << 16
_ABOUT = re.compile(
    r"(?:read[-_ ]?me|licen[cs]e|copying|copyright|notice|authors|changelog|contributing|requirements|robots|"
    r"(?:md5|sha\d+)(?:sums?)?)(?:[.\-_].*)?$",
    re.IGNORECASE,
)
_XML_FILE = re.compile(r"\.xml(?:\.\w+)?$", re.IGNORECASE)
_WILDCARD = re.compile(r"[*?\[]")
_SHOWN = 5  # names shown in a message


class InputError(UserError):
    """What --input or --input-format names cannot be read; the message says why and what to do."""


class Input(NamedTuple):
    """A raw file to read. `address` is its place, for messages and manifests."""

    filesystem: fs.FileSystem
    file: InputFile
    format: Format
    address: str


class RawFiles(NamedTuple):
    """The raw files of a run, by name, and notices about them for the user."""

    inputs: tuple[Input, ...]
    notices: tuple[str, ...]


class DatasetFolder(NamedTuple):
    """A dataset of an earlier stage: a folder with a manifest."""

    filesystem: fs.FileSystem
    path: str


class Datasets(NamedTuple):
    """The datasets of a run, by path."""

    folders: tuple[DatasetFolder, ...]


def resolve_inputs(
    inputs: Sequence[str], *, input_format: str | None = None, formats: Mapping[str, Any] = FORMATS
) -> RawFiles | Datasets:
    """The files or datasets that `inputs` name. Raises InputError if one cannot be read.

    `formats` are those that a file may have: `Format` of documents, or others with the same `recognises`.
    """
    if not inputs:
        raise InputError("no input; name one with --input")
    if input_format is not None and input_format not in formats:
        raise InputError(
            f"--input-format={input_format} is none of {', '.join(formats)}{_did_you_mean(input_format, formats)}"
        )
    found: list[_Found] = []
    datasets: dict[str, DatasetFolder] = {}
    notices: list[str] = []
    for each in sorted(inputs):
        filesystem, path = locate(each)
        here = _find(filesystem, path, given=each, notices=notices)
        if isinstance(here, DatasetFolder):
            datasets[_identity(filesystem, path)] = here
        else:
            found += [
                file._replace(address=address_of(each, file.path))
                for file in _with_formats(here, given=each, input_format=input_format, formats=formats, notices=notices)
            ]
    if datasets and found:
        raise InputError(
            f"{next(iter(datasets.values())).path!r} is a dataset and {found[0].path!r} a raw file; "
            "read them in two runs, or leave one out"
        )
    if datasets:
        if input_format is not None:
            raise InputError(f"--input-format={input_format} is for raw files; --input names a dataset; leave it out")
        return Datasets(tuple(datasets[key] for key in sorted(datasets)))
    return RawFiles(*_named_apart(_once(found, notices), notices))


def file_sha256(filesystem: fs.FileSystem, path: str) -> str:
    """The sha256 of a stored file, in hexadecimal; reads it block by block."""
    digest = hashlib.sha256()
    with filesystem.open_input_file(path) as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


# ---- Finding files


class _Found(NamedTuple):
    filesystem: fs.FileSystem
    path: str
    name: str
    size: int
    named_itself: bool
    format: Format | None = None
    address: str = ""


def locate(given: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a given path or address, and the path or glob within it."""
    try:
        if not is_address(given):
            return filesystem_of(given)
        address = parse(given)
        wildcard = _WILDCARD.search(address.rest)
        fixed = address.rest[: wildcard.start()] if wildcard else address.rest
        filesystem, path = filesystem_of(str(address._replace(rest=fixed)))
    except StorageError as error:
        raise InputError(str(error)) from None
    if not wildcard:
        return filesystem, path
    return filesystem, path + "/" * fixed.endswith("/") + address.rest[wildcard.start() :]


def address_of(given: str, path: str) -> str:
    """The address of a file at `path` that was found through `given`."""
    if not is_address(given):
        return path
    address = parse(given)
    return path if address.scheme == "file" else str(address._replace(rest=quote(path)))


def _find(filesystem: fs.FileSystem, path: str, *, given: str, notices: list[str]) -> list[_Found] | DatasetFolder:
    try:
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.File:
            return [_Found(filesystem, path, posixpath.basename(path), info.size, named_itself=True)]
        if info.type == fs.FileType.Directory:
            if filesystem.get_file_info(posixpath.join(path, MANIFEST)).type == fs.FileType.File:
                return DatasetFolder(filesystem, path)
            return list(_below(filesystem, path, re.compile(".*", re.DOTALL), notices))
        if _WILDCARD.search(path):
            return _glob(filesystem, path, given=given, notices=notices)
    except UnicodeDecodeError as error:
        name = os.fsdecode(bytes(error.object)).encode("utf-8", "backslashreplace").decode()
        raise InputError(f"{given!r} holds {name!r}, a name that is not UTF-8; rename it") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{given!r} cannot be read ({_line(error)}); check its access rights") from error
    if info.type == fs.FileType.Unknown:
        raise InputError(f"{given!r} is neither a file nor a folder")
    raise InputError(_missing(filesystem, path, given))


def _below(filesystem: fs.FileSystem, folder: str, wanted: re.Pattern[str], notices: list[str]) -> Iterator[_Found]:
    """The files whose path below a folder matches `wanted`, in order of path, without hidden files and datasets."""
    infos = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    paths = {info.path: info for info in infos if info.type == fs.FileType.File}
    datasets = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == MANIFEST}
    left_out = set()
    for path in sorted(paths):
        name = posixpath.relpath(path, folder)
        if not wanted.fullmatch(name) or any(part.startswith((".", "_")) for part in name.split("/")):
            continue
        inside = [dataset for dataset in datasets if path.startswith(f"{dataset}/")]
        if inside:
            left_out.update(inside)
        else:
            yield _Found(filesystem, path, name, paths[path].size, named_itself=False)
    if left_out:
        notices.append(f"left out {_listed(sorted(left_out))}: datasets; name one itself to read it")


def _glob(filesystem: fs.FileSystem, path: str, *, given: str, notices: list[str]) -> list[_Found]:
    wildcard = _WILDCARD.search(path)
    assert wildcard
    folder, _, pattern = path[: wildcard.start()].rpartition("/")
    pattern += path[wildcard.start() :]
    if filesystem.get_file_info(folder or "/").type != fs.FileType.Directory:
        raise InputError(_missing(filesystem, folder, given))
    found = list(_below(filesystem, folder or "/", _pattern(pattern), notices))
    if not found:
        raise InputError(f"{given!r} matches no file{_contents(filesystem, folder or '/')}")
    return found


def _pattern(glob: str) -> re.Pattern[str]:
    """A glob on "/"-separated paths: "**" matches any folders, the other wildcards never match a "/"."""
    out = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", glob, re.DOTALL):
        if part == "**/":
            out += "(?:.*/)?"
        elif part == "**":
            out += ".*"
        elif part == "*":
            out += "[^/]*"
        elif part == "?":
            out += "[^/]"
        elif len(part) > 1:
            inner = part[1:-1].replace("\\", r"\\")
            out += f"[^/{inner[1:]}]" if inner.startswith("!") else f"(?!/)[{inner}]"
        else:
            out += re.escape(part)
    return re.compile(out, re.DOTALL)


# ---- Formats


def _with_formats(
    found: list[_Found],
    *,
    given: str,
    input_format: str | None,
    formats: Mapping[str, Any],
    notices: list[str],
) -> list[_Found]:
    readable: list[_Found] = []
    unreadable: list[_Found] = []
    for each in found:
        about = not each.named_itself and _ABOUT.match(posixpath.basename(each.path))
        format_ = None if about else _format_of(each, input_format, formats)
        (unreadable if format_ is None else readable).append(each._replace(format=format_))
    if not found:
        raise InputError(f"the folder {given!r} holds no file")
    if not readable:
        names = _listed([each.name for each in unreadable])
        one = unreadable[0] if len(unreadable) == 1 and unreadable[0].named_itself else None
        nothing = f"{given!r} holds nothing to read: {names}; {_choices(formats)}"
        raise InputError(_unknown(one, input_format, formats) if one else nothing)
    if unreadable:
        names = _listed([each.name for each in unreadable])
        notices.append(f"left out of {given!r}: {names}: not input, or of no known format")
    return readable


def _choices(formats: Iterable[str]) -> str:
    return f"the formats are {', '.join(formats)} (--input-format)"


def _format_of(found: _Found, input_format: str | None, formats: Mapping[str, Any]) -> Any:
    if found.named_itself and not found.size:
        raise InputError(f"{found.path!r} is empty; remove it or fetch it again")
    try:
        head = read_head(found.filesystem, found.path, _HEAD_BYTES) if found.size else b""
    except Damaged:
        head = b""
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{found.path!r} cannot be read ({_line(error)}); check its access rights") from error
    if input_format is None:
        known = next((each for each in formats.values() if each.recognises(found.path, head)), None)
        # If nothing can be read, the name decides, and the reader then reports the damage.
        cut = known is None and not head and _XML_FILE.search(found.path)
        return formats.get("wikipedia-xml") if cut else known
    # With --input-format, the file name may be any.
    each = formats[input_format]
    fits = each.recognises(found.path, head) or each.recognises(_PLAIN_NAMES.get(input_format, found.path), head)
    return each if fits else None


def _unknown(found: _Found, input_format: str | None, formats: Mapping[str, Any]) -> str:
    try:
        head = read_head(found.filesystem, found.path, _HEAD_BYTES)
    except Damaged as damage:
        return damage.message
    begins = f"{found.path!r} begins with {head[:24]!r} and"
    if input_format is not None:
        return f"{begins} does not fit --input-format={input_format}; {_choices(formats)}"
    hint = ""
    if formats is not FORMATS:
        pass
    elif re.match(rb"\s*\[", head):
        hint = "; a JSON array must become one object a line (jq -c '.[]')"
    elif is_text(head):
        hint = "; --input-format=text reads it as a book"
    return f"{begins} is of no known format; {_choices(formats)}{hint}"


# ---- Names


def _identity(filesystem: fs.FileSystem, path: str) -> str:
    """The same string for all ways to name one file."""
    if isinstance(filesystem, fs.LocalFileSystem):
        return os.path.realpath(path)
    return f"{filesystem.type_name}:{path}"


def _once(found: list[_Found], notices: list[str]) -> list[_Found]:
    """Each file once, by the shortest of its names."""
    files: dict[str, list[_Found]] = defaultdict(list)
    for each in found:
        files[_identity(each.filesystem, each.path)].append(each)
    once = [min(same, key=lambda each: (len(each.name), each.name, each.path)) for same in files.values()]
    if again := sorted(first.path for first, same in zip(once, files.values(), strict=True) if len(same) > 1):
        notices.append(f"named more than once, read once: {_listed(again)}")
    return once


def _named_apart(found: list[_Found], notices: list[str]) -> tuple[tuple[Input, ...], tuple[str, ...]]:
    """The files with unique names, independent of their order."""
    names: dict[str, list[_Found]] = defaultdict(list)
    for each in found:
        names[each.name].append(each)
    inputs = []
    for name, same in names.items():
        if len(same) == 1:
            inputs.append(_input(same[0], name))
            continue
        contents: dict[str, list[_Found]] = defaultdict(list)
        for each in same:
            contents[file_sha256(each.filesystem, each.path)].append(each)
        for sha256, copies in contents.items():
            first = min(copies, key=lambda each: each.path)
            inputs.append(_input(first, _marked(name, sha256[:8]) if len(contents) > 1 else name))
            if len(copies) > 1:
                others = _listed(sorted(each.path for each in copies if each is not first))
                notices.append(f"{others} has the name and the content of {first.path!r}; read once")
        if len(contents) > 1:
            notices.append(
                f"{len(contents)} different files are named {name!r}; their ids carry a part of their sha256"
            )
    return tuple(sorted(inputs, key=lambda each: each.file.name)), tuple(sorted(notices))


def _marked(name: str, mark: str) -> str:
    folder, slash, base = name.rpartition("/")
    stem, dot, suffixes = base.partition(".")
    return f"{folder}{slash}{stem}~{mark}{dot}{suffixes}"


def _input(found: _Found, name: str) -> Input:
    assert found.format is not None
    return Input(found.filesystem, InputFile(found.path, name, found.size), found.format, found.address)


# ---- Messages


def _missing(filesystem: fs.FileSystem, path: str, given: str) -> str:
    """A message: what is missing, the closest folder above it that exists, and similar names in that."""
    parent, _, name = path.rstrip("/").rpartition("/")
    while parent and filesystem.get_file_info(parent).type != fs.FileType.Directory:
        parent, _, name = parent.rpartition("/")
    if not parent:
        return f"{given!r} does not exist"
    names = [posixpath.basename(info.path) for info in filesystem.get_file_info(fs.FileSelector(parent))]
    near = _did_you_mean(name, names)
    return f"{given!r} does not exist: no {name!r} in {parent!r}{near or _contents(filesystem, parent)}"


def _contents(filesystem: fs.FileSystem, folder: str) -> str:
    names = sorted(posixpath.basename(info.path) for info in filesystem.get_file_info(fs.FileSelector(folder)))
    return f"; {folder!r} holds {_listed(names) or 'nothing'}"


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {rest:,} more" if rest > 0 else "")


def _line(error: Exception) -> str:
    return without_secrets(" ".join(str(error).split()))[:300]
