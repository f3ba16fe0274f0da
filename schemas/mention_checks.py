"""What must hold for every mention, pair of mentions and pair of aliases; see `schemas/record_checks.py`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import I64, U64, Apart, Broken, Violation, hashes, quoted, where
from schemas.dataset import Dataset, RowGroup
from schemas.keys import is_validation
from schemas.manifest import Manifest
from schemas.records import ORIGINS, PAIR_KINDS, RESOLUTIONS

_SENTENCE_ID = re.compile(r".+:.*#(0|[1-9][0-9]*)", re.DOTALL)
_WIKIDATA_ID = r"^Q[1-9][0-9]*$"

Show = Callable[[int], str]


class _Side:
    """Mentions in the columns of a table whose names end in `suffix`: those of a row, or one of the two of a pair."""

    def __init__(self, table: pa.Table, suffix: str = "") -> None:
        def column(name: str) -> pa.ChunkedArray:
            return table.column(name + suffix)

        self.of = {"": "", "_1": " of the first", "_2": " of the second"}[suffix]
        self.entity_id, self.title = column("entity_id"), column("target_title")
        self.ids, self.texts, self.mentions = (column(name).to_pylist() for name in ("sentence_id", "text", "mention"))
        self.start, self.end = (column(name).to_numpy().astype(np.int64) for name in ("start_char", "end_char"))

    def show(self, row: int) -> str:
        return f"{quoted(self.mentions[row])} in {quoted(self.ids[row])}"

    def broken(self) -> Iterator[Broken]:
        """What holds for a mention, wherever it stands."""
        spans = list(zip(self.texts, self.start.tolist(), self.end.tolist(), strict=True))
        yield Broken(
            f"the mention{self.of} is empty or begins or ends with a blank",
            where([not each or each != each.strip() for each in self.mentions]),
            self.show,
        )
        yield Broken(
            f"text[start_char:end_char]{self.of} is not the mention",
            where([text[start:end] != each for each, (text, start, end) in zip(self.mentions, spans, strict=True)]),
            lambda row: (
                f"{self.show(row)}: [{self.start[row]:,}:{self.end[row]:,}] is "
                f"{quoted(spans[row][0][spans[row][1] : spans[row][2]])}"
            ),
        )
        yield Broken(
            f"the text{self.of} has a line break",
            where(["\n" in text or "\r" in text for text in self.texts]),
            self.show,
        )
        yield Broken(
            f"sentence_id{self.of} is not <doc_id>#<start_char>",
            where([_SENTENCE_ID.fullmatch(each) is None for each in self.ids]),
            lambda row: quoted(self.ids[row]),
        )
        yield Broken(f"target_title{self.of} is empty", where(pc.equal(self.title, "")), self.show)
        yield _foreign(f"entity_id{self.of}", self.entity_id, self.show)


def broken_pages(table: pa.Table) -> Iterator[Broken]:
    """What holds for the pages beside documents."""
    title, entity_id = table.column("title"), table.column("entity_id")
    for name in ("source", "title"):
        empty = where(pc.equal(table.column(name), ""))
        yield Broken(f"the {name} is empty", empty, lambda row: f"page {quoted(table.column('page_id')[row].as_py())}")
    yield _foreign("entity_id", entity_id, lambda row: quoted(title[row].as_py()))


class MentionChecks:
    """Mentions: spans, resolutions, the order of the text."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._resolutions: Counter[str] = Counter()
        self._documents = Apart("doc_id", by="shard")
        self._of_licence: dict[str, list[U64]] = {}
        self._shard = ""
        self._last, self._last_end = "", 0
        self._begun: set[str] = set()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        side = _Side(table)
        doc_ids = table.column("doc_id").to_pylist()
        self._documents.add(group, split)
        self._count_licences(table)
        yield from side.broken()
        resolution, entity_id = table.column("resolution"), table.column("entity_id")
        self._resolutions.update(resolution.to_pylist())
        yield _unknown("resolution", resolution, RESOLUTIONS, side.show)
        yield Broken(
            "resolution is not qid where the Wikidata id is known, and only there",
            where(pc.xor(pc.equal(resolution, "qid"), pc.not_equal(entity_id, ""))),
            lambda row: (
                f"{side.show(row)}: resolution {quoted(resolution[row].as_py())}, "
                f"entity_id {quoted(entity_id[row].as_py())}"
            ),
        )
        yield _unknown("origin", table.column("origin"), ORIGINS, side.show)
        sources = table.column("source").to_pylist()
        yield Broken(
            "doc_id does not begin with the source",
            where([not doc_id.startswith(f"{source}:") for doc_id, source in zip(doc_ids, sources, strict=True)]),
            lambda row: f"{quoted(doc_ids[row])}, source {quoted(sources[row])}",
        )
        yield Broken(
            "sentence_id is not that of a sentence of the document",
            where([each.rpartition("#")[0] != doc_id for each, doc_id in zip(side.ids, doc_ids, strict=True)]),
            lambda row: f"{quoted(side.ids[row])}, document {quoted(doc_ids[row])}",
        )
        yield from self._order(group.shard.path, doc_ids, side)

    def _order(self, shard: str, doc_ids: Sequence[str], side: _Side) -> Iterator[Broken]:
        if shard != self._shard:
            self._shard, self._last, self._last_end, self._begun = shard, "", 0, set()
        apart, early = [], []
        for row, doc_id in enumerate(doc_ids):
            sentence = side.ids[row].rpartition("#")[2]
            begin = int(sentence) if sentence.isdecimal() else 0
            if doc_id != self._last:
                if doc_id in self._begun:
                    apart.append(row)
                self._begun.add(doc_id)
                self._last = doc_id
            elif begin + side.start[row] < self._last_end:
                early.append(row)
            self._last_end = begin + side.end[row]
        yield Broken("the document's mentions are not side by side", _rows(apart), side.show)
        yield Broken("the mention begins before the one before it ends", _rows(early), side.show)

    def _count_licences(self, table: pa.Table) -> None:
        licences = table.column("licence")
        for licence in pc.unique(licences).to_pylist():
            own = pc.unique(table.column("doc_id").filter(pc.equal(licences, licence)))
            self._of_licence.setdefault(licence, []).append(hashes(own))

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._documents.end(dataset, "the document has mentions in another shard")

    def totals(self) -> Iterator[str]:
        for licence, ids in sorted(self._of_licence.items()):
            found, said = len(np.unique(np.concatenate(ids))), self._manifest.licences.get(licence, 0)
            if found > said:  # those without a mention count, too
                yield f"licences: {found:,} documents are {quoted(licence)}; the manifest says {said:,}"
        yield from _counted(self._manifest, {f"resolution:{name}": self._resolutions[name] for name in RESOLUTIONS})


