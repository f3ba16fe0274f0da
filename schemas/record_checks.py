"""What must hold for every row of a dataset: the promises of `schemas/records.py`, as checks on Arrow tables.

Those of mentions and pairs are in `schemas/mention_checks.py`; what all share in `schemas/checks.py`.

A check takes the rows of a shard one row group at a time, in order, and yields the rows that break a rule. What spans
shards (ids that must be unique, negatives that stand in another shard) is kept as 64-bit hashes: 8 to 32 bytes a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.checks import (
    I64,
    U64,
    Apart,
    Broken,
    Checks,
    NoChecks,
    Violation,
    broken_items,
    hashes,
    nested,
    quoted,
    where,
)
from schemas.dataset import Dataset, RowGroup
from schemas.keys import is_validation, row_key
from schemas.manifest import Manifest, Shard
from schemas.mention_checks import AliasPairChecks, MentionChecks, MentionPairChecks
from schemas.records import PHRASE_LABELS

_EXACT_SHARES = 1 << 24
"""Below this frequency two different counts give two different shares in single precision."""


OPTIONS = {
    "Phrase": ("min_frequency",),
    "Context": ("mask_token", "validation_rate"),
    "MentionPair": ("validation_rate",),
    "AliasPair": ("min_count",),
    "MaskedMentionPair": ("validation_rate", "mask_token", "masks"),
}
"""What the checks of a record read of the manifest's options."""


def checks_of(manifest: Manifest) -> Checks:
    """The checks for the records of a dataset, whose manifest has the OPTIONS of its record."""
    match manifest.record:
        case "Document":
            return DocumentChecks(manifest)
        case "Sentence":
            return SentenceChecks()
        case "Phrase":
            return PhraseChecks(manifest)
        case "Context":
            return ContextChecks(manifest)
        case "Mention":
            return MentionChecks(manifest)
        case "MentionPair" | "MaskedMentionPair":
            return MentionPairChecks(manifest)
        case "AliasPair":
            return AliasPairChecks(manifest)
        case _:
            return NoChecks()


class DocumentChecks:
    """Documents: ids, clean lines, links that lie in the text."""

    def __init__(self, manifest: Manifest) -> None:
        self._ids = Apart("doc_id", by="row")
        self._expected = manifest.licences
        self._licences: dict[str, int] = {}

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        self._ids.add(group, split)
        licences = table.column("licence")
        for each in licences.value_counts().to_pylist():
            self._licences[each["values"]] = self._licences.get(each["values"], 0) + each["counts"]
        ids, sources, texts = (table.column(name).to_pylist() for name in ("doc_id", "source", "text"))
        foreign = [not doc_id.startswith(f"{source}:") for doc_id, source in zip(ids, sources, strict=True)]
        yield Broken(
            "doc_id does not begin with the source",
            where(foreign),
            lambda row: f"{quoted(ids[row])}, source {quoted(sources[row])}",
        )
        yield Broken("the licence is empty", where(pc.equal(licences, "")), lambda row: quoted(ids[row]))
        yield Broken("the text is empty", where([not text for text in texts]), lambda row: quoted(ids[row]))
        yield Broken(
            "the text has a carriage return", where(["\r" in text for text in texts]), lambda row: quoted(ids[row])
        )
        yield Broken(
            "a line of the text begins or ends with whitespace",
            where([_untidy_line(text) is not None for text in texts]),
            lambda row: f"{quoted(ids[row])}: {quoted(_untidy_line(texts[row]))}",
        )
        yield Broken(
            "the text has two empty lines in a row",
            where(["\n\n\n" in text for text in texts]),
            lambda row: quoted(ids[row]),
        )
        yield from self._links(table.column("links").combine_chunks(), ids, np.array([len(text) for text in texts]))

    def _links(self, links: pa.ListArray, ids: list[str], lengths: I64) -> Iterator[Broken]:
        owner, first, (start, end) = nested(links, ("start_char", "end_char"))

        def show(link: int) -> str:
            row = owner[link]
            return f"{quoted(ids[row])}: [{start[link]:,}:{end[link]:,}], text of {lengths[row]:,} characters"

        yield broken_items("a link is empty or ends before it starts", start >= end, owner, show)
        yield broken_items("a link ends behind the text", end > lengths[owner], owner, show)
        early = np.zeros(len(start), dtype=bool)
        early[1:] = (start[1:] < end[:-1]) & ~first[1:]
        yield broken_items("a link begins before the one before it ends", early, owner, show)

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._ids.end(dataset, "doc_id is not unique")

    def totals(self) -> Iterator[str]:
        yield from _licence_totals(self._expected, self._licences)


