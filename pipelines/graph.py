"""The Beam graph of a run: one chain of stages with barriers, the same for every runner.

Only what every runner knows is in it: impulse, ParDo, flatten and GroupByKey of strings and whole numbers. What crosses
a shuffle are numbers of units and counts of them. Functions are classes of this module, which travel by name: so
a worker with another Python or another phrasemill can say so, instead of failing to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.crew import OnCluster
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Completion, Stage, Tally, Work
from pipelines.engine.worker_checks import Software, check_worker
from pipelines.local import LocalPool
from pipelines.pools import POOL, tell_apart

_Count = tuple[str, int]


def build_graph(
    builds: Sequence[DatasetBuild],
    options: PipelineOptions,
    *,
    cluster: OnCluster | None = None,
    submitted: Software | None = None,
    pools: int = 1,
    runner: Any = None,
) -> beam.Pipeline:
    """Begin -> (plan -> units -> barrier) for each stage -> finish, for each dataset in order.

    Without a `cluster` the work is the `LocalPool`'s. `submitted`: given where the workers are to be looked at first.
    `pools`: how many separate worker pools the units are dealt to, for a runner that has one worker for each.
    """
    pipeline = beam.Pipeline(runner=runner, options=options)
    barrier = pipeline | beam.Impulse() | "Begin" >> beam.ParDo(Begin(submitted, builds)).with_output_types(int)
    for build in builds:
        name = str(build.output)
        for stage in build.stages:
            barrier = barrier | f"{name}: {stage.name}" >> RunStage(build.work, stage, cluster, pools)
        barrier = barrier | f"{name}: finish" >> beam.ParDo(Finish(build, cluster)).with_output_types(int)
    return pipeline


class RunStage(beam.PTransform):
    """All units of a stage, then its closing. Takes and gives one element, the barrier."""

    def __init__(self, work: Work, stage: Stage, cluster: OnCluster | None, pools: int) -> None:
        super().__init__()
        self._work, self._stage, self._cluster, self._pools = work, stage, cluster, pools

    def expand(self, barrier: beam.PCollection) -> beam.PCollection:
        tags = [str(pool) for pool in range(1, self._pools)]
        plan = beam.ParDo(PlanUnits(self._work, self._stage, self._cluster, self._pools))
        plan = plan.with_output_types(_Count, **dict.fromkeys(tags, _Count))
        planned = barrier | "Plan" >> (plan.with_outputs(*tags, main="0") if tags else plan)
        dealt = [planned[tag] for tag in ["0", *tags]] if tags else [planned]
        done = [
            units
            # A real shuffle: runners may fuse over a Reshuffle, and would do all units on one worker.
            | f"Spread {pool}" >> beam.GroupByKey()
            | f"{POOL}{pool}"
            >> beam.ParDo(ProcessUnits(self._work, self._stage, self._cluster, pool)).with_output_types(_Count)
            for pool, units in enumerate(dealt)
        ]
        return (
            (done | beam.Flatten() if tags else done[0])
            | "Gather" >> beam.GroupByKey()
            | "Close" >> beam.ParDo(CloseStage(self._work, self._stage, self._cluster)).with_output_types(int)
        )


class Begin(beam.DoFn):
    """Looks at the worker, if it is not the machine that submits."""

    def __init__(self, submitted: Software | None, builds: Sequence[DatasetBuild]) -> None:
        self._submitted, self._builds = submitted, builds

    def process(self, element: bytes) -> Iterator[int]:
        if self._submitted is not None:
            check_worker(self._submitted, self._builds)
        yield 0


class PlanUnits(beam.DoFn):
    """The units of a stage that are to be done, as keys, dealt to the pools; and one that is none, for the barrier."""

    def __init__(self, work: Work, stage: Stage, cluster: OnCluster | None, pools: int) -> None:
        self._work, self._stage, self._cluster, self._pools = work, stage, cluster, pools

    def process(self, element: int) -> Iterator[_Count | beam.pvalue.TaggedOutput]:
        yield "", 0
        for unit in (self._cluster or LocalPool.running()).open(self._work, self._stage):
            pool = unit % self._pools
            yield (str(unit), 0) if pool == 0 else beam.pvalue.TaggedOutput(str(pool), (str(unit), 0))


class ProcessUnits(beam.DoFn):
    """Does units, and counts them: on one machine in its pool, on a cluster by the crew of the worker."""

    def __init__(self, work: Work, stage: Stage, cluster: OnCluster | None, pool: int) -> None:
        self._work, self._stage, self._cluster, self._pool = work, stage, cluster, pool

    def setup(self) -> None:
        if self._pool:
            tell_apart(self._pool)

    def start_bundle(self) -> None:
        self._local: list[int] = []
        self._doing: list[Future[Completion]] = []
        self._done = 0

    def process(self, element: tuple[str, Iterable[int]]) -> None:
        if not element[0]:
            return
        unit = int(element[0])
        if self._cluster is None:
            self._local.append(unit)
            return
        self._doing.append(self._cluster.submit(self._work, self._stage, unit))
        while self._doing and self._doing[0].done():
            self._count(self._doing.pop(0))

    def finish_bundle(self) -> Iterator[Any]:
        if self._local:
            LocalPool.running().run_units(self._work, self._stage, self._local)
        for each in self._doing:
            self._count(each)
        done = len(self._local) + self._done
        yield WindowedValue(("", done), GlobalWindow().max_timestamp(), (GlobalWindow(),))

    def _count(self, unit: Future[Completion]) -> None:
        completion = unit.result()
        self._done += 1
        for name, number in {**Tally.of(completion)._asdict(), **completion.counters, "units": 1}.items():
            beam.metrics.Metrics.counter(self._stage.name, name).inc(number)


class CloseStage(beam.DoFn):
    """Closes a stage whose units are all done."""

    def __init__(self, work: Work, stage: Stage, cluster: OnCluster | None) -> None:
        self._work, self._stage, self._cluster = work, stage, cluster

    def process(self, element: tuple[str, Iterable[int]]) -> Iterator[int]:
        (self._cluster or LocalPool.running()).close(self._work, self._stage)
        yield 0


class Finish(beam.DoFn):
    """Publishes a dataset."""

    def __init__(self, build: DatasetBuild, cluster: OnCluster | None) -> None:
        self._build, self._cluster = build, cluster

    def process(self, element: int) -> Iterator[int]:
        (self._cluster or LocalPool.running()).finish(self._build)
        yield 0
