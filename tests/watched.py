"""Runs a command under strace: whom it calls, and which files it writes, native code and child processes included."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import pytest

_CALLS = "connect,sendto,sendmsg,sendmmsg"
_FILES = (
    "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat,truncate"
)
_FILES += ",unlink,unlinkat,rmdir,chmod,fchmodat,utimensat"
_ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')
_PLACE = re.compile(r'(?:<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
_DEVICES = ("/dev/null", "/dev/tty", "/dev/shm/sem.", "/proc/")


class Seen(NamedTuple):
    """What a command did: whom it called outside of this machine, or asked for a name; where it wrote."""

    status: int
    printed: str
    calls: list[str]
    written: list[str]


@cache
def find_strace() -> str:
    """The program; on Debian it is installed if it is missing and we may. Otherwise the test is skipped."""
    if not shutil.which("strace") and shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (["update"], ["install", "-y", "--no-install-recommends", "strace"]):
            subprocess.run(
                ["apt-get", "-q", *arguments], env=environment, capture_output=True, check=False, timeout=300
            )
    found = shutil.which("strace")
    if not found:
        pytest.skip("needs strace")
    if subprocess.run([found, "-qq", "-o", os.devnull, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    return found


def watch(command: Sequence[str], folder: Path, allowed: Sequence[Path] = ()) -> Seen:
    """Run a command with its own home, temporary and current folder below `folder`, and an empty environment.

    `written` leaves out devices, the temporary folder, our folder in the user's cache, the `allowed` folders, and
    Python's own bytecode, which lies beside the code.
    """
    traces, home, temporary, here = (folder / name for name in ("traces", "home", "tmp", "here"))
    for each in (traces, home, temporary, here):
        each.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    tracing = [
        "-ff",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "4096",
        "-e",
        f"trace={_CALLS},{_FILES}",
        "-o",
        str(traces / "of"),
    ]
    done = subprocess.run(
        [find_strace(), *tracing, *command],
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    ours = (temporary, home / ".cache" / "phrasemill", *allowed)
    calls: set[str] = set()
    written: set[Path] = set()
    for trace in traces.iterdir():
        for line in trace.read_text(errors="replace").splitlines():
            calls.update(_called(line))
            written.update(here / place for place in _written(line) if not _is_left_out(place))
    others = sorted(str(each) for each in written if not any(each.is_relative_to(place) for place in ours))
    return Seen(done.returncode, done.stdout, sorted(calls), others)


def _is_left_out(place: str) -> bool:
    return place.startswith(_DEVICES) or "/__pycache__" in place


def _called(line: str) -> list[str]:
    """The addresses of a line that are not of this machine, or are of a name server."""
    if not line.startswith(tuple(_CALLS.split(","))):
        return []
    return [
        f"{address} port {port}"
        for port, address in _ADDRESS.findall(line)
        if port == "53" or not ip_address(address).is_loopback
    ]


def _written(line: str) -> list[str]:
    """The places that a line makes, changes or removes."""
    name, _, rest = line.partition("(")
    if name not in _FILES.split(",") or " = -1 " in line or (name in ("open", "openat") and not _WRITES.search(line)):
        return []
    return [os.path.normpath(os.path.join(folder, place)) for folder, place in _PLACE.findall(rest.rpartition(")")[0])]
