"""Sentence splitters side by side: precision, recall and F1 of sentence beginnings, tokens per CPU second.

    python -m benchmarks.sentences --gold gum/dev.ptb --documents gum/dev.docs.tsv --json out.json

Running text is made from a treebank in two ways: as `paragraphs`, up to ten sentences in a line with headings on lines
of their own; and as `spaces`, ten sentences in each line, including headings. Only the beginnings inside lines are
scored. Each splitter has a separate process and one thread; its seconds are those of the fastest of three passes over
the text, without loading. spaCy's three splitters and syntok also make tokens in that time, spaCy's parser also tags
and trees.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from benchmarks import harness
from transforms.parsing.evaluation import Agreement
from transforms.parsing.treebank import TreebankSentence, read_treebank

SENTENCES_A_LINE = 10
PASSES = 3

Splitter: TypeAlias = Callable[[list[str]], list[list[int]]]
"""A function from lines to where the sentences of each begin, in code points."""


class Line(NamedTuple):
    text: str
    starts: list[int]  # in code points; the first is 0


# The text


def detokenised(words: Sequence[str], tags: Sequence[str]) -> str:
    """A sentence as it would be printed, from n words and their n Penn Treebank tags with HYPH."""
    text = words[0]
    for i in range(1, len(words)):
        joined = _joined(words[i - 1], tags[i - 1], words[i], tags[i], text)
        text += words[i] if joined else " " + words[i]
    return text


def _joined(left: str, left_tag: str, word: str, tag: str, text: str) -> bool:
    """Whether there is no space between two words; `text` is the sentence up to the left one."""
    if "HYPH" in (left_tag, tag) or not _JOINING.isdisjoint((left, word)):
        return True
    if tag in ("''", "-RRB-") or word in _CLOSING or left_tag in ("``", "-LRB-") or left in _OPENING:
        return True
    if tag in ("``", "-LRB-"):
        return word == "[" and _BEFORE_REFERENCE.search(text) is not None
    if tag == "POS" or _CLITIC.match(word) or (left.lower(), word.lower()) in _SPLIT_WORDS:
        return True
    return word in _MARKS or (tag in (",", ".") and not word[0].isalnum()) or left in _BEFORE_AMOUNTS


_JOINING = {"/", "—"}
_OPENING = set("“‘([{")
_CLOSING = set("”)]}")
_MARKS = {*", . ; : ? ! % ' ’ … .. ... ?! !? !! !!! ??".split()}
_BEFORE_AMOUNTS = set("$£€#")
_BEFORE_REFERENCE = re.compile(r"(?:\.|\]|[.!?][\"”])\Z")  # "the end.[3]"
_CLITIC = re.compile(r"(?:['’](?:s|m|re|ve|ll|d)|n['’]t)\Z", re.IGNORECASE)
_SPLIT_WORDS = {("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("lem", "me"), ("gim", "me")}


def is_heading(words: Sequence[str]) -> bool:
    """Whether a sentence ends without a mark, except references such as [3]; true for list items and verse as well."""
    text = _REFERENCES.sub("", " ".join(words)).rstrip(" \"'”’)]")
    return not text or text[-1].isalnum()


_REFERENCES = re.compile(r"(?:\s*\[ \d+ \])+\Z")


def paragraphs(sentences: Iterable[TreebankSentence]) -> Iterator[Line]:
    for heading, run in groupby(sentences, lambda sentence: is_heading(sentence.words)):
        yield from _lines(list(run), 1 if heading else SENTENCES_A_LINE)


def spaces(sentences: Iterable[TreebankSentence]) -> Iterator[Line]:
    yield from _lines(list(sentences), SENTENCES_A_LINE)


def _lines(sentences: list[TreebankSentence], to_a_line: int) -> Iterator[Line]:
    for first in range(0, len(sentences), to_a_line):
        text, starts = "", []
        for sentence in sentences[first : first + to_a_line]:
            text += " " if text else ""
            starts.append(len(text))
            text += detokenised(sentence.words, sentence.tags)
        yield Line(text, starts)


TEXTS = {each.__name__: each for each in (paragraphs, spaces)}


def read_documents(gold: Path, documents: Path | None) -> list[list[TreebankSentence]]:
    """The treebank's sentences by document, from a table (name, genre, first sentence, number); without it, as one."""
    sentences = list(read_treebank(gold))
    if documents is None:
        return [sentences]
    rows = (row.split("\t") for row in documents.read_text(encoding="utf-8").splitlines())
    return [sentences[int(first) - 1 : int(first) - 1 + int(count)] for _, _, first, count in rows]


