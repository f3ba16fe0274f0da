"""The figures of each stage for the whole input, from what was measured on a sample of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.exchange import n_ranges
from pipelines.engine.stage import Completion
from pipelines.planning.estimates import Estimate, growth, makespan
from pipelines.planning.measuring import Measured
from pipelines.planning.mention_forecasts import MentionForecaster
from pipelines.planning.scale import (
    NOTHING,
    SPEED,
    Forecast,
    Line,
    Scale,
    bytes_of,
    counter_of,
    files_of,
    rows_of,
    seconds_of,
    share_of,
    sum_of,
)
from pipelines.stages.contexts import CONTEXTS_A_SHARD, ROWS_A_RANGE, Choose, Cut
from pipelines.stages.count import TOKENS_A_RANGE, AddUp
from pipelines.stages.extract import SHARDS_A_DROP, Extract
from schemas.kinds import SIDES as SIDE_TABLES
from schemas.manifest import SPLITS, Manifest

_CUT_READS = 0.5
"""Reading a shard for `cut` takes this share of what `choose` takes on it; the rest of `cut` goes with the contexts."""
_BYTES_A_CHARACTER = 105
"""Memory that parsing takes for each character of a shard of documents."""
_BYTES_A_PHRASE = 100
"""Memory that choosing takes for each phrase of the vocabulary."""


class Forecaster:
    """Foretells the datasets of a chain in their order; each call builds on what the calls before found."""

    def __init__(self, measured: Measured, *, workers: int) -> None:
        self._m, self._scale = measured, Scale(measured, workers=workers)
        self._mentions = MentionForecaster(self._scale)
        self._growth = growth(measured.parts, measured.often)
        self._tokens = self._occurrences = self._phrases = NOTHING
        self._vocabulary: Manifest | None = None

    @property
    def tokens(self) -> Estimate:
        return self._tokens

    @property
    def memory(self) -> Estimate:
        """Bytes of the largest worker: what the sample took, and what larger units take beyond."""
        return Estimate.exactly(self._m.peak_memory + max(self._scale.more_memory)).widened(0.2)

    def given(self, manifest: Manifest) -> None:
        """A dataset that is there already: its figures are known."""
        if manifest.record in ("Document", "Sentence"):
            self._scale.shards = Estimate.exactly(len(manifest.shards))
        if manifest.record == "Document":
            self._mentions.given_documents(manifest)
        if manifest.record == "Mention":
            self._mentions.given_mentions(manifest)
        if manifest.record == "Sentence":
            self._tokens = Estimate.exactly(manifest.counter("tokens"))
        if manifest.record == "Phrase":
            self._vocabulary = manifest
            self._phrases = Estimate.exactly(manifest.rows)
            counted = manifest.stage("count").ledger
            self._occurrences = Estimate.exactly(counted.written if counted else 0)

    def made(self, build: DatasetBuild) -> Forecast:
        """A dataset that is to be made."""
        first = build.stages[0].name
        made = {
            "extract": self._documents,
            "parse": self._sentences,
            "count": self._counts,
            "choose": self._contexts,
            "read_tables": self._mentions.mentions,
            "count_surfaces": self._mentions.aliases,
            "group": self._mentions.pairs,
        }
        return made[first](build)

    # ---- Documents

    def _documents(self, build: DatasetBuild) -> Forecast:
        m = self._m
        extract = build.stages[0]
        assert isinstance(extract, Extract)
        rows, sides = (m.total("extract", each, thinned=False) for each in (_documents, bytes_of(*SIDE_TABLES)))
        train = m.total("extract", bytes_of("train")) * self._scale.full_size("extract")
        keys = m.total("extract", bytes_of("keys"))
        scale = rows.middle / max(m.sum("extract", rows_of("train")), 1)
        # What is rewritten lies there twice, until the dataset is done.
        rewritten = train * share_of(m.sum("drop", bytes_of("train")), m.sum("extract", bytes_of("train")))
        lost = m.sum("drop", lambda each: each.ledger.read - each.ledger.written if each.ledger else 0)
        left = rows * (1 - share_of(lost, m.sum("extract", rows_of("train"))))
        sizes = [sum(end - start for _, start, end in each.parts) for each in extract.plan(build.work)]
        work = self._scale.paced(m.total("extract", seconds_of, thinned=False), SPEED)
        shares = [share_of(size, sum(sizes)) for size in sizes]
        wall = work.map(lambda seconds: makespan([share * seconds for share in shares], self._scale.workers))
        self._scale.shards = self._document_shards(extract, shares)
        self._mentions.made_documents(len(sizes))
        groups = self._scale.shards.map(lambda n: -(-n // SHARDS_A_DROP)) if m.stages["drop"] else NOTHING
        ranges = Estimate.exactly(extract._ranges())
        if m.shards:
            mean = sum(each.characters for each in m.shards) / len(m.shards)
            self._scale.more_memory.append((extract.shard_bytes - mean) * _BYTES_A_CHARACTER)
        lines = [
            Line("extract", Estimate.exactly(len(sizes)), rows, "documents", train + sides + keys, work, wall),
            self._scale.scaled("find_duplicate_ids", ranges, scale),
            self._scale.scaled("find_duplicates", ranges, scale),
            self._scale.scaled("drop", groups, scale)._replace(rows=left, what="documents", bytes=rewritten),
        ]
        return Forecast(build.output, lines, train + sides, keys + rewritten)

    def _document_shards(self, extract: Extract, shares: Sequence[float]) -> Estimate:
        """A unit's text is cut behind the document with which it reaches the size of a shard."""
        m = self._m
        if m.pieces.is_whole:
            return Estimate.exactly(m.sum("extract", files_of("train")))
        characters = m.total("extract", counter_of("all_characters"), thinned=False)
        # By renewal theory a shard ends so far beyond its size.
        beyond = sum(each.squares for each in m.shards) / max(2 * sum(each.characters for each in m.shards), 1)
        most = extract.shard_bytes + beyond
        return characters.map(lambda text: round(sum(max(share * text / most + 0.5, 1) for share in shares)))

    # ---- Sentences

    def _sentences(self, build: DatasetBuild) -> Forecast:
        m = self._m
        self._tokens = m.total("parse", counter_of("tokens"))
        kept = m.total("parse", bytes_of("train", *SIDE_TABLES)) * self._scale.full_size("parse")
        loads = [counter_of("load_ms")(each) / 1000 for each in m.stages["parse"]]
        work = m.total("parse", lambda each: max(each.seconds - counter_of("load_ms")(each) / 1000, 0))
        line = self._scale.line(
            "parse", self._scale.shards, work, m.total("parse", rows_of("train")), "sentences", kept
        )
        # Every worker loads the parser, all at the same time.
        load = Estimate.exactly(max(loads, default=0)).widened(SPEED)
        loaders = min(self._scale.workers, max(self._scale.shards.middle, 1))
        line = line._replace(work=line.work + load * loaders, wall=line.wall + load)
        return Forecast(build.output, [line], kept, NOTHING)

    # ---- Phrases

    def _counts(self, build: DatasetBuild) -> Forecast:
        m = self._m
        add_up = build.stages[1]
        assert isinstance(add_up, AddUp)
        units = self._scale.units
        self._occurrences = m.total("count", lambda each: each.ledger.written if each.ledger else 0)
        in_units = self._in_units(lambda tokens: self._distinct(tokens))
        counted = self._scale.or_seen("count", rows_of("counts"), in_units.at_most(self._occurrences))
        counted_bytes = self._scale.like_sample("count", "counts", counted)
        distinct = self._scale.or_seen("add_up", counter_of("candidates"), self._distinct(self._tokens))
        ranges = self._tokens.map(lambda tokens: n_ranges(round(tokens), rows_a_range=TOKENS_A_RANGE))
        frequent = self._often(self._tokens, add_up.min_frequency)
        most = float("inf") if add_up.max_phrases is None else add_up.max_phrases
        totals = self._scale.or_seen("add_up", rows_of("totals"), frequent.at_most(ranges * most))
        totals_bytes = self._scale.like_sample("add_up", "totals", totals)
        self._phrases = self._scale.or_seen("select", rows_of("train"), frequent.at_most(most))
        kept = self._scale.like_sample("select", "train", self._phrases)
        work = m.total("count", seconds_of)
        more = share_of(counted.middle, m.sum("count", rows_of("counts")))
        more_totals = share_of(totals.middle, m.sum("add_up", rows_of("totals")))
        self._scale.grow("count", "counts", counted.middle, min(units.middle, ranges.middle))
        lines = [
            self._scale.line("count", units, work, counted, "counts", counted_bytes),
            self._scale.scaled("add_up", ranges, more)._replace(rows=distinct, what="candidates", bytes=totals_bytes),
            self._scale.scaled("select", Estimate.exactly(1), more_totals)._replace(
                rows=self._phrases, what="phrases", bytes=kept
            ),
        ]
        return Forecast(build.output, lines, kept, counted_bytes + totals_bytes)

    # ---- Contexts

    def _contexts(self, build: DatasetBuild) -> Forecast:
        m = self._m
        choose, cut = build.stages[0], build.stages[2]
        assert isinstance(choose, Choose)
        assert isinstance(cut, Cut)
        most, units = choose.contexts_per_phrase, self._scale.units
        in_units = m.total("choose", rows_of("chosen"))
        if m.parts:
            in_units = self._in_units(lambda tokens: self._most_of_each(tokens, most))
        chosen = self._scale.or_seen("choose", rows_of("chosen"), in_units.at_most(self._occurrences))
        rows = self._scale.or_seen("order", rows_of(*SPLITS), self._rows(most))
        more, more_chosen = (
            share_of(now.middle, m.sum(stage, rows_of(*roles)))
            for now, stage, roles in ((rows, "order", SPLITS), (chosen, "choose", ("chosen",)))
        )
        chosen_bytes = self._scale.like_sample("choose", "chosen", chosen)
        kept_bytes = self._scale.like_sample("keep", "kept", rows)
        cut_bytes = self._scale.like_sample("cut", "cut-train", rows)
        kept = self._scale.like_sample("order", "train", rows)
        if not m.pieces.is_whole:
            seen = min(share_of(m.sum("choose", counter_of("tokens")), self._tokens.middle), 1)
            kept = kept * (seen + (1 - seen) * max(m.full_size["order"], 1))
        choosing = m.total("choose", seconds_of)
        on_rows = max(m.sum("cut", seconds_of) - _CUT_READS * m.sum("choose", seconds_of), 0) * more
        cutting = choosing * _CUT_READS + Estimate.exactly(on_rows)
        candidates = (self._phrases * units * most).at_most(self._occurrences)
        parts = candidates.map(lambda n: n_ranges(round(n), rows_a_range=ROWS_A_RANGE))
        splits = [share for share in (1 - cut.validation_rate, cut.validation_rate) if share]
        shards = rows.map(
            lambda n: float(sum(n_ranges(int(n * share), rows_a_range=CONTEXTS_A_SHARD) for share in splits))
        )
        self._scale.grow("choose", "chosen", chosen.middle, min(parts.middle, units.middle))
        self._scale.more_memory[-1] += self._phrases.middle * _BYTES_A_PHRASE
        lines = [
            self._scale.line("choose", units, choosing, chosen, "occurrences", chosen_bytes),
            self._scale.scaled("keep", parts, more_chosen)._replace(rows=rows, what="occurrences", bytes=kept_bytes),
            self._scale.line("cut", units, cutting, rows, "contexts", cut_bytes),
            self._scale.scaled("order", shards, more)._replace(rows=rows, what="contexts", bytes=kept),
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
        return sum_of(self._often(tokens, times).at_most(self._phrases) for times in range(1, most + 1))

    # ---- Distinct phrases

    def _in_units(self, of: Callable[[Estimate], Estimate]) -> Estimate:
        """The sum over the units of a stage over sentences of what is found in the tokens of one."""
        units = self._scale.units.at_least(1)
        return of(self._tokens * (1 / units.middle)) * units.middle

    def _distinct(self, tokens: Estimate) -> Estimate:
        """Distinct phrases in so much text."""
        return self._often(tokens, 1)

    def _often(self, tokens: Estimate, times: int) -> Estimate:
        low, middle, high = (self._growth.often(each, times) for each in (tokens.low, tokens.middle, tokens.high))
        return Estimate(low.low, middle.middle, high.high)


def _documents(each: Completion) -> float:
    return each.counters.get("all_documents", 0) or rows_of("train")(each)
