"""A sample of raw files."""

from __future__ import annotations

import functools
import io
import posixpath
import zipfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, NamedTuple

import xxhash

from pipelines.engine.stage import Completion, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.planning.pieces import (
    FEWEST,
    POINTS,
    Lengths,
    Piece,
    Pieces,
    spread,
)
from pipelines.stages.extract import Extract, Segments, SourceFile, keep_page
from schemas.storage.folder import AtomicFile, Folder
from transforms.sources.formats import InputFile
from transforms.sources.inputs import FORMATS
from transforms.sources.items import Corrupt, Document, Item
from transforms.sources.streams import BLOCK, SUFFIXES

_READ_WHOLE = ("text", "parquet")
"""Formats of which a file or a row group is read whole: half a book is no book."""
_LEAST_COMPRESSED = 1 << 19
"""Bytes of a compressed dump that are a piece at least: records belong to where a block begins, and those are long."""


@dataclass(frozen=True)
class SampleExtract(Extract):
    """Extract of some pieces, each a unit; of a file that was cut, what the cut damaged is left out.

    Of the documents, which are all counted, a share by hash of the id is written, so that there is not too much to
    parse.
    """

    pieces: tuple[tuple[int, int, int], ...] = location(default=())
    uncut: int = location(default=0)  # the files behind this number are cut copies
    share: float = location(default=1.0)
    most_text: int = location(default=0)  # where the first documents are wanted: so many characters at most

    def plan(self, work: Work) -> list[Segments]:
        if self.most_text:
            return super().plan(work)
        return [Segments([list(piece)]) for piece in self.pieces]

    def _items(self, unit: Segments, place: Any) -> Iterator[tuple[Any, InputFile, Item]]:
        cut = {source.file for source in self.files[self.uncut :]} if self.pieces else set()
        taken = 0
        for after, file, item in super()._items(unit, place):
            if isinstance(item, Corrupt) and file in cut:
                return
            yield after, file, item
            taken += len(item.text) if isinstance(item, Document) else 0
            if self.most_text and taken >= self.most_text:
                return

    def _take(self, item: Item, source: InputFile, shards: Any, write: TaskWriter) -> None:
        if isinstance(item, Document) and self._sampled(item):
            write.counters["all_documents"] += 1
            write.counters["all_characters"] += len(item.text)
            # At least one, that it stands for those left out.
            if write.ledger.written and source in self._thinned and not self._is_kept(item):
                write.ledger.read += 1
                write.ledger.filtered["not_sampled"] += 1
                if item.page:
                    keep_page(item.page, write)
                return
        super()._take(item, source, shards, write)

    @functools.cached_property
    def _thinned(self) -> frozenset[InputFile]:
        """Files of many documents."""
        return frozenset(source.file for source in self.files if source.format != "text")

    def _is_kept(self, document: Document) -> bool:
        place = xxhash.xxh3_64_intdigest(f"plan\0{document.doc_id}".encode())
        return place < self.share * 2.0**64


class RawSample(NamedTuple):
    """A sample of raw files: the stage that reads it; for each of its units, the piece and whether it was cut."""

    stage: SampleExtract
    units: list[tuple[Piece, bool]]
    sizes: list[float]


def _text_a_byte(source: SourceFile) -> float:
    """Bytes of text to expect of a byte as stored, roughly."""
    suffix = posixpath.splitext(source.file.path)[1].lower()
    if suffix in SUFFIXES or suffix == ".zip" or source.format == "parquet":
        return 2.5
    return 0.5 if source.format == "wikipedia-xml" else 1.0


