"""Paraphrases: candidates -> of each phrase the best paraphrase, and the best one of its corrupted form.

ChooseParaphrases   filters the candidates and chooses: the map of an exchange by phrase
OrderParaphrases    reduce: the shards of paraphrases, in order of the phrases' hashes
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from pipelines.engine.exchange import KEY, n_ranges, read_sorted, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.embed import cached_encoder
from pipelines.stages.models import check_model
from pipelines.stages.units import Piece, Range, first_rows, piece_units
from schemas.errors import UserError
from schemas.kinds.paraphrase_candidates import FLUENCY
from schemas.kinds.paraphrases import PARAPHRASES, SCORES
from schemas.kinds.paraphrases import SIDES as COLUMNS
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.arrays import I64, offsets_of, single
from transforms.augmentation.wordnet import wordnet
from transforms.encoders.files import encoder_identity
from transforms.encoders.interface import F32, Encoder
from transforms.paraphrase.filters import Lexicon
from transforms.paraphrase.options import GENERATORS, NO_FILTERS, ParaphraseFilters
from transforms.paraphrase.scoring import REASONS, Judge, Judged, Original, best, needs, similarities
from transforms.phrases.counting import phrase_keys

CHOSEN_A_UNIT = 2048
ROWS_A_RANGE = 250_000
ROW_GROUP = 1 << 14
LEXICON_PHRASES = 1 << 20
"""The most phrases whose words are taken, evenly from all shards: it bounds memory."""

_CHOSEN = pa.schema([(name, pa.uint64()) for name in KEY] + list(PARAPHRASES))


def finite(value: Any) -> Any:
    """A value for JSON, which has no infinity."""
    return None if isinstance(value, float) and math.isinf(value) else value


@dataclass(frozen=True)
class ChooseParaphrases(Stage):
    """Map of the exchange by phrase: the best positive and the best negative of some phrases.

    A phrase of which no candidate is left on a side is filtered with the reason of the one that passed most filters.
    """

    name: ClassVar[str] = "choose_paraphrases"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = Piece

    rules: ParaphraseFilters
    prefix: str
    precision: str
    candidates: str = location()
    encoder: str = location(default="")

    def plan(self, work: Work) -> list[Piece]:
        return piece_units(Folder(self.candidates), CHOSEN_A_UNIT)

    def settings(self) -> dict[str, Any]:
        """Identities say what the models are, wherever they are."""
        return {name: finite(value) for name, value in super().settings().items() if not name.endswith("_model")}

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        if self.encoder:
            check_model(f"--encoder {self.encoder}", models[0], encoder_identity(self.encoder))

    def process(self, unit: Piece, write: TaskWriter) -> None:
        rows = read_parquet(Folder(self.candidates), unit.path).slice(unit.first, unit.end - unit.first)
        rows = rows.combine_chunks()
        measured = _measured(rows)
        if not measured and "likelihood" in needs(self.rules) and len(rows):
            raise UserError(
                f"--score {self.rules.score}: the generator does not say how likely a text is by itself, or "
                "--no-fluency was given; leave it out, or make the candidates again without --no-fluency"
            )
        with write.busy("loading the filters"):
            encoder = cached_encoder(self.encoder, self.prefix, self.precision) if self.encoder else None
            judge, likelihoods = _judge(self, measured is not None)
        likelihoods.clear()
        likelihoods |= measured or {}
        sides: dict[str, _Side] = {}
        for side in write.each([*COLUMNS], 0.95):
            sides[side] = self._judged(rows, side, judge, sides.get("positive"), write)
        kept = np.logical_and.reduce([each.best >= 0 for each in sides.values()])
        for row in np.flatnonzero(~kept).tolist():
            side = next(name for name, each in sides.items() if each.best[row] < 0)
            write.ledger.filtered[f"{side}_{sides[side].why(row)}"] += 1
        write.ledger.read += len(kept)
        write.ledger.written += int(kept.sum())
        table = self._paraphrases(rows, sides, np.flatnonzero(kept), encoder, write)
        table = pa.table([*map(pa.array, phrase_keys(table.column("phrase"))), *table.columns], schema=_CHOSEN)
        write_ranges(write, "chosen", table, ranges=_ranges(self.candidates))

    def _judged(self, rows: pa.Table, side: str, judge: Judge, positive: _Side | None, write: TaskWriter) -> _Side:
        """What is judged of the candidates of a side; of the negative after the positive."""
        of = COLUMNS[side][0]
        texts, names = rows.column(of).to_pylist(), rows.column("names").to_pylist()
        # A name that was replaced is no part of the corrupted phrase.
        own = [tuple(each for each in found if each in text) for text, found in zip(texts, names, strict=True)]
        said = [""] * len(texts)
        if positive:
            pairs = zip(rows.column("phrase").to_pylist(), positive.chosen(), strict=True)
            said = [" ".join(each) for each in pairs]
        originals = [Original(*each) for each in zip(texts, rows.column("label").to_pylist(), own, said, strict=True)]
        lists = single(rows, f"{side}s")
        starts = offsets_of(lists)
        items = lists.flatten()
        owner = np.repeat(np.arange(len(lists)), np.diff(starts))
        judged = judge(
            originals,
            owner,
            items.field("text").to_pylist(),
            log_probability=items.field("log_probability").to_numpy() if _calibrated(rows) else None,
            min_score=self.rules.min_score if side == "positive" else self.rules.min_negative_score,
        )
        write.counters[f"{side}:candidates"] += len(owner)
        write.counters += Counter(f"{side}:{each}" for each in judged.reason if each)
        return _Side(items, judged, best(owner, items.field("text"), judged, len(lists)), starts)

    def _paraphrases(
        self, rows: pa.Table, sides: Mapping[str, _Side], kept: I64, encoder: Encoder | None, write: TaskWriter
    ) -> pa.Table:
        """The rows of phrases that have both paraphrases."""
        same = ("generator", *(name for names in COLUMNS.values() for name in names))
        found = {name: rows.column(name).take(pa.array(kept)) for name in same}
        scores: dict[str, F32] = {}
        for side, each in sides.items():
            own = each.best[kept]
            found[side] = each.items.field("text").take(pa.array(own))
            total = each.items.field("log_probability").to_numpy()[own]
            scores |= {f"{side}_{name}": getattr(each.judged, name)[own] for name in _MEASURES}
            scores[f"{side}_log_probability"] = total
        pairs = list(zip(found["phrase"].to_pylist(), found["negative"].to_pylist(), strict=True))
        scores["apart"] = similarities(encoder, pairs) if encoder else np.full(len(kept), np.nan)
        near = scores["positive_similarity"]
        write.counters["measured"] += int((near == near).sum())
        write.counters["nearer"] += int((near > scores["apart"]).sum())
        arrays = [pa.array(scores[each.name], pa.float32(), from_pandas=True) for each in SCORES]
        found["scores"] = pa.StructArray.from_arrays(arrays, fields=list(SCORES))
        found["checks"] = pa.array([self.checks] * len(kept), PARAPHRASES.field("checks").type)
        return pa.table([found[name] for name in PARAPHRASES.names], schema=PARAPHRASES)

    @property
    def checks(self) -> list[str]:
        """What the paraphrases are checked for: the filters that may refuse one."""
        own, none = asdict(self.rules), asdict(NO_FILTERS)
        return ["banned_words", *(name for name in own if own[name] != none[name] and name != "score")]


_MEASURES = ("score", "similarity", "content_similarity", "fluency")


class _Side(NamedTuple):
    """The candidates of a side of some phrases, what was judged of them, and the best one of each phrase (-1: none)."""

    items: pa.StructArray
    judged: Judged
    best: I64
    starts: I64

    def chosen(self) -> list[str]:
        """The best candidate of each phrase, or nothing."""
        texts = self.items.field("text").take(pa.array(self.best, mask=self.best < 0))
        return [each or "" for each in texts.to_pylist()]

    def why(self, row: int) -> str:
        """Why no candidate of a phrase is left: the reason of the one that passed most filters."""
        reasons = self.judged.reason[self.starts[row] : self.starts[row + 1]]
        return max(reasons, key=REASONS.index, default="no_draw")


def _calibrated(rows: pa.Table) -> bool:
    """Whether the weights of the score were fitted to the generator of rows: the embedded paraphraser."""
    return len(rows) > 0 and rows.column("generator")[0].as_py() == GENERATORS[0]


def _ranges(candidates: str) -> int:
    return n_ranges(read_manifest(Folder(candidates)).rows, rows_a_range=ROWS_A_RANGE)


def _measured(rows: pa.Table) -> dict[str, float] | None:
    """How likely the texts of rows are, as the generator measured them; None if it did not."""
    found: dict[str, float] = {}
    for of, _ in COLUMNS.values():
        found |= zip(rows.column(of).to_pylist(), rows.column(FLUENCY[of]).to_pylist(), strict=True)
    for side in COLUMNS:
        items = single(rows, f"{side}s").flatten()
        found |= zip(items.field("text").to_pylist(), items.field("fluency").to_pylist(), strict=True)
    return None if None in found.values() else found


@functools.lru_cache(maxsize=2)
def _judge(stage: ChooseParaphrases, measured: bool) -> tuple[Judge, dict[str, float]]:
    """The filters, with their models, loaded once per process; and where they look for likelihoods."""
    likelihoods: dict[str, float] = {}
    phrases = first_rows(Folder(stage.candidates), ["phrase", "frequency"], LEXICON_PHRASES)
    judge = Judge(
        stage.rules,
        lexicon=Lexicon.of_phrases(single(phrases, "phrase"), single(phrases, "frequency")),
        wordnet=wordnet() if "wordnet" in needs(stage.rules) else None,
        encoder=cached_encoder(stage.encoder, stage.prefix, stage.precision) if stage.encoder else None,
        likelihood=(lambda texts: np.array([likelihoods[each] for each in texts])) if measured else None,
    )
    return judge, likelihoods


@dataclass(frozen=True)
class OrderParaphrases(Stage):
    """Reduce of the exchange by phrase: the shards of the dataset, in order of the phrases' hashes."""

    name: ClassVar[str] = "order_paraphrases"
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = Range

    candidates: str = location()

    def plan(self, work: Work) -> list[Range]:
        ranges = _ranges(self.candidates)
        return [Range(number, ranges) for number in range(ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        files = write.work.files("choose_paraphrases", "chosen")
        table = read_sorted(write.work.folder, write.each(files), unit.number, _CHOSEN).select(PARAPHRASES.names)
        write.ledger.read += table.num_rows
        write.ledger.written += table.num_rows
        write.table("train", table.cast(PARAPHRASES), row_group_rows=ROW_GROUP)
