"""Code shared by the benchmarks: arguments, separate processes, time and memory, larger dumps, builds, tables.

It imports neither Beam nor a parser, so that the memory of a measured process is that of the measured code.
"""

from __future__ import annotations

import argparse
import bz2
import json
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import BrokenBarrierError
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psutil
import xxhash
from pyarrow import fs

from schemas.manifest import read_manifest
from schemas.process import silence
from schemas.storage.folder import Folder
from transforms.sources.formats import InputFile, Segment
from transforms.sources.items import Document
from transforms.sources.options import ReadOptions
from transforms.sources.wikipedia import WIKIPEDIA_XML

if TYPE_CHECKING:
    from pipelines.engine.dataset_build import DatasetBuild
    from pipelines.engine.stage import Completion

T = TypeVar("T")


# ---- Arguments and figures


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A benchmark's argument parser: its docstring is the help, `--json` takes a file for the figures."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def write(path: Path | None, figures: object) -> None:
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table; the first column is text, floats have two decimals."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(_shown, row))
    Console(width=max(130, Console().width)).print(table, markup=False)


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


# ---- Time and memory


class Moment(NamedTuple):
    """`memory`: bytes of all processes; `note`: the result of the function given to the meter."""

    seconds: float
    memory: int
    note: str


class Meter:
    """`with Meter() as meter: ...`: time and memory of this process and all processes that it starts.

    Memory is the sum of the processes' resident memory; shared pages count in each.
    """

    def __init__(self, interval: float = 0.25, note: Callable[[], str] = str) -> None:
        self.moments: list[Moment] = []
        self.seconds = self.cpu_seconds = 0.0
        self._interval, self._note = interval, note
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def peak(self) -> int:
        """The peak, in bytes."""
        return max(each.memory for each in self.moments)

    @property
    def added(self) -> int:
        """The peak, in bytes, without the memory of this process at the beginning."""
        return self.peak - self.moments[0].memory

    def _watch(self) -> None:
        while not self._stop.wait(self._interval):
            self._take()

    def _take(self) -> None:
        memory = 0
        for process in _tree():
            with suppress(psutil.Error):
                memory += process.memory_info().rss
        self.moments.append(Moment(time.monotonic() - self._began, memory, self._note()))

    def __enter__(self) -> Meter:
        self._began, self._cpu = time.monotonic(), _cpu_seconds()
        self._take()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds, self.cpu_seconds = time.monotonic() - self._began, _cpu_seconds() - self._cpu
        self._stop.set()
        self._thread.join()
        self._take()


def _tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def _cpu_seconds() -> float:
    """The CPU seconds of this process and of those that it started, ended or alive."""
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    total = sum(each.ru_utime + each.ru_stime for each in own)
    for process in _tree()[1:]:
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


# ---- Processes


_barrier: Barrier


