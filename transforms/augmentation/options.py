"""The options of augmentations (docs/augmentation.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import BadValue, count, option, share, some_of
from transforms.augmentation.registry import ALWAYS, CODE, FROM_PAIRS, GRANULARITIES, GRANULARITY, OPERATIONS, UNCHANGED

SCHEMES = {"paper": dict.fromkeys(GRANULARITIES, 1.0), "code": CODE}


def shares_of(scheme: str) -> dict[str, float]:
    """The shares of a scheme, by the name of an operation or of a granularity; they need not add up to 1."""
    if scheme in SCHEMES:
        return SCHEMES[scheme]
    found: dict[str, float] = {}
    for part in scheme.split(","):
        name, _, share = part.strip().partition("=")
        try:
            found[name] = float(share)
        except ValueError:
            raise BadValue(f"must be paper, code, or NAME=SHARE with commas between, not {scheme}") from None
        if name not in (*GRANULARITIES, *OPERATIONS, UNCHANGED) or not 0 <= found[name] <= 1e6:
            known = ", ".join((*GRANULARITIES, *OPERATIONS, UNCHANGED))
            raise BadValue(f"{part.strip()}: no share of an operation or granularity; there are {known}")
    return found


def _operations(text: str) -> tuple[str, ...]:
    of = {each: ",".join(name for name in ALWAYS if GRANULARITY[name] == each) or each for each in GRANULARITIES}
    named = ",".join(of.get(each.strip(), each) for each in text.split(","))
    return some_of([each for each in OPERATIONS if each not in FROM_PAIRS])(named)


def _scheme(text: str) -> str:
    shares_of(text)
    return text


@dataclass(frozen=True)
class DrawRules:
    """How often and by which operations a phrase is augmented; part of the fingerprint."""

    group: ClassVar[str] = "augmentation"

    draws: int = option(
        2,
        takes=count,
        metavar="N",
        help="augmentations of each phrase",
        more="PEARL trains for 2 epochs",
    )
    operations: tuple[str, ...] | None = option(
        None,
        takes=_operations,
        metavar="OP,OP",
        help="operations to draw from, besides paraphrase; a granularity stands for its usual ones",
        unset=",".join(ALWAYS),
    )
    scheme: str = option(
        "paper",
        takes=_scheme,
        metavar="NAME",
        help="how they are drawn: paper, code, or shares such as character=.2,synonym=.3,unchanged=.05",
        source="PEARL",
    )
    paraphrases: str | None = option(
        None,
        place=True,
        metavar="DIR",
        help="a dataset of texts that mean the same, such as aliases; its share is else that of the others",
    )


@dataclass(frozen=True)
class AugmenterOptions:
    """Options of single operations, such as the path of a lexicon: `registry.py` says which operation takes which."""

    group: ClassVar[str] = "operations"

    min_word_letters: int = option(
        4,
        takes=count,
        metavar="N",
        help="change the letters of words of at least N letters",
    )
    swap: str = option(
        "adjacent",
        choices=("adjacent", "any"),
        help="which tokens change places: adjacent ones, as in the paper, or any two, as in its code",
        source="PEARL",
    )
    vectors: str | None = option(
        None,
        metavar="NAME",
        help="the vectors of nearest_word: a spaCy pipeline, or a text file as word2vec, GloVe and fastText have it",
    )
    min_cosine: float = option(
        0.8, takes=share, metavar="X", help="how near the vectors of two words are for nearest_word"
    )
    masked_lm: str = option(
        "google-bert/bert-base-uncased",
        metavar="NAME",
        help="the masked language model of contextual: a folder, or a name on the Hugging Face hub",
    )