class MentionPairChecks:
    """Pairs of mentions: what the two share, in what they differ, splits, and masks where those were put in."""

    def __init__(self, manifest: Manifest) -> None:
        self._pairs = Apart(*_of_both(_PLACE), by="row", of=_pair)
        # In a single split there is nothing to mix up.
        self._entities = Apart(*_of_both(_ENTITY), by="split", of=_entities) if len(manifest.splits) > 1 else None
        self._seed, self._rate = manifest.seed or 0, float(manifest.options.get("validation_rate", 0))
        self._counts: Counter[str] = Counter()
        self._manifest = manifest
        self._is_masked = manifest.record == "MaskedMentionPair"
        if self._is_masked:
            self._mask = str(manifest.options["mask_token"])
            self._one = manifest.options["masks"] == "one"

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        self._pairs.add(group, split)
        if self._entities:
            self._entities.add(group, split)
        one, other = _Side(table, "_1"), _Side(table, "_2")

        def show(row: int) -> str:
            return f"{one.show(row)}, {other.show(row)}"

        yield from one.broken()
        yield from other.broken()
        yield from self._kinds(table, one, other, show)
        yield Broken(
            "both mentions stand in sentences of the same words",
            where(pc.equal(table.column("text_1"), table.column("text_2"))),
            show,
        )
        yield self._misplaced(table, split)
        unmasked = table.column("unmasked")
        yield Broken(
            "unmasked is not 0, 1 or 2",
            where(pc.greater(unmasked, 2)),
            lambda row: f"{show(row)}: {unmasked[row].as_py()}",
        )
        if self._is_masked:
            for number, side, name in ((1, one, "anchor"), (2, other, "positive")):
                yield self._masks(name, table.column(name).to_pylist(), side, unmasked.to_numpy() == number)

    def _kinds(self, table: pa.Table, one: _Side, other: _Side, show: Show) -> Iterator[Broken]:
        kind, key = table.column("kind"), table.column("key")
        self._counts.update(f"{each}_pairs" for each in kind.to_pylist())
        yield _unknown("kind", kind, PAIR_KINDS, show)
        first, second = _entities(table)
        is_entity, is_surface = (pc.equal(kind, each) for each in PAIR_KINDS)
        same = pc.equal(first, second)

        def entities(row: int) -> str:
            names = (quoted(each[row].as_py().replace("\0", " ")) for each in (first, second))
            return f"{show(row)}: {', '.join(names)}"

        def keys(row: int) -> str:
            return f"{show(row)}: {quoted(key[row].as_py())}"

        yield Broken("a pair of kind entity is of two entities", where(pc.and_not(is_entity, same)), entities)
        yield Broken("a pair of kind surface is of one entity", where(pc.and_(is_surface, same)), entities)
        name = pc.if_else(pc.equal(one.entity_id, ""), one.title, one.entity_id)
        yield Broken(
            "the key of a pair of kind entity is not its Wikidata id, or title where that is unknown",
            where(pc.and_(is_entity, pc.not_equal(key, name))),
            keys,
        )
        mentions = (table.column(f"mention_{side}") for side in (1, 2))
        is_key = pc.and_(*(pc.equal(each, key) for each in mentions))
        yield Broken(
            "the key of a pair of kind surface is not the mention of both",
            where(pc.and_not(is_surface, is_key)),
            keys,
        )

    def _misplaced(self, table: pa.Table, split: str) -> Broken:
        """Rows of an entity that the hash puts into the other split."""
        wanted: dict[str, bool] = {}
        wrong: dict[int, str] = {}
        for side, entities in enumerate(_entities(table), start=1):
            ids = table.column(f"sentence_id_{side}").to_pylist()
            for row, entity in enumerate(entities.to_pylist()):
                if "\0" in entity and ids[row].count(":") > 1:
                    continue  # the source cannot be told from the id
                if entity not in wanted:
                    wanted[entity] = is_validation(entity, rate=self._rate, seed=self._seed)
                if wanted[entity] != (split == "validation"):
                    wrong.setdefault(row, entity)
        rule = "the entity belongs to the other split, by its hash"
        return Broken(rule, _rows(sorted(wrong)), lambda row: quoted(wrong[row].replace("\0", " ")))

    def _masks(self, name: str, found: Sequence[str], side: _Side, keeps_words: Any) -> Broken:
        wrong = []
        for row, each in enumerate(found):
            text, start, end = side.texts[row], int(side.start[row]), int(side.end[row])
            if not (self._is_kept(each, text) if keeps_words[row] else self._is_masked_at(each, text, start, end)):
                wrong.append(row)

        def show(row: int) -> str:
            what = "as it is" if keeps_words[row] else f"with {quoted(self._mask)} for the mention"
            return f"{quoted(found[row])}, not {quoted(side.texts[row])} {what}"

        return Broken(f"{name} is not the sentence, masked as unmasked says", _rows(wrong), show)

    def _is_masked_at(self, found: str, text: str, start: int, end: int) -> bool:
        """Whether a text is another with a mask for a mention, or several in a row, and nothing else."""
        behind = len(found) - (len(text) - end)
        masks = found[start:behind]
        n = masks.count(self._mask)
        return (
            (n == 1 or (n > 1 and not self._one))
            and masks in (self._mask * n, " ".join([self._mask] * n))
            and self._is_kept(found[:start], text[:start])
            and self._is_kept(found[behind:], text[end:])
        )

    def _is_kept(self, found: str, text: str) -> bool:
        """Whether a text is another, but that blanks take apart what the other has of mask tokens."""
        if self._mask not in text:
            return found == text
        return (
            self._mask not in found
            and len(found) == len(text)
            and all(one in (other, " ") for one, other in zip(found, text, strict=True))
        )

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._pairs.end(dataset, "the two mentions are a pair already")
        if self._entities:
            yield from self._entities.end(dataset, "the entity is in another split, too")

    def totals(self) -> Iterator[str]:
        yield from _counted(self._manifest, {f"{kind}_pairs": self._counts[f"{kind}_pairs"] for kind in PAIR_KINDS})


