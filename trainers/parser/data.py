"""Sentences to train the parser on: from treebanks in PTB brackets, or with a teacher's soft labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from transforms.parsing.interface import Constituent
from transforms.parsing.phrasemill.encoding import GUM
from transforms.parsing.treebank import TreebankError, TreebankSentence, read_trees

SOFT_LABELS = pa.schema(
    [
        pa.field("words", pa.list_(pa.string()), nullable=False),
        pa.field("tags", pa.list_(pa.string()), nullable=False),
        pa.field(
            "spans",
            pa.list_(
                pa.struct(
                    [
                        pa.field("label", pa.string(), nullable=False),
                        pa.field("start_token", pa.int32(), nullable=False),
                        pa.field("end_token", pa.int32(), nullable=False),
                        pa.field("probability", pa.float32(), nullable=False),
                    ]
                )
            ),
            nullable=False,
        ),
    ]
)
"""A teacher's labels: the spans above a probability, and the most likely tag of each word."""


class Example(NamedTuple):
    """A sentence of n words with the labels to learn."""

    words: list[str]
    tags: list[str]
    spans: list[Constituent]
    probabilities: list[float]  # one a span
    convention: int = GUM


def read_examples(path: Path, *, convention: int, faults: list[TreebankError]) -> Iterator[Example]:
    """The sentences of a treebank; a tree that cannot be read is left out and its error added to `faults`."""
    for sentence in read_trees(path, faults):
        yield example_of(sentence, convention)


def example_of(sentence: TreebankSentence, convention: int) -> Example:
    spans = sentence.constituents
    return Example(sentence.words, sentence.tags, spans, [1.0] * len(spans), convention)


def with_hyphens_merged(example: Example) -> Example:
    """The example with each hyphenated word as one token, as in the Wall Street Journal.

    GUM and CRAFT split "adult-learned" into three tokens and bracket them. Phrases inside the word are removed, and the
    word gets the tag of its last part. A hyphen stays if it hangs ("pre- and"), or if a longer phrase begins or ends in
    the middle of the word. Of the words an adult - learned sign, with an ADJP [1, 4) and an NP [0, 5), the tokens 2 and
    3 are glued to those before them, `parts` is [0, 1) [1, 4) [4, 5), the ADJP is removed and the NP is [0, 3).
    """
    words, tags = example.words, example.tags
    hyphens = [
        place
        for place in range(1, len(words) - 1)
        if tags[place] == "HYPH"
        and words[place - 1][-1].isalnum()
        and words[place + 1][0].isalnum()
        and tags[place + 1] != "CC"
    ]
    glued = {place for hyphen in hyphens for place in (hyphen, hyphen + 1)}  # tokens joined to the one before
    parts: list[tuple[int, int]] = []
    for place in range(len(words)):
        parts = [*parts[:-1], (parts[-1][0], place + 1)] if place in glued else [*parts, (place, place + 1)]

    def is_cut(start: int, end: int) -> bool:
        """Whether a phrase that is not inside the word begins or ends in its middle."""
        return any(
            (start < span.start_token < end or start < span.end_token < end)
            and not (start <= span.start_token and span.end_token <= end)
            for span in example.spans
        )

    parts = [
        part
        for start, end in parts
        for part in ([(place, place + 1) for place in range(start, end)] if is_cut(start, end) else [(start, end)])
    ]
    fence = {start: number for number, (start, _) in enumerate(parts)} | {len(words): len(parts)}
    merged = {(start, end) for start, end in parts if end - start > 1}
    kept = [
        (Constituent(span.label, fence[span.start_token], fence[span.end_token]), probability)
        for span, probability in zip(example.spans, example.probabilities, strict=True)
        if not any(start <= span.start_token and span.end_token <= end for start, end in merged)
    ]
    return example._replace(
        words=["".join(words[start:end]) for start, end in parts],
        tags=[tags[end - 1] for _, end in parts],
        spans=[span for span, _ in kept],
        probabilities=[probability for _, probability in kept],
    )


def write_soft_labels(path: Path, batches: Iterator[Sequence[Example]]) -> int:
    """Write a teacher's labels; returns the number of words."""
    total = 0
    with pq.ParquetWriter(path, SOFT_LABELS, compression="zstd") as writer:
        for batch in batches:
            rows = [
                {
                    "words": example.words,
                    "tags": example.tags,
                    "spans": [
                        {"label": label, "start_token": start, "end_token": end, "probability": probability}
                        for (label, start, end), probability in zip(example.spans, example.probabilities, strict=True)
                    ],
                }
                for example in batch
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema=SOFT_LABELS))
            total += sum(len(example.words) for example in batch)
    return total


def read_soft_labels(path: Path) -> Iterator[Example]:
    for batch in pq.ParquetFile(path).iter_batches(5_000):
        for row in batch.to_pylist():
            spans = [Constituent(span["label"], span["start_token"], span["end_token"]) for span in row["spans"]]
            yield Example(row["words"], row["tags"], spans, [span["probability"] for span in row["spans"]])


def sample(examples: Sequence[Example], generator: np.random.Generator) -> Iterator[Example]:
    """The examples in random order, without end: a new order for each pass."""
    while True:
        for place in generator.permutation(len(examples)):
            yield examples[place]
