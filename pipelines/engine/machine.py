"""What this machine, or the container that we run in, has left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from schemas.storage.folder import Folder


def free_disk(output: Folder, replaced: Iterable[Folder]) -> int | None:
    """Bytes free where the output goes, with those of what is replaced there; None on an object store."""
    if not output.is_local:
        return None
    there = output.path
    while not os.path.exists(there):
        there = os.path.dirname(there)
    return shutil.disk_usage(there).free + sum(sum(each.sizes(recursive=True).values()) for each in replaced)


def available_memory(root: Path = Path("/")) -> int:
    """Bytes of memory that processes can still take: of the machine, or less where a control group sets a limit."""
    return min([_of_machine(root), *_of_groups(root)])


def _of_machine(root: Path) -> int:
    meminfo = _table(root / "proc/meminfo")
    if "MemAvailable:" in meminfo:
        return meminfo["MemAvailable:"] * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_groups(root: Path) -> list[int]:
    """What the limits of this process's control groups leave, of both versions of them."""
    found = []
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.is_file() else ():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, files = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # Inside a container the group's own folder is often the base, whatever its path outside.
        own = base / path.lstrip("/")
        for folder in {base, own, *(each for each in own.parents if base in each.parents)}:
            left = _left(folder, *files)
            if left is not None:
                found.append(left)
    return found


def _left(folder: Path, limit: str, usage: str, cache: str) -> int | None:
    """The limit of a group less what it uses, not counting files that are only kept in case they are read again."""
    try:
        most = (folder / limit).read_text().strip()
        used = int((folder / usage).read_text())
    except OSError:
        return None
    if most == "max":
        return None
    return max(int(most) - used + _table(folder / "memory.stat").get(cache, 0), 0)


def _table(path: Path) -> dict[str, int]:
    """A file of lines "name number ..."."""
    if not path.is_file():
        return {}
    return {words[0]: int(words[1]) for line in path.read_text().splitlines() if len(words := line.split()) > 1}
