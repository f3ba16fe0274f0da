"""Extract: raw text -> documents, in shards of bounded size, in the order of the input."""

from __future__ import annotations

import itertools
import math
import posixpath
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
import xxhash
from pyarrow import fs

from pipelines.engine.exchange import n_ranges, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from schemas.errors import CorruptInput, UserError
from schemas.kinds.documents import DOCUMENTS
from schemas.storage.folder import AtomicFile, Folder
from transforms.activity import note_read, read_up_to
from transforms.sources.duplicates import KeyRows
from transforms.sources.formats import InputFile, Segment
from transforms.sources.inputs import FORMATS
from transforms.sources.items import Corrupt, Document, Filtered, Item, Page, Redirect, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.streams import SUFFIXES

SEGMENT_BYTES = 4
"""Raw bytes of a segment for each byte of a shard of documents: markup is removed, and a unit may fill many."""
CHECKPOINT_SHARDS = 16
SAMPLE_SEGMENT, SAMPLE_BYTES, SAMPLE_FILES = 1 << 21, 1 << 21, 16
"""For `--plan`: bytes of a segment; of a file that cannot be split, bytes that are read, and of how many files."""
KEYS_A_FILE = 500_000
KEYS_A_RANGE = 2_000_000
_BYTES_A_KEY = {"off": 2000, "documents": 1000, "near": 1000, "paragraphs": 40, "near-paragraphs": 40}


class SourceFile(NamedTuple):
    """A raw input file and the name of its format."""

    filesystem: fs.FileSystem
    file: InputFile
    format: str


class Segments(NamedTuple):
    """Pieces of input files, [file, start byte, end byte], that are read one after the other."""

    parts: list[list[int]]


class _Place(NamedTuple):
    """How far a unit has been read: `items` of part number `part`, and all parts before it."""

    part: int
    items: int


class Reading:
    """How much of the parts of a unit has been read, in bytes as stored."""

    def __init__(self, parts: list[list[int]]) -> None:
        self._bounds = [(start, end) for _, start, end in parts]
        self._edges = [0, *itertools.accumulate(end - start for start, end in self._bounds)]
        self._part = 0

    def begin(self, part: int) -> None:
        note_read(self._bounds[part][0])
        self._part = part

    def share(self) -> float:
        """From 0 to 1. Readers read on to the end of the last record."""
        start, end = self._bounds[self._part]
        return (self._edges[self._part] + min(read_up_to(), end) - start) / max(self._edges[-1], 1)


