"""The error of a run on a cluster, from the text of its runner."""

from __future__ import annotations

import pytest

from pipelines.engine.stage import StageError
from schemas.errors import UserError
from schemas.storage.errors import StorageError

PRISM = """Pipeline job-007 failed in state FAILED: bundle inst002 stage-002 failed:Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1512, in apache_beam.runners.common.DoFnRunner.process
  File "/code/pipelines/engine/beam.py", line 109, in process
    raise {error} [while running 'Begin']

During handling of the above exception, another exception occurred:
{error} [while running 'Begin']
"""
FLINK = (
    "Pipeline BeamApp failed in state FAILED: java.lang.RuntimeException: Error received from SDK harness for "
    "instruction 1: Traceback (most recent call last):\n  File ...\n{error} [while running 'Process-ptransform-3']\n"
)


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (PRISM.format(error="schemas.errors.UserError: no model"), UserError, "no model"),
        (
            FLINK.format(error="schemas.errors.StorageError: disk: no space is left"),
            StorageError,
            "disk: no space is left",
        ),
        (FLINK.format(error="transforms.sources.inputs.InputError: a: no text"), UserError, "a: no text"),
        (FLINK.format(error="pipelines.engine.stage.StageError: unit 3 failed"), StageError, "unit 3 failed"),
        (FLINK.format(error="ValueError: x"), StageError, "the job failed: ValueError: x"),
        (
            FLINK.format(error="ModuleNotFoundError: No module named 'pipelines'"),
            UserError,
            "phrasemill is not installed on the workers: use the worker image",
        ),
        (
            "bundle failed:SDK worker disconnected: worker[job-1]",
            StageError,
            "a worker of the cluster was lost; see its log",
        ),
        ("io.grpc.StatusRuntimeException: CANCELLED: client cancelled", StageError, "a worker of the cluster was lost"),
        (
            "JobMasterException: TaskManager with id tm1 is no longer reachable.",
            StageError,
            "a worker of the cluster was",
        ),
        ("", StageError, "the job failed: the runner does not say why"),
    ],
)
def test_a_failure_in_a_line(text: str, error: type[Exception], said: str) -> None:
    from pipelines.engine.beam import failure_of

    failure = failure_of(RuntimeError(text))
    assert type(failure) is error
    assert str(failure).startswith(said)
    assert "while running" not in str(failure)
