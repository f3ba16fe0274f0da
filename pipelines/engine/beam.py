"""Runs the units of a run as one Beam job. No other module imports Apache Beam.

`--runner=DirectRunner` is Beam's FnApiRunner in this process: Beam's own DirectRunner may download another engine, and
its multi-process mode hangs when a worker dies. With every runner, a worker does its units in a pool of watched
processes (`worker_pool.py`), one for each core, which all threads and bundles of the runner share.

The graph has only what every runner supports: impulse, ParDo and GroupByKey of strings and integers. Only unit numbers
and counts cross a shuffle; everything else is on storage. The functions are classes of this module, which are pickled
by name: a worker with another Python or another phrasemill can report that instead of failing to unpickle them.
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed, wait
from dataclasses import replace
from types import TracebackType
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.shared import Shared
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.engine.attempts import WorkerTraceback
from pipelines.engine.executors import Executor, StageRun
from pipelines.engine.limits import LIMITS, Limits
from pipelines.engine.preflight import HERE, Submission
from pipelines.engine.progress import AtWork
from pipelines.engine.stage import Completion, StageError, Tally
from pipelines.engine.stopping import at_stop, not_at_stop
from pipelines.engine.worker_checks import Software, check_worker, software
from pipelines.engine.worker_pool import WorkerPool, usable_cores
from schemas.errors import CorruptInput, UserError, WorkerError
from schemas.manifest import is_dataset
from schemas.storage.addresses import without_secrets
from schemas.storage.errors import StorageError, storage_error

_LOST = re.compile(r"SDK worker disconnected|client cancelled|no longer reachable")
"""What Prism and Flink report if a worker, or its machine, is lost."""

_STEP = re.compile(r"\s*\[while running .*")
"""What Beam appends to the message of an error: the steps of its graph in which it was raised."""

_Count = tuple[str, int]


class BeamExecutor(Executor):
    """Submits a run as one Beam job, its stages separated by barriers, and waits for its end.

    `workers`: processes on each machine, None for one per core.
    """

    def __init__(self, submission: Submission = HERE, *, workers: int | None = None, limits: Limits = LIMITS) -> None:
        self.counters: dict[str, int] = {}
        """The counters that Beam committed, by "stage/name"; set after the run."""
        self._submission = submission
        self._pools = Pools(workers, limits)
        self._stages: list[StageRun] = []
        self._result: Any = None

    def run(self, stage: StageRun) -> None:
        self._stages.append(stage)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._run_job()
        finally:
            self._pools.close()

    def stop(self) -> None:
        self._cancel()
        self._pools.close()

    def _cancel(self, signal: str = "") -> None:
        # The runner may refuse or be gone. Its workers also see from the lease that the run is over.
        with contextlib.suppress(Exception):
            self._result.cancel()

    def at_work(self) -> tuple[list[AtWork], int]:
        """Empty unless the workers are in this process."""
        return self._pools.at_work()

    def pipeline(self) -> beam.Pipeline:
        """Begin -> (plan -> units -> barrier) for each stage. UserError if Beam refuses its options."""
        arguments = [*self._submission.arguments, f"--runner={self._submission.runner}"]
        try:
            pipeline = beam.Pipeline(options=PipelineOptions(arguments))
        except ValueError as error:
            if "validations errors" not in str(error):
                raise
            problems = "; ".join(str(error).splitlines()[1:])
            raise UserError(f"--runner={self._submission.runner}: {problems}") from None
        submitted = None if self._submission.runner == HERE.runner else software()
        barrier = (
            pipeline | beam.Impulse() | "Begin" >> beam.ParDo(Begin(submitted, self._stages)).with_output_types(int)
        )
        for stage in self._stages:
            barrier = barrier | stage.name >> RunStage(stage, self._pools)
        return pipeline

    def _run_job(self) -> None:
        at_stop(self._cancel)
        try:
            self._result = self.pipeline().run()
            self._result.wait_until_finish()
        except KeyboardInterrupt:
            self.stop()
            raise
        except Exception as error:
            failure = failure_of(error)
            raise failure from failure.__cause__
        finally:
            not_at_stop(self._cancel)
        for stage in self._stages:
            if not is_dataset(stage.work.folder):
                raise StageError(f"{stage.work.folder}: the job ended in state {self._result.state}")
        total = Counter[str]()  # Beam keeps a metric for each transform that counts
        for each in self._result.metrics().query()["counters"]:
            total[f"{each.key.metric.namespace}/{each.key.metric.name}"] += each.committed or 0
        self.counters = dict(total)


class Pools:
    """A handle to the worker pool of the current process, which all functions of a job share."""

    def __init__(self, workers: int | None, limits: Limits) -> None:
        self._workers, self._limits = workers, limits
        self._shared = Shared()

    def here(self) -> WorkerPool:
        """The pool of this process; the first call makes it."""
        return self._shared.acquire(lambda: WorkerPool(self._workers or usable_cores(), limits=self._limits))

    def close(self) -> None:
        """End the pool of this process, if it has one. The pools of other processes end with these."""
        if pool := self._shared.acquire(lambda: None):
            pool.close()

    def at_work(self) -> tuple[list[AtWork], int]:
        pool = self._shared.acquire(lambda: None)
        return pool.at_work() if pool else ([], 0)


class RunStage(beam.PTransform):
    """All units of a stage, then its closing. Input and output are one element, the barrier."""

    def __init__(self, stage: StageRun, pools: Pools) -> None:
        super().__init__()
        self._stage, self._pools = stage, pools

    def expand(self, barrier: beam.PCollection) -> beam.PCollection:
        units = replace(self._stage, publishes=None)  # to keep the job small
        return (
            barrier
            | "Plan" >> beam.ParDo(PlanUnits(units)).with_output_types(_Count)
            # A GroupByKey, because runners may fuse across a Reshuffle and do all units on one worker.
            | "Spread" >> beam.GroupByKey()
            | "Process" >> beam.ParDo(ProcessUnits(units, self._pools)).with_output_types(_Count)
            | "Gather" >> beam.GroupByKey()
            | "Close" >> beam.ParDo(CloseStage(self._stage)).with_output_types(int)
        )


class Begin(beam.DoFn):
    """Checks the worker, unless it is the process that submitted the job."""

    def __init__(self, submitted: Software | None, stages: Sequence[StageRun]) -> None:
        self._submitted, self._builds = submitted, [each.publishes for each in stages if each.publishes]

    def process(self, element: bytes) -> Iterator[int]:
        if self._submitted is not None:
            check_worker(self._submitted, self._builds)
        yield 0


class PlanUnits(beam.DoFn):
    """The units of a stage that are to be done, as keys, and "", which keeps the barrier if there are none."""

    def __init__(self, stage: StageRun) -> None:
        self._stage = stage

    def process(self, element: int) -> Iterator[_Count]:
        with _final():
            units = self._stage.plan()
        yield "", 0
        for unit in units:
            yield str(unit), 0


class ProcessUnits(beam.DoFn):
    """Does units in the pool of the worker, and counts them."""

    def __init__(self, stage: StageRun, pools: Pools) -> None:
        self._stage, self._pools = stage, pools

    def setup(self) -> None:
        self._pool = self._pools.here()

    def start_bundle(self) -> None:
        self._doing: set[Future[Completion]] = set()
        self._done = 0

    def process(self, element: tuple[str, Iterable[int]]) -> None:
        if not element[0]:
            return
        unit = int(element[0])
        with _final():
            finished = self._stage.finished(unit)
        if finished:
            self._count(finished)
            return
        self._doing.add(self._pool.submit(self._stage.work, self._stage.stage, unit))
        done, self._doing = wait(self._doing, timeout=0)
        for each in done:
            self._count(each.result())

    def finish_bundle(self) -> Iterator[Any]:
        for each in as_completed(self._doing):
            self._count(each.result())
        yield WindowedValue(("", self._done), GlobalWindow().max_timestamp(), (GlobalWindow(),))

    def _count(self, completion: Completion) -> None:
        self._done += 1
        for name, number in {**Tally.of(completion)._asdict(), **completion.counters, "units": 1}.items():
            beam.metrics.Metrics.counter(self._stage.stage.name, name).inc(number)


class CloseStage(beam.DoFn):
    """Closes a stage whose units are all done. After the last stage of a dataset it publishes the dataset."""

    def __init__(self, stage: StageRun) -> None:
        self._stage = stage

    def process(self, element: tuple[str, Iterable[int]]) -> Iterator[int]:
        with _final():
            self._stage.close()
        yield 0


@contextlib.contextmanager
def _final() -> Iterator[None]:
    """Turns a storage fault into the error that ends the run, with its remedy: Beam keeps only the text of errors."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, final=True) or error from None


