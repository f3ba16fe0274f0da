"""Sentences with annotated spans, in the formats of named entity recognition, and the mentions that are clustered.

Formats (docs/evaluation.md shows a line of each): span JSON, a sentence a line, as PEARL and UCTopic have CoNLL-2003
and BC5CDR; columns of token and BIO tag, as WNUT17 and CrossNER; the same columns the other way round, as MIT-Movie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from schemas.errors import UserError
from trainers.evaluation.files import lines_of, malformed
from trainers.evaluation.model import Passage
from trainers.evaluation.task import OR

PERSON, LOCATION, ORGANIZATION = "Person", "Location", "Organization"


class Span(NamedTuple):
    """An annotated span of a sentence; its end is exclusive."""

    start_token: int
    end_token: int
    label: str


class Sentence(NamedTuple):
    """A tokenised sentence with its annotation, and the number of its first line in its file."""

    line: int
    tokens: list[str]
    spans: list[Span]


class Mention(NamedTuple):
    """A mention that is clustered: where it is, and the type that it should be clustered with."""

    item: str
    sentence: str
    passage: Passage
    type: str

    @property
    def phrase(self) -> str:
        """Its tokens, as they are, with a space between them."""
        tokens, start, end = self.passage
        return " ".join(tokens[start:end])


class Found(NamedTuple):
    """The mentions of a corpus, what was read, and what of the protocol's files is not there."""

    mentions: list[Mention]
    read: dict[str, int]
    remarks: list[str]


@dataclass(frozen=True)
class Corpus:
    """Files of one annotation, and which of its mentions a protocol clusters.

    name, title   for names and titles of tasks
    reader        reads one of its files
    types         the type of each label; mentions of other labels are left out, and counted
    files         the protocol's files, below --data: paths, or patterns of them. Those that are there are read
    sentences     how many sentences they have
    otherwise     read where none of `files` is there
    """

    name: str
    title: str
    reader: Callable[[Path], Iterator[Sentence]]
    types: Mapping[str, str]
    files: tuple[str, ...]
    sentences: int
    otherwise: tuple[str, ...] = ()

    @property
    def kinds(self) -> int:
        """The number of types, and so of clusters."""
        return len(set(self.types.values()))

    @property
    def pattern(self) -> str:
        """What a task says that it reads."""
        return OR.join(self.files + self.otherwise)

    def mentions(self, data: Path) -> Found:
        """The mentions of the files that are there. UserError if there is none, or one is malformed."""
        wanted = _present(data, self.files)
        paths = wanted or _present(data, self.otherwise)
        if not paths:
            raise UserError(f"{data}: has no {self.pattern}; docs/evaluation.md says where it comes from")
        found: list[Mention] = []
        sentences = spans = 0
        for path in paths:
            for sentence in self.reader(path):
                place = f"{path.relative_to(data)}:{sentence.line}"
                sentences += 1
                spans += len(sentence.spans)
                for start, end, label in sentence.spans:
                    if label in self.types:
                        item = f"{place}:{start}-{end}:{label}"
                        found.append(Mention(item, place, Passage(sentence.tokens, start, end), self.types[label]))
        if len(found) < self.kinds:
            raise UserError(
                f"{paths[0]}: {len(found)} mentions for {self.kinds} clusters; give files with more mentions"
            )
        read = {"sentences": sentences, "mentions": spans, "mentions of other types": spans - len(found)}
        remarks = []
        if sentences != self.sentences:
            what = f"{sentences:,} of {self.sentences:,} sentences"
            if not wanted:
                what = f"{sentences:,} sentences of {paths[0].name}, not the {self.sentences:,} of {self.files[0]}"
            remarks.append(what)
        return Found(found, read, remarks)


def _present(data: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files that are there, in the order of patterns, those of one pattern by name."""
    return [path for pattern in patterns for path in sorted(data.glob(pattern))]


def read_spans(path: Path) -> Iterator[Sentence]:
    """Span JSON: `{"sentences": [[token, ...]], "ner": [[[first token, last token, label], ...]]}` a line."""
    for number, line in lines_of(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            [tokens], [found] = record["sentences"], record["ner"]
            spans = [Span(first, last + 1, label) for first, last, label in found]
            right = all(_is_span(each, tokens) for each in spans) and all(isinstance(each, str) for each in tokens)
        except (ValueError, KeyError, TypeError):
            right = False
        if not right:
            raise malformed(path, number, "sentence in span JSON")
        yield Sentence(number, tokens, spans)


def _is_span(span: Span, tokens: list[Any]) -> bool:
    start, end, label = span
    return 0 <= start < end <= len(tokens) and isinstance(label, str)


def read_columns(path: Path, *, token: int = 0, tag: int = 1) -> Iterator[Sentence]:
    """Two columns with a tab between them, a token a line, an empty line after each sentence; tags `O`, `B-x`, `I-x`.

    `token`, `tag`: the column of each. A span ends where a tag is not `I-` of its label; `I-` of a label that is not
    going on begins a span, as in files in which `B-` only divides neighbours.
    """
    first, tokens, spans, label = 0, list[str](), list[Span](), ""
    for number, line in lines_of(path):
        if not line.strip():
            if tokens:
                yield Sentence(first, tokens, spans)
            tokens, spans, label = [], [], ""
            continue
        fields = line.split("\t")
        if len(fields) != 2 or not _is_tag(fields[tag].strip()):
            raise malformed(path, number, "token and BIO tag, a tab between them")
        first = first if tokens else number
        place, here, mark = len(tokens), fields[tag].strip(), fields[tag].strip()[2:]
        tokens.append(fields[token].strip())
        if here.startswith("I-") and mark == label:
            spans[-1] = Span(spans[-1].start_token, place + 1, label)
        elif mark:
            spans.append(Span(place, place + 1, mark))
        label = mark
    if tokens:
        yield Sentence(first, tokens, spans)


def _is_tag(tag: str) -> bool:
    return tag == "O" or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def read_reversed(path: Path) -> Iterator[Sentence]:
    """MIT-Movie's columns: the tag, then the token."""
    return read_columns(path, token=1, tag=0)


CONLL_TYPES = {"PER": PERSON, "LOC": LOCATION, "ORG": ORGANIZATION}
BC5CDR_TYPES = {"Chemical": "Chemical", "Disease": "Disease"}
MIT_MOVIE_TYPES = {"ACTOR": PERSON, "DIRECTOR": PERSON, "TITLE": "Title"}
WNUT17_FILES = ("wnut17/wnut17train.conll", "wnut17/emerging.dev.conll", "wnut17/emerging.test.annotated")
WNUT17_SENTENCES = 5_690
CROSSNER = Corpus(
    "crossner",
    "CrossNER",
    read_columns,
    {
        **dict.fromkeys(("person", "politician", "scientist", "musicalartist", "writer", "researcher"), PERSON),
        **dict.fromkeys(("location", "country"), LOCATION),
        **dict.fromkeys(("organisation", "politicalparty", "university", "band"), ORGANIZATION),
    },
    ("crossner/*/train.txt", "crossner/*/dev.txt", "crossner/*/test.txt"),
    5_327,
)
MIT_MOVIE = Corpus(
    "mit_movie",
    "MIT-Movie",
    read_reversed,
    MIT_MOVIE_TYPES,
    ("mit_movie/engtrain.bio", "mit_movie/engtest.bio"),
    12_218,
)
