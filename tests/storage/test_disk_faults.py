"""Full and read-only disks, files in the way, output that is deleted, damaged files of a run."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jobs
import pytest
from toy import word_count

from pipelines.engine import stage as stages
from pipelines.engine.driver import run
from pipelines.engine.executors import PoolExecutor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from schemas.errors import UserError
from schemas.storage.errors import PassingError, StorageError, storage_error
from schemas.storage.folder import AtomicFile, Folder

TEXTS = tuple(
    " ".join(hashlib.sha256(f"{line} {word}".encode()).hexdigest() for word in range(100)) for line in range(20)
)
"""Words that do not compress: each unit writes about 7 KB."""


def run_words(output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Do a run in this process."""
    build = word_count(output, TEXTS)
    if build.check(resume=resume, overwrite=overwrite, reuse=False):
        build.begin(resume=resume)
        for stage in build.stages:
            for unit in open_stage(build.work, stage):
                do_unit(build.work, stage, unit)
            close_stage(build.work, stage)
        build.finish()


def hashes(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in jobs.shards(jobs.files(folder)).items()}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("words") / "words"
    run_words(folder)
    return hashes(folder)


# ---- Errors of the system, and ours for them


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/d/x"), "/d/x: no space is left on its disk; free"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "/d/x"), "/d/x: the quota of disk space is used up; free some"),
        (OSError(errno.EROFS, "Read-only file system", "/d/x"), "/d/x: its file system can only be read; choose"),
        (PermissionError(errno.EACCES, "Permission denied", "/d/x"), "/d/x: permission denied; check the"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory", "/d/x"), "/d/x: a file is where a folder should be; "),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/d/x"), "/d/x: a folder is where a file should be; "),
        (OSError(errno.ENAMETOOLONG, "File name too long", "/d/x"), "/d/x: the name is too long for its file system"),
        (OSError(errno.EMFILE, "Too many open files", "/d/x"), "/d/x: too many files are open; raise the"),
        (OSError(errno.EACCES, "Failed to open local file '/d/x'. Detail: [errno 13]"), "/d/x: permission denied"),
        (OSError("When x: AWS Error ACCESS_DENIED during PutObject: no"), "storage: access denied; check"),
        (OSError("When x: AWS Error NO_SUCH_BUCKET during y"), "storage: the bucket does not exist; make it, or add"),
        (OSError("AWS Error UNKNOWN (HTTP status 403) during HeadObject"), "storage: access denied; check"),
        (OSError("google::cloud::Status(PERMISSION_DENIED: no)"), "storage: access denied; check"),
    ],
)  # fmt: skip
def test_refusals_are_told_with_a_remedy(error: OSError, message: str) -> None:
    told = storage_error(error)
    assert isinstance(told, UserError)
    assert str(told).startswith(message)
    assert str(storage_error(error, "out/x")).startswith("out/x: ")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError("AWS Error NETWORK_CONNECTION during y: curlCode: 7"),
            "s3://b/x: failed (AWS Error NETWORK_CONNECTION",
        ),
        (PassingError("s3://b/x: it failed"), "s3://b/x: it failed; when the cause is mended, go on with --resume"),
        (OSError(errno.EIO, "Input/output error", "/d/x"), "s3://b/x: failed ([Errno 5] Input/output error"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/d/x"), "s3://b/x: is gone; bring it back and go on with"),
    ],
)
def test_what_may_pass_is_told_only_in_the_end(error: OSError, message: str) -> None:
    assert storage_error(error, "s3://b/x") is None
    assert str(storage_error(error, "s3://b/x", final=True)).startswith(message)


# ---- Folders


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Without write access to a folder. Root may write anywhere, so it becomes another user meanwhile."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    root = os.geteuid() == 0
    for each in (folder, *folder.parents):
        if root and not each.stat().st_mode & stat.S_IXOTH:
            each.chmod(each.stat().st_mode | stat.S_IXOTH)
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(mode)


