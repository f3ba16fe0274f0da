"""Build the worker image with docker, podman or buildah, whichever works here.

    python docker/build_image.py                              # phrasemill-worker:0.1.0-py3.11-beam2.77.0
    python docker/build_image.py --extras benepar,gcp --models ~/models
    python docker/build_image.py --from packages              # on a machine that reaches no image registry

Standard library only. Prints the image's name; what the builder says goes to stderr.

With `--from packages` the base is made of Debian's packages (debootstrap, as root) and `boot` is built from source by
Go; both are kept in ~/.cache/phrasemill. The Dockerfile is the same.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from requirements import requirements, split_extras, tomllib

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "phrasemill-worker"
BASE_IMAGE, BOOT_IMAGE = "python:{python}-slim-bookworm", "apache/beam_python{python}_sdk:{beam}"

DEBIAN, DEBIAN_PYTHON = "bookworm", "3.11"
BOOT_MODULE = "github.com/apache/beam/sdks/v2/python/container"

PIP_SETTINGS = "index-url extra-index-url trusted-host proxy timeout default-timeout retries cert".split()
"""Settings of pip that say how to reach packages; a build uses those of the machine."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


class Versions(NamedTuple):
    phrasemill: str
    beam: str
    python: str  # 3.11


class BuildError(Exception):
    """What stands in the way, and the remedy."""


# ---- Names and arguments


def read_versions(pyproject: Mapping[str, Any], constraints: str, python: str) -> Versions:
    beam = re.search(r"^apache-beam==(\S+)", constraints, re.MULTILINE)
    if not beam:
        raise BuildError("constraints.txt pins no apache-beam: make constraints")
    return Versions(pyproject["project"]["version"], beam[1], python)


def image_name(versions: Versions, extras: Iterable[str] = (), *, root: bool = False) -> str:
    """`phrasemill-worker:0.1.0-py3.11-beam2.77.0-benepar-gcp`."""
    what = [versions.phrasemill, f"py{versions.python}", f"beam{versions.beam}", *extras, *["root"] * root]
    return f"{REPOSITORY}:{'-'.join(what)}"


def build_arguments(
    versions: Versions, extras: Iterable[str] = (), *, root: bool = False, base: str = "", boot: str = ""
) -> dict[str, str]:
    """The Dockerfile's arguments. `base` and `boot` are images, by default those of the registry."""
    return {
        "BASE": base or BASE_IMAGE.format(**versions._asdict()),
        "BOOT": boot or BOOT_IMAGE.format(**versions._asdict()),
        "VERSION": versions.phrasemill,
        "PYTHON": versions.python,
        "BEAM": versions.beam,
        "EXTRAS": ",".join(extras),
        "RUN_AS": "0" if root else "10001",
    }


def pip_settings(listed: str) -> dict[str, str]:
    """How to reach packages, from the lines of `pip config list`; the environment goes before files, as with pip."""
    found = {}
    for place in ("global", "install", ":env:"):
        for line in listed.splitlines():
            key, _, value = line.partition("=")
            where, _, name = key.rpartition(".")
            if where == place and name in PIP_SETTINGS:
                found[name] = str(ast.literal_eval(value))
    return found


def pip_conf(settings: Mapping[str, str]) -> str:
    return "[global]\n" + "".join(f"{name} = {' '.join(value.split())}\n" for name, value in settings.items())


# ---- Builders


class Builder(NamedTuple):
    """docker, podman or buildah: what they share of their command lines."""

    name: str

    def build(
        self,
        tag: str,
        context: Path,
        dockerfile: Path,
        *,
        arguments: Mapping[str, str] | None = None,
        secrets: Mapping[str, Path] | None = None,
    ) -> None:
        command = [self.name, "build", "--tag", tag, "--file", str(dockerfile)]
        if self.name != "docker":
            command += ["--layers", "--force-rm"]
        for name, value in (arguments or {}).items():
            command += ["--build-arg", f"{name}={value}"]
        for name, path in (secrets or {}).items():
            command += ["--secret", f"id={name},src={path}"]
        if self.name == "docker":  # the others pass them on themselves
            command += [word for name in PROXIES if os.environ.get(name) for word in ("--build-arg", name)]
        _run([*command, str(context)])

    def has(self, image: str) -> bool:
        inspect = ["inspect", "--type", "image"] if self.name == "buildah" else ["image", "inspect"]
        return _quiet([self.name, *inspect, image]) is not None


def find_builder(name: str = "") -> Builder:
    for candidate in [name] if name else ["docker", "podman", "buildah"]:
        if _quiet([candidate, "info"]) is not None:
            if candidate == "buildah" and not (shutil.which("runc") or shutil.which("crun")):
                os.environ.setdefault("BUILDAH_ISOLATION", "chroot")
            os.environ.setdefault("DOCKER_BUILDKIT", "1")
            return Builder(candidate)
    raise BuildError(f"{name or 'none of docker, podman, buildah'} works here: install one, or start its service")


# ---- Without a registry


