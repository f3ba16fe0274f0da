"""The figures of each stage for the whole input, from what was measured on a sample of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pipelines.builds import Build
from pipelines.exchange import n_ranges
from pipelines.planning.estimates import Estimate, growth, makespan
from pipelines.planning.measuring import Measured
from pipelines.stages import SIDES, Completion
from pipelines.steps.contexts import CONTEXTS_A_SHARD, ROWS_A_RANGE, Choose, Cut
from pipelines.steps.count import TOKENS_A_RANGE, AddUp
from pipelines.steps.extract import SHARDS_A_DROP, Extract
from pipelines.steps.units import MOST_SHARDS, UNITS
from schemas.manifest import SPLITS, Manifest
from schemas.storage import Folder

_SPEED = 0.15
"""The least half width of a speed, as a share: machines are never equally busy."""
_SHORT_SPEED = 0.4
"""The same for the steps after parsing, of which a sample gives only moments."""
_CUT_READS = 0.5
"""Reading a shard for `cut` takes this share of what `choose` takes on it; the rest of `cut` goes with the contexts."""
_BYTES_A_CHARACTER = 105
"""Memory that parsing takes for each character of a shard of documents."""
_BYTES_A_ROW = 250
"""Memory that a worker takes for each row of what it merges: 1 GB for the 4 million of a full range."""
_BYTES_A_PHRASE = 100
"""Memory that choosing takes for each phrase of the vocabulary."""
_NOTHING = Estimate.exactly(0)


class Line(NamedTuple):
    """A stage: its units, the rows of what it makes, the bytes that it writes, and its time in seconds."""

    stage: str
    units: Estimate
    rows: Estimate
    what: str
    bytes: Estimate
    work: Estimate  # of all workers together
    wall: Estimate


class Forecast(NamedTuple):
    """A dataset to be made: its stages, the bytes of what is kept, and of what lies there only until it is done."""

    folder: Folder
    lines: list[Line]
    kept: Estimate
    passing: Estimate


class Forecaster:
    """Foretells the datasets of a chain in their order; each call builds on what the calls before found."""

    def __init__(self, measured: Measured, *, workers: int) -> None:
        self._m, self._workers = measured, workers
        self._growth = growth(measured.parts, measured.often)
        self._shards = self._tokens = self._occurrences = self._phrases = _NOTHING
        self._vocabulary: Manifest | None = None
        self._more_memory = [0.0]

    @property
    def tokens(self) -> Estimate:
        return self._tokens

    @property
    def memory(self) -> Estimate:
        """Bytes of the largest worker: what the sample took, and what larger units take beyond."""
        return Estimate.exactly(self._m.peak_memory + max(self._more_memory)).widened(0.2)

    def given(self, manifest: Manifest) -> None:
        """A dataset that is there already: its figures are known."""
        if manifest.record in ("Document", "Sentence"):
            self._shards = Estimate.exactly(len(manifest.shards))
        if manifest.record == "Sentence":
            self._tokens = Estimate.exactly(manifest.counter("tokens"))
        if manifest.record == "Phrase":
            self._vocabulary = manifest
            self._phrases = Estimate.exactly(manifest.rows)
            counted = manifest.stage("count").ledger
            self._occurrences = Estimate.exactly(counted.written if counted else 0)

    def made(self, build: Build) -> Forecast:
        """A dataset that is to be made."""
        first = build.stages[0].name
        made = {"extract": self._documents, "parse": self._sentences, "count": self._counts, "choose": self._contexts}
        return made[first](build)

    # ---- Documents

    def _documents(self, build: Build) -> Forecast:
        m = self._m
        extract = build.stages[0]
        assert isinstance(extract, Extract)
        rows, sides = (m.total("extract", each, thinned=False) for each in (_documents, _bytes(*SIDES)))
        train = m.total("extract", _bytes("train")) * self._full_size("extract")
        keys = m.total("extract", _bytes("keys"))
        scale = rows.middle / max(m.sum("extract", _rows("train")), 1)
        # What is rewritten lies there twice, until the dataset is done.
        rewritten = train * _share(m.sum("drop", _bytes("train")), m.sum("extract", _bytes("train")))
        lost = m.sum("drop", lambda each: each.ledger.read - each.ledger.written if each.ledger else 0)
        left = rows * (1 - _share(lost, m.sum("extract", _rows("train"))))
        sizes = [sum(end - start for _, start, end in each.parts) for each in extract.plan(build.work)]
        work = self._paced(m.total("extract", _seconds, thinned=False), _SPEED)
        shares = [_share(size, sum(sizes)) for size in sizes]
        wall = work.map(lambda seconds: makespan([share * seconds for share in shares], self._workers))
        self._shards = self._document_shards(extract, shares)
        groups = self._shards.map(lambda n: -(-n // SHARDS_A_DROP)) if m.stages["drop"] else _NOTHING
        ranges = Estimate.exactly(extract._ranges())
        if m.shards:
            mean = sum(each.characters for each in m.shards) / len(m.shards)
            self._more_memory.append((extract.shard_bytes - mean) * _BYTES_A_CHARACTER)
        lines = [
            Line("extract", Estimate.exactly(len(sizes)), rows, "documents", train + sides + keys, work, wall),
            self._scaled("find_duplicate_ids", ranges, scale),
            self._scaled("find_duplicates", ranges, scale),
            self._scaled("drop", groups, scale)._replace(rows=left, what="documents", bytes=rewritten),
        ]
        return Forecast(build.output, lines, train + sides, keys + rewritten)

    def _document_shards(self, extract: Extract, shares: Sequence[float]) -> Estimate:
        """A unit's text is cut behind the document with which it reaches the size of a shard."""
        m = self._m
        if m.pieces.is_whole:
            return Estimate.exactly(m.sum("extract", _files("train")))
        characters = m.total("extract", _counter("all_characters"), thinned=False)
        # By renewal theory a shard ends so far beyond its size.
        beyond = sum(each.squares for each in m.shards) / max(2 * sum(each.characters for each in m.shards), 1)
        most = extract.shard_bytes + beyond
        return characters.map(lambda text: round(sum(max(share * text / most + 0.5, 1) for share in shares)))

    # ---- Sentences

    def _sentences(self, build: Build) -> Forecast:
        m = self._m
        self._tokens = m.total("parse", _counter("tokens"))
        kept = m.total("parse", _bytes("train", *SIDES)) * self._full_size("parse")
        loads = [_counter("load_ms")(each) / 1000 for each in m.stages["parse"]]
        work = m.total("parse", lambda each: max(each.seconds - _counter("load_ms")(each) / 1000, 0))
        line = self._line("parse", self._shards, work, m.total("parse", _rows("train")), "sentences", kept)
        # Every worker loads the parser, all at the same time.
        load = Estimate.exactly(max(loads, default=0)).widened(_SPEED)
        loaders = min(self._workers, max(self._shards.middle, 1))
        line = line._replace(work=line.work + load * loaders, wall=line.wall + load)
        return Forecast(build.output, [line], kept, _NOTHING)

    # ---- Phrases

    def _counts(self, build: Build) -> Forecast:
        m = self._m
        add_up = build.stages[1]
        assert isinstance(add_up, AddUp)
        units = self._units
        self._occurrences = m.total("count", lambda each: each.ledger.written if each.ledger else 0)
        in_units = self._in_units(lambda tokens: self._distinct(tokens))
        counted = self._or_seen("count", _rows("counts"), in_units.at_most(self._occurrences))
        counted_bytes = self._like_sample("count", "counts", counted)
        distinct = self._or_seen("add_up", _counter("candidates"), self._distinct(self._tokens))
        ranges = self._tokens.map(lambda tokens: n_ranges(round(tokens), rows_a_range=TOKENS_A_RANGE))
        frequent = self._often(self._tokens, add_up.min_frequency)
        most = float("inf") if add_up.max_phrases is None else add_up.max_phrases
        totals = self._or_seen("add_up", _rows("totals"), frequent.at_most(ranges * most))
        totals_bytes = self._like_sample("add_up", "totals", totals)
        self._phrases = self._or_seen("select", _rows("train"), frequent.at_most(most))
        kept = self._like_sample("select", "train", self._phrases)
        work = m.total("count", _seconds)
        more = _share(counted.middle, m.sum("count", _rows("counts")))
        more_totals = _share(totals.middle, m.sum("add_up", _rows("totals")))
        self._grow("count", "counts", counted.middle, min(units.middle, ranges.middle))
        lines = [
            self._line("count", units, work, counted, "counts", counted_bytes),
            self._scaled("add_up", ranges, more)._replace(rows=distinct, what="candidates", bytes=totals_bytes),
            self._scaled("select", Estimate.exactly(1), more_totals)._replace(
                rows=self._phrases, what="phrases", bytes=kept
            ),
        ]
        return Forecast(build.output, lines, kept, counted_bytes + totals_bytes)

    # ---- Contexts

    def _contexts(self, build: Build) -> Forecast:
        m = self._m
        choose, cut = build.stages[0], build.stages[2]
        assert isinstance(choose, Choose)
        assert isinstance(cut, Cut)
        most, units = choose.contexts_per_phrase, self._units
        in_units = m.total("choose", _rows("chosen"))
        if m.parts:
            in_units = self._in_units(lambda tokens: self._most_of_each(tokens, most))
        chosen = self._or_seen("choose", _rows("chosen"), in_units.at_most(self._occurrences))
        rows = self._or_seen("order", _rows(*SPLITS), self._rows(most))
        more, more_chosen = (
            _share(now.middle, m.sum(stage, _rows(*roles)))
            for now, stage, roles in ((rows, "order", SPLITS), (chosen, "choose", ("chosen",)))
        )
        chosen_bytes = self._like_sample("choose", "chosen", chosen)
        kept_bytes = self._like_sample("keep", "kept", rows)
        cut_bytes = self._like_sample("cut", "cut-train", rows)
        kept = self._like_sample("order", "train", rows)
        if not m.pieces.is_whole:
            seen = min(_share(m.sum("choose", _counter("tokens")), self._tokens.middle), 1)
            kept = kept * (seen + (1 - seen) * max(m.full_size["order"], 1))
        choosing = m.total("choose", _seconds)
        on_rows = max(m.sum("cut", _seconds) - _CUT_READS * m.sum("choose", _seconds), 0) * more
        cutting = choosing * _CUT_READS + Estimate.exactly(on_rows)
        candidates = (self._phrases * units * most).at_most(self._occurrences)
        parts = candidates.map(lambda n: n_ranges(round(n), rows_a_range=ROWS_A_RANGE))
        splits = [share for share in (1 - cut.validation_rate, cut.validation_rate) if share]
        shards = rows.map(
            lambda n: float(sum(n_ranges(int(n * share), rows_a_range=CONTEXTS_A_SHARD) for share in splits))
        )
        self._grow("choose", "chosen", chosen.middle, min(parts.middle, units.middle))
        self._more_memory[-1] += self._phrases.middle * _BYTES_A_PHRASE
        lines = [
            self._line("choose", units, choosing, chosen, "occurrences", chosen_bytes),
            self._scaled("keep", parts, more_chosen)._replace(rows=rows, what="occurrences", bytes=kept_bytes),
            self._line("cut", units, cutting, rows, "contexts", cut_bytes),
            self._scaled("order", shards, more)._replace(rows=rows, what="contexts", bytes=kept),
        ]
        return Forecast(build.output, lines, kept, chosen_bytes + kept_bytes + cut_bytes)

    def _rows(self, most: int) -> Estimate:
        """Contexts: for j up to `most`, the phrases of the vocabulary that occur j times or more."""
        if self._vocabulary is not None and most == 1:
            return self._phrases
        if not self._m.parts:
            return Estimate(self._phrases.low, self._phrases.middle * most, self._phrases.high * most).at_most(
                self._occurrences
            )
        return self._most_of_each(self._tokens, most).at_most(self._occurrences)

    def _most_of_each(self, tokens: Estimate, most: int) -> Estimate:
        return _sum(self._often(tokens, times).at_most(self._phrases) for times in range(1, most + 1))

    # ---- What they have in common

    @property
    def _units(self) -> Estimate:
        """Units of the stages over sentences, as `steps.units.shards_a_unit` cuts them."""
        return self._shards.map(lambda n: float(-(-n // min(max(n // UNITS, 1), MOST_SHARDS))))

    def _in_units(self, of: Callable[[Estimate], Estimate]) -> Estimate:
        """The sum over the units of a stage over sentences of what is found in the tokens of one."""
        units = self._units.at_least(1)
        return of(self._tokens * (1 / units.middle)) * units.middle

    def _distinct(self, tokens: Estimate) -> Estimate:
        """Distinct phrases in so much text."""
        return self._often(tokens, 1)

    def _often(self, tokens: Estimate, times: int) -> Estimate:
        low, middle, high = (self._growth.often(each, times) for each in (tokens.low, tokens.middle, tokens.high))
        return Estimate(low.low, middle.middle, high.high)

    def _or_seen(self, stage: str, of: Callable[[Completion], float], estimate: Estimate) -> Estimate:
        """What was counted, if all of the input was measured."""
        return Estimate.exactly(self._m.sum(stage, of)) if self._m.pieces.is_whole else estimate

    def _like_sample(self, stage: str, role: str, rows: Estimate) -> Estimate:
        """The bytes of so many rows, each of those that it has in the sample."""
        found = rows * _share(self._m.sum(stage, _bytes(role)), self._m.sum(stage, _rows(role)))
        return found if self._m.pieces.is_whole else found.widened(0.1)

    def _full_size(self, stage: str) -> Estimate:
        """What the bytes of a sample are multiplied by, as its files are smaller than those of the whole."""
        if self._m.pieces.is_whole:
            return Estimate.exactly(1)
        return Estimate.exactly(self._m.full_size[stage]).widened(0.1)

    def _scaled(self, stage: str, units: Estimate, more: float) -> Line:
        """A stage that does `more` times the work that it did on the sample."""
        work = Estimate.exactly(self._m.sum(stage, _seconds) * more)
        written = Estimate.exactly(self._m.sum(stage, _bytes()) * more)
        return self._line(stage, units, work, _NOTHING, "", written)

    def _paced(self, work: Estimate, speed: float) -> Estimate:
        """Seconds of work: from those on an idle machine to those on one as busy as now."""
        parsed = self._m.sum("parse", _counter("parse_ms")) if "parse" in self._m.stages else 0
        share = _share(self._m.sum("parse", _counter("cpu_ms")), parsed) if parsed else 0
        return Estimate(work.low * (min(share, 1) or 1), work.middle, work.high).widened(speed)

    def _line(self, stage: str, units: Estimate, work: Estimate, rows: Estimate, what: str, size: Estimate) -> Line:
        """A stage whose units are about equal."""
        work = self._paced(work, _SPEED if stage == "parse" else _SHORT_SPEED)
        n, workers = max(round(units.middle), 1), self._workers
        wall = work.map(lambda seconds: makespan([seconds / n] * n, workers))
        return Line(stage, units, rows, what, size, work, wall)

    def _grow(self, stage: str, role: str, rows: float, units: float) -> None:
        """Note the memory that a unit takes with more rows than in the sample."""
        seen = max((_rows(role)(each) for each in self._m.stages[stage]), default=0)
        self._more_memory.append(max(rows / max(units, 1) - seen, 0) * _BYTES_A_ROW)


def _sum(estimates: Iterable[Estimate]) -> Estimate:
    return sum(estimates, start=_NOTHING)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _seconds(each: Completion) -> float:
    return each.seconds


def _documents(each: Completion) -> float:
    return each.counters.get("all_documents", 0) or _rows("train")(each)


def _counter(name: str) -> Callable[[Completion], float]:
    return lambda each: each.counters.get(name, 0)


def _rows(*roles: str) -> Callable[[Completion], float]:
    return lambda each: sum(file.rows for file in each.files if file.role in roles)


def _bytes(*roles: str) -> Callable[[Completion], float]:
    """Bytes of the files of some roles, of all if none is named."""
    return lambda each: sum(file.bytes for file in each.files if not roles or file.role in roles)


def _files(role: str) -> Callable[[Completion], float]:
    return lambda each: sum(file.role == role for file in each.files)