def apart(*works: Callable[[], T]) -> list[T]:
    """The results of functions, each called in a new process, all at the same time."""
    context = get_context("spawn")
    with ProcessPoolExecutor(len(works), context, _begin, (context.Barrier(len(works)),)) as executor:
        futures: list[Future[T]] = [executor.submit(_do, work) for work in works]
    # If one fails, the others wait for it in vain.
    errors = [error for future in futures if (error := future.exception())]
    for error in sorted(errors, key=lambda each: isinstance(each, BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]


def meet() -> None:
    """In a function of `apart`: wait until all functions have called this."""
    _barrier.wait()


def _begin(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _do(work: Callable[[], T]) -> T:
    try:
        return work()
    except BaseException:
        _barrier.abort()
        raise


def run(*command: str) -> str:
    """Run Python with these arguments; returns its output. SystemExit if it fails."""
    ended = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout[-4000:]}")
    return ended.stdout


# ---- Dumps


def documents(path: Path) -> Iterator[Document]:
    """The documents of a dump, by our reader, with all their sections."""
    file = InputFile(str(path), path.name, path.stat().st_size)
    options = ReadOptions(link_sections="keep")
    for item in WIKIPEDIA_XML.read(fs.LocalFileSystem(), file, Segment(0, file.size), options=options):
        if isinstance(item, Document):
            yield item


def xml_of(dump: Path) -> str:
    data = dump.read_bytes()
    return (bz2.decompress(data) if dump.suffix == ".bz2" else data).decode()


_TEXT = re.compile(r"(<text[^>]*>)(.*?)(</text>)", re.DOTALL)
_WORD = re.compile(r"\b[a-z]{5,}\b")
_PAGE_ID = re.compile(r"(<page>.*?<id>)(\d+)(</id>)", re.DOTALL)
_IDS_A_COPY = 10**8


def varied(dump: str, copies: int) -> Iterator[str]:
    """The head of a dump, copies of its pages with other ids and a quarter of the words replaced, and its foot."""
    head, first, rest = dump.partition("  <page>")
    pages, last, _ = (first + rest).rpartition("</mediawiki>")
    words = sorted({word for text in _TEXT.finditer(pages) for word in _WORD.findall(text[2])})
    yield head
    for copy in range(copies):

        def exchanged(match: re.Match[str], copy: int = copy) -> str:
            place = xxhash.xxh3_64_intdigest(match[0].encode(), seed=copy)
            return words[place % len(words)] if copy and place >> 62 == 0 else match[0]

        def text(match: re.Match[str]) -> str:
            return match[1] + _WORD.sub(exchanged, match[2]) + match[3]

        def shifted(match: re.Match[str], copy: int = copy) -> str:
            return f"{match[1]}{int(match[2]) + copy * _IDS_A_COPY}{match[3]}"

        yield _PAGE_ID.sub(shifted, _TEXT.sub(text, pages))
    yield last


# ---- Datasets


def build(builds: Sequence[DatasetBuild], workers: int) -> tuple[Meter, dict[str, float]]:
    """Build datasets; returns the meter, and for each stage the seconds from its first unit's start to the last end."""
    from pipelines.engine.driver import run
    from pipelines.engine.executors import PoolExecutor
    from pipelines.engine.progress import Progress

    silence()
    for each in builds:
        each.begin(resume=False)
    with Meter() as meter:
        run(builds, PoolExecutor(workers), progress=Progress())
    seconds: dict[str, float] = {}
    for each in builds:
        seconds.update(read_manifest(each.output).run["wall_seconds"])
    return meter, seconds


def build_here(build: DatasetBuild) -> Iterator[tuple[str, list[Completion]]]:
    """Build a dataset in this process; yields the name and the completion records of each stage when it is done."""
    from pipelines.engine.stage import close_stage, open_stage
    from pipelines.engine.task_writer import do_unit

    build.begin(resume=False)
    for stage in build.stages:
        for unit in open_stage(build.work, stage):
            do_unit(build.work, stage, unit)
        yield stage.name, close_stage(build.work, stage)
    build.finish()


def published(output: Path | str, suffixes: Sequence[str]) -> dict[str, str]:
    """The sha256 of every published file of the datasets at `output` + suffix, and their fingerprints."""
    found = {}
    for suffix in suffixes:
        folder = Folder(f"{output}{suffix}")
        manifest = read_manifest(folder)
        found[f"{suffix}/fingerprint"] = manifest.fingerprint
        for shards in (*manifest.splits.values(), *manifest.sides.values()):
            found.update({f"{suffix}/{shard.path}": folder.sha256(shard.path) for shard in shards})
    return found


def twice(what: str, found: Sequence[Mapping[str, Any]]) -> str:
    """How time and memory grow with `what`, from the figures for half of it and for all of it."""
    half, whole = found
    grown = [whole[name] / half[name] for name in ("seconds", "peak_memory_bytes")]
    return f"twice the {what}: {grown[0]:.2f} times the time, {grown[1]:.2f} times the peak memory"