def debian_base(builder: Builder, cache: Path, *, refresh: bool) -> str:
    """The name of a minimal Debian image with Python, made of Debian's packages."""
    image = f"localhost/phrasemill-base:{DEBIAN}"
    folder = cache / "images" / f"{DEBIAN}-{os.uname().machine}"
    archive = folder / "root.tar"
    if refresh or not archive.exists():
        if not shutil.which("debootstrap"):
            raise BuildError("--from packages needs debootstrap: apt-get install debootstrap")
        if os.geteuid():
            raise BuildError("--from packages needs root, for debootstrap")
        with tempfile.TemporaryDirectory() as scratch:
            include = "python3,python3-venv,ca-certificates"
            _run(["debootstrap", "--variant=minbase", f"--include={include}", DEBIAN, f"{scratch}/root"], limit=1200)
            without = ["--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "--exclude=./dev/*"]
            folder.mkdir(parents=True, exist_ok=True)
            _run(["tar", "-C", f"{scratch}/root", *without, "-cf", f"{scratch}/root.tar", "."])
            shutil.move(f"{scratch}/root.tar", folder / "root.tar.part")
            (folder / "root.tar.part").rename(archive)
    elif builder.has(image):
        return image
    (folder / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
    builder.build(image, folder, folder / "Dockerfile")
    return image


def boot_image(builder: Builder, cache: Path, beam: str) -> str:
    """The name of an image that holds nothing but Beam's `boot`, built from source."""
    image = f"localhost/phrasemill-boot:{beam}"
    if builder.has(image):
        return image
    folder = cache / "go" / f"v{beam}" / "boot"
    if not (folder / "container").exists():
        if not shutil.which("go"):
            raise BuildError("--from packages needs Go, for Beam's boot: https://go.dev/doc/install")
        # Linked to no library, so that it runs on any base.
        environment = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
        _run(["go", "install", f"{BOOT_MODULE}@v{beam}"], environment=environment, limit=1200)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY container /opt/apache/beam/boot\n")
    builder.build(image, folder, folder / "Dockerfile")
    return image


# ---- The build


def build(options: argparse.Namespace) -> str:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    versions = read_versions(pyproject, constraints, options.python)
    extras = split_extras(options.extras)
    try:
        requirements(pyproject["project"], extras)
    except KeyError as error:
        known = ", ".join(pyproject["project"]["optional-dependencies"])
        raise BuildError(f"--extras: phrasemill has no extra {error}; choose among {known}") from error
    if options.models and not Path(options.models).is_dir():
        raise BuildError(f"--models: {options.models} is no folder")
    tag = options.tag or image_name(versions, extras, root=options.root)
    if options.print_name:
        return tag

    builder = find_builder(options.builder)
    base, boot = options.base, options.boot
    if options.source == "packages":
        if options.python != DEBIAN_PYTHON:
            raise BuildError(f"--from packages has Python {DEBIAN_PYTHON}, which is Debian {DEBIAN}'s")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill"
        base = base or debian_base(builder, cache, refresh=options.refresh)
        boot = boot or boot_image(builder, cache, versions.beam)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = build_arguments(versions, extras, root=options.root, base=base, boot=boot)
        builder.build(tag, ROOT, ROOT / "docker" / "Dockerfile", arguments=arguments, secrets=_secrets(Path(scratch)))
        if options.models:
            dockerfile = Path(scratch, "Dockerfile")
            dockerfile.write_text(f"FROM {tag}\nCOPY . /models/\n")
            builder.build(tag, Path(options.models), dockerfile)
    return tag


def _secrets(scratch: Path) -> dict[str, Path]:
    """This machine's way to packages, as files for the build only."""
    secrets = {}
    # A virtual environment that uv made has no pip.
    pips = [[sys.executable, "-m", "pip"], ["pip3"], ["pip"]]
    listed = (_quiet([*pip, "config", "list"]) for pip in pips)
    settings = pip_settings(next((text for text in listed if text is not None), ""))
    if "cert" not in settings and os.environ.get("SSL_CERT_FILE"):
        settings["cert"] = os.environ["SSL_CERT_FILE"]
    if "cert" in settings:
        secrets["ca.pem"] = Path(settings["cert"])
        settings["cert"] = "/run/secrets/ca.pem"
    if settings:
        secrets["pip.conf"] = scratch / "pip.conf"
        secrets["pip.conf"].write_text(pip_conf(settings))
    return secrets


def _run(command: Sequence[str], *, environment: Mapping[str, str] | None = None, limit: float = 7200) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    try:
        ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"{command[0]} did not end within {limit:.0f} s") from error
    if ended.returncode:
        raise BuildError(f"{command[0]} failed with exit status {ended.returncode}; it says why above")


def _quiet(command: Sequence[str]) -> str | None:
    """What a command prints, None if it fails or is not there."""
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return None if ended.returncode else ended.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="docker/build_image.py", description="Build phrasemill's worker image.")
    add = parser.add_argument
    add("--extras", default="", metavar="A,B", help="extras of phrasemill to install (pyproject.toml lists them)")
    add("--models", metavar="FOLDER", help="bake this folder in, as /models")
    add("--python", default="3.11", metavar="3.N", help="must be the Python of whoever submits jobs (default: 3.11)")
    add("--root", action="store_true", help="run as root, for Dataflow")
    add("--tag", help="another name for the image")
    add("--builder", default="", choices=["docker", "podman", "buildah"], help="default: the first that works")
    add("--from", dest="source", default="registry", choices=["registry", "packages"], help="where the base comes from")
    add("--base", default="", metavar="IMAGE", help="another base: Debian with Python and venv")
    add("--boot", default="", metavar="IMAGE", help="another image with /opt/apache/beam/boot")
    add("--refresh", action="store_true", help="with --from packages: make the base anew")
    add("--print-name", action="store_true", help="only print the image's name")
    try:
        print(build(parser.parse_args(arguments)))
    except BuildError as error:
        print(f"docker/build_image.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
