"""The worker image, built from Debian's packages, PyPI's and Go's, and run as a worker pool of Prism."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jobs
import psutil
import pytest
from images import Image, built_image, versions
from prism import prism
from stores import reached, versitygw

from pipelines.engine.worker_checks import software

pytestmark = pytest.mark.heavy

Direct = tuple[Path, dict[str, dict[str, bytes]]]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return built_image(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A folder that containers can be given; the tests' own may be in /dev/shm, of which they see this machine's."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def direct(disk: Path) -> Direct:
    """A folder of books, and the shards that the job makes of it without a cluster, by dataset."""
    (disk / "books").mkdir()
    for name, text in jobs.chapters().items():
        (disk / "books" / name).write_bytes(text)
    done = jobs.mine(str(disk / "books"), str(disk / "direct"))
    assert done.returncode == 0, done.stderr
    return disk / "books", {each: jobs.shards(jobs.files(Path(f"{disk}/direct{each}"))) for each in jobs.DATASETS}


def test_labels_tell_what_is_inside(image: Image) -> None:
    config, wanted = image.config(), versions()
    labels = config["Labels"]
    told = {name: labels[f"phrasemill.{name}"] for name in ("version", "python", "beam", "extras")}
    assert told == {"version": wanted.phrasemill, "python": wanted.python, "beam": wanted.beam, "extras": ""}
    assert labels["org.opencontainers.image.version"] == wanted.phrasemill
    assert config["Entrypoint"] == ["/opt/apache/beam/boot"]

    found = image.run(
        "python", "-c", "from pipelines.engine.worker_checks import *; import json; print(json.dumps(software()))"
    )
    here = software()
    assert json.loads(found) == [wanted.python, wanted.beam, here.code]


def test_nothing_of_the_builder_is_left(image: Image) -> None:
    script = (
        "ls -A /run/secrets /source /pip /code /root/.cache /etc/pip.conf 2>/dev/null; command -v gcc make git; id -u"
    )
    output = image.run("sh", "-c", script)
    # Empty folders, at most, and the user.
    assert [line for line in output.splitlines() if line and not line.endswith(":")] == ["10001"]


def test_any_user_can_run_it(image: Image) -> None:
    """boot writes into the current folder, and workers into their temporary one."""
    image.run(
        "sh", "-c", 'touch pipeline_options.json && touch /tmp/staged && test "$(id -u)" = 4711', user="4711:4711"
    )
    assert "denied" in image.run("sh", "-c", "touch /opt/phrasemill/x 2>&1 || true")


def test_job_on_local_disk(image: Image, direct: Direct, disk: Path, tmp_path: Path) -> None:
    books, wanted = direct
    python = image.run("python", "-c", "import platform; print(platform.python_version())").strip()
    out = disk / "out"
    out.mkdir()
    out.chmod(0o777)
    with (
        image.worker_pool(tmp_path / "pool.log", folders=[out, books]) as (pool, process),
        prism(tmp_path) as endpoint,
    ):
        users = {child.uids().real for child in _inside(process)}
        # This process and the workers are different users, who write into the same folders.
        command = jobs.command(str(books), str(out / "contexts"), *_on(endpoint, pool))
        done = subprocess.run(command, cwd=jobs.ROOT, capture_output=True, text=True, timeout=600, umask=0)
        assert done.returncode == 0, done.stderr
    assert users == {10001}
    for each in jobs.DATASETS:
        found = jobs.files(Path(f"{out}/contexts{each}"))
        assert jobs.shards(found) == wanted[each], each
        assert json.loads(found["manifest.json"])["versions"]["python"] == python  # it was done in there


def test_job_on_s3(image: Image, direct: Direct, tmp_path: Path) -> None:
    books, wanted = direct
    with versitygw(tmp_path) as store, reached(store):
        for path in books.iterdir():
            store.folder("books").write(path.name, path.read_bytes())
        with (
            image.worker_pool(tmp_path / "pool.log", environment=store.environment) as (pool, _),
            prism(tmp_path) as endpoint,
        ):
            done = jobs.mine(store.address("books"), store.address("out"), *_on(endpoint, pool))
            assert done.returncode == 0, done.stderr
        for each in jobs.DATASETS:
            assert jobs.shards(store.objects(f"out{each}")) == wanted[each], each


def test_pool_ends_with_its_container(image: Image, tmp_path: Path) -> None:
    with image.worker_pool(tmp_path / "pool.log") as (_, process):
        inside = _inside(process)
        assert inside
    _, alive = psutil.wait_procs(inside, timeout=30)
    assert alive == []


def _on(endpoint: str, pool: str) -> list[str]:
    return [
        "--runner=PortableRunner",
        f"--job_endpoint={endpoint}",
        "--environment_type=EXTERNAL",
        f"--environment_config={pool}",
    ]


def _inside(process: int) -> list[psutil.Process]:
    """The processes in the container of a `buildah run`."""
    return [each for each in psutil.Process(process).children(recursive=True) if each.uids().real]
