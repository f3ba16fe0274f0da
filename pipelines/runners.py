"""Placing units of work: on this machine's cores, or on whatever runner Beam knows.

A pipeline is one Beam job. Each stage is planned when the one before is closed; only numbers of units cross a
shuffle, all else lies on storage. `DirectRunner` means Beam's in-process runner (FnApiRunner): Beam's own
DirectRunner may download another engine, and its multi-process mode hangs when a worker dies. So on one machine the
units run in watched processes of ours (`pipelines/local.py`), and in such processes of each worker on a cluster
(`pipelines/crew.py`).
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.crew import OnCluster, Terms
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.lease import Lease
from pipelines.engine.monitor import Monitor
from pipelines.engine.preflight import Submission
from pipelines.engine.progress import Progress
from pipelines.engine.stage import WORK, StageError
from pipelines.engine.worker_checks import software
from pipelines.engine.worker_pool import LIMITS, Limits, WorkerTraceback, usable_cores
from pipelines.local import LocalPool
from schemas.addresses import without_secrets
from schemas.errors import UserError
from schemas.manifest import is_dataset

_LOST = re.compile(r"SDK worker disconnected|client cancelled|no longer reachable")
"""What Prism and Flink say of a job whose worker, or its machine, is gone."""


def run(
    builds: Sequence[DatasetBuild],
    *,
    workers: int | None = None,
    submission: Submission | None = None,
    progress: Progress,
    beam_args: Sequence[str] = (),
    command: str = "",
    limits: Limits = LIMITS,
    max_reject_rate: float = 1.0,
) -> dict[str, int]:
    """Build the datasets in order, as one Beam job. Raises what stopped it, UserError for what a user can mend.

    On this machine, or by the `submission` of `pipelines/engine/preflight.py`. `workers`: processes on a machine, None
    for one a core. `command` is what goes on with the run, should it end early. More than `max_reject_rate` of
    a stage's input among its rejects ends the run. Returns the counters that Beam kept, as "stage/name"; none where
    it was this machine's work.
    """
    hold = Lease([build.output for build in builds], command=command, figures=lambda: progress.figures().to_json())
    if submission is not None:
        cluster = OnCluster(hold.run, Terms(workers, limits), max_reject_rate)
        with hold:
            counters = _run_elsewhere(builds, submission, cluster, hold, progress)
        for build in builds:
            build.output.delete(WORK)  # a mark may have been left when a worker had already finished the dataset
        return counters
    with (
        hold,
        LocalPool(workers or usable_cores(), progress, hold, limits, max_reject_rate) as pool,
        progress.watching(pool.at_work),
    ):
        _run_here(builds, beam_args, pool)
    return {}


# Beam takes two seconds to import: not for --help, not in the worker processes.


def _run_here(builds: Sequence[DatasetBuild], beam_args: Sequence[str], pool: LocalPool) -> None:
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.graph import build_graph

    pipeline = build_graph(builds, PipelineOptions([*beam_args, "--runner=FnApiRunner"]))
    try:
        pipeline.run().wait_until_finish()
    except BaseException as error:
        # Beam wraps an error of a stage in text of its own; the pool kept the error itself.
        if pool.failure is not None and not isinstance(error, KeyboardInterrupt):
            raise pool.failure from pool.failure.__cause__
        raise


def _run_elsewhere(
    builds: Sequence[DatasetBuild],
    submission: Submission,
    cluster: OnCluster,
    hold: Lease,
    progress: Progress,
) -> dict[str, int]:
    pipeline = submitted_pipeline(builds, submission, cluster)
    stopped: list[UserError] = []
    result: Any = None

    def cancel() -> None:
        # A runner may refuse or be gone; the workers also see that the run is over.
        with contextlib.suppress(Exception):
            result.cancel()

    def stop(why: UserError) -> None:
        stopped.append(why)
        hold.give_up(why)
        cancel()

    try:
        result = pipeline.run()
        with (
            Monitor(builds, progress, hold, max_reject_rate=cluster.max_reject_rate, end=stop),
            progress.watching(_nobody),
        ):
            result.wait_until_finish()
    except KeyboardInterrupt:
        cancel()
        raise
    except Exception as error:
        failure = stopped[0] if stopped else _failure(error)
        raise failure from failure.__cause__
    for build in builds:
        if not is_dataset(build.output):
            raise stopped[0] if stopped else StageError(f"{build.output}: the job ended in state {result.state}")
    return _counters(result)


def submitted_pipeline(builds: Sequence[DatasetBuild], submission: Submission, cluster: OnCluster) -> Any:
    """The Beam pipeline of a run on a cluster. UserError for what Beam finds wrong with its options."""
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.graph import build_graph
    from pipelines.pools import dealing_runner

    arguments = [*submission.arguments, f"--runner={submission.runner}"]
    runner = None
    if len(submission.pools) > 1:
        runner = dealing_runner(submission.runner, submission.pools)
        arguments.append(f"--environment_config={submission.pools[0]}")
    try:
        return build_graph(
            builds,
            PipelineOptions(arguments),
            cluster=cluster,
            submitted=software(),
            pools=max(len(submission.pools), 1),
            runner=runner,
        )
    except ValueError as error:
        if "validations errors" not in str(error):
            raise
        raise UserError(f"--runner={submission.runner}: {'; '.join(str(error).splitlines()[1:])}") from None


def _nobody() -> tuple[list[Any], int]:
    """The workers are elsewhere, and so is their memory."""
    return [], 0


def _failure(error: Exception) -> Exception:
    """What went wrong on a worker, out of the text that a runner makes of it."""
    text = without_secrets(str(error))
    for kind, of in (("(?:User|Input|Storage)Error", UserError), ("StageError", StageError)):
        if found := re.findall(rf"{kind}: (.+?)(?: \[while running|\\n|\n|$)", text):
            failure = of(found[-1])
            failure.__cause__ = None if of is UserError else WorkerTraceback(text[-20_000:])
            return failure
    if found := re.findall(r"ModuleNotFoundError: No module named '(pipelines|schemas|transforms)\b", text):
        return UserError("the workers have no phrasemill: use the worker image (docker/README.md)")
    lines = [re.sub(r"\s*\[while running .*", "", each) for each in text.splitlines()]
    lines = [each for each in lines if each.strip()] or ["the runner does not say why"]
    lost = "a worker of the cluster was lost, its own log tells why" if _LOST.search(text) else "the job failed"
    failure = StageError(f"{lost}: {lines[-1][:500]}")
    failure.__cause__ = WorkerTraceback(text[-20_000:]) if lines[1:] else None
    return failure


def _counters(result: Any) -> dict[str, int]:
    total = Counter[str]()  # a metric is kept for each transform that counts
    for each in result.metrics().query()["counters"]:
        total[f"{each.key.metric.namespace}/{each.key.metric.name}"] += each.committed or 0
    return dict(total)


def silence() -> None:
    """Keep the screen for our own lines: libraries log and warn much. What goes wrong comes as an exception."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)


def known_beam_flags() -> Iterator[str]:
    """All flags that Beam knows, with their dashes."""
    import argparse

    from apache_beam.options.pipeline_options import PipelineOptions

    parser: Any = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for action in parser._actions:
        yield from action.option_strings


def job_server_flags(beam_args: Sequence[str]) -> Iterator[str]:
    """The flags that the job server at --job_endpoint knows and Beam's Python does not, such as Flink's own."""
    import grpc
    from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
    from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

    endpoint = PipelineOptions(list(beam_args)).view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed":
        return
    with grpc.insecure_channel(endpoint) as channel, contextlib.suppress(grpc.RpcError):  # the preflight tells why
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        known = service.DescribePipelineOptions(beam_job_api_pb2.DescribePipelineOptionsRequest(), timeout=5)
        for option in known.options:
            yield f"--{option.name}"
