"""The Beam graph of a run: one chain of stages with barriers, the same for every runner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.builds import Build
from pipelines.runners import LocalPool
from pipelines.stages import Stage, Tally, Work, close_stage, open_stage, run_unit


def build_graph(builds: Sequence[Build], options: PipelineOptions, *, max_reject_rate: float) -> beam.Pipeline:
    """Start -> (plan -> units -> barrier) for each stage -> finish, for each dataset in order."""
    pipeline = beam.Pipeline(options=options)
    barrier = pipeline | "Start" >> beam.Create([0], reshuffle=False)
    for build in builds:
        name = str(build.output)
        for stage in build.stages:
            barrier = barrier | f"{name}: {stage.name}" >> RunStage(build.work, stage, max_reject_rate)
        barrier = barrier | f"{name}: finish" >> beam.Map(_finish, build)
    return pipeline


class RunStage(beam.PTransform):
    """All units of a stage, then its closing. Takes and gives one element, the barrier."""

    def __init__(self, work: Work, stage: Stage, max_reject_rate: float) -> None:
        super().__init__()
        self._work, self._stage, self._max_reject_rate = work, stage, max_reject_rate

    def expand(self, barrier: beam.PCollection) -> beam.PCollection:
        return (
            barrier
            | "Plan" >> beam.FlatMap(_units, self._work, self._stage)
            # A real shuffle: runners may fuse over a Reshuffle, and would do all units on one worker.
            | "Spread" >> beam.GroupByKey()
            | "Process" >> beam.ParDo(ProcessUnits(self._work, self._stage))
            | "Count" >> beam.CombineGlobally(sum)
            | "Close" >> beam.Map(_close, self._work, self._stage, self._max_reject_rate)
        )


class ProcessUnits(beam.DoFn):
    """Does units: in this process on a cluster's worker, in the pool's processes on one machine."""

    def __init__(self, work: Work, stage: Stage) -> None:
        self._work, self._stage = work, stage

    def start_bundle(self) -> None:
        self._units: list[int] = []

    def process(self, element: tuple[str, Iterable[None]]) -> Iterator[int]:
        unit = int(element[0])
        if LocalPool.current is not None:
            self._units.append(unit)
            return
        completion = run_unit(self._work, self._stage, unit)
        for name, number in {**Tally.of(completion)._asdict(), **completion.counters, "units": 1}.items():
            beam.metrics.Metrics.counter(self._stage.name, name).inc(number)
        yield 1

    def finish_bundle(self) -> Iterator[Any]:
        if LocalPool.current is not None and self._units:
            LocalPool.current.run_units(self._work, self._stage, self._units)
            yield WindowedValue(len(self._units), GlobalWindow().max_timestamp(), (GlobalWindow(),))


def _units(_: Any, work: Work, stage: Stage) -> list[tuple[str, None]]:
    pool = LocalPool.current
    units = pool.open(work, stage) if pool else open_stage(work, stage)
    return [(str(unit), None) for unit in units]


def _close(_: Any, work: Work, stage: Stage, max_reject_rate: float) -> int:
    pool = LocalPool.current
    if pool:
        pool.close(work, stage)
    else:
        close_stage(work, stage, max_reject_rate=max_reject_rate)
    return 0


def _finish(_: Any, build: Build) -> int:
    pool = LocalPool.current
    if pool:
        pool.finish(build)
    else:
        build.finish()
    return 0
