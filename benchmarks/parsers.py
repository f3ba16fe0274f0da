"""Parsers side by side: F1 on treebanks, tokens per second end to end, peak memory.

    python -m benchmarks.parsers --gold dev.ptb --parsers phrasemill,spacy,benepar=CHECKPOINT --json out.json
    python -m benchmarks.parsers --text book.txt --processes 2

Every parser reads every file in a separate process, so that memory is measured separately and all text is new to it. It
gets gold tokens. F1 is the micro average over NP, VP, PP, ADJP and ADVP spans, a set for each sentence, without
function tags. The seconds are those of the parse, including processes that a parser starts; loading is listed
separately. With `--processes N` each of N processes parses its part of the file; the seconds count from a common start,
when all have loaded the parser, to the end of the last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from schemas.errors import UserError
from schemas.terms import PHRASE_LABELS
from transforms.parsing.evaluation import Agreement, Evaluation, evaluate
from transforms.parsing.interface import ParsedSentence
from transforms.parsing.registry import PARSERS, load_parser
from transforms.parsing.treebank import TreebankSentence, read_treebank


class Part(NamedTuple):
    """The figures of one process for its part of a file; `evaluation` only for a treebank."""

    model: str
    load_seconds: float
    peak: int  # bytes, with the processes that the parser started
    seconds: float
    cpu_seconds: float
    sentences: int
    refused: int
    tokens: int
    evaluation: Evaluation | None


def parse(given: list[str] | list[TreebankSentence], name: str, model: str) -> Part:
    """Parse lines of text, or sentences of a treebank."""
    gold = [each for each in given if isinstance(each, TreebankSentence)]
    with harness.Meter() as whole:
        with harness.Meter() as loading:
            parser = load_parser(name, **({"model": model} if model else {}))
        harness.meet()
        with harness.Meter() as parsing:
            if gold:
                predicted = parser.parse_tokens([sentence.words for sentence in gold])
            else:
                lines = parser.parse_texts([each for each in given if isinstance(each, str)])
                sentences = [sentence for line in lines for sentence in line]
    took = (parser.identity.model, loading.seconds, whole.peak, parsing.seconds, parsing.cpu_seconds)
    if gold:
        refused = sum(not isinstance(each, list) for each in predicted)
        tokens = sum(len(sentence.words) for sentence in gold)
        return Part(*took, len(gold), refused, tokens, evaluate([each.constituents for each in gold], predicted))
    parsed = [each for each in sentences if isinstance(each, ParsedSentence)]
    return Part(*took, len(sentences), len(sentences) - len(parsed), sum(len(each.tags) for each in parsed), None)


def together(parts: Sequence[Part]) -> dict[str, Any]:
    """The figures of processes that worked at the same time."""
    tokens, seconds = sum(each.tokens for each in parts), max(each.seconds for each in parts)
    evaluations = [each.evaluation for each in parts if each.evaluation]
    return {
        **(scores(evaluations) if evaluations else {}),
        "model": parts[0].model,
        "processes": len(parts),
        "sentences": sum(each.sentences for each in parts),
        "refused": sum(each.refused for each in parts),
        "tokens": tokens,
        "tokens_per_second": round(tokens / seconds),
        "tokens_per_cpu_second": round(tokens / sum(each.cpu_seconds for each in parts)),
        "load_seconds": max(each.load_seconds for each in parts),
        "peak_memory_mib": max(each.peak for each in parts) >> 20,
    }


def scores(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """The scores of all sentences together."""

    def added(agreements: Iterable[Agreement]) -> Agreement:
        return Agreement(*map(sum, zip(*agreements, strict=True)))

    total = added(each.total for each in evaluations)
    by_label = {label: added(each.by_label[label] for each in evaluations).f1 for label in evaluations[0].by_label}
    return {"f1": total.f1, "f1_by_label": by_label, "precision": total.precision, "recall": total.recall}


def figures(given: list[Any], parser: str, processes: int) -> dict[str, Any]:
    """One parser on one file; only `skipped` or `failed`, the reason, if it did not run."""
    name, _, model = parser.partition("=")
    try:
        return together(harness.apart(*(partial(parse, given[n::processes], name, model) for n in range(processes))))
    except UserError as error:
        return {"skipped": str(error)}
    except Exception as error:  # a parser that fails is a row of the table
        return {"failed": f"{type(error).__name__}: {error}"}


def show(path: str, results: dict[str, dict[str, Any]]) -> None:
    done = {parser: each for parser, each in results.items() if "tokens" in each}
    labels = ("F1", *PHRASE_LABELS) if any("f1" in each for each in done.values()) else ()
    names = ("tokens", "refused", "tokens_per_second", "tokens_per_cpu_second", "load_seconds", "peak_memory_mib")
    rows = []
    for parser, each in done.items():
        f1 = (each["f1"], *each["f1_by_label"].values()) if labels else ()
        rows.append((parser, *(f"{score:.3f}" for score in f1), *(each[name] for name in names)))
    harness.show(path, ("parser", *labels, "tokens", "refused", "tokens/s", "tokens/CPU s", "load s", "MiB"), rows)
    for parser, each in results.items():
        for why in {"skipped", "failed"} & each.keys():
            print(f"{parser}: {why}: {each[why]}", flush=True)


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--gold", action="append", default=[], metavar="FILE.ptb", help="a treebank; repeatable")
    parser.add_argument("--text", action="append", default=[], metavar="FILE", help="plain text, a paragraph a line")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="processes that share a file (default 1)")
    names = f"some of {', '.join(PARSERS)}; one may be repeated with another model (default {PARSERS[0]})"
    parser.add_argument("--parsers", default=PARSERS[0], metavar="NAME[=MODEL],...", help=names)
    options = parser.parse_args()
    results: dict[str, dict[str, dict[str, Any]]] = {each: {} for each in options.parsers.split(",")}
    for path in options.gold + options.text:
        given: list[Any] = (
            list(read_treebank(path))
            if path in options.gold
            else [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
        )
        for each, found in results.items():
            found[path] = figures(given, each, options.processes)
        show(path, {each: found[path] for each, found in results.items()})
    harness.write(options.json, results)
    return any("failed" in each for found in results.values() for each in found.values())


if __name__ == "__main__":
    sys.exit(main())
