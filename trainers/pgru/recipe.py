"""Pairwise-GRU as a recipe of the training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.manifest import is_dataset
from schemas.storage.folder import Folder
from trainers.data import Source
from trainers.evaluation.models.pgru import LastState
from trainers.evaluation.tasks.bigrams import Instance
from trainers.evaluation.tasks.ppdb_choice import COLUMNS, choices
from trainers.pgru.files import read_config
from trainers.pgru.network import PhraseGRU
from trainers.pgru.options import PairwiseGRU
from trainers.pgru.tasks import TRAINING_SETS, TrainingSet, part_of, table
from trainers.training.losses import max_margin
from trainers.training.options import Training
from trainers.training.recipe import Batch, Encoded
from transforms.word_vectors import locate_vectors, read_word_vectors

DEV_SPLIT = "validation"
DEV_SHARES = (9, 1)
"""Of a task's bigrams, those that are learned from, and the dev set."""
ROWS = "rows.parquet"


class Recipe:
    """A pair against its contrasts. Each distinct phrase of a step is encoded once."""

    name = "pgru"
    version = 1
    weights: Sequence[float] | None = None

    def __init__(self, options: PairwiseGRU) -> None:
        if bool(options.dev) != bool(options.dev_data) or (options.dev and options.task):
            raise UserError("--dev, --dev-data: give both, and no --task, or none")
        if options.random_weights or options.layers:
            raise UserError("--random-weights, --layers: are for transformers; leave them out")
        self.network = _network(options)
        self._model = LastState(options.model, self.network)
        self._rate = options.rate
        dev = self._task_rows(TRAINING_SETS[options.task], options) if options.task else self._datasets(options)
        if dev:
            self.held_out = dev  # the loop asks whether there is one

    def _task_rows(self, task: TrainingSet, options: PairwiseGRU) -> Callable[[], float]:
        if len(options.data) > 1:
            raise UserError("--data: with --task give one folder, that of the evaluation sets")
        file = Path(options.data[0]) / task.train
        found = task.read(file)
        parts: tuple[list[Instance], list[Instance]] = ([], [])
        for each in found:
            parts[part_of(each, DEV_SHARES, seed=1)].append(each)
        if not parts[0] or not parts[1]:
            raise UserError(f"{file}: has too few bigrams for a dev set")
        # The loader reads files, so that a run goes on exactly.
        options.output.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(task.rows(parts[0])), options.output / ROWS)
        self.sources = [Source.open(options.output / ROWS, columns=COLUMNS)]
        return lambda: task.score(self._model, parts[1])

    def _datasets(self, options: PairwiseGRU) -> Callable[[], float] | None:
        self.sources = [Source.open(each, columns=COLUMNS) for each in options.data]
        if options.dev:
            assert options.dev_data is not None
            task = TRAINING_SETS[options.dev]
            found = task.read(options.dev_data / task.train)
            return lambda: task.score(self._model, found)
        rows = _validation(options.data)
        return (lambda: float(np.mean(choices(self._model, rows)["right"]))) if rows else None

    def optimizer(self, options: Training) -> torch.optim.Optimizer:
        return torch.optim.SGD([each for each in self.network.parameters() if each.requires_grad], lr=options.rate)

    def rate_at(self, step: int, steps: int) -> float:
        return self._rate

    def prepare(self, table: pa.Table) -> Batch:
        rows = zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
        texts = [[one, other, *contrasts] for one, other, contrasts in rows]
        for each in texts:
            if len(each) != len(texts[0]) or len(each) < 3:
                raise UserError(
                    f"{each[0]!r}, {each[1]!r}: has {len(each) - 2} contrasts, and {texts[0][0]!r} has "
                    f"{len(texts[0]) - 2}: give datasets that were made with the same --contrasts"
                )
        places = {text: place for place, text in enumerate(dict.fromkeys(text for row in texts for text in row))}
        asked = np.array([[places[text] for text in row] for row in texts], np.int64)
        return Batch([self._model.rows_of(text) for text in places], len(texts), {"asked": asked})

    def encode(self, inputs: Sequence[Sequence[int]]) -> Encoded:
        return Encoded(self.network(inputs))

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        asked = vectors[torch.from_numpy(batch.given["asked"]).to(vectors.device)]
        return {"margin": max_margin(asked[:, 0], asked[:, 1], asked[:, 2:])}

    def save(self, folder: Path) -> None:
        self.network.save(folder)


def _network(options: PairwiseGRU) -> PhraseGRU:
    """A trained model, or a new one over vectors of words. UserError, which names --model, if it is neither."""
    folder = Path(options.model)
    if read_config(folder) is not None:
        return PhraseGRU.load(folder, train_vectors=options.train_vectors)
    try:
        words = read_word_vectors(locate_vectors(options.model), most=options.words)
    except OSError as error:
        raise UserError(
            f"--model {options.model}: is no file of word vectors, no spaCy pipeline and no model of trainers.train "
            "pgru: give one of them"
        ) from error
    try:
        return PhraseGRU.new(words, units=options.units, dropout=options.dropout, train_vectors=options.train_vectors)
    except UserError as error:
        raise UserError(f"--model {options.model}: {error}") from error


def _validation(data: Sequence[str]) -> list[list[str]]:
    """The rows of the validation splits: phrase, paraphrase and contrasts."""
    found = []
    for each in data:
        if is_dataset(Folder(each)):
            for part in Dataset.open(each).tables(DEV_SPLIT, columns=COLUMNS):
                rows = zip(*(part.column(name).to_pylist() for name in COLUMNS), strict=True)
                found += [[one, other, *contrasts] for one, other, contrasts in rows]
    return found