def sample_raw(extract: Extract, folder: Folder, most_text: int) -> RawSample | None:
    """A sample of raw files; None if all of them is little enough to be measured."""
    shard_bytes = min(extract.shard_bytes, most_text // POINTS)
    if extract.max_documents is not None:
        stage = _as_sample(extract, most_text=most_text, shard_bytes=shard_bytes)
        return RawSample(stage, [(Piece(1), True)], [extract.max_documents])
    text = sum(source.file.size * _text_a_byte(source) for source in extract.files)
    if text <= 1.25 * most_text:
        return None
    strata: dict[tuple[str, float], list[int]] = {}
    for number, source in enumerate(extract.files):
        strata.setdefault((source.format, _text_a_byte(source)), []).append(number)
    files, units, places, sizes = list(extract.files), [], [], []
    thick, thin = 0.0, 0.0
    for stratum, ((format_, ratio), numbers) in enumerate(sorted(strata.items())):
        size = sum(extract.files[number].file.size for number in numbers)
        part = size * ratio / text
        wanted = _piece_bytes(format_, ratio, most_text)
        points = max(round(POINTS * part), 2)
        hits = _raw_hits(extract.files, numbers, wanted, points, int(part * most_text / ratio))
        sizes.append(float(size))
        for (number, start, end), times in sorted(hits.items()):
            source = extract.files[number]
            is_cut = format_ not in _READ_WHOLE and end - start > 2 * wanted * times
            if is_cut:
                source = _cut(source, folder / f"input/{len(files)}", wanted * times)
                number, start, end = len(files), 0, source.file.size
                files.append(source)
            places.append((number, start, end))
            units.append((Piece(end - start, times, stratum), is_cut))
            if format_ == "text":
                thick += (end - start) * ratio
            else:
                thin += (end - start) * ratio
    if sum(piece.size for piece, _ in units) > 0.75 * sum(sizes) and thick + thin <= 2 * most_text:
        return None
    share = min(max(most_text - thick, most_text / 4) / thin, 1) if thin else 1.0
    stage = _as_sample(
        extract,
        files=tuple(files),
        pieces=tuple(places),
        uncut=len(extract.files),
        share=share,
        shard_bytes=shard_bytes,
    )
    return RawSample(stage, units, sizes)


def _piece_bytes(format_: str, ratio: float, most_text: int) -> int:
    """Bytes as stored of a piece: a point's share of the text, but in compressed dumps several blocks."""
    least = _LEAST_COMPRESSED if format_ == "wikipedia-xml" and ratio > 1 else 1
    return max(int(most_text / POINTS / ratio), least)


def pieces_of(raw: RawSample, extracted: Sequence[Completion], shards: Sequence[Lengths]) -> Pieces:
    """The pieces of raw files: a unit is one, but a beginning is as many as it gave shards.

    At the end of a beginning a document is cut and lost. A document holds a place in proportion to its length, so
    about sum(L^2) / (2 sum(L)) characters of it were read in vain.
    """
    pieces: list[Piece] = []
    of_units: list[list[int]] = []
    of_shards: list[int] = []
    at = 0
    for each, (piece, is_cut) in zip(extracted, raw.units, strict=True):
        here = shards[at : at + sum(file.role == "train" for file in each.files)]
        at += len(here)
        characters = sum(shard.characters for shard in here)
        read = each.counters.get("all_characters", 0)
        piece = piece._replace(thinned=read / characters if characters else 1)
        first = len(pieces)
        if is_cut and characters:
            lost = sum(shard.squares for shard in here) / (2 * characters)
            size = piece.size * read / (read + lost)
            pieces += [
                piece._replace(size=size * shard.characters / characters, hits=piece.hits / len(here)) for shard in here
            ]
            of_shards += range(first, len(pieces))
        else:
            pieces.append(piece)
            of_shards += [first] * len(here)
        of_units.append(list(range(first, len(pieces))))
    hits = sum(piece.hits for piece, _ in raw.units)
    begun = sum(piece.hits for piece, is_cut in raw.units if is_cut) / hits
    return Pieces(pieces, raw.sizes, of_units, of_shards or [0], begun)


def first_documents(extract: SampleExtract, shards: Sequence[Lengths]) -> Pieces:
    """The pieces where the first N documents are wanted: shards, their sizes in documents."""
    assert extract.max_documents is not None
    pieces = [Piece(shard.documents) for shard in shards] or [Piece(1)]
    enough = sum(shard.characters for shard in shards) < extract.most_text
    size = sum(piece.size for piece in pieces) if enough else extract.max_documents
    return Pieces(pieces, [size], [list(range(len(pieces)))], list(range(len(pieces))), begun=1)


def _raw_hits(
    files: Sequence[SourceFile], numbers: Sequence[int], wanted: int, points: int, most: int
) -> Counter[tuple[int, int, int]]:
    """The segments (file, start, end) on which the points fall, fewer points where whole files are large."""
    ends = list(accumulate(files[number].file.size for number in numbers))
    segments: dict[int, list[tuple[int, int]]] = {}
    hits: Counter[tuple[int, int, int]] = Counter()
    taken = 0
    # From coarse to fine, so that the points are about even wherever it stops: 0, 4, 2, 6, 1, 5, 3, 7.
    for point in sorted(range(points), key=lambda number: f"{number:016b}"[::-1]):
        place = (2 * point + 1) * ends[-1] // (2 * points)
        index = bisect_right(ends, place)
        source = files[numbers[index]]
        if index not in segments:
            found = FORMATS[source.format].split(source.filesystem, source.file, target_bytes=wanted)
            segments[index] = [(each.start, each.end) for each in found]
        at = place - ends[index] + source.file.size
        starts = [start for start, _ in segments[index]]
        start, end = segments[index][max(bisect_right(starts, at) - 1, 0)]
        hits[numbers[index], start, end] += 1
        if source.format == "text" and hits[numbers[index], start, end] == 1:
            taken += end - start
            if taken >= most and len(hits) >= FEWEST:
                break
    return hits


def _as_sample(extract: Extract, **changes: Any) -> SampleExtract:
    return SampleExtract(**{each.name: getattr(extract, each.name) for each in fields(extract)} | changes)


def _cut(source: SourceFile, folder: Folder, size: int) -> SourceFile:
    """A copy of the beginning of a file; of a zip archive, whose end must be there, a copy of some members."""
    name = posixpath.basename(source.file.path)
    with source.filesystem.open_input_file(source.file.path) as file, AtomicFile(folder, name) as copy:
        if file.read(2) == b"PK":
            copy.write(_some_members(file, size))
        else:
            file.seek(0)
            while copy.bytes < size and (data := file.read(min(BLOCK, size - copy.bytes))):
                copy.write(data)
    return SourceFile(folder.filesystem, InputFile(folder.at(name), source.file.name, folder.size(name)), source.format)


def _some_members(file: Any, size: int) -> bytes:
    """A zip archive of members of another, evenly spread, with about so many bytes in all."""
    to = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(to, "w") as copy:
        members = [each for each in archive.infolist() if not each.is_dir()]
        sizes = [each.compress_size for each in members]
        points = max(size * len(members) // max(sum(sizes), 1), 1)
        for number in sorted(spread(sizes, points)):
            member = members[number]
            copy.writestr(member.filename, archive.read(member), compress_type=zipfile.ZIP_DEFLATED)
    return to.getvalue()