def test_no_permission(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    with (
        as_nobody(folder),
        pytest.raises(StorageError, match=f"{folder}/x: permission denied; check the access rights"),
    ):
        Folder(str(folder)).write("x", b"1")
    with as_nobody(folder), pytest.raises(StorageError, match=f"{folder}/a/x: permission denied"):
        Folder(str(folder)).write("a/x", b"1")
    assert not list(folder.iterdir())


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    folder = Folder(str(tmp_path / "out"))
    says = "out: a file is where a folder should be; move it away, or choose another --output"
    with pytest.raises(StorageError, match=says):
        folder.entries()
    for name in ("x", "a/x"):
        with pytest.raises(StorageError, match="a file is where a folder should be"):
            folder.write(name, b"1")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="folder: a folder is where a file should be"):
        Folder(str(tmp_path)).write("folder", b"1")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "out"]


def test_a_file_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut leaves the whole file or none: its bytes are synced first, then its name, then the folder."""
    happened: list[str] = []

    def noted(name: str, call: Callable[..., None]) -> Callable[..., None]:
        return lambda *arguments: happened.append(name) or call(*arguments)

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    Folder(str(tmp_path)).write("x", b"1")
    assert happened == ["fsync", "replace", "fsync"]


@pytest.mark.parametrize("step", [1000, 1 << 16, 1 << 22])
def test_a_full_disk_leaves_no_half_file(tmpfs: Path, step: int) -> None:
    folder = Folder(str(tmpfs))
    folder.write("before", b"kept")

    def fill() -> None:
        with AtomicFile(folder, "data/x") as file:
            for _ in range(0, 4 << 20, step):
                file.write(bytes(step))

    with pytest.raises(StorageError, match=f"{tmpfs}/data/x: no space is left on its disk; free some, then go on"):
        fill()
    assert folder.files(recursive=True) == ["before"]
    folder.write("after", bytes(1 << 19))


# ---- Runs


@pytest.mark.parametrize("room", ["40k", "200k", "280k", "340k", "400k", "460k", "500k"])
def test_a_run_on_a_full_disk_goes_on_after_space_was_freed(tmpfs: Path, words: dict[str, str], room: str) -> None:
    """The run needs about 540 KB. It stops where the disk is full."""
    output = tmpfs / "words"
    subprocess.run(["mount", "-o", f"remount,size={room}", str(tmpfs)], check=True)
    with pytest.raises(
        UserError, match=r"/words/.*: no space is left on its disk; free some, then go on with --resume"
    ):
        run_words(output)
    assert not (output / "manifest.json").exists()
    for path in output.rglob("*.json"):
        json.loads(path.read_text())
    subprocess.run(["mount", "-o", "remount,size=8m", str(tmpfs)], check=True)
    run_words(output, resume=True)
    assert hashes(output) == words
    assert not (output / "_work").exists()


def test_a_full_disk_ends_the_workers(tmpfs: Path, words: dict[str, str]) -> None:
    build = word_count(tmpfs / "words", TEXTS)
    build.begin(resume=False)
    subprocess.run(["mount", "-o", "remount,size=340k", str(tmpfs)], check=True)
    with pytest.raises(
        UserError, match=r"/words/.*: no space is left on its disk; free some, then go on with --resume"
    ):
        run([build], PoolExecutor(2), progress=Progress(io.StringIO()))
    subprocess.run(["mount", "-o", "remount,size=8m", str(tmpfs)], check=True)
    run_words(tmpfs / "words", resume=True)
    assert hashes(tmpfs / "words") == words


def test_the_main_job_on_a_full_disk(tmpfs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for name, text in jobs.chapters().items():
        (tmp_path / "in" / name).write_bytes(text)
    subprocess.run(["mount", "-o", "remount,size=160k", str(tmpfs)], check=True)
    assert jobs.mine_here(str(tmp_path / "in"), str(tmpfs / "c")) == 2
    failed = capsys.readouterr().err
    assert "Traceback" not in failed
    assert failed.splitlines()[-1].startswith(f"error: {tmpfs}/c")
    assert "no space is left on its disk; free some, then go on with --resume" in failed
    subprocess.run(["mount", "-o", "remount,size=8m", str(tmpfs)], check=True)
    assert jobs.mine_here(str(tmp_path / "in"), str(tmpfs / "c"), "--resume") == 0
    assert jobs.mine_here(str(tmp_path / "in"), str(tmp_path / "out" / "c")) == 0
    assert hashes(tmpfs) == hashes(tmp_path / "out")


def test_a_read_only_output(tmpfs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    assert jobs.mine_here(__file__, str(tmpfs / "c"), "--input-format", "text") == 2
    failed = capsys.readouterr().err
    assert failed.startswith(f"error: {tmpfs}/c: its file system can only be read; choose")
    assert "Traceback" not in failed


def test_an_output_deleted_under_the_run(tmp_path: Path) -> None:
    output = tmp_path / "words"
    build = word_count(output, TEXTS)
    build.begin(resume=False)
    first = build.stages[0]
    for unit in open_stage(build.work, first):
        do_unit(build.work, first, unit)
    shutil.rmtree(output)
    with pytest.raises(UserError, match=r"was deleted during the run; start again with --overwrite"):
        close_stage(build.work, first)
    run_words(output, resume=True)


# ---- Damage in `_work`, and --resume


def cut(path: Path) -> None:
    """Half of a file, as after a power cut."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("damaged", "how"),
    [
        ("done/000003.json", cut),
        ("done/000003.json", empty),
        ("done/*.json", empty),
        ("files/000003.*.parquet", cut),
        ("files/000003.*.parquet", Path.unlink),
        ("done/000003.json", Path.unlink),
    ],
)
def test_units_with_damaged_records_or_files_are_done_again(
    tmp_path: Path, words: dict[str, str], damaged: str, how: Callable[[Path], None]
) -> None:
    output = tmp_path / "words"
    build = word_count(output, TEXTS)
    build.begin(resume=False)
    for unit in range(len(open_stage(build.work, build.stages[0]))):
        do_unit(build.work, build.stages[0], unit)
    found = list((output / "_work/count").glob(damaged))
    assert found
    for path in found:
        how(path)
    run_words(output, resume=True)
    assert hashes(output) == words
    assert not (output / "_work").exists()


