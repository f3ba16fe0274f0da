"""Folders and the main job on object stores, against real servers on loopback."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import signal
import subprocess
import sys

import boto3
import jobs
import pytest
from stores import BUCKET, Store, assert_hidden

from schemas import check
from schemas.storage.errors import StorageError
from schemas.storage.folder import AtomicFile, Folder
from transforms.sources.inputs import InputError, RawFiles, resolve_inputs

LARGE = bytes(range(256)) * 4096 * 12  # 12 MiB: an upload of two parts, from a temporary file


def pending(store: Store, path: str) -> list[str]:
    """Uploads below a path that were begun and neither finished nor aborted."""
    if store.scheme != "s3":
        return []
    client = boto3.client("s3", endpoint_url=f"http://{store.endpoint}")
    return [each["Key"] for each in client.list_multipart_uploads(Bucket=BUCKET, Prefix=path).get("Uploads", [])]


@pytest.fixture(autouse=True)
def little_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schemas.storage.folder._IN_MEMORY", 8 << 20)


@pytest.mark.parametrize("data", [b"", b"x", LARGE], ids=["empty", "small", "large"])
def test_a_file_is_read_as_it_was_written(store: Store, data: bytes) -> None:
    folder = store.folder("files/sub folder")
    with AtomicFile(folder, "deep/one.bin") as file:
        for start in range(0, len(data), 1 << 20):
            file.write(data[start : start + (1 << 20)])
    assert (file.bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert folder.read("deep/one.bin") == data
    assert folder.sha256("deep/one.bin") == file.sha256
    assert folder.sizes(recursive=True) == {"deep/one.bin": len(data)}
    folder.move("deep/one.bin", "two.bin")
    assert folder.files(recursive=True) == ["two.bin"]
    assert folder.read("two.bin") == data
    folder.delete()
    assert not folder.exists("two.bin")
    assert folder.entries() == []


def test_folders(store: Store) -> None:
    folder = store.folder("folders/a")
    assert not folder.exists()
    assert folder.entries() == []
    assert folder.files("done") == []
    folder.delete("nothing")
    folder.remove("nothing")
    for name in ("plan.json", "done/1.json", "done/2.json", "files/x"):
        folder.write(name, name.encode())
    folder.write("plan.json", b"again")
    folder.beside("-b").write("other", b"")
    assert folder.exists()
    assert folder.exists("done")
    assert folder.files() == ["plan.json"]
    assert folder.entries() == ["done", "files", "plan.json"]
    assert folder.files("done") == ["done/1.json", "done/2.json"]
    assert folder.read_all(folder.files("done")) == [b"done/1.json", b"done/2.json"]
    folder.remove("done/1.json")
    folder.delete("files")
    assert folder.files(recursive=True) == ["done/2.json", "plan.json"]
    assert folder.read("plan.json") == b"again"
    for name in ("done/deep/1", "done/deep/deeper/2", "done/3"):
        folder.write(name, b"")
    folder.move("done/deep/1", "done/deeper still/1")  # leaves an empty object for the folder
    folder.remove("done/3")
    folder.delete("done")
    assert folder.files(recursive=True) == ["plan.json"]
    assert folder.beside("-b").files() == ["other"]
    with pytest.raises(FileNotFoundError):
        folder.read("nothing")


@pytest.mark.parametrize("data", [b"x" * 100, LARGE], ids=["small", "large"])
def test_what_is_given_up_leaves_nothing(store: Store, data: bytes) -> None:
    folder = store.folder("aborted")
    with contextlib.suppress(ZeroDivisionError), AtomicFile(folder, "file") as file:
        file.write(data)
        raise ZeroDivisionError
    del file
    assert folder.files(recursive=True) == []
    assert pending(store, "aborted/") == []


def test_an_upload_cut_by_kill_leaves_no_file(store: Store) -> None:
    code = f"""
import os, pyarrow
from schemas.storage.folder import AtomicFile, Folder
file = AtomicFile(Folder({store.address("killed")!r}), "file")
for _ in range(24):
    file.write(bytes(1 << 20))
read, left = file._stream.read, [20]
def dying(size):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), 9)
    return read(size)
file._stream.read = dying
file.commit()
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=jobs.ROOT, capture_output=True, timeout=60)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert store.folder("killed").files() == []


