"""Two runs on one output: one goes on and the other ends with one message, whatever the moment."""

from __future__ import annotations

import hashlib
import io
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from toy import Gated, word_count

from pipelines.cli import build_chain
from pipelines.corpus import ChainDataset, built
from pipelines.engine.executors import InlineExecutor
from pipelines.engine.lease import Lease
from pipelines.engine.progress import Progress
from pipelines.engine.stage import Slice
from pipelines.options import RunOptions
from schemas.errors import UserError
from schemas.manifest import is_dataset
from schemas.storage.folder import Folder

TEXTS = ("a b a", "c", "a d d", "e", "b c", "f a", "g")
OTHERS = ("other", "words")


def shards(output: Path) -> dict[str, str]:
    return {
        f"{path.relative_to(output)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.glob("*/*.parquet"))
    }


def run(chain: list[ChainDataset], **options: bool) -> None:
    chosen = RunOptions(output=str(chain[-1].folder), **options)
    build_chain(chosen, chain, InlineExecutor, Progress(io.StringIO()), resume="python -m this --resume")


def chain_of(folder: Path, names: str, gate: Path, texts: tuple[str, ...] = TEXTS) -> list[ChainDataset]:
    """A chain of datasets that wait for the gate."""
    return [built(word_count(folder / name, texts, count=Gated, gate=str(gate))) for name in names]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    (folder / "gate").touch()
    run(chain_of(folder, "x", folder / "gate"))
    return shards(folder / "x")


CASES: dict[str, tuple[str, str, dict[str, bool]]] = {
    "new": ("x", "x", {}),
    "over one that is finished": ("x", "x", {"overwrite": True}),
    "on with one that was interrupted": ("x", "x", {"resume": True}),
    "one makes only what the other needs first": ("dx", "d", {}),
    "one makes what the other needs later": ("dx", "x", {}),
}
"""The datasets of the first and the second run, their options."""


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("case", CASES)
def test_of_two_runs_one_goes_on_and_the_other_says_so(case, seed, reference, tmp_path, capsys):
    first, second, options = CASES[case]
    gate, choice = tmp_path / "gate", random.Random(f"{case} {seed}")
    if "finished" in case:
        gate.touch()
        run(chain_of(tmp_path, "x", gate, OTHERS))
        gate.unlink()
    if "interrupted" in case:
        (build,) = [each.build for each in chain_of(tmp_path, "x", gate)]
        assert build is not None
        build.begin(resume=False)
    ended: dict[str, BaseException | None] = {}
    barrier = threading.Barrier(2)

    def start(name: str, chain: list[ChainDataset], pause: float) -> None:
        barrier.wait()
        time.sleep(pause)
        try:
            run(chain, **options)
            ended[name] = None
        except BaseException as error:
            ended[name] = error

    pauses = [0.0, choice.choice([0, choice.random() / 100, choice.random() / 4])]
    choice.shuffle(pauses)
    threads = [
        threading.Thread(target=start, args=(name, chain_of(tmp_path, names, gate), pause))
        for name, names, pause in (("first", first, pauses[0]), ("second", second, pauses[1]))
    ]
    for each in threads:
        each.start()
    end = time.monotonic() + 30
    while not ended and time.monotonic() < end:
        time.sleep(0.005)
    assert len(ended) == 1  # the other waits at the gate
    gate.touch()
    for each in threads:
        each.join(30)
    (refused,) = [name for name in ended if ended[name] is not None]
    error = ended[refused]
    assert isinstance(error, UserError)
    assert "is being written by process" in str(error)
    assert "; wait for it, or end it; " in str(error)
    for name in first if refused == "second" else second:
        assert shards(tmp_path / name) == reference
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
            *("README.md", "data", "manifest.json", "report.html"),
        ]
    assert "to go on from here" not in capsys.readouterr().err  # it would destroy, or do again, what the other does


@pytest.mark.parametrize(
    ("parts", "go_on"),
    [
        ((None, None), 1),
        ((None,) * 6, 1),
        (((1, 2), (1, 2)), 1),
        (((1, 3), (2, 3), (3, 3)), 3),
        (((1, 3), (2, 3), (3, 3), (2, 3)), 3),
    ],
)
def test_runs_that_begin_at_the_same_time(parts, go_on, tmp_path):
    for turn in range(20):
        folder, barrier, over = Folder(str(tmp_path / str(turn))), threading.Barrier(len(parts)), threading.Event()
        refused: list[UserError] = []
        hold: list[str] = []

        def enter(part, barrier=barrier, folder=folder, over=over, hold=hold, refused=refused) -> None:
            lease = Lease([folder], command="", figures=dict, part=part and Slice(*part))
            barrier.wait()
            try:
                with lease:
                    hold.append(lease.run)
                    over.wait(30)
            except UserError as error:
                refused.append(error)

        threads = [threading.Thread(target=enter, args=(part,)) for part in parts]
        for each in threads:
            each.start()
        while len(hold) + len(refused) < len(parts):
            time.sleep(0.001)
        assert len(hold) == go_on
        over.set()
        for each in threads:
            each.join()


@contextmanager
def broken_after(operations: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process is killed before it changes a folder for the N-th time."""
    left = [operations]

    def breaking(method: Callable) -> Callable:
        def wrapped(*arguments: object, **named: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return method(*arguments, **named)

        return wrapped

    with monkeypatch.context() as patch:
        for name in ("write", "remove", "delete"):
            patch.setattr(Folder, name, breaking(getattr(Folder, name)))
        yield


@pytest.mark.parametrize("finished", [True, False])
def test_a_run_that_is_killed_while_it_empties_its_output(finished, reference, tmp_path, monkeypatch):
    gate = tmp_path / "gate"
    gate.touch()
    killed, operations = True, 0 if finished else 1
    while killed:
        output = tmp_path / str(operations) / "x"
        run(chain_of(output.parent, "x", gate, OTHERS))
        before = shards(output)
        if not finished:
            (output / "manifest.json").unlink()
            other = word_count(output, OTHERS)
            other._write_state(other.fingerprint)
            other.output.write("_work/count/done/000000.json", b"{}")
        with broken_after(operations, monkeypatch), suppress(KeyboardInterrupt):
            word_count(output, TEXTS).begin(resume=False)
            killed = False
        if is_dataset(Folder(str(output))):
            assert shards(output) == before
        else:
            run(chain_of(output.parent, "x", gate), resume=True)
            assert shards(output) == reference
        operations += 1
    assert operations > 6
