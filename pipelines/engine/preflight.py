"""Checks what each Beam runner needs before a job is submitted: an error in a second, not after an hour.

For each runner a function adds what our stages need to Beam's options, and raises UserError, with the remedy, for what
is missing. What only a worker can check is checked at the start of the job (`pipelines/engine/worker_checks.py`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.engine.worker_checks import Software, software
from schemas.errors import UserError
from schemas.storage.addresses import is_address, parse

_NETWORK_FILESYSTEMS = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|ceph|glusterfs|beegfs\w*|gpfs|afs|9p|virtiofs|wekafs|pvfs2|panfs|fuse\..+"
)
_IMAGE_REMEDY = "build the worker image and push it (docker/README.md), then --sdk_container_image=REGISTRY/NAME:TAG"
_NOTHING_STAGED = (
    "--no_save_main_session",
    "--experiments=disable_logging_submission_environment",  # which would run `pip freeze` and send the result
)


class Submission(NamedTuple):
    """What a job is submitted with: Beam's runner and arguments, and notices for the user."""

    runner: str
    arguments: list[str]
    notices: tuple[str, ...] = ()


HERE = Submission("FnApiRunner", [])
"""DirectRunner: the job runs in this process."""


def prepare(runner: str, beam_args: Sequence[str], places: Sequence[str]) -> Submission:
    """The submission for a runner on a cluster. `places`: the paths and addresses that are read and written.

    UserError for what is missing.
    """
    from pipelines.engine.beam import beam_options

    submission = _PREPARE[runner](beam_options(beam_args), places)
    return submission._replace(arguments=[*beam_args, *submission.arguments, *_NOTHING_STAGED])


# ---- Runners


def _prism(options: dict[str, Any], places: Sequence[str]) -> Submission:
    """Beam's Prism, started by this process: a job server on this machine."""
    if options["job_endpoint"]:
        raise UserError(
            "--runner=PrismRunner starts its own Prism; for one that is running already use --runner=PortableRunner"
        )
    arguments = [f"--prism_location={_prism_binary(options['prism_location'])}"]
    environment = _environment(options, runner_is_here=True)
    _check_places(places, here=environment.here)
    return Submission("PrismRunner", [*arguments, *environment.arguments], environment.notices)


def _portable(options: dict[str, Any], places: Sequence[str]) -> Submission:
    """A running job server: Prism's, Flink's or another's."""
    endpoint = options["job_endpoint"]
    if not endpoint:
        raise UserError(
            "--runner=PortableRunner needs --job_endpoint=HOST:PORT of a job server: Prism's "
            "(prism --job_port 8073) or Flink's; see docs/clusters.md"
        )
    _must_answer(endpoint, "--job_endpoint", "job server", "start it (docs/clusters.md), or correct the address")
    environment = _environment(options, runner_is_here=_is_here(endpoint))
    _check_places(places, here=environment.here and _is_here(endpoint))
    return Submission("PortableRunner", environment.arguments, environment.notices)


def _flink(options: dict[str, Any], places: Sequence[str]) -> Submission:
    """Flink by a job server that Beam starts here from a jar."""
    if options["job_endpoint"]:
        return _portable(options, places)
    jar = options["flink_job_server_jar"] or os.environ.get("FLINK_JOB_SERVER_JAR", "")
    if not jar:
        raise UserError(
            "--runner=FlinkRunner needs Beam's Flink job server: --job_endpoint=HOST:PORT of a running one, or "
            "--flink_job_server_jar=FILE (the artifact beam-runners-flink-"
            f"{options['flink_version']}-job-server); it is not downloaded automatically"
        )
    if not os.path.isfile(jar):
        raise UserError(f"--flink_job_server_jar: no file {jar!r}")
    if not shutil.which("java"):
        raise UserError("--runner=FlinkRunner needs Java for its job server; there is none: install Java 11 or newer")
    master = options["flink_master"]
    embedded = master in ("[local]", "[auto]")
    arguments = [f"--flink_job_server_jar={jar}"]
    if not embedded and not options["parallelism"] > 0:
        arguments.append(f"--parallelism={_flink_slots(master)}")
    environment = _environment(options, runner_is_here=embedded or _is_here(_without_scheme(master)))
    _check_places(places, here=environment.here)
    return Submission("FlinkRunner", [*arguments, *environment.arguments], environment.notices)


