"""Parsers side by side: F1 on treebanks, tokens a second end to end, peak memory.

    python -m benchmarks.parsers --gold dev.ptb --parsers phrasemill,spacy,benepar=CHECKPOINT --json out.json
    python -m benchmarks.parsers --text book.txt --processes 2

Every parser meets every file in a process of its own, so that its memory is its own and all text is new to it. Gold
tokens go in; F1 is the micro average over NP, VP, PP, ADJP and ADVP spans, a set for each sentence, without function
tags. The seconds are those of the parse alone: loading is listed apart, processes that a parser starts are counted in.
With `--processes N` each of N processes parses its part of the file; the seconds are those from a start in common,
when all have loaded the parser, until the last has ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, NamedTuple, TypeAlias, TypedDict

import psutil
from rich.console import Console
from rich.table import Table

from schemas.errors import UserError
from schemas.records import PHRASE_LABELS
from transforms.parsing.evaluation import Agreement, Evaluation, evaluate
from transforms.parsing.interface import ParsedSentence, Parser
from transforms.parsing.registry import PARSERS, load_parser
from transforms.parsing.treebank import TreebankSentence, read_treebank


class Result(TypedDict, total=False):
    """One parser on one file; only `skipped` or `failed`, the reason, if it did not run."""

    f1: float
    f1_by_label: dict[str, float]
    precision: float
    recall: float
    sentences: int
    refused: int
    processes: int
    tokens: int
    tokens_per_second: float
    tokens_per_cpu_second: float
    load_seconds: float
    peak_memory_mib: float  # of the largest process, with those that it starts
    model: str
    skipped: str
    failed: str


class Times(NamedTuple):
    """One process's parse; `began` and `ended` are of a clock that all processes share."""

    tokens: int
    began: float
    ended: float
    cpu_seconds: float


class Part(NamedTuple):
    """What one process found in its part of a file; `evaluation` only of a treebank."""

    result: Result
    times: Times
    evaluation: Evaluation | None


