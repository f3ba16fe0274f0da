"""The loop of every run: plan -> units -> close for each stage, publish for each dataset.

The `Executor` decides where the units are done. The `Lease` tells other runs who writes the datasets. The `Monitor`
reads from storage what is finished, shows it, and ends a run that should not continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.executors import Executor, StageRun
from pipelines.engine.lease import Lease
from pipelines.engine.monitor import Monitor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import WORK, Slice
from schemas.errors import UserError
from schemas.manifest import is_dataset


def run(
    builds: Sequence[DatasetBuild],
    executor: Executor,
    *,
    progress: Progress,
    begin: Callable[[], Sequence[DatasetBuild]] | None = None,
    command: str = "",
    max_reject_rate: float = 1.0,
    part: Slice | None = None,
    finish: str = "",
) -> None:
    """Build datasets in order. UserError if the user can fix what stopped the run.

    `begin` is called when the lease is taken: it prepares the outputs and returns the builds that are to be done.
    `command` resumes the run if it ends early. The run ends if a stage rejects more than `max_reject_rate` of what it
    reads. With `part` only this slice of the first stage is done, while other machines may do other slices; `finish`
    is the command to run after all of them.
    """

    def figures() -> dict[str, object]:
        return {**progress.figures().to_json(), **({"finish": finish} if part else {})}

    def end(why: UserError) -> None:
        lease.give_up(why)
        executor.stop()

    with Lease([build.output for build in builds], command=command, figures=figures, part=part) as lease:
        stages = stage_runs(begin() if begin else builds, run=lease.run, max_reject_rate=max_reject_rate, part=part)
        with progress.watching(executor.at_work), Monitor(stages, progress, lease, end=end) as monitor:
            try:
                if stages:
                    with executor:
                        for stage in stages:
                            executor.run(stage)
            except Exception:
                if monitor.why:
                    raise monitor.why from None
                raise
            if lease.lost:
                raise lease.lost
    for build in builds:
        if is_dataset(build.output):
            build.output.delete(WORK)  # the lease may have been written again after the dataset was published


def stage_runs(
    builds: Sequence[DatasetBuild], *, run: str, max_reject_rate: float = 1.0, part: Slice | None = None
) -> list[StageRun]:
    """The stages of a run in order: those of all datasets, or with a `part` only the first of each."""
    return [
        StageRun(build.work, stage, run, max_reject_rate, part, build if stage is build.stages[-1] else None)
        for build in builds
        for stage in (build.stages[:1] if part else build.stages)
    ]