def _dataflow(options: dict[str, Any], places: Sequence[str]) -> Submission:
    """Google Cloud Dataflow. One SDK process on each machine, whose worker pool does one unit per core."""
    if not has_google_extra():
        raise UserError("--runner=DataflowRunner needs an extra: pip install 'phrasemill[gcp]'")
    for name, what in (
        ("project", "--project=ID of the Google Cloud project"),
        ("region", "--region=NAME, such as us-central1"),
        ("temp_location", "--temp_location=gs://BUCKET/FOLDER, for Dataflow's own files"),
    ):
        if not options[name]:
            raise UserError(f"--runner=DataflowRunner needs {what}")
    if not str(options["temp_location"]).startswith("gs://"):
        raise UserError(f"--temp_location={options['temp_location']}: must begin with gs://")
    _check_image(options["sdk_container_image"], "--runner=DataflowRunner")
    for place in places:
        if not is_address(place):
            raise UserError(f"{place}: Dataflow's machines cannot reach files of this one; copy it to gs:// or s3://")
    arguments = ["--sdk_location=container", "--experiments=no_use_multiple_sdk_containers"]
    if not options["machine_type"]:
        arguments.append(f"--machine_type={DATAFLOW_MACHINE}")
    if not options["disk_size_gb"]:
        arguments.append(f"--disk_size_gb={DATAFLOW_DISK_GB}")
    return Submission("DataflowRunner", arguments)


def has_google_extra() -> bool:
    try:
        return importlib.util.find_spec("google.cloud.dataflow") is not None
    except ModuleNotFoundError:
        return False


DATAFLOW_MACHINE = "n2-standard-8"
"""Its CPUs have the instructions for small integers (VNNI) that the parser uses, and 4 GB per core."""
DATAFLOW_DISK_GB = 50

_PREPARE: dict[str, Callable[[dict[str, Any], Sequence[str]], Submission]] = {
    "PrismRunner": _prism,
    "PortableRunner": _portable,
    "FlinkRunner": _flink,
    "DataflowRunner": _dataflow,
}


# ---- Where the workers are


class _Environment(NamedTuple):
    """`here`: the workers are processes of this machine."""

    here: bool
    arguments: list[str]
    notices: tuple[str, ...] = ()


def _environment(options: dict[str, Any], *, runner_is_here: bool) -> _Environment:
    """How the runner starts its workers: as the options say, or else as can be inferred from them."""
    kind, config = options["environment_type"], options["environment_config"] or ""
    image = options["sdk_container_image"]
    arguments = []
    if not kind:
        kind = "EXTERNAL" if config else "DOCKER" if image else "LOOPBACK" if runner_is_here else ""
        if not kind:
            raise UserError(
                "say where the workers are: --environment_type=EXTERNAL --environment_config=HOST:PORT of worker "
                "pools, as seen from the runner's machines, or --environment_type=DOCKER --sdk_container_image=IMAGE"
            )
        arguments.append(f"--environment_type={kind}")
    if kind == "LOOPBACK":
        if not runner_is_here:
            raise UserError(
                "--environment_type=LOOPBACK: the workers would be this process, which a runner on another machine "
                "cannot reach; use EXTERNAL or DOCKER (docs/clusters.md)"
            )
        return _Environment(True, arguments)
    if kind == "EXTERNAL":
        return _pool(config, arguments)
    if kind == "DOCKER":
        _check_image(config or image, "--environment_type=DOCKER")
        if not config:  # Beam uses --sdk_container_image on Dataflow only, and its own image here
            arguments.append(f"--environment_config={image}")
        return _Environment(False, arguments)
    if kind == "PROCESS":
        try:
            command = json.loads(config)["command"]
        except (ValueError, TypeError, KeyError):
            raise UserError(
                """--environment_type=PROCESS needs --environment_config='{"command": "/path/to/boot"}', the program """
                "that starts a worker on the runner's machines"
            ) from None
        if runner_is_here and not os.access(command, os.X_OK):
            raise UserError(f"--environment_config: no program {command!r}")
        return _Environment(runner_is_here, arguments)
    raise UserError(f"--environment_type={kind}: choose among LOOPBACK, EXTERNAL, DOCKER and PROCESS")


