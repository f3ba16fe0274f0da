"""The worker image, built and run by buildah without a registry; skips where the machine cannot."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from requirements import tomllib
from servers import answers, free_port, go_install, running

ROOT = Path(__file__).resolve().parents[2]
NAME, BASE, BOOT = (f"localhost/phrasemill-{each}" for each in ("worker-tests", "base:bookworm", "boot"))
BOOT_PORT = 50000  # boot's own, which cannot be chosen
PIP_SETTINGS = "index-url extra-index-url trusted-host proxy timeout default-timeout retries cert".split()


class Versions(NamedTuple):
    phrasemill: str
    beam: str
    python: str  # 3.11


class Image(NamedTuple):
    """An image in a storage of its own; `environment` is what buildah needs to find it."""

    name: str
    environment: dict[str, str]

    def config(self) -> dict[str, Any]:
        return json.loads(self.buildah("inspect", "--type", "image", self.name))["OCIv1"]["config"]

    @contextmanager
    def container(self) -> Iterator[str]:
        name = self.buildah("from", "--pull-never", self.name).strip()
        try:
            yield name
        finally:
            self.buildah("rm", name)

    def run(self, *command: str, user: str | None = None) -> str:
        """What a command prints in a container, as the image's user or another."""
        with self.container() as container:
            return self.buildah("run", *(("--user", user) if user else ()), container, "--", *command)

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

    def buildah(self, *arguments: str) -> str:
        done = subprocess.run(
            ["buildah", *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout


def versions() -> Versions:
    """What the image should have, read from the project; the Python is Debian's, and the Dockerfile's default."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    beam = re.search(r"^apache-beam==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert beam
    return Versions(project["version"], beam[1], "3.11")


def built_image(scratch: Path) -> Image:
    """The image of today's code, by docker/Dockerfile, its bases made here. Layers are kept in the user's cache."""
    _have("buildah", "debootstrap")
    boot = go_install("github.com/apache/beam/sdks/v2/python/container", f"v{versions().beam}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "containers"
    cache.mkdir(parents=True, exist_ok=True)
    configuration = scratch / "storage.conf"
    configuration.write_text(
        f'[storage]\ndriver = "{_driver(cache)}"\ngraphroot = "{cache}/storage"\nrunroot = "{cache}/run"\n'
    )
    image = Image(NAME, {"CONTAINERS_STORAGE_CONF": str(configuration), "BUILDAH_ISOLATION": "chroot"})
    if not image.buildah("images", "--quiet", "--filter", f"reference={BASE}"):
        _make_base(image)
    shutil.copy(boot, scratch / "boot")
    (scratch / "Dockerfile").write_text("FROM scratch\nCOPY boot /opt/apache/beam/boot\n")
    image.buildah("build", "--layers", "--tag", BOOT, str(scratch))
    given = ["--build-arg", f"BASE={BASE}", "--build-arg", f"BOOT={BOOT}", *_secrets(scratch)]
    build = ["build", "--layers", "--force-rm", "--tag", NAME, "--file", str(ROOT / "docker/Dockerfile")]
    image.buildah(*build, *given, str(ROOT))
    image.buildah("rmi", "--prune", "--force")  # yesterday's
    return image


def _make_base(image: Image) -> None:
    """A minimal Debian with Python, of Debian's packages."""
    container = image.buildah("from", "scratch").strip()
    try:
        root = Path(image.buildah("mount", container).strip())
        packages = "--include=python3,python3-venv,ca-certificates"
        command = ["debootstrap", "--variant=minbase", packages, "bookworm", str(root)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stdout[-5000:]
        for each in ("var/cache/apt", "var/lib/apt/lists", "dev"):
            shutil.rmtree(root / each)
            (root / each).mkdir()
        image.buildah("commit", container, BASE)
    finally:
        image.buildah("rm", container)


def _secrets(scratch: Path) -> list[str]:
    """How pip reaches packages here, as secrets of the build: `pip config list`, the environment before files."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    settings = {"cert": "'{}'".format(os.environ.get("SSL_CERT_FILE", ""))}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        settings[key.rpartition(".")[2]] = value
    found = {name: " ".join(ast.literal_eval(settings[name]).split()) for name in PIP_SETTINGS if name in settings}
    secrets = {"pip.conf": str(scratch / "pip.conf")}
    if found["cert"]:
        secrets["ca.pem"], found["cert"] = found["cert"], "/run/secrets/ca.pem"
    lines = [f"{name} = {value}\n" for name, value in found.items() if value]
    (scratch / "pip.conf").write_text("".join(["[global]\n", *lines]))
    return [word for name, path in secrets.items() for word in ("--secret", f"id={name},src={path}")]


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
