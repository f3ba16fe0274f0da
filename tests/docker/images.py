"""The worker image, built and run by buildah without a registry; skips where the machine cannot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import build_image
import pytest
from servers import answers, free_port, running

ROOT = Path(__file__).resolve().parents[2]
NAME = "localhost/phrasemill-worker-tests"
BOOT_PORT = 50000  # boot's own, which cannot be chosen


class Image(NamedTuple):
    """An image in a storage of its own; `environment` is what buildah needs to find it."""

    name: str
    environment: dict[str, str]

    def config(self) -> dict[str, Any]:
        return json.loads(self._buildah("inspect", "--type", "image", self.name))["OCIv1"]["config"]

    @contextmanager
    def container(self) -> Iterator[str]:
        name = self._buildah("from", "--pull-never", self.name).strip()
        try:
            yield name
        finally:
            self._buildah("rm", name)

    def run(self, *command: str, user: str | None = None) -> str:
        """What a command prints in a container, as the image's user or another."""
        with self.container() as container:
            return self._buildah("run", *(("--user", user) if user else ()), container, "--", *command)

    @contextmanager
    def worker_pool(
        self, log: Path, *, folders: Sequence[Path] = (), environment: Mapping[str, str] | None = None
    ) -> Iterator[tuple[str, int]]:
        """A worker pool in a container, which sees some folders of this machine; its address and process id."""
        if answers("127.0.0.1", BOOT_PORT):
            # What `boot -worker_pool` runs, with another port.
            address = f"127.0.0.1:{free_port()}"
            entry = ["python", "-m", "apache_beam.runners.worker.worker_pool_main", "--service_port"]
            entry += [address.partition(":")[2], "--container_executable=/opt/apache/beam/boot"]
        else:
            address, entry = f"127.0.0.1:{BOOT_PORT}", [*self.config()["Entrypoint"], "-worker_pool"]
        with self.container() as container:
            command = ["buildah", "run"]
            for folder in folders:
                command += ["--volume", f"{folder}:{folder}"]
            for name, value in (environment or {}).items():
                command += ["--env", f"{name}={value}"]
            command += [container, "--", *entry]
            with running(command, address, environment=self.environment, log=log) as process:
                yield address, process

    def _buildah(self, *arguments: str) -> str:
        done = subprocess.run(
            ["buildah", *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def built_image(scratch: Path) -> Image:
    """The image of today's code, by the script that users have. Layers are kept in the user's cache."""
    _have("buildah", "debootstrap")
    if not shutil.which("go"):
        pytest.skip("Beam's boot is built with Go, which is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "containers"
    cache.mkdir(parents=True, exist_ok=True)
    configuration = scratch / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "{_driver(cache)}"\ngraphroot = "{cache}/storage"\nrunroot = "{cache}/run"\n'
    )
    image = Image(NAME, {"CONTAINERS_STORAGE_CONF": str(configuration), "BUILDAH_ISOLATION": "chroot"})
    command = [sys.executable, str(ROOT / "docker/build_image.py"), "--from", "packages", "--builder", "buildah"]
    done = subprocess.run(
        [*command, "--tag", NAME],
        env={**os.environ, **image.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.splitlines()[-1] == NAME
    image._buildah("rmi", "--prune", "--force")  # yesterday's
    return image


def _have(*programs: str) -> None:
    """Install Debian's packages of these names, where this is Debian and we may."""
    missing = [each for each in programs if not shutil.which(each)]
    if os.geteuid():
        pytest.skip("images are built by root here, for debootstrap")
    if not missing:
        return
    if not shutil.which("apt-get"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    for command in (["apt-get", "update"], install):
        try:
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{' '.join(command)}: not done within 300 s")
        if done.returncode:
            pytest.skip(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")


def _driver(folder: Path) -> str:
    """overlay where a file system of this kind can be mounted, as not in most containers."""
    for name in ("lower", "upper", "work", "merged"):
        (folder / "probe" / name).mkdir(parents=True, exist_ok=True)
    probe = folder / "probe"
    options = f"lowerdir={probe}/lower,upperdir={probe}/upper,workdir={probe}/work"
    mounted = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, probe / "merged"], capture_output=True
    )
    if mounted.returncode:
        return "vfs"
    subprocess.run(["umount", probe / "merged"], check=True)
    return "overlay"


def versions() -> build_image.Versions:
    """What the image should have, read from the project."""
    pyproject = build_image.tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return build_image.read_versions(pyproject, (ROOT / "constraints.txt").read_text(encoding="utf-8"), "3.11")