def _pool(address: str, arguments: list[str]) -> _Environment:
    """A running worker pool."""
    if not address:
        raise UserError("--environment_type=EXTERNAL needs --environment_config=HOST:PORT of a worker pool")
    if "," in address:
        raise UserError(
            f"--environment_config={address}: takes one address, at which each machine finds its own pool, such as "
            "localhost:50000; for several machines without a cluster use an array job (--units, docs/arrays.md)"
        )
    host, port = _host_and_port(address, "--environment_config")
    notices = []
    if not _answers(host, port):
        notices.append(
            f"no worker pool answers at {address} from this machine; this is fine only if one does from the runner's"
        )
    return _Environment(_is_here(address), arguments, tuple(notices))


def _check_image(image: str | None, what: str) -> None:
    if not image:
        raise UserError(f"{what} needs a worker image: {_IMAGE_REMEDY}")
    if re.search(r"(^|/)apache/beam_python", image):
        raise UserError(f"--sdk_container_image={image}: Beam's own image does not contain phrasemill: {_IMAGE_REMEDY}")
    for difference in image_differences(image, software()):
        raise UserError(f"--sdk_container_image={image}: {difference}: build one that fits (docker/README.md)")


def image_differences(image: str, here: Software) -> list[str]:
    """How the versions in an image's tag (such as 0.1.0-py3.11-beam2.77.0) differ from this machine's."""
    tag = image.rpartition("/")[2].partition(":")[2]
    found = []
    for what, pattern, version in (
        ("Python", r"py(\d+\.\d+)", here.python),
        ("Beam", r"beam(\d+\.\d+\.\d+)", here.beam),
    ):
        named = re.search(rf"(?:^|-){pattern}(?:-|$)", tag)
        if named and named[1] != version:
            found.append(f"has {what} {named[1]}, this machine {version}")
    return found


# ---- Storage


def _check_places(places: Sequence[str], *, here: bool) -> None:
    """UserError for a path that workers on other machines cannot reach. `here`: the workers are on this machine."""
    for place in places:
        if not here and not is_address(place) and not on_shared_storage(place):
            raise UserError(
                f"{place}: is on a disk of this machine, which workers elsewhere cannot reach; give an s3:// or gs:// "
                "address, or a path on a file system that all machines share"
            )


def on_shared_storage(path: str, mounts: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether a path is on a network file system. True if the system does not say; then the workers find out."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return True
    path = os.path.realpath(path)
    kind, best = "", -1
    for line in lines:
        left, _, right = line.partition(" - ")
        point = left.split()[4].replace("\\040", " ")
        if len(point) >= best and (path == point or path.startswith(point.rstrip("/") + "/")):
            kind, best = right.split()[0], len(point)
    return _NETWORK_FILESYSTEMS.fullmatch(kind) is not None


# ---- Servers and programs


def _prism_binary(given: str | None) -> str:
    """The path of Prism. UserError says how to get it, because Beam would download it without asking."""
    places = [given] if given else [shutil.which("prism"), os.path.expanduser("~/go/bin/prism")]
    for place in places:
        if place and os.path.isfile(place):
            return os.path.abspath(place)
    raise UserError(
        (f"--prism_location: no file {given!r}" if given else "--runner=PrismRunner needs the program prism, not found")
        + f"; build it: go install github.com/apache/beam/sdks/v2/go/cmd/prism@v{software().beam}, then give its path "
        "by --prism_location or put it on the PATH"
    )


def _flink_slots(master: str) -> int:
    """The task slots of a Flink cluster, the default of --parallelism. UserError if none answers."""
    url = master if "://" in master else f"http://{master}"
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/overview", timeout=5) as answer:
            slots = int(json.load(answer)["slots-total"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--flink_master={master}: no Flink answers ({error}); start it, or give another") from None
    if not slots:
        raise UserError(f"--flink_master={master}: the cluster has no task slots; start a task manager")
    return slots


def _must_answer(address: str, flag: str, what: str, remedy: str) -> None:
    if address != "embed" and not _answers(*_host_and_port(address, flag)):
        raise UserError(f"{flag}={address}: no {what} answers there; {remedy}")


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=3):
            return True
    except OSError:
        return False


def _host_and_port(address: str, flag: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UserError(f"{flag}={address}: must be HOST:PORT")
    return host.strip("[]"), int(port)


def _without_scheme(address: str) -> str:
    return parse(address).rest if is_address(address) else address


def _is_here(address: str) -> bool:
    """Whether an address, HOST:PORT, is on this machine."""
    host = address.rpartition(":")[0].strip("[]") or address
    return host in ("localhost", "::1", "embed", socket.gethostname()) or host.startswith("127.")