Work: TypeAlias = Callable[[], Part]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_arguments(arguments)
    results: dict[str, dict[str, Result]] = {parser: {} for parser in options.parsers}
    for path in options.gold + options.text:
        on_part: Callable[..., Part]
        given: list[Any]
        if path in options.gold:
            on_part, given = _on_treebank, list(read_treebank(path))
        else:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            on_part, given = _on_text, [line for line in lines if line.strip()]
        parts = [partial(on_part, given[number :: options.processes]) for number in range(options.processes)]
        for parser in options.parsers:
            works: list[Work] = [partial(part, *_name_and_model(parser)) for part in parts]
            results[parser][path] = _in_own_processes(works)
        _print(path, {parser: results[parser][path] for parser in options.parsers})
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return 1 if any("failed" in result for each in results.values() for result in each.values()) else 0


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parsers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--gold", action="append", default=[], metavar="FILE.ptb", help="a treebank; repeatable")
    parser.add_argument("--text", action="append", default=[], metavar="FILE", help="plain text, a paragraph a line")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="that share a file (default 1)")
    parser.add_argument(
        "--parsers",
        default=PARSERS[0],
        metavar="NAME[=MODEL],...",
        help=f"of {', '.join(PARSERS)}; one may be named again with another model (default {PARSERS[0]})",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write {parser: {file: figures}} there")
    options = parser.parse_args(arguments)
    options.parsers = list(dict.fromkeys(options.parsers.split(",")))
    if unknown := [name for name, _ in map(_name_and_model, options.parsers) if name not in PARSERS]:
        parser.error(f"no parser {unknown[0]!r}; choose among {', '.join(PARSERS)}")
    if options.processes < 1:
        parser.error(f"--processes: must be 1 or more, not {options.processes}")
    if not options.gold and not options.text:
        parser.error("give at least one --gold or --text file")
    if missing := [path for path in options.gold + options.text if not Path(path).is_file()]:
        parser.error(f"no such file: {missing[0]}")
    return options


def _name_and_model(parser: str) -> tuple[str, str | None]:
    name, _, model = parser.partition("=")
    return name, model or None


def _on_treebank(gold: list[TreebankSentence], name: str, model: str | None) -> Part:
    parser, result = _load(name, model)
    stopwatch = _Stopwatch()
    predicted = parser.parse_tokens([sentence.words for sentence in gold])
    times = stopwatch.times(sum(len(sentence.words) for sentence in gold))
    evaluation = evaluate([sentence.constituents for sentence in gold], predicted)
    refused = sum(not isinstance(prediction, list) for prediction in predicted)
    return Part({**result, "sentences": len(gold), "refused": refused}, times, evaluation)


def _on_text(lines: list[str], name: str, model: str | None) -> Part:
    parser, result = _load(name, model)
    stopwatch = _Stopwatch()
    sentences = [sentence for line in parser.parse_texts(lines) for sentence in line]
    parsed = [sentence for sentence in sentences if isinstance(sentence, ParsedSentence)]
    times = stopwatch.times(sum(len(sentence.tags) for sentence in parsed))
    return Part({**result, "sentences": len(sentences), "refused": len(sentences) - len(parsed)}, times, None)


_all_have_loaded: Barrier


def _start_process(all_have_loaded: Barrier) -> None:
    global _all_have_loaded
    _all_have_loaded = all_have_loaded


def _load(name: str, model: str | None) -> tuple[Parser, Result]:
    """The parser, when all processes have theirs."""
    start = time.perf_counter()
    try:
        parser = load_parser(name, **({"model": model} if model else {}))
    except BaseException:
        _all_have_loaded.abort()
        raise
    result = Result(model=parser.identity.model, load_seconds=round(time.perf_counter() - start, 2))
    _all_have_loaded.wait()
    return parser, result


class _Stopwatch:
    def __init__(self) -> None:
        self.began, self.cpu = time.monotonic(), self._cpu_seconds()

    def times(self, tokens: int) -> Times:
        return Times(tokens, self.began, time.monotonic(), self._cpu_seconds() - self.cpu)

    @staticmethod
    def _cpu_seconds() -> float:
        process = psutil.Process()
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        return sum(each.user + each.system for each in times)


def _in_own_processes(works: Sequence[Work]) -> Result:
    """Each work in a new process, all at once."""
    context = get_context("spawn")
    all_have_loaded = context.Barrier(len(works))
    with ProcessPoolExecutor(len(works), context, _start_process, (all_have_loaded,)) as executor:
        futures = [executor.submit(work) for work in works]
        peak = 0
        while not all(future.done() for future in futures):
            peak = max([peak, *map(_resident_bytes, psutil.Process().children())])
            time.sleep(0.05)
    errors = [error for future in futures if (error := future.exception())]
    # Where one process fails the others wait for it in vain; a parser's crash is one row of the table.
    for error in sorted(errors, key=lambda each: isinstance(each, BrokenBarrierError))[:1]:
        if isinstance(error, UserError):
            return Result(skipped=str(error))
        return Result(failed=f"{type(error).__name__}: {error}")
    return {**_together([future.result() for future in futures]), "peak_memory_mib": round(peak / 2**20)}


def _together(parts: Sequence[Part]) -> Result:
    """The figures of processes that worked at the same time."""
    results, times, evaluations = zip(*parts, strict=True)
    tokens = sum(each.tokens for each in times)
    seconds = max(each.ended for each in times) - min(each.began for each in times)
    cpu_seconds = max(sum(each.cpu_seconds for each in times), 0.01)  # the system's clock tick
    return {
        **results[0],
        **(_scores(evaluations) if evaluations[0] else {}),
        "sentences": sum(each["sentences"] for each in results),
        "refused": sum(each["refused"] for each in results),
        "processes": len(results),
        "tokens": tokens,
        "tokens_per_second": round(tokens / seconds, 1),
        "tokens_per_cpu_second": round(tokens / cpu_seconds, 1),
        "load_seconds": max(each["load_seconds"] for each in results),
    }


def _scores(evaluations: Sequence[Evaluation]) -> Result:
    """Of all sentences together."""

    def added(agreements: Iterable[Agreement]) -> Agreement:
        return Agreement(*map(sum, zip(*agreements, strict=True)))

    total = added(each.total for each in evaluations)
    by_label = {label: added(each.by_label[label] for each in evaluations) for label in evaluations[0].by_label}
    return Result(
        f1=round(total.f1, 4),
        f1_by_label={label: round(agreement.f1, 4) for label, agreement in by_label.items()},
        precision=round(total.precision, 4),
        recall=round(total.recall, 4),
    )


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += each.memory_info().rss
    return total


def _print(path: str, results: dict[str, Result]) -> None:
    table = Table(title=path, title_justify="left")
    with_gold = any("f1" in result for result in results.values())
    scores = ("F1", *PHRASE_LABELS) if with_gold else ()
    for heading in ("parser", *scores, "tokens", "refused", "tokens/s", "tokens/CPU s", "load s", "MiB"):
        table.add_column(heading, justify="left" if heading == "parser" else "right", no_wrap=True)
    for parser, result in results.items():
        if "tokens" not in result:
            continue
        f1 = (result["f1"], *result["f1_by_label"].values()) if with_gold else ()
        table.add_row(
            parser,
            *(f"{score:.3f}" for score in f1),
            f"{result['tokens']:,}",
            f"{result['refused']:,}",
            f"{result['tokens_per_second']:,.0f}",
            f"{result['tokens_per_cpu_second']:,.0f}",
            f"{result['load_seconds']:.1f}",
            f"{result['peak_memory_mib']:,.0f}",
        )
    console = Console(width=max(130, Console().width))
    console.print(table)
    for parser, result in results.items():
        for kind in ("skipped", "failed"):
            if kind in result:
                console.print(f"{parser}: {kind}: {result[kind]}", markup=False)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"{error}")
