"""Checks before a job is submitted: an error for each mistake, and the defaults of each runner."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import free_port

from pipelines.engine import preflight
from pipelines.engine.preflight import image_differences, on_shared_storage, prepare
from pipelines.engine.worker_checks import Software
from schemas.errors import UserError

S3 = ["s3://corpora/wiki"]
IMAGE = "--sdk_container_image=registry.example/phrasemill-worker:0.1.0"
GOOGLE = ["--project=p", "--region=us-central1", "--temp_location=gs://b/tmp", IMAGE]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that answers, and serves the overview of a Flink."""

    class Overview(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"taskmanagers": 2, "slots-total": 6}).encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Overview) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture(scope="module")
def nobody() -> str:
    """An address where nothing answers."""
    return f"127.0.0.1:{free_port()}"


def fill(arguments: list[str], **places: object) -> list[str]:
    for name, place in places.items():
        arguments = [each.replace(f"<{name}>", str(place)) for each in arguments]
    return arguments


@pytest.mark.parametrize(
    ("runner", "arguments", "places", "error"),
    [
        ("PortableRunner", [], S3, "needs --job_endpoint=HOST:PORT"),
        ("PortableRunner", ["--job_endpoint=<nobody>"], S3, "no job server answers there; start it"),
        ("PortableRunner", ["--job_endpoint=8099"], S3, "--job_endpoint=8099: must be HOST:PORT"),
        ("PortableRunner", ["--job_endpoint=host:99999"], S3, "must be HOST:PORT"),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--environment_type=EXTERNAL"],
            S3,
            "needs --environment_config",
        ),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--environment_config=pool"],
            S3,
            "--environment_config=pool: must",
        ),
        ("PortableRunner", ["--job_endpoint=<server>", "--environment_type=DOCKER"], S3, "needs a worker image: build"),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--sdk_container_image=apache/beam_python3.11_sdk:2.77.0"],
            S3,
            "Beam's own image does not contain phrasemill",
        ),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--sdk_container_image=r/worker:0.1.0-py3.8-beam2.77.0"],
            S3,
            "has Python 3.8, this machine 3.",
        ),
        ("PortableRunner", ["--job_endpoint=<server>", "--environment_type=PROCESS"], S3, "the program that starts a"),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--environment_type=PROCESS", '--environment_config={"command": "/no/boot"}'],
            S3,
            "no program '/no/boot'",
        ),
        ("PortableRunner", ["--job_endpoint=<server>", "--environment_type=LOCAL"], S3, "choose among LOOPBACK,"),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--environment_config=pool.invalid:50000"],
            ["/tmp/wiki"],
            "/tmp/wiki: is on a disk of this machine, which workers elsewhere cannot reach; give an s3://",
        ),
        (
            "PrismRunner",
            ["--prism_location=/no/prism"],
            S3,
            "--prism_location: no file '/no/prism'; build it: go install",
        ),
        ("PrismRunner", ["--job_endpoint=<server>"], S3, "starts its own Prism"),
        ("FlinkRunner", [], S3, "needs Beam's Flink job server: .* it is not downloaded automatically"),
        ("FlinkRunner", ["--flink_job_server_jar=/no.jar"], S3, "--flink_job_server_jar: no file '/no.jar'"),
        ("FlinkRunner", ["--flink_job_server_jar=<jar>", "--flink_master=<nobody>"], S3, "no Flink answers"),
        (
            "FlinkRunner",
            ["--flink_job_server_jar=<jar>", "--environment_config=<server>,localhost:1"],
            S3,
            "takes one address, at which each machine finds its own pool",
        ),
        ("FlinkRunner", ["--job_endpoint=<nobody>"], S3, "no job server answers there"),
        ("DataflowRunner", GOOGLE[1:], ["gs://b/wiki"], "needs --project=ID"),
        ("DataflowRunner", [GOOGLE[0], *GOOGLE[2:]], ["gs://b/wiki"], "needs --region=NAME"),
        ("DataflowRunner", [*GOOGLE[:2], IMAGE], ["gs://b/wiki"], "needs --temp_location=gs://"),
        ("DataflowRunner", [*GOOGLE[:2], "--temp_location=/tmp/x", IMAGE], ["gs://b/wiki"], "must begin with gs://"),
        ("DataflowRunner", GOOGLE[:3], ["gs://b/wiki"], "--runner=DataflowRunner needs a worker image"),
        ("DataflowRunner", GOOGLE, ["gs://b/wiki", "/nfs/wiki"], "/nfs/wiki: Dataflow's machines cannot reach files"),
    ],
)
def test_a_mistake_is_one_line_with_its_remedy(
    runner: str,
    arguments: list[str],
    places: list[str],
    error: str,
    server: str,
    nobody: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FLINK_JOB_SERVER_JAR", raising=False)
    monkeypatch.setattr(preflight, "has_google_extra", lambda: True)
    (tmp_path / "job-server.jar").touch()
    arguments = fill(arguments, server=server, nobody=nobody, jar=tmp_path / "job-server.jar")
    with pytest.raises(UserError, match=error) as raised:
        prepare(runner, arguments, places)
    assert "\n" not in str(raised.value)


def test_dataflow_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "has_google_extra", lambda: False)
    with pytest.raises(UserError, match=r"needs an extra: pip install 'phrasemill\[gcp\]'"):
        prepare("DataflowRunner", GOOGLE, ["gs://b/wiki"])


