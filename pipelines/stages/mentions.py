"""Mentions: documents -> hyperlinks in their sentences, with their targets resolved.

ReadTables, JoinTables   what side tables and SQL dumps say about pages: by page id, then by title
Follow                   the page that each title leads to, redirects followed
Targets, Resolve         exchange by title: the distinct titles that some shards link to, and their pages
FindMentions             for the shards of documents: sentences, mentions, filters
"""

from __future__ import annotations

import gzip
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from pipelines.engine.exchange import n_ranges, read_range, write_parts, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.units import All, Range, Shards, range_units, shard_units, shards_a_unit
from schemas.errors import UserError
from schemas.json_values import Signed
from schemas.kinds.documents import PAGES, REDIRECTS
from schemas.kinds.mentions import MENTIONS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.activity import note_read, read_up_to
from transforms.mentions.facts import (
    KEYED_FACTS,
    facts_of_pages,
    join_facts,
    keyed,
    titles_of_pages,
    titles_of_redirects,
)
from transforms.mentions.finding import Source, Target, find_mentions
from transforms.mentions.languages import require
from transforms.mentions.options import MentionRules
from transforms.mentions.redirects import MEANINGS, TITLES, follow, lookup
from transforms.mentions.titles import normalise, title_keys
from transforms.sources.sql_tables import SqlTable, read_facts
from transforms.sources.streams import chunks

ROWS_A_RANGE = 2_000_000
FACTS_A_FILE = 1_000_000
SIDES_A_UNIT = 64
SAMPLE_SQL = 8 << 20
"""For `--plan`: bytes of a dump, unpacked, that are read: half a second."""
ROW_GROUP = 8_192

WANTED = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), ("unit", pa.int32()), ("index", pa.int32())])
"""A title that the shards of a unit link to. `index` is its number among the distinct titles of the unit."""

RESOLVED = pa.schema(
    [
        ("unit", pa.int32()),
        ("index", pa.int32()),
        ("title", pa.string()),
        ("section", pa.string()),
        ("entity", pa.int64()),
        ("disambiguation", pa.bool_()),
        ("known", pa.bool_()),
        ("redirected", pa.bool_()),
    ]
)
"""The page of a title; `title` is empty if no table has it."""


class SqlFile(NamedTuple):
    """An SQL dump of a table of the wiki's database; `stored`: its bytes, compressed."""

    filesystem: fs.FileSystem
    table: SqlTable
    stored: int


class TableUnit(NamedTuple):
    """Side files of the documents (`side` is "pages" or "redirects"), or SQL dump number `dump` (`side` is "sql")."""

    side: str
    paths: list[str]
    dump: Signed
    ranges: int


