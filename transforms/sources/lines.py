"""The lines of an input file with their offsets, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.streams import Damaged, chunks, codec_of

EXCERPT_BYTES = 200


class Line(NamedTuple):
    """A line without its newline. `start` counts bytes of the text, `stored` bytes of the file: the same if plain."""

    start: int
    stored: int
    data: bytes
    too_long: bool  # then `data` is only its beginning


def is_plain(filesystem: fs.FileSystem, path: str) -> bool:
    """Whether a file is stored as it is, so that its lines can be read from anywhere in it."""
    with filesystem.open_input_file(path) as file:
        return codec_of(path, file.read(1 << 16)) == "none"


def split_lines(filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
    """Cuts every `target_bytes` if the file is plain, else none."""
    try:
        step = target_bytes if is_plain(filesystem, file.path) else file.size
    except Damaged:
        step = file.size
    starts = range(0, file.size, step) if file.size else range(1)
    return [Segment(start, min(start + step, file.size)) for start in starts]


def lines(
    filesystem: fs.FileSystem, path: str, *, start: int = 0, limit: int, within: int | None = None
) -> Iterator[Line]:
    """The lines that begin at byte `start` or behind it; of one longer than `limit` bytes only the beginning.

    None, where the first of them would begin at byte `within` or behind it: so the parts of a line that is longer than
    many segments are not read by each of them. A `start` other than 0 is for plain files. Raises Damaged; the lines
    before it are whole.
    """
    begin = max(0, start - 1)  # the line that holds the byte before `start` began before it
    pieces = chunks(filesystem, path, start=begin)
    exact = is_plain(filesystem, path)
    yield from cut_lines(pieces, begin=begin, skipping=start > 0, limit=limit, within=within, exact=exact)


def cut_lines(
    pieces: Iterable[tuple[int, bytes]],
    *,
    limit: int,
    exact: bool,
    begin: int = 0,
    skipping: bool = False,
    within: int | None = None,
) -> Iterator[Line]:
    """The lines in pieces of text that follow each other, each given with its offset in the file as stored.

    `begin` is the position of the first piece in the text. `skipping`: its first line is the end of another. `exact`: a
    byte of the text is a byte of the file, so that each line has an offset of its own; else it has that of the piece
    that it begins in.
    """
    position = begun = stored_begun = begin
    pending: list[bytes] = []
    size = 0
    for stored, data in pieces:
        if skipping and within is not None and position >= within:
            return
        if begun == position:
            stored_begun = stored
        at = 0
        while at < len(data):
            newline = data.find(b"\n", at)
            piece = data[at : newline if newline >= 0 else len(data)]
            if not skipping and size <= limit:
                pending.append(piece)
            size += len(piece)
            if newline < 0:
                break
            if not skipping:
                yield _line(begun, stored_begun, pending, size > limit)
            skipping, pending, size = False, [], 0
            at = newline + 1
            begun = position + at
            stored_begun = stored + at if exact else stored
        position += len(data)
    if size and not skipping:
        yield _line(begun, stored_begun, pending, size > limit)


def _line(start: int, stored: int, pending: list[bytes], too_long: bool) -> Line:
    data = b"".join(pending)
    return Line(start, stored, data[:EXCERPT_BYTES] if too_long else data, too_long)