class AliasPairChecks:
    """Pairs of aliases: surfaces, counts, the order of an entity's pairs."""

    def __init__(self, manifest: Manifest) -> None:
        self._entities = Apart("entity_id", by="shard", of=_known_entities)
        self._least = int(manifest.options["min_count"])
        self._shard = ""
        self._last: tuple[str, str] = ("", "")
        self._last_place: tuple[int, bytes, int, bytes] = (0, b"", 0, b"")
        self._begun: set[str] = set()

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        self._entities.add(group, split)
        one, other = (table.column(f"alias_{side}").to_pylist() for side in (1, 2))
        counts = [table.column(f"count_{side}").to_numpy() for side in (1, 2)]
        entity_id, title = table.column("entity_id"), table.column("target_title")

        def show(row: int) -> str:
            aliases = (f"{quoted(each[row])} ({n[row]:,})" for each, n in zip((one, other), counts, strict=True))
            return f"{', '.join(aliases)} of {quoted(entity_id[row].as_py() or title[row].as_py())}"

        pairs = list(zip(one, other, strict=True))
        yield Broken(
            "an alias is empty or begins or ends with a blank",
            where([any(not each or each != each.strip() for each in pair) for pair in pairs]),
            show,
        )
        yield Broken(
            "the aliases do not differ but in case", where([a.casefold() == b.casefold() for a, b in pairs]), show
        )
        yield Broken(f"an alias has less than {self._least:,} mentions", where(counts[1] < self._least), show)
        bytes_ = [[each.encode() for each in aliases] for aliases in (one, other)]
        places = list(zip((-counts[0]).tolist(), bytes_[0], (-counts[1]).tolist(), bytes_[1], strict=True))
        yield Broken(
            "the second alias is more frequent than the first (ties by UTF-8 bytes)",
            where([place[:2] > place[2:] for place in places]),
            show,
        )
        yield Broken("target_title is empty", where(pc.equal(title, "")), show)
        yield _foreign("entity_id", entity_id, show)
        entities = list(zip(entity_id.to_pylist(), title.to_pylist(), strict=True))
        yield from self._order(group.shard.path, entities, places, show)

    def _order(
        self,
        shard: str,
        entities: Sequence[tuple[str, str]],
        places: Sequence[tuple[int, bytes, int, bytes]],
        show: Show,
    ) -> Iterator[Broken]:
        if shard != self._shard:
            self._shard, self._last, self._begun = shard, ("", ""), set()
        apart, disordered = [], []
        for row, (entity, place) in enumerate(zip(entities, places, strict=True)):
            if entity == self._last:
                if place <= self._last_place:
                    disordered.append(row)
            elif entity[0]:  # what has a title alone may be of two sources
                if entity[0] in self._begun:
                    apart.append(row)
                self._begun.add(entity[0])
            self._last, self._last_place = entity, place
        yield Broken("the entity's pairs are not side by side", _rows(apart), show)
        yield Broken(
            "the pair is not behind the entity's pair before it, by the frequency of its aliases and UTF-8 bytes",
            _rows(disordered),
            show,
        )

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._entities.end(dataset, "the entity has pairs in another shard")

    def totals(self) -> Iterator[str]:
        yield from ()