_KINDS: dict[str, type[Exception]] = {
    "StorageError": StorageError,
    "CorruptInput": CorruptInput,
    "WorkerError": WorkerError,
    "(?:User|Input)Error": UserError,
    "StageError": StageError,
}
"""Errors by how they are named in a text."""


def failure_of(error: Exception) -> Exception:
    """The error of a worker, from the text that a runner makes of it, or from what Beam adds to it in this process."""
    text = without_secrets(str(error))
    if isinstance(error, UserError | StageError):
        error.args = (_STEP.sub("", text),)
        return error
    for kind, of in _KINDS.items():
        if found := re.findall(rf"{kind}: (.+?)(?: \[while running|\\n|\n|$)", text):
            failure = of(found[-1])
            failure.__cause__ = None if issubclass(of, UserError) else WorkerTraceback(text[-20_000:])
            return failure
    if found := re.findall(r"ModuleNotFoundError: No module named '(pipelines|schemas|transforms)\b", text):
        return UserError("phrasemill is not installed on the workers: use the worker image (docker/README.md)")
    lines = [_STEP.sub("", each) for each in text.splitlines()]
    lines = [each for each in lines if each.strip()] or ["the runner does not say why"]
    lost = "a worker of the cluster was lost; see its log for the cause" if _LOST.search(text) else "the job failed"
    failure = StageError(f"{lost}: {lines[-1][:500]}")
    failure.__cause__ = WorkerTraceback(text[-20_000:]) if lines[1:] else None
    return failure


# ---- Options


def beam_options(arguments: Sequence[str]) -> dict[str, Any]:
    """Beam's options by name, including unknown ones."""
    return PipelineOptions(list(arguments)).get_all_options(retain_unknown_options=True)


def known_flags() -> Iterator[str]:
    """All flags that Beam knows, with their dashes."""
    parser: Any = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for action in parser._actions:
        yield from action.option_strings


def job_server_flags(beam_args: Sequence[str]) -> Iterator[str]:
    """The flags that the job server at --job_endpoint knows, such as Flink's own; Beam's Python does not."""
    import grpc
    from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

    endpoint = PipelineOptions(list(beam_args)).view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed":
        return
    with grpc.insecure_channel(endpoint) as channel, contextlib.suppress(grpc.RpcError):  # the preflight reports it
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        known = service.DescribePipelineOptions(beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=5)
        for option in known.options:
            yield f"--{option.name}"
