"""Several worker pools for runners that have one worker an environment, such as Prism: an environment for each pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.portability.prism_runner import PrismRunner
from apache_beam.runners.worker import sdk_worker

POOL = "On pool "
"""Transforms with this in their name run on the worker pool of the number that follows."""


def dealing_runner(name: str, pools: Sequence[str]) -> PortableRunner:
    """Beam's runner of this name, which sends each transform to the pool that it is for. `pools`: HOST:PORT each."""
    runner = {"PortableRunner": PortableRunner, "PrismRunner": PrismRunner}[name]

    class DealingRunner(runner):  # type: ignore[misc, valid-type]
        def run_portable_pipeline(self, pipeline: Any, options: PipelineOptions) -> Any:
            deal(pipeline.components, pools)
            return super().run_portable_pipeline(pipeline, options)

    return DealingRunner()


def deal(components: Any, pools: Sequence[str]) -> None:
    """Give each transform of a pool but the first, which has the default, an environment with that pool's address."""
    for transform in components.transforms.values():
        found = re.search(rf"/{POOL}(\d+)$", transform.unique_name)
        if not found or not transform.environment_id or found[1] == "0":
            continue
        name = f"pool-{found[1]}"
        if name not in components.environments:
            environment = components.environments[name]
            environment.CopyFrom(components.environments[transform.environment_id])
            payload = beam_runner_api_pb2.ExternalPayload.FromString(environment.payload)
            payload.endpoint.url = pools[int(found[1])]
            environment.payload = payload.SerializeToString()
        transform.environment_id = name


def tell_apart(pool: int) -> None:
    """Have this worker number its metrics otherwise than those of other pools do.

    Prism 2.77 keeps one table of the short ids of metrics for all workers of a job, and fails on what it takes for
    another metric. Called in the worker, before it reports its first.
    """
    cache = sdk_worker.SHORT_ID_CACHE
    cache._last_short_id = max(cache._last_short_id, pool << 20)
