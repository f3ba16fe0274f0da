"""Candidates for paraphrases: phrases -> what a generator draws for each, and for a corrupted form of it.

Generate         the candidates of some phrases of a shard: the expensive work, done once
JoinCandidates   the shards of candidates, which mirror those of the phrases
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import xxhash

from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.models import check_model
from pipelines.stages.units import Piece, first_rows, piece_units
from schemas.errors import UserError
from schemas.kinds.paraphrase_candidates import FLUENCY, PARAPHRASE_CANDIDATES
from schemas.kinds.paraphrases import SIDES
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.paraphrase.constraints import banned_words, kept_words, violations
from transforms.paraphrase.corruption import Vocabulary, corrupted, count_words, vocabulary_table
from transforms.paraphrase.generators.identities import generator_identity
from transforms.paraphrase.generators.interface import Generator, Request
from transforms.paraphrase.generators.registry import load_generator
from transforms.paraphrase.options import ConstraintRules, DrawingRules, GeneratorOptions

PHRASES_A_UNIT = 256
"""Minutes of work of a core: what a kill may lose."""
VOCABULARY_PHRASES, VOCABULARY = 1 << 18, 100_000
"""The most phrases whose words replace others, evenly from all shards, and the most words: they bound memory."""


@dataclass(frozen=True)
class Generate(Stage):
    """The candidates of some phrases of a shard, and of their corrupted forms. Batches are formed from these alone."""

    name: ClassVar[str] = "generate_paraphrases"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = Piece

    drawing: DrawingRules
    constraint: ConstraintRules
    generator: GeneratorOptions
    seed: int
    phrases: str = location()

    def settings(self) -> dict[str, Any]:
        """Its identity says what the model and the prompt are, wherever they are."""
        return {name: value for name, value in super().settings().items() if name not in _PLACES}

    def plan(self, work: Work) -> list[Piece]:
        return piece_units(Folder(self.phrases), PHRASES_A_UNIT)

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        check_model(f"--generator {self.generator.generator}", models[0], generator_identity(self.generator))

    def process(self, unit: Piece, write: TaskWriter) -> None:
        with write.busy("loading the generator"):
            generator = _generator(self.generator, self.constraint.unlikely)
            vocabulary = _vocabulary(self.phrases)
        table = self._corrupted(unit, vocabulary, write)
        done = 0

        def note(number: int) -> None:
            nonlocal done
            done += number

        with write.part(0.98, lambda: done / max(2 * table.num_rows, 1)):
            found = {side: self._drawn(table, side, generator, note, write) for side in SIDES}
        fluency = self._fluency(table, found, generator)
        for side, (of, _) in SIDES.items():
            texts = table.column(of).to_pylist()
            table = table.append_column(FLUENCY[of], pa.array([fluency.get(each) for each in texts], pa.float32()))
            rows = [[{**each, "fluency": fluency.get(each["text"])} for each in own] for own in found[side]]
            table = table.append_column(f"{side}s", pa.array(rows, PARAPHRASE_CANDIDATES.field(f"{side}s").type))
        said = f"{generator.identity.generator} {generator.identity.model}".strip()
        table = table.append_column("generator", pa.array([said] * table.num_rows, pa.string()))
        write.counters[f"generated on {generator.device}"] += table.num_rows
        write.table("candidates", table.select(PARAPHRASE_CANDIDATES.names).cast(PARAPHRASE_CANDIDATES))

    def _corrupted(self, unit: Piece, vocabulary: Vocabulary, write: TaskWriter) -> pa.Table:
        """The phrases of a unit that can be corrupted, with what may not come out."""
        folder, rules = Folder(self.phrases), self.constraint
        columns = [name for name in _READ if name in read_manifest(folder).schema.names]
        found = []
        for row in read_parquet(folder, unit.path, columns).slice(unit.first, unit.end - unit.first).to_pylist():
            phrase, said = row["phrase"], {"surface": row["surface"], "entity_type": row.get("entity_type", "")}
            kept = kept_words(phrase, **said, keep=rules.keep)
            banned = banned_words(phrase, inflections=rules.inflections, kept=kept)
            corruption = corrupted(phrase, self.seed, vocabulary, label=row["label"], replacement=rules.replacement)
            other = corruption.text
            if other is None or not banned:
                write.ledger.filtered[corruption.reason or "kept_words_only"] += 1
                continue
            names = kept_words(phrase, **said, keep=[each for each in rules.keep if each == "names"])
            found.append(
                {
                    "phrase": phrase,
                    "label": row["label"],
                    "frequency": row["frequency"],
                    "names": names,
                    "banned": banned,
                    "corrupted": other,
                    "corrupted_banned": banned_words(other, inflections=rules.inflections, kept=kept),
                }
            )
        write.ledger.read += unit.end - unit.first
        write.ledger.written += len(found)
        own = ("label", "frequency", "names", "banned", "corrupted_banned", *(name for name, _ in SIDES.values()))
        return pa.Table.from_pylist(
            found, schema=pa.schema([each for each in PARAPHRASE_CANDIDATES if each.name in own])
        )

    def _drawn(
        self, table: pa.Table, side: str, generator: Generator, note: Callable[[int], None], write: TaskWriter
    ) -> list[list[dict[str, Any]]]:
        """The candidates of each text of a side, without banned words. What has too few is drawn again, some times."""
        texts, lists = (table.column(name).to_pylist() for name in SIDES[side])
        requests = [
            Request(text, tuple(banned), xxhash.xxh3_64_intdigest(f"{side}\0{text}".encode(), seed=self.seed))
            for text, banned in zip(texts, lists, strict=True)
        ]
        draws, left = self.drawing.draws, list(range(len(requests)))
        found: list[list[dict[str, Any]]] = [[] for _ in requests]
        for attempt in range(self.drawing.attempts):
            first = attempt * draws
            asked = [requests[each] for each in left]
            drawn = generator.generate(asked, draws=draws, first_draw=first, **({} if attempt else {"note": note}))
            for each, candidates in zip(left, drawn, strict=True):
                for number, candidate in enumerate(candidates, first):
                    if not candidate.finished:
                        write.counters[f"{side}s_unfinished"] += 1
                    elif violations(candidate.text, requests[each].banned, inflections=self.constraint.inflections):
                        write.counters[f"{side}s_with_banned"] += 1
                    elif len(found[each]) < draws:
                        said = {"text": candidate.text, "log_probability": candidate.log_probability}
                        found[each].append({**said, "draw": number, "tokens": candidate.tokens})
            left = [each for each in left if len(found[each]) < draws]
            if not left:
                break
        write.counters[f"{side}s_drawn"] += sum(map(len, found))
        return found

    def _fluency(
        self, table: pa.Table, found: Mapping[str, list[list[dict[str, Any]]]], generator: Generator
    ) -> dict[str, float]:
        """How likely each text is by itself; empty if the generator cannot say, or --no-fluency."""
        if not self.drawing.fluency:
            return {}
        texts = [text for of, _ in SIDES.values() for text in table.column(of).to_pylist()]
        texts += [each["text"] for lists in found.values() for own in lists for each in own]
        distinct = list(dict.fromkeys(texts))
        try:
            said = generator.log_likelihoods(distinct)
        except UserError:
            return {}
        return {text: each.log_probability for text, each in zip(distinct, said, strict=True)}


_PLACES = ("generator_model", "prompt")
"""Options of generators that say where something is."""

_READ = ("phrase", "surface", "label", "frequency", "entity_type")
"""The columns of phrases that are read; those without types have no `entity_type`."""


@dataclass(frozen=True)
class JoinCandidates(Stage):
    """The shards: each has the candidates of the same shard of phrases, in its order."""

    name: ClassVar[str] = "join_candidates"
    Unit: ClassVar[type] = Piece

    phrases: str = location()

    def plan(self, work: Work) -> list[Piece]:
        return piece_units(Folder(self.phrases), 1 << 62)

    def process(self, unit: Piece, write: TaskWriter) -> None:
        files = write.work.files("generate_paraphrases", "candidates")
        pieces = piece_units(Folder(self.phrases), PHRASES_A_UNIT)
        own = [file for file, piece in zip(files, pieces, strict=True) if piece.shard == unit.shard and file.rows]
        with write.file("train", PARAPHRASE_CANDIDATES) as write_group:
            for first in write.each(range(0, len(own), _UNITS_A_GROUP)):
                here = own[first : first + _UNITS_A_GROUP]
                write_group(pa.concat_tables([read_parquet(write.work.folder, file.path) for file in here]))


_UNITS_A_GROUP = 64
"""Units of `Generate` of which a row group is made."""


@functools.lru_cache(maxsize=1)
def _vocabulary(phrases: str) -> Vocabulary:
    """The words that replace others, read once per process."""
    table = first_rows(Folder(phrases), _COUNTED, VOCABULARY_PHRASES)
    counts = count_words(*(table.column(name).to_pylist() for name in _COUNTED))
    return Vocabulary(vocabulary_table(counts, most=VOCABULARY))


_COUNTED = ("phrase", "label", "frequency")


@functools.lru_cache(maxsize=1)
def _generator(chosen: GeneratorOptions, unlikely: float) -> Generator:
    """The generator, loaded once per process."""
    return load_generator(chosen, unlikely=unlikely)