@pytest.mark.parametrize(
    ("runner", "arguments", "added"),
    [
        ("PortableRunner", ["--job_endpoint=<server>"], ["--environment_type=LOOPBACK"]),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", "--environment_config=<server>"],
            ["--environment_type=EXTERNAL"],
        ),
        (
            "PortableRunner",
            ["--job_endpoint=<server>", IMAGE],
            ["--environment_type=DOCKER", "--environment_config=registry.example/phrasemill-worker:0.1.0"],
        ),
        ("PortableRunner", ["--job_endpoint=<server>", "--environment_type=DOCKER", "--environment_config=w:1"], []),
        ("PortableRunner", ["--job_endpoint=<server>", "--environment_type=LOOPBACK"], []),
        ("PrismRunner", ["--prism_location=<jar>"], ["--prism_location=<jar>", "--environment_type=LOOPBACK"]),
        (
            "FlinkRunner",
            ["--flink_job_server_jar=<jar>", "--flink_master=<server>", "--environment_config=<server>"],
            ["--flink_job_server_jar=<jar>", "--parallelism=6", "--environment_type=EXTERNAL"],
        ),
        (
            "FlinkRunner",
            ["--flink_job_server_jar=<jar>", "--flink_master=<server>", "--parallelism=2", IMAGE],
            [
                "--flink_job_server_jar=<jar>",
                "--environment_type=DOCKER",
                "--environment_config=registry.example/phrasemill-worker:0.1.0",
            ],
        ),
        (
            "DataflowRunner",
            [*GOOGLE, "--disk_size_gb=30"],
            [
                "--sdk_location=container",
                "--experiments=no_use_multiple_sdk_containers",
                "--machine_type=n2-standard-8",
            ],
        ),
        (
            "DataflowRunner",
            [*GOOGLE, "--machine_type=c3-standard-22"],
            ["--sdk_location=container", "--experiments=no_use_multiple_sdk_containers", "--disk_size_gb=50"],
        ),
    ],
)
def test_what_is_not_given_is_added(
    runner: str, arguments: list[str], added: list[str], server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "has_google_extra", lambda: True)
    monkeypatch.setattr(preflight.shutil, "which", lambda program: f"/usr/bin/{program}")
    jar = tmp_path / "job-server.jar"
    jar.touch()
    given = fill(arguments, server=server, jar=jar)
    submission = prepare(runner, given, ["gs://corpora/wiki"])
    assert submission.runner == runner
    assert submission.arguments == [
        *given,
        *fill(added, server=server, jar=jar),
        "--no_save_main_session",
        "--experiments=disable_logging_submission_environment",
    ]


def test_workers_on_this_machine_may_use_its_disk(server: str) -> None:
    arguments = [f"--job_endpoint={server}", "--environment_config=localhost:1"]
    submission = prepare("PortableRunner", arguments, ["/tmp/wiki", "/tmp/in.bz2"])
    assert submission.notices == (
        "no worker pool answers at localhost:1 from this machine; this is fine only if one does from the runner's",
    )


@pytest.mark.parametrize(
    ("image", "differences"),
    [
        ("phrasemill-worker", []),
        ("host:5000/a/phrasemill-worker:latest", []),
        ("gcr.io/p/phrasemill-worker:0.1.0-py3.11-beam2.77.0", []),
        ("gcr.io/p/phrasemill-worker:0.1.0-py3.11-beam2.77.0-benepar", []),
        ("host:5000/py3.12/worker:x", []),
        ("w:0.1.0-py3.12-beam2.77.0", ["has Python 3.12, this machine 3.11"]),
        ("w:py3.1-beam2.76.0", ["has Python 3.1, this machine 3.11", "has Beam 2.76.0, this machine 2.77.0"]),
    ],
)
def test_the_versions_in_an_images_tag(image: str, differences: list[str]) -> None:
    assert image_differences(image, Software("3.11", "2.77.0", "0")) == differences


MOUNTS = """\
21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
22 21 0:5 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
23 22 0:6 / /home/ann/local\\040disk rw - xfs /dev/sdb rw
24 21 0:7 / /mnt/bucket rw - fuse.gcsfuse corpora rw
25 21 0:8 / /tmp rw - tmpfs tmpfs rw
26 21 0:9 / /scratch rw - lustre 10.0.0.1@tcp:/scratch rw
"""


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("/var/out", False),
        ("/home", True),
        ("/home/ann/out", True),
        ("/home/ann/local disk/out", False),
        ("/homes/out", False),
        ("/mnt/bucket/out", True),
        ("/tmp/out", False),
        ("/scratch/out/../deep", True),
    ],
)
def test_shared_storage(path: str, shared: bool, tmp_path: Path) -> None:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    assert on_shared_storage(path, tmp_path / "mountinfo") is shared


def test_shared_storage_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert on_shared_storage("/anywhere", tmp_path / "none")