@pytest.mark.parametrize("how", [cut, empty])
@pytest.mark.parametrize(
    ("name", "says", "then"),
    [
        ("build.json", "was cut short or changed .*; start again with --overwrite", "overwrite"),
        ("count/plan.json", "was cut short or changed .*; delete this file and go on with --resume", "delete"),
        ("count/completions.json", "was cut short or changed .*; delete this file and go on with --resume", "delete"),
    ],
)
def test_damaged_files_of_a_run_are_told(
    tmp_path: Path, words: dict[str, str], name: str, says: str, then: str, how: Callable[[Path], None]
) -> None:
    output = tmp_path / "words"
    build = word_count(output, TEXTS)
    build.begin(resume=False)
    first = build.stages[0]
    for unit in open_stage(build.work, first):
        do_unit(build.work, first, unit)
    close_stage(build.work, first)
    how(output / "_work" / name)
    stages._plan.cache_clear()  # as in another process
    with pytest.raises(UserError, match=f"_work/{name}: {says}"):
        run_words(output, resume=True)
    if then == "delete":
        (output / "_work" / name).unlink()
    run_words(output, resume=then == "delete", overwrite=then == "overwrite")
    assert hashes(output) == words


def test_a_folder_that_is_made_while_it_is_listed(tmp_path: Path) -> None:
    """Arrow looks for a missing folder twice; about two of a thousand times it is made in between."""
    for number in range(2000):
        folder = tmp_path / str(number)
        maker = threading.Thread(target=folder.mkdir)
        maker.start()
        assert Folder(str(folder)).entries() == []
        maker.join()
