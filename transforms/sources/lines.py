"""The lines of an input file with their offsets, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyarrow import fs

from transforms.sources.formats import InputFile, Segment
from transforms.sources.streams import Damaged, chunks, codec_of, wide_encoding

EXCERPT_BYTES = 200


class Line(NamedTuple):
    """A line without its newline. `start` is its byte in the text, `stored` in the file; they agree in a plain file."""

    start: int
    stored: int
    data: bytes
    too_long: bool  # if so, `data` is only its beginning


def is_plain(filesystem: fs.FileSystem, path: str) -> bool:
    """Whether a file is not compressed, and not UTF-16 or UTF-32, so that it can be read from any byte on."""
    with filesystem.open_input_file(path) as file:
        head = file.read(1 << 16)
    return codec_of(path, head) == "none" and not wide_encoding(head)


def split_lines(filesystem: fs.FileSystem, file: InputFile, *, target_bytes: int) -> list[Segment]:
    """Segments of `target_bytes` if the file is plain, otherwise one segment."""
    try:
        step = target_bytes if is_plain(filesystem, file.path) else file.size
    except Damaged:
        step = file.size
    starts = range(0, file.size, step) if file.size else range(1)
    return [Segment(start, min(start + step, file.size)) for start in starts]


def lines(
    filesystem: fs.FileSystem, path: str, *, start: int = 0, limit: int, within: int | None = None
) -> Iterator[Line]:
    """The lines that begin at or after byte `start`; of a line longer than `limit` bytes only the beginning.

    There are none if the first of them begins at or after byte `within`: so a line that is longer than many segments is
    not read by each of them. A `start` other than 0 is for plain files. Raises Damaged; the lines before it are whole.
    """
    begin = max(0, start - 1)  # the line with the byte before `start` began earlier
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
    """The lines in consecutive pieces of text, each piece given with its offset in the stored file.

    `begin` is the position of the first piece in the text. `skipping`: leave out its first line, the end of another
    one. `exact`: a byte of the text is a byte of the file, so a line has its own offset; otherwise it has the offset of
    the piece that it begins in. State: `pending`, the pieces of the line being read, which began at `begun`.

    >>> pieces = [(0, b"one\\ntw"), (6, b"o\\n"), (8, b"three")]
    >>> [(line.start, line.data) for line in cut_lines(pieces, limit=9, exact=True)]
    [(0, b'one'), (4, b'two'), (8, b'three')]
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
