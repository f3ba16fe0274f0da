"""Find entities: sentences -> the named entities of each, shard by shard."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.models import check_model, import_spacy
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.entities.interface import Entity, EntityFinder, Words
from transforms.entities.registry import load_finder, needs_torch
from transforms.entities.tables import SENTENCE_COLUMNS, entities_table, is_uncapitalised, read_words, slices
from transforms.registry import Settings

CALL_TOKENS = 20_000
"""Tokens that a finder gets in a call, about: at most seconds of work."""


class SentenceShard(NamedTuple):
    """A shard of the sentences dataset. The shard of entities of the same number is made from it."""

    path: str


@dataclass(frozen=True)
class FindEntities(Stage):
    """The entities of each sentence, for each shard of sentences. Batches cross documents, but not shards."""

    name: ClassVar[str] = "find_entities"
    counts: ClassVar[str] = "sentences"
    Unit: ClassVar[type] = SentenceShard

    entity_finder: str
    entity_options: Settings
    keep_uncapitalised: bool
    sentences: str = location()

    def plan(self, work: Work) -> list[SentenceShard]:
        return [SentenceShard(shard.path) for shard in read_manifest(Folder(self.sentences)).shards]

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        finder = cached_finder(self.entity_finder, self.entity_options)
        check_model(f"--entity-finder {self.entity_finder}", models[0], finder.identity)

    def process(self, unit: SentenceShard, write: TaskWriter) -> None:
        with write.busy("loading the entity finder"):
            finder = cached_finder(self.entity_finder, self.entity_options)
        sentences = read_parquet(Folder(self.sentences), unit.path, list(SENTENCE_COLUMNS))
        found: list[list[Entity]] = []
        for part in write.each(slices(sentences, CALL_TOKENS), 0.98):
            words = read_words(part)
            found += self._kept(words, finder.find(words), write)
            write.ledger.read += len(words)
            write.ledger.written += len(words)
            write.counters["tokens"] += sum(len(each.words) for each in words)
        write.counters["entities"] += sum(map(len, found))
        # One row group, because readers take a whole shard.
        write.table("train", entities_table(sentences.column("sentence_id"), found), row_group_rows=1 << 30)

    def _kept(
        self, sentences: Sequence[Words], found: Sequence[list[Entity]], write: TaskWriter
    ) -> Sequence[list[Entity]]:
        if self.keep_uncapitalised:
            return found
        kept = [
            [each for each in entities if not is_uncapitalised(words.words, each)]
            for words, entities in zip(sentences, found, strict=True)
        ]
        write.counters["uncapitalised"] += sum(map(len, found)) - sum(map(len, kept))
        return kept


@functools.lru_cache(maxsize=1)
def cached_finder(name: str, options: Settings) -> EntityFinder:
    """The finder, loaded once per process."""
    keywords: Mapping[str, Any] = dict(options)
    if not needs_torch(name, **keywords):
        import_spacy()
    return load_finder(name, **keywords)