def test_the_endpoint_in_the_address(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "CLOUD_STORAGE_EMULATOR_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    access = "anonymous@" if store.scheme == "gs" else ""
    folder = Folder(f"{store.scheme}://{access}{BUCKET}/queried/?{store.query}") / "out"
    folder.beside("-documents").write("data/x", b"1")
    assert store.objects("queried") == {"out-documents/data/x": b"1"}
    assert str(folder / "data") == f"{store.scheme}://{access}{BUCKET}/queried/out/data?{store.query}"
    assert folder.name == "out"


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("raw", ["a.txt", "b.txt", "deep/c d.txt"]),
        ("raw/", ["a.txt", "b.txt", "deep/c d.txt"]),
        ("raw/a.txt", ["a.txt"]),
        ("raw/*.txt", ["a.txt", "b.txt"]),
        ("raw/?.txt", ["a.txt", "b.txt"]),
        ("raw/**/[c]*.txt", ["deep/c d.txt"]),
        ("raw/deep/c%20d.txt", ["c d.txt"]),
    ],
)
@pytest.mark.parametrize("queried", [False, True])
def test_inputs(store: Store, given: str, names: list[str], queried: bool) -> None:
    raw = store.folder("raw")
    for name in ("a.txt", "b.txt", "deep/c%20d.txt"):
        raw.write(name, f"It is a text of {name}, and a book.\n".encode()) if "%" not in name else (
            store.folder("raw/deep").write("c d.txt", b"It is a third text, and a book.\n")
        )
    query = f"?{store.query}" if queried else ""
    found = resolve_inputs([store.address(given) + query], input_format="text")
    assert isinstance(found, RawFiles)
    assert [each.file.name for each in found.inputs] == names
    path = found.inputs[-1].file.path.removeprefix(f"{BUCKET}/")
    assert found.inputs[-1].address == store.address(path.replace(" ", "%20")) + query


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("raw/nothing", "does not exist: no 'nothing' in 'corpora/raw'"),
        ("raw/nothing*.txt", "matches no file"),
    ],
)
def test_inputs_that_are_missing(store: Store, given: str, says: str) -> None:
    store.folder("raw").write("a.txt", b"It is a text.\n")
    with pytest.raises(InputError, match=f"^'{re.escape(store.address(given))}' {re.escape(says)}"):
        resolve_inputs([store.address(given)])


def test_no_such_bucket(store: Store) -> None:
    folder = Folder(store.address("out").replace(BUCKET, "nobucket-here"))
    assert not folder.exists()
    with pytest.raises(StorageError, match=f"{folder}/x: the bucket does not exist; make it"):
        folder.write("x", b"1")
    if store.scheme == "s3":
        made = Folder(f"s3://newbucket/out?allow_bucket_creation=true&{store.query}")
        made.write("x", b"1")
        assert made.read("x") == b"1"


# ---- The main job


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the four datasets, made on the local disk."""
    scratch = tmp_path_factory.mktemp("local")
    (scratch / "in").mkdir()
    for name, text in jobs.chapters().items():
        (scratch / "in" / name).write_bytes(text)
    assert jobs.mine_here(str(scratch / "in"), str(scratch / "out" / "c")) == 0
    return jobs.files(scratch / "out")


@pytest.fixture(scope="module")
def uploaded(store: Store) -> str:
    for name, text in jobs.chapters().items():
        store.folder("in").write(name, text)
    return store.address("in")


def test_the_same_bytes_as_on_a_disk(
    store: Store, uploaded: str, local: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs.mine_here(uploaded, store.address("out/c")) == 0
    found = store.objects("out")
    assert found.keys() == local.keys()
    assert jobs.shards(found) == jobs.shards(local)
    assert_hidden(*capsys.readouterr(), *found.values())
    for name in (f"c{each}/manifest.json" for each in jobs.DATASETS):
        here, there = json.loads(found[name]), json.loads(local[name])
        assert {**here, "run": None} == {**there, "run": None}
    assert pending(store, "out/") == []
    assert check.main([store.address(f"out/c{each}") for each in jobs.DATASETS]) == 0
    assert f"offsets agree with {store.address('out/c-documents')}" in capsys.readouterr().out


@pytest.mark.heavy
def test_resume_after_a_kill(
    store: Store, uploaded: str, local: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    output = store.address("resumed/c")
    sentences = store.folder("resumed/c-sentences/_work/parse")
    printed = jobs.kill(jobs.command(uploaded, output, "--workers", "1"), when=lambda: sentences.files("done"))
    assert_hidden(printed, *store.objects("resumed").values())
    done = sentences.files("done")
    assert 1 <= len(done) < 3
    assert jobs.mine_here(uploaded, output, "--resume") == 0
    resumed = capsys.readouterr()
    assert "c-documents: is there already and fits" in resumed.out
    assert f"parse: 3 units ({len(done)} done before)" in resumed.err
    assert jobs.shards(store.objects("resumed")) == jobs.shards(local)
    assert store.objects("resumed").keys() == local.keys()