@dataclass(frozen=True)
class ReadTables(Stage):
    """Map of the exchanges by page id and by title: reads the documents' side tables and SQL dumps."""

    name: ClassVar[str] = "read_tables"
    Unit: ClassVar[type] = TableUnit

    documents: str = location()
    dumps: tuple[SqlFile, ...] = location(default=())

    def sample(self, folder: Folder) -> Stage:
        return replace(self, dumps=tuple(_beginning(each, folder) for each in self.dumps))

    def size(self, unit: TableUnit) -> float:
        return self.dumps[unit.dump].stored if unit.side == "sql" else 0.0

    def plan(self, work: Work) -> list[TableUnit]:
        sides = read_manifest(Folder(self.documents)).sides
        self._check_wikis([shard.path for shard in sides.get("pages", ())])
        rows = sum(shard.rows for side in ("pages", "redirects") for shard in sides.get(side, ()))
        size = sum(each.stored for each in self.dumps)
        ranges = n_ranges(rows + size // _BYTES_A_FACT, rows_a_range=ROWS_A_RANGE)
        units = []
        for side in ("pages", "redirects"):
            paths = [shard.path for shard in sides.get(side, ())]
            units += [
                TableUnit(side, paths[first : first + SIDES_A_UNIT], -1, ranges)
                for first in range(0, len(paths), SIDES_A_UNIT)
            ]
        return [*units, *(TableUnit("sql", [], number, ranges) for number in range(len(self.dumps)))]

    def _check_wikis(self, pages: Sequence[str]) -> None:
        """UserError for a dump of a wiki that no document is from: nothing would be found in it."""
        if not self.dumps:
            return
        wikis: set[str] = set()
        for path in pages:
            wikis.update(pc.unique(read_parquet(Folder(self.documents), path, ["source"]).column("source")).to_pylist())
        for each in self.dumps:
            if each.table.source not in wikis:
                raise UserError(
                    f"--tables {each.table.path}: is from {each.table.source}, and the documents are from "
                    f"{', '.join(sorted(wikis)) or 'no wiki'}; give tables of the same wiki"
                )

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        for each in self.dumps:
            if each.filesystem.get_file_info(each.table.path).type != fs.FileType.File:
                raise UserError(
                    f"--tables {each.table.path}: the workers do not find it; put it where all machines reach it under "
                    "the same name"
                )

    def process(self, unit: TableUnit, write: TaskWriter) -> None:
        if unit.side == "sql":
            dump = self.dumps[unit.dump]
            note_read(0)
            with write.part(1.0, lambda: read_up_to() / max(dump.stored, 1)):
                for facts in read_facts(dump.filesystem, dump.table, batch_rows=FACTS_A_FILE):
                    write.counters[f"{dump.table.table}_rows"] += facts.num_rows
                    write_ranges(write, "facts", keyed(facts, dump.table.source), ranges=unit.ranges)
            return
        schema = {"pages": PAGES, "redirects": REDIRECTS}[unit.side]
        tables = [schema.empty_table()]
        for path in write.each(unit.paths, 0.4):
            tables.append(read_parquet(Folder(self.documents), path).cast(schema))
        table = pa.concat_tables(tables).combine_chunks()
        write.counters[unit.side] += table.num_rows
        titles = titles_of_pages(table) if unit.side == "pages" else titles_of_redirects(table)
        with write.part(0.5):
            write_ranges(write, "titles", titles, ranges=unit.ranges)
        if unit.side == "pages" and self.dumps:
            write_ranges(write, "facts", facts_of_pages(table), ranges=unit.ranges)


_BYTES_A_FACT = 10


def _beginning(dump: SqlFile, folder: Folder) -> SqlFile:
    """A copy of the beginning of a dump, as a dump of its own; one that is small is taken as it is.

    Line breaks in values are escaped, so where one follows a semicolon a statement ends.
    """
    data = b""
    for stored, piece in chunks(dump.filesystem, dump.table.path):
        end = data.rfind(b";\n") + 2
        if len(data) >= SAMPLE_SQL and end > 1:
            name = posixpath.basename(dump.table.path)
            folder.write(name, gzip.compress(data[:end] + b"-- Dump completed\n", 1))
            # What was unpacked so far came of the bytes before this piece.
            table = dump.table._replace(path=folder.at(name))
            return SqlFile(folder.filesystem, table, min(max(stored, 1) * end // len(data), dump.stored))
        data += piece
    return dump


@dataclass(frozen=True)
class JoinTables(Stage):
    """Reduce of the exchange by page id: joins what the tables say about a page, under its title."""

    name: ClassVar[str] = "join_tables"
    Unit: ClassVar[type] = Range

    def plan(self, work: Work) -> list[Range]:
        ranges = work.units("read_tables")[0][3] if work.files("read_tables", "facts") else 0
        return [Range(index, ranges) for index in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("read_tables", "facts")
        facts = read_range(write.work.folder, write.each(files, 0.3), unit.number, KEYED_FACTS)
        with write.part(0.7):
            titles, untitled = join_facts(facts)
        write.counters["facts_of_unknown_pages"] += untitled
        write_ranges(write, "titles", titles, ranges=unit.ranges)


@dataclass(frozen=True)
class Follow(Stage):
    """The page that each title leads to, redirects followed. Has all titles in a compact form (docs/mentions.md)."""

    name: ClassVar[str] = "follow"
    Unit: ClassVar[type] = All

    def plan(self, work: Work) -> list[All]:
        return [All()] if work.units("read_tables") else []

    def process(self, unit: All, write: TaskWriter) -> None:
        work = write.work
        ranges = work.units("read_tables")[0][3]
        files = [file for stage in ("read_tables", "join_tables") for file in work.files(stage, "titles")]
        tables = (read_range(work.folder, files, index, TITLES) for index in write.each(range(ranges), 0.5))
        with write.part(0.8):
            meanings, counts = follow(tables)
        write.counters.update(counts)
        write_ranges(write, "meanings", meanings, ranges=ranges)


@dataclass(frozen=True)
class Targets(Stage):
    """Map of the exchange by title: the distinct titles that some shards of documents link to."""

    name: ClassVar[str] = "targets"
    Unit: ClassVar[type] = Shards

    documents: str = location()

    def plan(self, work: Work) -> list[Shards]:
        units = work.units("read_tables")
        return shard_units(Folder(self.documents), units[0][3] if units else 1)

    def process(self, unit: Shards, write: TaskWriter) -> None:
        names = _names(Folder(self.documents), write.each(unit.paths, 0.7))
        hi, lo = title_keys(names.column("source"), names.column("filed"))
        number = unit.first // shards_a_unit(Folder(self.documents))
        columns = [hi, lo, np.full(len(hi), number), np.arange(len(hi))]
        arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, WANTED, strict=True)]
        write.counters["distinct_titles"] += len(hi)
        write_ranges(write, "wanted", pa.Table.from_arrays(arrays, schema=WANTED), ranges=unit.ranges)


def _names(documents: Folder, paths: Iterable[str]) -> pa.Table:
    """The distinct (source, title) that shards link to or have themselves, sorted, and `filed`: the title normalised.

    The readers of dumps normalise titles themselves, the first letter by the wiki's own rule; `filed` is for links of
    other inputs. A text that cannot be a title stays as it is, because no page has it.
    """
    tables = []
    for path in paths:
        table = read_parquet(documents, path, ["source", "title", "links"]).combine_chunks()
        links = table.column("links").combine_chunks()
        own = pa.table({"source": table.column("source"), "title": table.column("title")})
        linked = pa.table(
            {
                "source": table.column("source").take(pc.list_parent_indices(links)),
                "title": pc.struct_field(links.flatten(), "target_title"),
            }
        )
        tables += [own.group_by(["source", "title"]).aggregate([]), linked.group_by(["source", "title"]).aggregate([])]
    names = pa.concat_tables(tables).group_by(["source", "title"]).aggregate([])
    names = names.sort_by([("source", "ascending"), ("title", "ascending")]).combine_chunks()
    filed = [normalise(title, capitalise=False) or title for title in names.column("title").to_pylist()]
    return names.append_column("filed", pa.array(filed, pa.string()))


@dataclass(frozen=True)
class Resolve(Stage):
    """Reduce of the exchange by title: the pages of the titles, by the unit whose shards link to them."""

    name: ClassVar[str] = "resolve"
    Unit: ClassVar[type] = Range

    documents: str = location()

    def plan(self, work: Work) -> list[Range]:
        return range_units(work, "targets")

    def process(self, unit: Range, write: TaskWriter) -> None:
        work = write.work
        files = work.files("targets", "wanted")
        wanted = read_range(work.folder, write.each(files, 0.3), unit.number, WANTED)
        with write.part(0.2):
            meanings = read_range(work.folder, work.files("follow", "meanings"), unit.number, MEANINGS)
        place = lookup(meanings, *(wanted.column(name).to_numpy() for name in ("key_hi", "key_lo")))
        found = pa.array(np.where(place < 0, 0, place), mask=place < 0)
        own = (
            meanings.take(found)
            if meanings.num_rows
            else pa.table({field.name: pa.nulls(len(place), field.type) for field in MEANINGS})
        )
        columns = {
            "unit": wanted.column("unit"),
            "index": wanted.column("index"),
            "title": pc.fill_null(own.column("title"), ""),
            "section": pc.fill_null(own.column("section"), ""),
            "entity": pc.fill_null(own.column("entity"), 0),
            "disambiguation": pc.fill_null(own.column("disambiguation"), False),
            "known": pc.fill_null(own.column("known"), False),
            "redirected": pc.fill_null(pc.greater(own.column("hops"), 0), False),
        }
        resolved = pa.table([columns[name] for name in RESOLVED.names], schema=RESOLVED)
        parts = len(work.units("targets"))
        write_parts(write, "resolved", resolved, resolved.column("unit").to_numpy(), parts=parts)


@dataclass(frozen=True)
class FindMentions(Stage):
    """The mentions of the documents of some shards, in order: one shard of the dataset."""

    name: ClassVar[str] = "mentions"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "links"
    Unit: ClassVar[type] = Shards

    rules: MentionRules
    documents: str = location()

    def sample(self, folder: Folder) -> Stage:
        # Of the pages that a part of the documents links to, it knows few.
        return replace(self, rules=replace(self.rules, drop_red_links=False))

    def plan(self, work: Work) -> list[Shards]:
        for stage in read_manifest(Folder(self.documents)).stages:
            for name in sorted(stage.counters):
                if name.startswith("language:"):
                    require(name.removeprefix("language:"))
        return shard_units(Folder(self.documents), 0)

    def process(self, unit: Shards, write: TaskWriter) -> None:
        documents = Folder(self.documents)
        with write.part(0.2):
            targets = self._targets(unit, write)
        tables = []
        for path in write.each(unit.paths, 0.95):
            rows = read_parquet(documents, path).to_pylist()
            columns: dict[str, list[Any]] = {name: [] for name in MENTIONS.names}
            for row in write.each(rows):
                self._document(row, targets.get(row["source"], {}), columns, write)
            tables.append(pa.table(columns, schema=MENTIONS))
        mentions = pa.concat_tables(tables).combine_chunks()
        write.ledger.written += mentions.num_rows
        write.table("train", mentions, row_group_rows=ROW_GROUP)

    def _document(
        self, row: Mapping[str, Any], targets: Mapping[str, Target], columns: dict[str, list[Any]], write: TaskWriter
    ) -> None:
        document = Source(row["title"], row["text"], row["links"], row["language"])
        write.counters["documents"] += 1
        write.counters[f"licence:{row['licence']}"] += 1
        before = write.ledger.filtered.total()
        own = {name: row[name] for name in ("doc_id", "source", "title", "url", "licence")}
        written = 0
        for found in find_mentions(document, targets, self.rules, write.ledger.filtered):
            written += 1
            write.counters[f"resolution:{found.target.resolution}"] += 1
            values = {
                "entity_id": found.target.entity_id,
                "target_title": found.target.title,
                "section": found.target.section,
                "mention": found.mention,
                "sentence_id": f"{row['doc_id']}#{found.sentence_start}",
                "text": found.text,
                "start_char": found.start_char,
                "end_char": found.end_char,
                "resolution": found.target.resolution,
                "origin": found.origin,
                **own,
            }
            for name, value in values.items():
                columns[name].append(value)
        write.ledger.read += written + write.ledger.filtered.total() - before

    def _targets(self, unit: Shards, write: TaskWriter) -> dict[str, dict[str, Target]]:
        """The targets of the titles that the shards link to, by source and title as written."""
        number = unit.first // shards_a_unit(Folder(self.documents))
        names = _names(Folder(self.documents), write.each(unit.paths, 0.7))
        files = write.work.files("resolve", "resolved")
        resolved = read_range(write.work.folder, write.each(files), number, RESOLVED).sort_by("index")
        found: dict[str, dict[str, Target]] = {}
        titled = (names.column(name).to_pylist() for name in ("source", "title", "filed"))
        for source, written, filed, meaning in zip(*titled, resolved.to_pylist(), strict=True):
            found.setdefault(source, {})[written] = _target(filed, meaning)
        return found


def _target(title: str, meaning: Mapping[str, Any]) -> Target:
    entity_id = f"Q{meaning['entity']}" if meaning["entity"] else ""
    if entity_id:
        resolution = "qid"
    elif not meaning["known"]:
        resolution = "NIL"
    else:
        resolution = "redirect" if meaning["redirected"] else "title"
    return Target(entity_id, meaning["title"] or title, resolution, meaning["disambiguation"], meaning["section"])
