"""A plan: the forecasts of all datasets of a run, and what they need together."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

from pipelines.corpus import ChainDataset
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.task_writer import peak_memory
from pipelines.planning.estimates import Estimate, makespan
from pipelines.planning.forecasts import Forecaster
from pipelines.planning.measuring import Measured, measure
from pipelines.planning.scale import Forecast, Line
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder


class Plan(NamedTuple):
    """What is known before a run."""

    forecasts: list[Forecast]
    measured: Measured
    start: Estimate  # seconds in which no worker works
    tokens: Estimate
    worker_memory: Estimate  # bytes, of one
    main_memory: float  # bytes, of the process that the user starts

    @property
    def lines(self) -> list[Line]:
        return [line for each in self.forecasts for line in each.lines]

    @property
    def work(self) -> Estimate:
        """Seconds of all workers together."""
        return sum((line.work for line in self.lines), start=Estimate.exactly(0))

    @property
    def wall(self) -> Estimate:
        """Seconds from the start to the end."""
        return sum((line.wall for line in self.lines), start=self.start)

    @property
    def kept(self) -> Estimate:
        return sum((each.kept for each in self.forecasts), start=Estimate.exactly(0))

    @property
    def disk(self) -> Estimate:
        """The most bytes that lie there at one time: what passes between stages goes when its dataset is done."""
        kept, most = Estimate.exactly(0), Estimate.exactly(0)
        for each in self.forecasts:
            now = kept + each.kept + each.passing
            most = Estimate(max(most.low, now.low), max(most.middle, now.middle), max(most.high, now.high))
            kept += each.kept
        return most

    def memory(self, workers: int) -> Estimate:
        return self.worker_memory * workers + Estimate.exactly(self.main_memory)


def foretell(chain: Sequence[ChainDataset], todo: Sequence[DatasetBuild], *, workers: int) -> Plan:
    """Measure a sample of the input of the datasets `todo`, and foretell them."""
    before = time.process_time()
    with tempfile.TemporaryDirectory(prefix="phrasemill-plan-") as folder:
        measured = measure(chain, todo, Folder(folder), workers=workers)
    forecaster = Forecaster(measured, workers=workers)
    forecasts = []
    for dataset in chain:
        if dataset.build is not None and dataset.build in todo:
            forecasts.append(forecaster.made(dataset.build))
        else:
            forecaster.given(read_manifest(dataset.folder))
    # Imports, checks and hashes of the input took what this process worked until now; then come the starts of stages.
    at_work = sum(makespan([each.seconds for each in units], workers) for units in measured.stages.values())
    start = Estimate.exactly(before + max(measured.seconds - at_work, 0)).widened(0.3)
    return Plan(forecasts, measured, start, forecaster.tokens, forecaster.memory, peak_memory())
