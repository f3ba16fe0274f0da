"""The memory of a long run over time: the main job on varied copies of a real dump.

    python -m benchmarks.endurance enwiki-fragment.xml.bz2 --megabytes 300 --folder /tmp/long --plot memory.svg

In each copy a quarter of the longer words are others of the dump, so phrases keep coming that were not there before.
Memory is the sum over all processes of the run, each second; the stages are those that the run itself says it is at.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
import xxhash

_TEXT = re.compile(r"(<text[^>]*>)(.*?)(</text>)", re.DOTALL)
_WORD = re.compile(r"\b[a-z]{5,}\b")
_PAGE_ID = re.compile(r"(<page>.*?<id>)(\d+)(</id>)", re.DOTALL)
_IDS_A_COPY = 10**8


class Moment(NamedTuple):
    """A second of the run: bytes of all its processes, and the stage it was at."""

    seconds: float
    memory: int
    stage: str


def varied(dump: str, copies: int) -> Iterator[str]:
    """So many copies of the pages of a dump, with its head and foot: ids shifted, a quarter of the words exchanged."""
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


def watch(command: Sequence[str], output: Path) -> Iterator[Moment]:
    """Run a command; its memory, a second at a time. Raises if it fails."""
    began = time.monotonic()
    run = psutil.Popen(command, stdout=subprocess.DEVNULL)
    while run.poll() is None:
        memory = 0
        for process in (run, *_children(run)):
            try:
                memory += process.memory_info().rss
            except psutil.Error:
                continue
        yield Moment(time.monotonic() - began, memory, _stage(output))
        time.sleep(1)
    if run.returncode:
        raise SystemExit(f"the run failed with exit status {run.returncode}")


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _stage(output: Path) -> str:
    try:
        stages = json.loads((output / "_work/run.json").read_text())["stages"]
    except (OSError, ValueError):
        return ""
    return stages[-1]["name"] if stages else ""


def thirds(moments: Sequence[Moment], stage: str) -> list[float]:
    """Mean memory in the thirds of a stage, in bytes."""
    memory = [each.memory for each in moments if each.stage == stage]
    cuts = [len(memory) * third // 3 for third in range(4)]
    return [sum(memory[start:end]) / max(end - start, 1) for start, end in itertools.pairwise(cuts)]


def plot(moments: Sequence[Moment], path: Path, title: str) -> None:
    """Memory against time, with the stages that took long enough to be seen."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
    axes.plot([each.seconds / 60 for each in moments], [each.memory / 1e9 for each in moments], linewidth=0.8)
    axes.set(title=title, xlabel="minutes", ylabel="GB, all processes", ylim=0)
    shade, start = False, 0
    for number, each in enumerate(moments):
        if number + 1 == len(moments) or moments[number + 1].stage != each.stage:
            left, right = moments[start].seconds / 60, each.seconds / 60
            if shade:
                axes.axvspan(left, right, alpha=0.08, linewidth=0)
            if right - left > moments[-1].seconds / 60 * 0.03:
                axes.text((left + right) / 2, axes.get_ylim()[1] * 0.95, each.stage, ha="center", va="top", size=8)
            shade, start = not shade, number + 1
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dump", type=Path, help="a small dump in XML, plain or .bz2")
    parser.add_argument("--megabytes", type=int, default=300, metavar="N", help="of XML to make of it (300)")
    parser.add_argument("--folder", type=Path, required=True, help="for the input and the output")
    parser.add_argument("--plot", type=Path, help="an SVG of memory over time")
    chosen, rest = parser.parse_known_args(arguments)
    data = chosen.dump.read_bytes()
    dump = (bz2.decompress(data) if chosen.dump.suffix == ".bz2" else data).decode()
    copies = max(round(chosen.megabytes * 1e6 / len(dump.encode())), 1)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    made, output = chosen.folder / "copies.xml", chosen.folder / "contexts"
    with made.open("w", encoding="utf-8") as file:
        file.writelines(varied(dump, copies))
    print(f"{made}: {copies} copies, {made.stat().st_size / 1e6:,.0f} MB", flush=True)
    command = [sys.executable, "-m", "pipelines.mine_contexts", "--input", str(made), "--output", str(output), *rest]
    moments = list(watch(command, output))
    with (chosen.folder / "memory.csv").open("w", newline="") as table:
        csv.writer(table).writerows([Moment._fields, *moments])
    for stage in dict.fromkeys(each.stage for each in moments):
        seconds = sum(each.stage == stage for each in moments)
        if seconds >= 30:
            shown = ", ".join(f"{each / 1e9:.2f}" for each in thirds(moments, stage))
            print(f"{stage or 'start'}: about {seconds} s, mean GB in its thirds: {shown}")
    print(f"{moments[-1].seconds:,.0f} s, at most {max(each.memory for each in moments) / 1e9:.2f} GB")
    if chosen.plot:
        plot(moments, chosen.plot, f"mine_contexts on {made.stat().st_size / 1e6:,.0f} MB of wikitext")
    return 0


if __name__ == "__main__":
    sys.exit(main())
