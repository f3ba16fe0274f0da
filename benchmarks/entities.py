"""Finders of entities beside the parser: CPU seconds over the same sentences, memory, and F1 against gold entities.

    python -m benchmarks.entities --sentences out/contexts-sentences --tokens 100000 --rounds 3 --json out.json
    python -m benchmarks.entities --gold conll2003/dev.json --gold wnut17/emerging.dev.conll --finders spacy

Each way runs in a process of its own with one thread, one after the other, `--rounds` times; the least CPU seconds
count, without loading. Besides the finders of `--finders` (NAME or NAME=MODEL) these are the parser, over the same
tokens, and spaCy's own ways: its recogniser alone, and its whole pipeline, over the same tokens. The ratio is to the
parser's seconds.

Gold files have a line of JSON a sentence, {"sentences": [[word, ...]], "ner": [[[first, last, type], ...]]}, or a line
a word with its BIO tag. Types are compared where they can be: both sides are mapped to PERSON, PLACE (location, GPE,
LOC, FAC), ORG (corporation, group), and where the gold has MISC, to that (NORP, EVENT, works, products, laws,
languages); types that the gold does not have, such as dates, are left out. F1 is the micro average over spans: `exact`;
`ends` without leading determiners and a trailing possessive on either side, because the guidelines differ there, also
by type; `any type` without types.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import harness
from pipelines.stages.models import import_spacy
from schemas.process import limit_threads
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.entities.interface import Entity, EntityFinder, Words
from transforms.entities.registry import load_finder
from transforms.entities.tables import SENTENCE_COLUMNS, groups, read_words

CALL_TOKENS = 20_000


# ---- Cost


class Cost(NamedTuple):
    """Of one way in a process of its own; `peak` and `loaded` in bytes, after the work and before it."""

    cpu_seconds: float
    loaded: int
    peak: int
    entities: int


def sample(dataset: str, tokens: int) -> list[Words]:
    """Sentences of all shards of a dataset, from the beginning of each, about so many tokens in all."""
    from schemas.manifest import read_manifest

    folder = Folder(dataset)
    shards = read_manifest(folder).shards
    found: list[Words] = []
    for shard in shards:
        left = tokens // len(shards)
        for words in read_words(read_parquet(folder, shard.path, list(SENTENCE_COLUMNS))):
            if left <= 0:
                break
            left -= len(words.words)
            found.append(words)
    return found


def measure(way: str, sentences: list[Words]) -> Cost:
    """Runs in a process of its own."""
    import_spacy()
    with harness.Meter() as loading:
        work = _ways(way)
        work(sentences[:5])
    with harness.Meter() as doing:
        entities = sum(work(group) for group in groups(sentences, CALL_TOKENS))
    return Cost(doing.cpu_seconds, loading.peak, doing.peak, entities)


def _ways(way: str) -> Callable[[Sequence[Words]], int]:
    """What a way does with sentences: the number of entities that it finds."""
    name, _, rest = way.partition(" ")
    if name == "parser":
        from transforms.parsing.phrasemill_parser import PhrasemillParser

        parser = PhrasemillParser()
        return lambda sentences: len(parser.parse_words([each.words for each in sentences])) * 0
    if name == "finder":
        finder = _finder(rest)
        return lambda sentences: sum(map(len, finder.find(sentences)))
    import spacy
    from spacy.tokens import Doc

    from transforms.parsing.spacy_files import find_spacy

    model = find_spacy()
    others = [each for each in (model.labels or {}) if each != "ner"]
    nlp = spacy.load(model.loads_as, exclude=others if rest == "recogniser" else [])

    def run(sentences: Sequence[Words]) -> int:
        docs = [Doc(nlp.vocab, words=words, spaces=spaces) for words, spaces in sentences]
        return sum(len(doc.ents) for doc in nlp.pipe(docs, batch_size=256))

    return run


def _finder(name: str) -> EntityFinder:
    finder, _, model = name.partition("=")
    return load_finder(finder, **({"model": model} if model else {}))


def costs(sentences: list[Words], finders: Sequence[str], rounds: int) -> dict[str, Any]:
    ways = ("parser", *(f"finder {each}" for each in finders), "spacy recogniser", "spacy pipeline")
    found: dict[str, list[Cost]] = {way: [] for way in ways}
    for _, way in itertools.product(range(rounds), ways):
        found[way] += harness.apart(partial(measure, way, sentences))
    tokens = sum(len(each.words) for each in sentences)
    least = {way: min(each.cpu_seconds for each in all_of) for way, all_of in found.items()}
    figures = {
        way: {
            "cpu_seconds": round(least[way], 2),
            "to_parser": round(least[way] / least["parser"], 3),
            "tokens_per_cpu_second": round(tokens / least[way]),
            "peak_memory_mib": max(each.peak for each in all_of) >> 20,
            "added_memory_mib": max(each.peak - each.loaded for each in all_of) >> 20,
            "entities": all_of[0].entities,
        }
        for way, all_of in found.items()
    }
    rows = [(way, *each.values()) for way, each in figures.items()]
    headings = ("way", "CPU s", "to parser", "tokens/CPU s", "MiB", "added MiB", "entities")
    harness.show(f"{len(sentences):,} sentences, {tokens:,} tokens, one thread", headings, rows)
    return {"sentences": len(sentences), "tokens": tokens, "rounds": rounds, "ways": figures}


# ---- Quality

_NAMES = {
    **dict.fromkeys(("PER", "PERSON"), "PERSON"),
    **dict.fromkeys(("LOC", "LOCATION", "GPE", "FAC", "COUNTRY"), "PLACE"),
    **dict.fromkeys(("ORG", "CORPORATION", "GROUP", "ORGANISATION", "ORGANIZATION"), "ORG"),
}
_MISC = dict.fromkeys(("MISC", "NORP", "EVENT", "WORK_OF_ART", "PRODUCT", "LAW", "LANGUAGE"), "MISC")
_OTHERS = {"CREATIVE-WORK": "WORK_OF_ART", "WORK_OF_ART": "WORK_OF_ART", "PRODUCT": "PRODUCT"}
_DETERMINERS = ("the", "a", "an", "this", "these")
_POSSESSIVES = ("'s", "’s", "'", "’")

Spans = set[tuple[int, int, int, str]]
"""Sentence, first token, token after the last, type."""


class Gold(NamedTuple):
    sentences: list[Words]
    spans: list[list[Entity]]


def read_gold(path: str) -> Gold:
    """A file of gold entities, with a blank after each word."""
    found = list(_of_json(path) if path.endswith(".json") else _of_columns(path))
    return Gold([Words(words, [True] * len(words)) for words, _ in found], [spans for _, spans in found])


def _of_json(path: str) -> Iterator[tuple[list[str], list[Entity]]]:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for words, spans in zip(row["sentences"], row["ner"], strict=True):
            yield words, [Entity(first, last + 1, type_) for first, last, type_ in spans]


def _of_columns(path: str) -> Iterator[tuple[list[str], list[Entity]]]:
    from transforms.entities.tags import spans, tags_of

    blocks = Path(path).read_text(encoding="utf-8").replace("\t\n", "\n").split("\n\n")
    rows = [[line.split("\t") for line in block.splitlines() if "\t" in line] for block in blocks]
    names = ["O", *sorted({tag for block in rows for _, tag in block} - {"O"})]
    tags = dict(zip(names, tags_of(dict(enumerate(names))), strict=True))
    types = {each.type: each.type for each in tags.values()}
    for block in rows:
        if block:
            yield [word for word, _ in block], spans([tags[tag] for _, tag in block], types)


def comparable(
    gold: Gold, found: Sequence[Sequence[Entity]], types: Mapping[str, str], *, trimmed: bool = False
) -> Spans:
    """The spans of types that can be compared, with their groups."""
    result: Spans = set()
    for number, (words, spans) in enumerate(zip(gold.sentences, found, strict=True)):
        for first, last, type_ in spans:
            if trimmed:
                while first + 1 < last and words.words[first].lower() in _DETERMINERS:
                    first += 1
                while first + 1 < last and words.words[last - 1] in _POSSESSIVES:
                    last -= 1
            if group := types.get(type_.upper()):
                result.add((number, first, last, group))
    return result


def f1(gold: Spans, found: Spans) -> dict[str, float]:
    right = len(gold & found)
    precision, recall = right / max(len(found), 1), right / max(len(gold), 1)
    score = 2 * right / max(len(gold) + len(found), 1)
    return {"f1": round(score, 3), "precision": round(precision, 3), "recall": round(recall, 3)}


def quality(path: str, finder_name: str) -> dict[str, Any]:
    """Runs in a process of its own."""
    gold = read_gold(path)
    finder = _finder(finder_name)
    found = [spans for group in groups(gold.sentences, CALL_TOKENS) for spans in finder.find(group)]
    named = {each.type.upper() for spans in gold.spans for each in spans}
    groups_ = _NAMES | (_MISC if "MISC" in named else _OTHERS)
    there = {groups_[each] for each in named if each in groups_}
    if not there:
        return {"skipped": f"no type of {path} can be compared: {', '.join(sorted(named))}"}
    types = {name: group for name, group in groups_.items() if group in there}
    exact, ends = (
        (comparable(gold, gold.spans, types, trimmed=trimmed), comparable(gold, found, types, trimmed=trimmed))
        for trimmed in (False, True)
    )
    figures: dict[str, Any] = {"exact": f1(*exact), "ends": f1(*ends)}
    for group in sorted(there):
        figures[group] = f1(*({span for span in side if span[3] == group} for side in ends))
    figures["any type"] = f1(*({(*span[:3], "") for span in side} for side in ends))
    by_type = Counter(each.type for spans in found for each in spans)
    return {
        "sentences": len(found),
        "tokens": sum(len(each.words) for each in gold.sentences),
        **figures,
        "found": by_type,
    }


def qualities(paths: Sequence[str], finders: Sequence[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for path in paths:
        figures[path] = {name: harness.apart(partial(quality, path, name))[0] for name in finders}
        rows = [
            (name, measure, *(f"{score:.3f}" for score in scores.values()))
            for name, of in figures[path].items()
            for measure, scores in of.items()
            if isinstance(scores, dict) and "f1" in scores
        ]
        if rows:
            harness.show(path, ("finder", "spans", "F1", "precision", "recall"), rows)
        for name, of in figures[path].items():
            if "skipped" in of:
                print(f"{name}: skipped: {of['skipped']}", flush=True)
    return figures


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--sentences", metavar="DIR", help="a dataset of sentences, for the cost")
    parser.add_argument("--tokens", type=int, default=100_000, metavar="N", help="tokens of it (default 100,000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="times that each way runs (default 3)")
    parser.add_argument("--gold", action="append", default=[], metavar="FILE", help="gold entities; may be repeated")
    parser.add_argument("--finders", default="spacy", metavar="NAME[=MODEL],...", help="the finders (default spacy)")
    options = parser.parse_args()
    limit_threads()
    figures: dict[str, Any] = {}
    finders = options.finders.split(",")
    if options.sentences:
        figures["cost"] = costs(sample(options.sentences, options.tokens), finders, options.rounds)
    if options.gold:
        figures["quality"] = qualities(options.gold, finders)
    harness.write(options.json, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