def score(gold: Iterable[Sequence[int]], predicted: Iterable[Sequence[int]]) -> dict[str, float]:
    """The agreement on where sentences begin inside lines; the beginning of a line, 0, does not count."""
    common = in_gold = in_predicted = 0
    for gold_starts, predicted_starts in zip(gold, predicted, strict=True):
        expected, found = set(gold_starts) - {0}, set(predicted_starts) - {0}
        common += len(expected & found)
        in_gold += len(expected)
        in_predicted += len(found)
    agreement = Agreement(in_gold, in_predicted, common)
    return {"precision": agreement.precision, "recall": agreement.recall, "f1": agreement.f1}


# The splitters


def phrasemill() -> Splitter:
    from transforms.parsing.sentence_ends import sentence_starts

    return lambda lines: [sentence_starts(line) for line in lines]


def spacy_parser() -> Splitter:
    from transforms.parsing.spacy_parser import SpacyParser

    nlp = SpacyParser().nlp
    return lambda lines: [[sentence[0].idx for sentence in doc.sents] for doc in nlp.pipe(lines)]


def spacy_senter() -> Splitter:
    from thinc.api import use_ops

    from transforms.parsing.tokens import load_spacy

    with use_ops("numpy", use_blis=False):  # as in SpacyParser
        nlp = load_spacy(exclude=["tok2vec", "tagger", "parser", "ner", "lemmatizer", "attribute_ruler"])
    nlp.enable_pipe("senter")
    return lambda lines: [[sentence[0].idx for sentence in doc.sents] for doc in nlp.pipe(lines)]


def spacy_sentencizer() -> Splitter:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return lambda lines: [[sentence[0].idx for sentence in doc.sents] for doc in nlp.pipe(lines)]


def blingfire() -> Splitter:
    from blingfire import text_to_sentences_and_offsets

    return lambda lines: [[start for start, _ in text_to_sentences_and_offsets(line)[1]] for line in lines]


def syntok() -> Splitter:
    from syntok.segmenter import analyze

    return lambda lines: [[sentence[0].offset for part in analyze(line) for sentence in part] for line in lines]


def pysbd() -> Splitter:
    from pysbd import Segmenter

    segmenter = Segmenter(language="en", clean=False, char_span=True)

    def starts(line: str) -> list[int]:
        spans = [(span.start, line[span.start : span.end]) for span in segmenter.segment(line)]
        return [start + len(text) - len(text.lstrip()) for start, text in spans]  # a span may begin with spaces

    return lambda lines: [starts(line) for line in lines]


SPLITTERS: dict[str, Callable[[], Splitter]] = {
    each.__name__: each
    for each in (phrasemill, spacy_parser, spacy_senter, spacy_sentencizer, blingfire, syntok, pysbd)
}
NOT_REQUIRED = ("blingfire", "syntok", "pysbd")


def measure(splitter: str, documents: list[list[TreebankSentence]]) -> dict[str, Any]:
    """Split both texts in this process."""
    split = SPLITTERS[splitter]()
    scores: dict[str, dict[str, float]] = {}
    seconds = 0.0
    for name, make in TEXTS.items():
        lines = [line for document in documents for line in make(document)]
        texts = [line.text for line in lines]
        passes = []
        for _ in range(PASSES):
            start = time.process_time()
            predicted = split(texts)
            passes.append(time.process_time() - start)
        seconds += min(passes)
        scores[name] = score([line.starts for line in lines], predicted)
    tokens = len(TEXTS) * sum(len(sentence.words) for document in documents for sentence in document)
    return {"scores": scores, "tokens_per_cpu_second": round(tokens / seconds)}


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--gold", type=Path, required=True, metavar="FILE.ptb", help="a treebank")
    parser.add_argument(
        "--documents", type=Path, metavar="FILE.tsv", help="its documents: name, genre, first sentence, their number"
    )
    options = parser.parse_args()
    documents = read_documents(options.gold, options.documents)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # for the processes started below
    results = {
        each: harness.apart(partial(measure, each, documents))[0]
        for each in SPLITTERS
        if each not in NOT_REQUIRED or find_spec(each)
    }
    rows = []
    for splitter, found in results.items():
        scores = [each for text in TEXTS for each in found["scores"][text].values()]
        rows.append((splitter, *(f"{each:.3f}" for each in scores), found["tokens_per_cpu_second"]))
    headings = ("splitter", "precision", "recall", "F1", "spaces: precision", "recall", "F1", "tokens/CPU s")
    harness.show(str(options.gold), headings, rows)
    for each in SPLITTERS.keys() - results.keys():
        print(f"{each}: skipped: not installed; pip install {each}")
    harness.write(options.json, results)


if __name__ == "__main__":
    main()
