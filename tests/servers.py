"""Servers for tests, on loopback and bounded in time, and the programs in Go that some of them are."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running(
    command: Sequence[str], address: str, *, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> Iterator[int]:
    """A server that answers at an address, until the `with` block ends; gives its process id."""
    with open(log or os.devnull, "wb") as out:
        server = subprocess.Popen(
            ["timeout", "1800", *command], stdout=out, stderr=out, env={**os.environ, **(environment or {})}
        )
    host, _, port = address.partition(":")
    try:
        end = time.monotonic() + 60
        while not answers(host, int(port)):
            assert server.poll() is None, f"{command} ended with {server.returncode}"
            assert time.monotonic() < end, f"{command} does not answer"
            time.sleep(0.05)
        yield server.pid
    finally:
        server.terminate()
        server.wait(30)


def answers(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def go_install(module: str, version: str) -> str:
    """A Go program, built once and kept in the user's cache; skips where it cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "go" / version
    program = cache / module.rpartition("/")[2]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process of these tests may want it, too
        if program.exists():
            return str(program)
        if not shutil.which("go"):
            pytest.skip(f"{program.name} is built with Go, which is not installed")
        environment = {**os.environ, "GOBIN": str(cache), "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        built = subprocess.run(
            ["go", "install", f"{module}@{version}"], env=environment, capture_output=True, text=True, timeout=900
        )
        if built.returncode:
            pytest.skip(f"{program.name} cannot be built: {built.stderr.strip()[-300:]}")
    return str(program)
