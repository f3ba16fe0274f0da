"""A toy pipeline with the real engine: it counts words by an exchange. Words of the input can make it fail."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.exchange import key_columns, read_sorted, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from schemas.errors import UserError
from schemas.kind import Kind
from schemas.kinds.documents import REDIRECTS
from schemas.manifest import Input
from schemas.shown import plain_row
from schemas.storage.folder import Folder
from transforms.arrays import run_starts

COUNTS = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), ("word", pa.string()), ("count", pa.int64())])


WORDS = Kind(
    schema=REDIRECTS,
    rows="words",
    about="Words with their totals.",
    command="toy",
    show=lambda row, options: plain_row(row, ("title", "target_title")),
)


class Text(NamedTuple):
    words: str


class Range(NamedTuple):
    index: int


@dataclass(frozen=True)
class CountWords(Stage):
    """Unit: a line of words. Writes (key, word, count) by range of key."""

    name: ClassVar[str] = "count"
    counts: ClassVar[str] = "words"
    Unit: ClassVar[type] = Text

    texts: tuple[str, ...]
    ranges: int = 3
    fail_once: str = location(default="")
    die_once: str = location(default="")
    fail_always: bool = location(default=False)

    def plan(self, work: Work) -> list[Text]:
        return [Text(text) for text in self.texts]

    def process(self, unit: Text, write: TaskWriter) -> None:
        words = unit.words.split()
        counts: dict[str, int] = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        digests = [xxhash.xxh3_128_intdigest(word.encode()) for word in counts]
        table = pa.table(
            {
                "key_hi": [each >> 64 for each in digests],
                "key_lo": [each & (2**64 - 1) for each in digests],
                "word": list(counts),
                "count": list(counts.values()),
            },
            schema=COUNTS,
        )
        write_ranges(write, "counts", table, ranges=self.ranges)
        write.ledger.read += len(words)
        write.ledger.written += len(words)
        write.counters["tokens"] += len(words)
        if self.die_once and not (mark := Path(self.die_once)).exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fail_always:
            raise ValueError("it always fails")
        if self.fail_once and not (mark := Path(self.fail_once)).exists():
            mark.touch()
            raise ValueError("it fails once")


@dataclass(frozen=True)
class Gated(CountWords):
    """Does no unit until the file `gate` exists. Who waits for it makes a file of that name and its process."""

    gate: str = location(default="")

    def process(self, unit: Text, write: TaskWriter) -> None:
        Path(f"{self.gate}.{os.getpid()}").touch()
        while not Path(self.gate).exists():
            time.sleep(0.01)
        super().process(unit, write)


@dataclass(frozen=True)
class AddUp(Stage):
    """Unit: a range of keys. Writes the words of the range with their totals, as Redirect records (word -> total)."""

    name: ClassVar[str] = "add"
    counts: ClassVar[str] = "distinct words"
    Unit: ClassVar[type] = Range

    ranges: int = 3

    def plan(self, work: Work) -> list[Range]:
        return [Range(index) for index in range(self.ranges)]

    def process(self, unit: Range, write: TaskWriter) -> None:
        table = read_sorted(write.work.folder, write.work.files("count", "counts"), unit.index, COUNTS)
        starts = run_starts(*key_columns(table))
        words = table.column("word").take(pa.array(starts)).to_pylist()
        counts = table.column("count").to_numpy()
        totals = np.add.reduceat(counts, starts).tolist() if len(starts) else []
        rows = [
            {"source": "toy", "title": word, "target_title": str(total), "section": ""}
            for word, total in zip(words, totals, strict=True)
        ]
        write.table("train", pa.Table.from_pylist(rows, schema=REDIRECTS))
        write.ledger.read += len(rows)
        write.ledger.written += len(rows)


def word_count(
    output: Path, texts: tuple[str, ...], *, ranges: int = 3, count: type[CountWords] = CountWords, **options: object
) -> DatasetBuild:
    stages = (count(texts=texts, ranges=ranges, **options), AddUp(ranges=ranges))  # type: ignore[arg-type]
    return DatasetBuild(
        output=Folder(str(output)),
        kind=WORDS,
        stages=stages,
        inputs=(Input("file", "toy", "toy", "0" * 64),),
        options={"ranges": ranges},
        seed=0,
    )


@dataclass(frozen=True)
class PoisonedWords(Stage):
    """Unit: a line of words, written as they are. BAD is a reject; other words in capitals make the worker fail."""

    name: ClassVar[str] = "words"
    counts: ClassVar[str] = "words"
    isolates: ClassVar[bool] = True
    Unit: ClassVar[type] = Text

    texts: tuple[str, ...]

    def plan(self, work: Work) -> list[Text]:
        return [Text(text) for text in self.texts]

    def process(self, unit: Text, write: TaskWriter) -> None:
        rows = []
        for number, word in enumerate(unit.words.split()):
            fault = None
            if write.isolation:
                fault = write.isolation.faults.get(number)
                if fault is None:
                    write.isolation.at(number)
            write.ledger.read += 1
            if fault or word == "BAD":
                write.reject(fault.reason if fault else "bad_record", source="toy", position=f"word {number}")
            else:
                if not _poison(word):
                    rows.append({"source": "toy", "title": word, "target_title": "", "section": ""})
                    write.ledger.written += 1
                else:
                    write.ledger.read -= 1
        write.table("train", pa.Table.from_pylist(rows, schema=REDIRECTS))


@dataclass(frozen=True)
class AwaitedWords(Stage):
    """Unit: a line of words. Each is done when there is a file of its name in `folder`."""

    name: ClassVar[str] = "await"
    counts: ClassVar[str] = "words"
    Unit: ClassVar[type] = Text

    texts: tuple[str, ...]
    folder: str = location(default="")

    def plan(self, work: Work) -> list[Text]:
        return [Text(text) for text in self.texts]

    def process(self, unit: Text, write: TaskWriter) -> None:
        words = unit.words.split()
        for word in write.each(words):
            while not Path(self.folder, word).exists():
                time.sleep(0.01)
        rows = [{"source": "toy", "title": word, "target_title": "", "section": ""} for word in words]
        write.table("train", pa.Table.from_pylist(rows, schema=REDIRECTS))
        write.ledger.read += len(words)
        write.ledger.written += len(words)


class Whole(PoisonedWords):
    isolates: ClassVar[bool] = False


def _poison(word: str) -> bool:
    """Fail as the word says; False if it is an ordinary word. "WORD:path" fails only if that file does not exist."""
    word, _, mark = word.partition(":")
    if not word.isupper():
        return False
    if mark:
        if Path(mark).exists():
            return True
        if Path(mark).parent.exists():
            Path(mark).touch()
    if word in ("DIE", "STOP", "CRASH"):
        number = {"DIE": signal.SIGKILL, "STOP": signal.SIGSTOP, "CRASH": signal.SIGSEGV}[word]
        os.kill(os.getpid(), number)
        time.sleep(1)
    elif word == "EXIT":
        os._exit(3)
    elif word == "WAIT":
        time.sleep(600)
    elif word == "SPIN":
        end = time.monotonic() + 600
        while time.monotonic() < end:
            pass
    elif word == "RAISE":
        raise ZeroDivisionError("a bug")
    elif word == "USER":
        raise UserError("a model is missing")
    return True


def poisoned_words(output: Path, texts: tuple[str, ...], *, isolates: bool = True) -> DatasetBuild:
    stage = (PoisonedWords if isolates else Whole)(texts=texts)
    return DatasetBuild(Folder(str(output)), WORDS, (stage,), (), {})
