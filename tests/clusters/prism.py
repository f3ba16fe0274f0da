"""Beam's Prism and worker pools, for tests: a portable runner and its workers in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path

from servers import free_port, go_install, running


def prism_program() -> str:
    """The program, built by Go; skips if it cannot be built."""
    return go_install("github.com/apache/beam/sdks/v2/go/cmd/prism", f"v{metadata.version('apache-beam')}")


@contextmanager
def prism(scratch: Path) -> Iterator[str]:
    """Prism on loopback; yields its job endpoint."""
    endpoint, web = f"127.0.0.1:{free_port()}", free_port()
    command = [prism_program(), "--job_port", endpoint.partition(":")[2], "--web_port", str(web)]
    with running(command, endpoint, log=scratch / "prism.log"):
        yield endpoint


@contextmanager
def worker_pools(scratch: Path, number: int) -> Iterator[list[str]]:
    """Beam's worker pools; yields their addresses. They run in another directory, as on other machines."""
    addresses = []
    # A pool starts workers by the name "python".
    environment = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    with ExitStack() as stack:
        for index in range(number):
            address = f"127.0.0.1:{free_port()}"
            command = ["env", "--chdir=/", sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main"]
            command += ["--service_port", address.partition(":")[2]]
            log = scratch / f"pool-{index}.log"
            stack.enter_context(running(command, address, environment=environment, log=log))
            addresses.append(address)
        yield addresses
