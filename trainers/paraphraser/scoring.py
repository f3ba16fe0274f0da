"""Scores of a paraphraser on held-out phrases: how likely their paraphrases are, and how near what it says comes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch

from trainers.paraphraser.data import Pairs
from transforms.arrays import mix64
from transforms.paraphrase.constraints import banned_words, violations
from transforms.paraphrase.generators.interface import Request
from transforms.paraphrase.generators.registry import load_generator
from transforms.paraphrase.options import GeneratorOptions

PHRASES = 300
"""How many held-out phrases are paraphrased, those of lowest hash."""

DRAWS = 4


class SaidScores(NamedTuple):
    """What a paraphraser says of held-out phrases, in `DRAWS` draws each.

    `satisfying`: the share of what it says that has no word of the phrase in any form. The other figures are of those
    alone. `exact`: the share of phrases for which one is a paraphrase in the pairs. `nearest`: the mean over phrases of
    the highest F1 of the words of one with those of a paraphrase in the pairs.
    """

    phrases: int
    satisfying: float
    exact: float
    nearest: float


def said_scores(folder: Path, pairs: Pairs) -> SaidScores:
    """The scores of a saved model."""
    known: dict[int, list[str]] = {}
    for one, other in zip(pairs.one.tolist(), pairs.other.tolist(), strict=True):
        known.setdefault(one, []).append(pairs.texts[other])
    chosen = sorted(known, key=lambda number: int(pairs.keys[number]))[:PHRASES]
    seeds = mix64(pairs.keys[chosen]).tolist()
    phrases = [pairs.texts[each] for each in chosen]
    banned = [banned_words(each, inflections=True) for each in phrases]
    threads = torch.get_num_threads()
    generator = load_generator(GeneratorOptions(generator="pairs", generator_model=str(folder)))
    torch.set_num_threads(threads)
    said = generator.generate(list(map(Request, phrases, banned, seeds)), draws=DRAWS)
    fine = [
        [each.text for each in candidates if each.finished and not violations(each.text, words, inflections=True)]
        for candidates, words in zip(said, banned, strict=True)
    ]
    of = max(1, len(chosen))
    return SaidScores(
        phrases=len(chosen),
        satisfying=round(sum(map(len, fine)) / (of * DRAWS), 4),
        exact=round(sum(not set(each).isdisjoint(known[n]) for n, each in zip(chosen, fine, strict=True)) / of, 4),
        nearest=round(sum(_nearest(each, known[n]) for n, each in zip(chosen, fine, strict=True)) / of, 4),
    )


def _nearest(said: list[str], known: list[str]) -> float:
    return max((word_f1(one, other) for one in said for other in known), default=0.0)


def word_f1(one: str, other: str) -> float:
    """The F1 of the words of two texts.

    >>> word_f1("a large house", "a big house")
    0.6666666666666666
    """
    ours, theirs = Counter(one.split()), Counter(other.split())
    return 2 * (ours & theirs).total() / max(1, ours.total() + theirs.total())
