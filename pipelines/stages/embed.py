"""Embed: phrases -> embeddings, once for each phrase and encoder."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.models import check_model
from pipelines.stages.units import Piece, piece_units
from schemas.errors import UserError
from schemas.kinds.embeddings import EMBEDDINGS, embeddings
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.encoders.files import encoder_identity
from transforms.encoders.interface import Encoder
from transforms.encoders.registry import load_encoder

PHRASES_A_UNIT = 1 << 14
"""About a minute's work of a core with a small encoder; a row group of embeddings."""


@dataclass(frozen=True)
class Embed(Stage):
    """The vectors of some phrases of a shard. Batches are formed from these alone."""

    name: ClassVar[str] = "embed"
    counts: ClassVar[str] = "phrases"
    Unit: ClassVar[type] = Piece

    prefix: str
    precision: str
    encoder: str = location()
    phrases: str = location()

    def plan(self, work: Work) -> list[Piece]:
        return piece_units(Folder(self.phrases), PHRASES_A_UNIT)

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        check_model(f"--encoder {self.encoder}", models[0], encoder_identity(self.encoder))

    def process(self, unit: Piece, write: TaskWriter) -> None:
        with write.busy("loading the encoder"):
            encoder = cached_encoder(self.encoder, self.prefix, self.precision)
        column = read_parquet(Folder(self.phrases), unit.path, ["phrase"]).column("phrase")
        phrases = column.slice(unit.first, unit.end - unit.first)
        done = 0

        def note(number: int) -> None:
            nonlocal done
            done += number

        write.ahead = lambda: done
        with write.part(0.98, lambda: done / max(len(phrases), 1)):
            found = encoder.encode(phrases.to_pylist(), note)
        bad = np.flatnonzero(~np.isfinite(found.astype(np.float16)).all(axis=1))
        if len(bad):
            raise UserError(
                f"--encoder {self.encoder}: the vector of {phrases[int(bad[0])].as_py()!r} has numbers that are not "
                "finite in 16 bits; take another encoder, or --encoder-precision float32"
            )
        write.ledger.read += len(phrases)
        write.ledger.written += len(phrases)
        write.counters[f"embedded on {encoder.device}"] += len(phrases)
        write.table("embeddings", embeddings(phrases, found))


@dataclass(frozen=True)
class Join(Stage):
    """The shards: each has the vectors of the same shard of phrases, a row group for each unit of `Embed`."""

    name: ClassVar[str] = "join_embeddings"
    Unit: ClassVar[type] = Piece

    phrases: str = location()

    def plan(self, work: Work) -> list[Piece]:
        return piece_units(Folder(self.phrases), 1 << 62)

    def process(self, unit: Piece, write: TaskWriter) -> None:
        files = write.work.files("embed", "embeddings")
        pieces = piece_units(Folder(self.phrases), PHRASES_A_UNIT)
        own = [file for file, piece in zip(files, pieces, strict=True) if piece.shard == unit.shard]
        with write.file("train", EMBEDDINGS) as write_group:
            for file in write.each(own):
                if file.rows:
                    write_group(read_parquet(write.work.folder, file.path))


@functools.lru_cache(maxsize=2)
def cached_encoder(name: str, prefix: str, precision: str) -> Encoder:
    """The encoder, loaded once per process."""
    return load_encoder(name, prefix=prefix, precision=precision)
