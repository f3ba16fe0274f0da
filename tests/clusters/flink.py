"""Flink, for tests: a session cluster of the jars in PyPI's apache-flink-libraries, and Beam's job server for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from servers import free_port, running

_JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # quick to start, and small
_OPENED = (
    "java.lang java.lang.reflect java.net java.io java.nio java.text java.time java.util java.util.concurrent "
    "java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch"
).split()
"""Java packages that Flink accesses; its own scripts, which are not on PyPI, open them by flags."""
_ENDED = ("FINISHED", "FAILED", "CANCELED")

_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
"""


def job_server_jar() -> Path:
    """Beam's job server for Flink, $FLINK_JOB_SERVER_JAR; skips if it is not given or cannot be run."""
    given = os.environ.get("FLINK_JOB_SERVER_JAR")
    if not given:
        pytest.skip("FLINK_JOB_SERVER_JAR is not set: it names the jar of Beam's job server for Flink")
    if not os.path.isfile(given):
        pytest.skip(f"FLINK_JOB_SERVER_JAR={given}: no such file")
    if not shutil.which("java"):
        pytest.skip("Flink runs in Java, which is not installed")
    return Path(given).absolute()


def flink_version(jar: Path) -> str:
    """The version of Flink that a job server is for: the jar's own, else $FLINK_VERSION; skips if both are unknown."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            of_flink = r"\.flink-runtime\.version|META-INF/maven/org\.apache\.flink/flink-(core|runtime)/pom"
            if re.fullmatch(rf"({of_flink})\.properties", name):
                found = re.search(r"^(?:project\.)?version=(\S+)$", archive.read(name).decode(), re.MULTILINE)
                if found:
                    return found[1]
    if version := os.environ.get("FLINK_VERSION"):
        return version
    pytest.skip(f"{jar.name} does not tell for which Flink it is: set FLINK_VERSION, such as 1.19.3")


def flink_libraries(version: str) -> list[Path]:
    """The jars of a Flink, downloaded once to the user's cache; skips if they are not available."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "flink" / version
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=cache.parent) as fetched:
            _fetch(f"apache-flink-libraries=={version}", fetched)
            os.rename(Path(fetched) / "pyflink", cache)
    return sorted((cache / "lib").glob("*.jar"))


def _fetch(package: str, folder: str) -> None:
    """With uv, else with pip: uv does not read pip's configuration, and a virtual environment made by uv has no pip."""
    said = ""
    for installer in ("uv pip", "pip"):
        command = [sys.executable, "-m", *installer.split(), "install", "--quiet", "--no-deps", "--no-cache-dir"]
        done = subprocess.run([*command, "--target", folder, package], capture_output=True, text=True, timeout=900)
        if done.returncode == 0:
            return
        said += f"; {installer}: {' '.join(done.stderr.split())[-200:]}"
    pytest.skip(f"{package} cannot be had{said}")


class Cluster(NamedTuple):
    """A session cluster; `address` is that of its job manager's REST API, HOST:PORT."""

    address: str

    def jobs(self) -> dict[str, str]:
        """The state of each submitted job."""
        return {job["jid"]: job["state"] for job in self.ask("jobs/overview")["jobs"]}

    def at_work(self) -> list[str]:
        """Jobs that have not ended."""
        return [job for job, state in self.jobs().items() if state not in _ENDED]

    def failures(self, job: str) -> list[str]:
        """The failures of a job, latest first."""
        history = self.ask(f"jobs/{job}/exceptions")["exceptionHistory"]["entries"]
        return [each["stacktrace"] for each in history]

    def ask(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=30) as answer:
            return json.load(answer)


@contextmanager
def session_cluster(
    scratch: Path, libraries: list[Path], *, slots: int, options: Mapping[str, object] | None = None
) -> Iterator[Cluster]:
    """A job manager and a task manager, two processes, on loopback. `options` go into Flink's configuration."""
    address, rpc, task_rpc = f"127.0.0.1:{free_port()}", free_port(), free_port()
    folder = scratch / "flink"
    folder.mkdir()
    configuration = {
        "jobmanager.rpc.address": "127.0.0.1",
        "jobmanager.rpc.port": rpc,
        "jobmanager.bind-host": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-address": "127.0.0.1",
        "rest.port": address.partition(":")[2],
        "taskmanager.host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.rpc.port": task_rpc,
        "taskmanager.numberOfTaskSlots": slots,
        "io.tmp.dirs": folder,
        # Flink's scripts would compute these from the memory of the process.
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.heap.size": "768m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.managed.size": "128m",
        "taskmanager.memory.network.min": "128m",
        "taskmanager.memory.network.max": "128m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "128m",
        "taskmanager.memory.jvm-overhead.max": "128m",
        **(options or {}),
    }
    (folder / "config.yaml").write_text("".join(f"{name}: {value}\n" for name, value in configuration.items()))
    (folder / "log4j2.properties").write_text(_LOGGING)
    java = [*_JAVA, *(f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in _OPENED)]
    java += [f"-Dlog4j.configurationFile={folder}/log4j2.properties", "-cp", os.pathsep.join(map(str, libraries))]
    job_manager = [*java, "-Xmx600m", "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"]
    task_manager = [*java, "-Xmx896m", "-XX:MaxMetaspaceSize=256m"]
    task_manager += ["org.apache.flink.runtime.taskexecutor.TaskManagerRunner"]
    configured = ["--configDir", str(folder)]
    with (
        running([*job_manager, *configured], address, log=scratch / "job-manager.log"),
        running([*task_manager, *configured], f"127.0.0.1:{task_rpc}", log=scratch / "task-manager.log"),
    ):
        cluster = Cluster(address)
        wait_for(lambda: cluster.ask("overview")["slots-total"] == slots, seconds=60)
        yield cluster


@contextmanager
def job_server(scratch: Path, jar: Path, cluster: Cluster) -> Iterator[str]:
    """Beam's job server for a cluster; yields its endpoint."""
    endpoint = f"localhost:{free_port()}"
    command = [*_JAVA, "-Xmx1g", "-jar", str(jar), f"--flink-master={cluster.address}", "--job-host=localhost"]
    command += [f"--job-port={endpoint.partition(':')[2]}", "--artifact-port=0", "--expansion-port=-1"]
    with running([*command, f"--artifacts-dir={scratch / 'artifacts'}"], endpoint, log=scratch / "job-server.log"):
        yield endpoint


def workers_of(pool: str) -> list[psutil.Process]:
    """The workers that a pool has started, each the parent of its pool."""
    flag = ["--service_port", pool.rpartition(":")[2]]
    return [
        child
        for process in psutil.process_iter()
        if _arguments(process)[-2:] == flag
        for child in process.children()
        if "SdkHarness" in " ".join(_arguments(child))
    ]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def wait_for(what: Callable[[], object], *, seconds: float) -> None:
    """Wait until a condition is true; fails if that takes too long."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.2)