@dataclass(frozen=True)
class Extract(Stage):
    """Documents from raw files. Files that can be split are read in segments, others from beginning to end.

    Each record of a file is a document, or it is filtered by a rule, or rejected for a fault. Damaged input ends the
    run unless `on_corrupt` is "skip". Because a unit can be a whole dump, there is a checkpoint after every
    CHECKPOINT_SHARDS shards.
    """

    name: ClassVar[str] = "extract"
    version: ClassVar[int] = 3
    counts: ClassVar[str] = "records"
    Unit: ClassVar[type] = Segments

    formats: tuple[tuple[str, int], ...]  # formats of the files, with the versions of their readers
    read: ReadOptions
    shard_bytes: int
    on_corrupt: str
    max_documents: int | None
    sample_rate: float
    sample_seed: int
    dedup: str
    files: tuple[SourceFile, ...] = location()

    @property
    def _segment_bytes(self) -> int:
        return self.shard_bytes * SEGMENT_BYTES

    def plan(self, work: Work) -> list[Segments]:
        # --max-documents takes the first documents of the input, so one unit reads until it has them.
        whole = self.max_documents is not None
        return [Segments(parts) for parts in parts_of(self.files, FORMATS, self._segment_bytes, whole=whole)]

    def sample(self, folder: Folder) -> Stage:
        long = [number for number, each in enumerate(self.files) if self._is_long(each)]
        some = {*long[:: -(-len(long) // SAMPLE_FILES) or 1]}
        files, cut = [], []
        for number, source in enumerate(self.files):
            if number in some:
                source = _beginning(source, folder / str(number))
                cut.append(source.file)
            elif number in long:
                continue
            files.append(source)
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return SampleExtract(**own | {"max_documents": None, "files": tuple(files), "cut": tuple(cut)})

    def _is_long(self, source: SourceFile) -> bool:
        """Whether a file is too long for a sample, and cannot be split."""
        if source.format in ("text", "parquet") or source.file.size <= SAMPLE_BYTES:
            return False
        segments = FORMATS[source.format].split(source.filesystem, source.file, target_bytes=SAMPLE_SEGMENT)
        return len(segments) == 1

    def size(self, unit: Segments) -> float:
        return sum((end - start) * _text_a_byte(self.files[number]) for number, start, end in unit.parts)

    def most_rows(self, work: Work) -> int | None:
        return self.max_documents

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        check_files(self.files)

    def process(self, unit: Segments, write: TaskWriter) -> None:
        part, items, done = write.resumed or (0, 0, 0)
        shards = _Shards(write, self.shard_bytes, self.dedup, self._ranges(), done=done)
        reading, most = Reading(unit.parts), self.max_documents or math.inf
        with write.part(0.98, lambda: max(reading.share(), write.ledger.written / most)):
            for place, file, item in self._items(unit, _Place(part, items), reading):
                before = shards.done
                self._take(item, file, shards, write)
                if write.ledger.written == self.max_documents:
                    break
                if shards.done > before and shards.done % CHECKPOINT_SHARDS == 0:
                    shards.end()
                    write.checkpoint([*place, shards.done])
        shards.end()

    def _items(self, unit: Segments, place: _Place, reading: Reading) -> Iterator[tuple[_Place, InputFile, Item]]:
        """The items of a unit after a place, each with the place after it.

        After (part 1, 2 items) come the third item of part 1, with the place (1, 3), and so on; then the first item of
        part 2, with the place (2, 1).
        """
        skip = place.items
        for part in range(place.part, len(unit.parts)):
            number, start, end = unit.parts[part]
            reading.begin(part)
            source = self.files[number]
            segment = Segment(start, end)
            items = FORMATS[source.format].read(source.filesystem, source.file, segment, options=self.read, skip=skip)
            for read, item in enumerate(items, start=skip + 1):
                yield _Place(part, read), source.file, item
            skip = 0

    def _take(self, item: Item, source: InputFile, shards: _Shards, write: TaskWriter) -> None:
        """Write an item as a row, a count or a reject. UserError for damage, unless it is skipped."""
        write.ledger.read += 1
        if not isinstance(item, Redirect | Corrupt) and item.page:
            keep_page(item.page, write)
        if isinstance(item, Document):
            if not self._sampled(item):
                write.ledger.filtered["not_sampled"] += 1
                return
            shards.add(item)
            write.ledger.written += 1
            write.counters[f"licence:{item.licence}"] += 1
            if item.language:
                write.counters[f"language:{item.language}"] += 1
            write.counters["characters"] += len(item.text)
            write.counters["links"] += len(item.links)
        elif isinstance(item, Redirect):
            write.ledger.filtered["redirect"] += 1
            write.side("redirects", item._asdict())
        elif isinstance(item, Filtered):
            write.ledger.filtered[item.reason] += 1
        elif isinstance(item, Rejected):
            write.reject(
                item.reason,
                source=source.name,
                position=item.position,
                excerpt=item.excerpt,
                exception=item.exception,
            )
        elif self.on_corrupt == "skip":
            position = f"byte {item.byte}"
            # The message has the file's path on this machine; the reject must not depend on it.
            exception = item.message.replace(source.path, source.name)
            write.reject(item.reason, source=source.name, position=position, excerpt=item.excerpt, exception=exception)
        else:
            raise CorruptInput(item.message)

    def _sampled(self, document: Document) -> bool:
        if self.sample_rate >= 1:
            return True
        place = xxhash.xxh3_64_intdigest(f"sample\0{document.doc_id}".encode(), seed=self.sample_seed)
        return place < self.sample_rate * 2.0**64

    def _ranges(self) -> int:
        size = sum(each.file.size for each in self.files)
        return n_ranges(size // _BYTES_A_KEY[self.dedup], rows_a_range=KEYS_A_RANGE)


@dataclass(frozen=True)
class SampleExtract(Extract):
    """Extract for `--plan`: small segments, and files that are cut: what that damaged at their end is no fault."""

    cut: tuple[InputFile, ...] = location(default=())

    @property
    def _segment_bytes(self) -> int:
        return min(super()._segment_bytes // 2, SAMPLE_SEGMENT)

    def _items(self, unit: Segments, place: _Place, reading: Reading) -> Iterator[tuple[_Place, InputFile, Item]]:
        for found in super()._items(unit, place, reading):
            if isinstance(found[2], Corrupt) and found[1] in self.cut:
                return
            yield found


def parts_of(
    files: Sequence[SourceFile], formats: Mapping[str, Any], target: int, *, whole: bool = False
) -> list[list[list[int]]]:
    """The parts of each unit, [file, start byte, end byte]: about `target` bytes, or everything in one unit."""
    units: list[list[list[int]]] = []
    parts: list[list[int]] = []
    size = 0
    for number, source in enumerate(files):
        for segment in formats[source.format].split(source.filesystem, source.file, target_bytes=target):
            if parts and size + segment.end - segment.start > target and not whole:
                units.append(parts)
                parts, size = [], 0
            parts.append([number, segment.start, segment.end])
            size += segment.end - segment.start
    return [*units, parts] if parts else units


def check_files(files: Sequence[SourceFile]) -> None:
    """UserError if this machine does not reach the files, or has others."""
    for source in files:
        info = source.filesystem.get_file_info(source.file.path)
        if info.size != source.file.size:
            found = "not there" if info.type == fs.FileType.NotFound else f"of {info.size:,} bytes"
            raise UserError(
                f"{source.file.path}: is {found} for the workers, and of {source.file.size:,} bytes here; put it "
                "where all machines reach it under the same name"
            )


def _text_a_byte(source: SourceFile) -> float:
    """Bytes of text to expect of a byte as stored, roughly: of two kinds of input, one takes longer for its bytes."""
    suffix = posixpath.splitext(source.file.path)[1].lower()
    packed = suffix in (*SUFFIXES, ".zip") or source.format == "parquet"
    return (2.5 if packed else 1.0) * (0.6 if source.format == "wikipedia-xml" else 1.0)


def _beginning(source: SourceFile, folder: Folder) -> SourceFile:
    """A copy of the beginning of a file; of a zip archive, whose end must be there, a copy of some members."""
    name = posixpath.basename(source.file.path)
    with source.filesystem.open_input_file(source.file.path) as file, AtomicFile(folder, name) as copy:
        if file.read(2) == b"PK":
            with zipfile.ZipFile(file) as archive, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as some:
                members = [each for each in archive.infolist() if not each.is_dir()]
                size = sum(each.compress_size for each in members)
                for each in members[:: max(size // SAMPLE_BYTES, 1)]:
                    some.writestr(each.filename, archive.read(each))
        else:
            file.seek(0)
            copy.write(file.read(SAMPLE_BYTES))
    return source._replace(
        filesystem=folder.filesystem, file=InputFile(folder.at(name), source.file.name, folder.size(name))
    )


def keep_page(page: Page, write: TaskWriter) -> None:
    """Write the rows of a page, and of the titles that redirect to it, to the side tables."""
    write.side("pages", page._replace(redirects=())._asdict())
    for title in page.redirects:
        write.side("redirects", Redirect(page.source, title, page.title)._asdict())


class _Shards:
    """Writes documents in shards of at least `shard_bytes` of text (the last may be smaller), and their KEYS.

    `done` is the number of shards that the unit has so far, including those before an interruption.
    """

    def __init__(self, write: TaskWriter, shard_bytes: int, dedup: str, ranges: int, *, done: int) -> None:
        self._write, self._shard_bytes, self._dedup, self._ranges = write, shard_bytes, dedup, ranges
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self.done = done
        self._keys = KeyRows(dedup)

    def add(self, document: Document) -> None:
        self._keys.add(document, self._write.ledger.written)
        links = [link._asdict() for link in document.links]
        self._rows.append({**document._replace(page=None)._asdict(), "links": links})
        self._bytes += len(document.text.encode())
        if self._bytes >= self._shard_bytes:
            self._flush()

    def end(self) -> None:
        """Write everything that was added."""
        if self._rows:
            self._flush()
        self._flush_keys()

    def _flush(self) -> None:
        self._write.table("train", pa.Table.from_pylist(self._rows, schema=DOCUMENTS), row_group_rows=1 << 30)
        self._rows, self._bytes = [], 0
        self.done += 1
        if len(self._keys) >= KEYS_A_FILE:
            self._flush_keys()

    def _flush_keys(self) -> None:
        if len(self._keys):
            write_ranges(self._write, "keys", self._keys.table(), ranges=self._ranges)
            self._keys = KeyRows(self._dedup)