def _untidy_line(text: str) -> str | None:
    return next((line for line in text.split("\n") if line != line.strip()), None)


def _licence_totals(expected: dict[str, int], found: dict[str, int]) -> Iterator[str]:
    for licence in sorted({*expected, *found}):
        said, counted = expected.get(licence, 0), found.get(licence, 0)
        if said != counted:
            yield f"licences: {counted:,} documents are {quoted(licence)}; the manifest says {said:,}"


class SentenceChecks:
    """Sentences: ids, order in their documents, tokens in the text, constituents over the tokens.

    Takes whole shards: a document's sentences lie side by side in one.
    """

    def __init__(self) -> None:
        self._documents = Apart("doc_id", by="shard")

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        ids, doc_ids, texts = (table.column(name).to_pylist() for name in ("sentence_id", "doc_id", "text"))
        start = table.column("start_char").to_numpy().astype(np.int64)
        length = pc.utf8_length(table.column("text")).to_numpy().astype(np.int64)
        self._documents.add(group, split)

        def show(row: int) -> str:
            return quoted(ids[row])

        expected = [f"{doc_id}#{at}" for doc_id, at in zip(doc_ids, start.tolist(), strict=True)]
        yield Broken(
            "sentence_id is not <doc_id>#<start_char>",
            where([found != wanted for found, wanted in zip(ids, expected, strict=True)]),
            lambda row: f"{quoted(ids[row])} instead of {quoted(expected[row])}",
        )
        yield Broken("the text has a line break", where(["\n" in text or "\r" in text for text in texts]), show)
        yield from self._order(table.column("doc_id"), start, start + length, ids)
        yield from self._tokens(table, start, start + length, ids, texts)
        yield from self._constituents(table, ids)

    def _order(self, doc_id: pa.ChunkedArray, start: I64, end: I64, ids: list[str]) -> Iterator[Broken]:
        code = doc_id.combine_chunks().dictionary_encode().indices.to_numpy()
        new = np.ones(len(code), dtype=bool)
        new[1:] = code[1:] != code[:-1]
        runs = np.flatnonzero(new)
        # Codes are given in order of the first occurrence: a run that brings no new code is a second one.
        again = runs[code[runs] < np.maximum.accumulate(code)[runs]]
        yield Broken("the document's sentences are not side by side", again, lambda row: quoted(ids[row]))
        early = np.zeros(len(code), dtype=bool)
        early[1:] = (start[1:] < end[:-1]) & ~new[1:]
        yield Broken(
            "the sentence begins before the one before it ends",
            where(early),
            lambda row: f"{quoted(ids[row])}, the one before ends at {end[row - 1]:,}",
        )

    def _tokens(self, table: pa.Table, low: I64, high: I64, ids: list[str], texts: list[str]) -> Iterator[Broken]:
        tokens = table.column("tokens").combine_chunks()
        owner, first, (start, end) = nested(tokens, ("start_char", "end_char"))
        yield Broken(
            "the sentence has no token",
            where(pc.equal(pc.list_value_length(tokens), 0)),
            lambda row: quoted(ids[row]),
        )

        def show(token: int) -> str:
            row = owner[token]
            return f"{quoted(ids[row])}: token [{start[token]:,}:{end[token]:,}], sentence [{low[row]:,}:{high[row]:,}]"

        inside = (start >= low[owner]) & (end <= high[owner])
        yield broken_items("a token lies outside of the sentence", ~inside, owner, show)
        yield broken_items("a token is empty or ends before it starts", start >= end, owner, show)
        early = np.zeros(len(start), dtype=bool)
        early[1:] = (start[1:] < end[:-1]) & ~first[1:]
        yield broken_items("a token begins before the one before it ends", early, owner, show)
        # The characters of all sentences, one behind the other; few tokens, if any, begin with a blank.
        text = "".join(texts)
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        shift = np.concatenate(([0], np.cumsum(high - low)))[:-1] - low
        sound = np.flatnonzero(inside & (start < end))
        at = start[sound] + shift[owner[sound]]
        suspects = np.flatnonzero(_IS_SPACE[np.minimum(codes[at], len(_IS_SPACE) - 1)])
        length = end[sound] - start[sound]
        blank = np.zeros(len(start), dtype=bool)
        for place in suspects.tolist():
            blank[sound[place]] = text[at[place] : at[place] + length[place]].isspace()
        yield broken_items("a token is whitespace", blank, owner, lambda token: quoted(ids[owner[token]]))

    def _constituents(self, table: pa.Table, ids: list[str]) -> Iterator[Broken]:
        owner, first, (label, start, end) = nested(
            table.column("constituents").combine_chunks(), ("label", "start_token", "end_token")
        )
        tokens = pc.list_value_length(table.column("tokens")).to_numpy()

        def show(item: int) -> str:
            row = owner[item]
            return f"{quoted(ids[row])}: {label[item]} [{start[item]}:{end[item]}], {tokens[row]} tokens"

        yield broken_items("a constituent is empty or ends before it starts", start >= end, owner, show)
        yield broken_items("a constituent ends behind the last token", end > tokens[owner], owner, show)
        disordered = np.zeros(len(start), dtype=bool)
        back = (start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
        disordered[1:] = back & ~first[1:]
        yield broken_items("constituents are not in order of start, longest first", disordered, owner, show)
        # The same span again, as in a unary chain: compare with every one before it in the chain.
        code = label.dictionary_encode().indices.to_numpy()
        repeated = np.zeros(len(start), dtype=bool)
        chain = np.arange(len(start))
        for distance in range(1, len(start)):
            chain = chain[chain >= distance]
            before = chain - distance
            same = (owner[chain] == owner[before]) & (start[chain] == start[before]) & (end[chain] == end[before])
            chain, before = chain[same], before[same]
            if not len(chain):
                break
            repeated[chain[code[chain] == code[before]]] = True
        yield broken_items("a constituent occurs twice", repeated, owner, show)

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._documents.end(dataset, "the document has sentences in another shard")

    def totals(self) -> Iterator[str]:
        yield from ()


_IS_SPACE = np.array([chr(code).isspace() for code in range(0x10000)])


class PhraseChecks:
    """Phrases: order, counts, shares, labels."""

    def __init__(self, manifest: Manifest) -> None:
        self._phrases = Apart("phrase", by="row")
        self._last: tuple[int, bytes] | None = None
        self._total = 0
        ledgers = {stage.name: stage.ledger for stage in manifest.stages}
        self._select, self._count = ledgers.get("select"), ledgers.get("count")
        self._least = int(manifest.options["min_frequency"])

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        self._phrases.add(group, split)
        phrase = table.column("phrase")
        frequency, documents = (table.column(name).to_numpy() for name in ("frequency", "document_frequency"))
        self._total += int(frequency.sum())

        def show(row: int) -> str:
            return f"{quoted(phrase[row].as_py())}, frequency {frequency[row]:,}, document_frequency {documents[row]:,}"

        yield Broken("the phrase is empty", where(pc.equal(phrase, "")), lambda row: f"frequency {frequency[row]:,}")
        yield Broken(f"the frequency is below {self._least:,}", where(frequency < self._least), show)
        yield Broken(
            "document_frequency is not from 1 to frequency", where((documents < 1) | (documents > frequency)), show
        )
        yield from self._order(phrase.cast(pa.binary()).to_pylist(), frequency, show)
        yield from self._labels(table, frequency)

    def _order(self, phrases: list[bytes], frequency: I64, show: Callable[[int], str]) -> Iterator[Broken]:
        places = list(zip((-frequency).tolist(), phrases, strict=True))
        disordered = [before >= place for before, place in pairwise(places)]
        if places:
            disordered.insert(0, self._last is not None and self._last >= places[0])
            self._last = places[-1]
        yield Broken(
            "the phrase is not behind the one before it, by frequency and UTF-8 bytes", where(disordered), show
        )

    def _labels(self, table: pa.Table, frequency: I64) -> Iterator[Broken]:
        by_label = table.column("label_shares").combine_chunks()
        shares = np.stack([by_label.field(label).to_numpy() for label in PHRASE_LABELS])
        label = pc.index_in(table.column("label"), pa.array(PHRASE_LABELS)).combine_chunks()
        phrase = table.column("phrase")

        def show(row: int) -> str:
            numbers = ", ".join(
                f"{name} {share:.3g}" for name, share in zip(PHRASE_LABELS, shares[:, row], strict=True)
            )
            return f"{quoted(phrase[row].as_py())}: label {quoted(table.column('label')[row].as_py())}, {numbers}"

        yield Broken("label is not one of " + ", ".join(PHRASE_LABELS), where(pc.is_null(label)), show)
        total = shares.astype(np.float64).sum(axis=0)
        outside = ~((shares >= 0) & (shares <= 1)).all(axis=0) | ~(np.abs(total - 1) < 1e-5)
        yield Broken("label_shares do not add up to 1", where(outside), show)
        best = shares.argmax(axis=0)
        place = pc.fill_null(label, 0).to_numpy()
        own = np.take_along_axis(shares, place[None], axis=0)[0] if len(place) else shares[0]
        # Counts above this differ where their shares in single precision do not.
        tied = (frequency >= _EXACT_SHARES) & (own == shares.max(axis=0))
        wrong = (place != best) & ~tied & pc.is_valid(label).to_numpy(zero_copy_only=False)
        yield Broken("label is not that of most occurrences (ties by the order of the shares)", where(wrong), show)

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._phrases.end(dataset, "the phrase is not unique")

    def totals(self) -> Iterator[str]:
        if self._select is None or self._count is None:
            return
        left_out = self._select.filtered.total()
        # Each of the phrases left out occurred at least once.
        if self._total + left_out > self._count.written or (not left_out and self._total != self._count.written):
            yield (
                f"frequencies add up to {self._total:,} (and {left_out:,} phrases were left out); "
                f"{self._count.written:,} occurrences were counted"
            )


class ContextChecks:
    """Contexts: masks, offsets, the order of the rows, negatives, splits."""

    def __init__(self, manifest: Manifest) -> None:
        options = manifest.options
        self._mask, self._rate = str(options["mask_token"]), float(options["validation_rate"])
        self._seed = manifest.seed or 0
        self._splits = Apart("doc_id", by="split")
        self._last: dict[str, bytes] = {}
        self._negatives: dict[str, Negatives] = {}
        self._documents: dict[str, list[U64]] = {}
        self._manifest = manifest

    def rows(self, group: RowGroup, split: str) -> Iterator[Broken]:
        table = group.table
        self._splits.add(group, split)
        self._negatives.setdefault(split, Negatives()).add(group)
        column = {name: table.column(name) for name in table.column_names}
        phrases, contexts, ids, doc_ids = (
            column[name].to_pylist() for name in ("phrase", "context", "sentence_id", "doc_id")
        )
        start, end, mask_start = (
            column[name].to_numpy().astype(np.int64) for name in ("start_char", "end_char", "mask_start")
        )
        self._count_licences(table)

        def show(row: int) -> str:
            return f"{quoted(phrases[row])} in {quoted(ids[row])}"

        yield Broken("the phrase is empty", where(pc.equal(column["phrase"], "")), show)
        unknown = pc.invert(pc.is_in(column["label"], pa.array(PHRASE_LABELS)))
        yield Broken("label is not one of " + ", ".join(PHRASE_LABELS), where(unknown), show)
        yield Broken("the frequency is below 1", where(pc.less(column["frequency"], 1)), show)
        yield Broken("anchor is not the phrase", where(pc.not_equal(column["anchor"], column["phrase"])), show)
        yield Broken("positive is not the context", where(pc.not_equal(column["positive"], column["context"])), show)
        places = mask_start.tolist()
        yield Broken(
            "no mask stands at mask_start",
            where([not context.startswith(self._mask, at) for context, at in zip(contexts, places, strict=True)]),
            lambda row: (
                f"{show(row)}: {quoted(contexts[row][places[row] :])} at {places[row]:,}, not {quoted(self._mask)}"
            ),
        )
        length = pc.utf8_length(column["surface"]).to_numpy()
        yield Broken(
            "surface is empty or not as long as end_char - start_char",
            where((end - start != length) | (length == 0)),
            lambda row: f"{show(row)}: {length[row]:,} characters, [{start[row]:,}:{end[row]:,}]",
        )
        yield Broken(
            "sentence_id is not that of a sentence of the document before the phrase",
            where([not _is_sentence(*each) for each in zip(ids, doc_ids, start.tolist(), strict=True)]),
            lambda row: f"{quoted(ids[row])}, document {quoted(doc_ids[row])}, phrase at {start[row]:,}",
        )
        validation = {each: is_validation(each, rate=self._rate, seed=self._seed) for each in set(doc_ids)}
        yield Broken(
            "the document belongs to the other split, by the hash of its id",
            where([validation[each] != (split == "validation") for each in doc_ids]),
            lambda row: quoted(doc_ids[row]),
        )
        yield self._order(split, doc_ids, start.tolist(), phrases, show)

    def _order(
        self, split: str, doc_ids: list[str], starts: list[int], phrases: list[str], show: Callable[[int], str]
    ) -> Broken:
        keys = [self._last.get(split, b"")]
        for doc_id, start, phrase in zip(doc_ids, starts, phrases, strict=True):
            keys.append(row_key(seed=self._seed, doc_id=doc_id, start_char=start, phrase=phrase))
        self._last[split] = keys[-1]
        disordered = [before >= key for before, key in pairwise(keys)]
        return Broken("the row is not behind the one before it, by hash", where(disordered), show)

    def _count_licences(self, table: pa.Table) -> None:
        licences = table.column("licence")
        for licence in pc.unique(licences).to_pylist():
            own = pc.unique(table.column("doc_id").filter(pc.equal(licences, licence)))
            self._documents.setdefault(licence, []).append(hashes(own))

    def end(self, dataset: Dataset) -> Iterator[Violation]:
        yield from self._splits.end(dataset, "the document is in another split, too")
        for split, negatives in self._negatives.items():
            yield from negatives.end(dataset, split)

    def totals(self) -> Iterator[str]:
        counted = {licence: len(np.unique(np.concatenate(each))) for licence, each in self._documents.items()}
        yield from _licence_totals(self._manifest.licences, counted)
        without = sum(each.without for each in self._negatives.values())
        said = self._manifest.counter("without_negative")
        if without != said:
            yield f"{without:,} rows can have no negative; the manifest counts {said:,} (without_negative)"


def _is_sentence(sentence_id: str, doc_id: str, start_char: int) -> bool:
    before, _, start = sentence_id.rpartition("#")
    return before == doc_id and start.isdecimal() and int(start) <= start_char


_WAITING = np.dtype([(name, np.uint64) for name in ("phrase", "document", "context", "negative", "shard", "row")])


class Negatives:
    """Finds rows whose negative is not what it should be: the context of the next row of another phrase and document.

    Rows stand in a circle, in order of their hashes. Where no row is of another document another phrase is enough;
    where there is none either the negative is empty. A row waits, as hashes, for the row group that holds its negative.
    """

    RULE = "the negative is not the context of the next row of another phrase and document"

    def __init__(self) -> None:
        self._shards: list[Shard] = []
        self._waiting = np.empty(0, _WAITING)
        self._wrong: list[npt.NDArray[Any]] = []
        self.without = 0

    def add(self, group: RowGroup) -> None:
        """The next rows of the split."""
        if not self._shards or self._shards[-1] != group.shard:
            self._shards.append(group.shard)
        self._pass(self._rows(group, len(self._shards) - 1))

    def _rows(self, group: RowGroup, shard: int) -> npt.NDArray[Any]:
        rows = np.zeros(group.table.num_rows, _WAITING)
        for name, column in (
            ("phrase", "phrase"),
            ("document", "doc_id"),
            ("context", "context"),
            ("negative", "negative"),
        ):
            if column in group.table.column_names:
                rows[name] = hashes(group.table.column(column))
        rows["shard"], rows["row"] = shard, np.arange(len(rows)) + group.first_row
        return rows

    def _pass(
        self, rows: npt.NDArray[Any], *, joining: npt.NDArray[np.bool_] | None = None, any_document: bool = False
    ) -> None:
        """Let the waiting rows look for their negatives among `rows`, which (or those `joining`) then wait, too."""
        if joining is None:
            joining = np.ones(len(rows), dtype=bool)
        seekers = np.concatenate([self._waiting, rows[joining]])
        start = np.concatenate([np.zeros(len(self._waiting), np.int64), np.flatnonzero(joining) + 1])
        place = next_eligible(rows, seekers, start, ("phrase",) if any_document else ("phrase", "document"))
        found = place < len(rows)
        answered = seekers[found]
        self._wrong.append(answered[answered["negative"] != rows["context"][place[found]]])
        self._waiting = seekers[~found]

    def end(self, dataset: Dataset, split: str) -> Iterator[Violation]:
        """Close the circle: the first rows again, for those that still wait."""
        self._circle(dataset, split)
        if len(self._waiting):
            lonely = np.sort(self._waiting, order=["shard", "row"])
            self._waiting = lonely[:0]
            self._circle(dataset, split, joining=lonely)
            self._circle(dataset, split, any_document=True)
        self.without = len(self._waiting)
        self._wrong.append(self._waiting[self._waiting["negative"] != xxhash.xxh3_64_intdigest(b"")])
        wrong = np.concatenate(self._wrong)
        for number in np.unique(wrong["shard"]).tolist():
            rows = np.sort(wrong["row"][wrong["shard"] == number].astype(np.int64))
            yield Violation(self._shards[number], self.RULE, rows, "")

    def _circle(
        self, dataset: Dataset, split: str, *, joining: npt.NDArray[Any] | None = None, any_document: bool = False
    ) -> None:
        for number, shard in enumerate(self._shards):
            for group in dataset.row_groups(shard, columns=["phrase", "doc_id", "context", "negative"]):
                if joining is None and not len(self._waiting):
                    return
                rows = self._rows(group, number)
                own = np.zeros(len(rows), dtype=bool)
                if joining is not None:
                    own = np.isin(rows["row"], joining["row"][joining["shard"] == number])
                self._pass(rows, joining=own, any_document=any_document or joining is not None)


def next_eligible(rows: npt.NDArray[Any], seekers: npt.NDArray[Any], start: I64, keys: tuple[str, ...]) -> I64:
    """For each seeker the first of `rows` from `start` on that differs from it in all keys; len(rows) if none does."""
    ends = {key: _run_ends(rows[key]) for key in keys}
    place = start.copy()
    seeking = np.flatnonzero(place < len(rows))
    while len(seeking):
        here = place[seeking]
        beyond = here
        for key in keys:
            # A run of rows with one key is passed at once: a corpus may be a single document.
            same = rows[key][here] == seekers[key][seeking]
            beyond = np.maximum(beyond, np.where(same, ends[key][here], here))
        place[seeking] = beyond
        seeking = seeking[(beyond > here) & (beyond < len(rows))]
    return place


def _run_ends(key: U64) -> I64:
    """[n] the place behind the run of equal values that each row stands in."""
    last = np.append(key[1:] != key[:-1], True)[: len(key)]
    ends = np.flatnonzero(last) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))