def _known_entities(table: pa.Table) -> list[pa.Array]:
    """The Wikidata id of each row, null where it is unknown."""
    entity_id = table.column("entity_id")
    return [pc.if_else(pc.equal(entity_id, ""), pa.scalar(None, pa.string()), entity_id)]


_PLACE = ("sentence_id", "start_char")
_ENTITY = ("entity_id", "target_title", "sentence_id")


def _of_both(names: Sequence[str]) -> list[str]:
    return [f"{name}_{side}" for side in (1, 2) for name in names]


def _pair(table: pa.Table) -> list[pa.Array]:
    """The two mentions of each pair, whichever comes first, as one text."""
    one, other = (
        pc.binary_join_element_wise(*(table.column(f"{name}_{side}").cast(pa.string()) for name in _PLACE), "\0")
        for side in (1, 2)
    )
    swapped = pc.greater(one, other)
    return [pc.binary_join_element_wise(pc.if_else(swapped, other, one), pc.if_else(swapped, one, other), "\0")]


def _entities(table: pa.Table) -> list[pa.Array]:
    """What the two mentions of each pair are of: the Wikidata id, or source and title with a null between.

    The source is what a sentence_id begins with up to its first colon.
    """
    found = []
    for side in (1, 2):
        entity_id, title, sentence_id = (table.column(f"{name}_{side}") for name in _ENTITY)
        source = pc.list_element(pc.split_pattern(sentence_id, ":", max_splits=1), 0)
        named = pc.binary_join_element_wise(source, title, "\0")
        found.append(pc.if_else(pc.equal(entity_id, ""), named, entity_id))
    return found


def _unknown(name: str, values: pa.ChunkedArray, known: Sequence[str], show: Show) -> Broken:
    return Broken(
        f"{name} is not one of {', '.join(known)}",
        where(pc.invert(pc.is_in(values, pa.array(known)))),
        lambda row: f"{show(row)}: {quoted(values[row].as_py())}",
    )


def _foreign(name: str, values: pa.ChunkedArray, show: Show) -> Broken:
    wrong = pc.and_(pc.invert(pc.match_substring_regex(values, _WIKIDATA_ID)), pc.not_equal(values, ""))
    return Broken(
        f"{name} is neither empty nor a Wikidata id",
        where(wrong),
        lambda row: f"{show(row)}: {quoted(values[row].as_py())}",
    )


def _counted(manifest: Manifest, found: Mapping[str, int]) -> Iterator[str]:
    """Counters of the manifest that do not say what the rows say."""
    for name, rows in found.items():
        if rows != (said := manifest.counter(name)):
            yield f"{rows:,} rows count as {quoted(name)}; the manifest says {said:,}"


def _rows(rows: Sequence[int]) -> I64:
    return np.array(rows, dtype=np.int64)
