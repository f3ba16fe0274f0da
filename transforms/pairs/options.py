"""The options of pairs of phrases (docs/pair-sets.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from schemas.errors import UserError
from schemas.options import BadValue, count, number, option

PAIR_FORMAT_OBJECTS = {"ppdb": "PPDB", "paws": "PAWS", "json": "JSON_PAIRS", "tsv": "TSV"}
"""The formats of pairs by name, each an object in `transforms/pairs/formats.py`, in the order in which a file is tried.

`tsv` is last, because `paws` is one, too.
"""


@dataclass(frozen=True)
class PairRules:
    """Which pairs of a file are kept; part of the fingerprint."""

    group: ClassVar[str] = "pairs"

    preset: str | None = option(
        None,
        choices=("pgru",),
        help="the rules of Pairwise-GRU: --letters-only, --no-single-words, and --vocabulary, which has to be given",
        unset="none",
        source="Zhou, Huang and Ji 2017",
    )
    letters_only: bool = option(False, help="leave out pairs with a character that is neither a letter nor a space")
    no_single_words: bool = option(False, help="leave out pairs of two single words")
    vocabulary: str | None = option(
        None,
        place=True,
        metavar="FILE",
        help="leave out pairs with a word that is not in it: a word a line, or word2vec's text or binary format",
    )
    score: str = option(
        "PPDB2.0Score",
        metavar="NAME",
        help="the feature of PPDB that is taken as the score",
        more="Files of PPDB 1.0 have no such score; features that are logarithms are taken as they are",
    )
    min_score: float | None = option(
        None,
        takes=number(float, lambda each: each == each, "a number"),
        metavar="X",
        help="leave out pairs with a lower score, or with none",
    )
    relations: tuple[str, ...] = option(
        (),
        takes=lambda text: tuple(sorted({each.strip() for each in text.split(",") if each.strip()})),
        metavar="NAME,NAME",
        help="leave out pairs with another relation, or with none, such as Equivalence,ForwardEntailment",
        unset="all",
    )
    one_direction: bool = option(
        False,
        help="of a pair that is given in both directions keep one, with the higher score",
        more="Ties by the bytes of the phrase",
    )

    @property
    def resolved(self) -> PairRules:
        """The same with what the preset says. UserError if it lacks something."""
        if self.preset is None:
            return self
        if self.vocabulary is None:
            raise UserError(
                f"--preset {self.preset}: needs the words of the embeddings; give their file with --vocabulary, or "
                "--letters-only and --no-single-words instead of the preset"
            )
        return replace(self, preset=None, letters_only=True, no_single_words=True)


@dataclass(frozen=True)
class LabelRules:
    """Which set is made of pairs; part of the fingerprint."""

    group: ClassVar[str] = "labels"

    recipe: str = option(
        "ppdb",
        flag="--set",
        choices=("ppdb", "ppdb_filtered", "paws_short"),
        help="the set to make",
        more="`ppdb`: each pair, and with it a random phrase as a negative of its phrase; `ppdb_filtered`: pairs that "
        "share one word, as many positives as negatives by each word; `paws_short`: short pairs of PAWS, balanced",
        source="Phrase-BERT, section 4.1",
    )
    rows: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="at most N rows, half of them positives: those of lowest hash",
        unset="1,300 of paws_short, else all",
    )
    words: int = option(
        2,
        takes=count,
        metavar="N",
        help="ppdb_filtered: pairs of phrases of exactly N words",
        source="Yu and Ettinger 2020",
    )
    phrases_per_word: int = option(
        1000,
        takes=count,
        metavar="N",
        help="ppdb_filtered: at most N phrases with one word, those of lowest hash",
        more="It bounds memory",
    )
    max_tokens: int = option(
        9,
        takes=count,
        metavar="N",
        help="paws_short: pairs of sentences of at most N tokens",
        source='"under 10 tokens": Phrase-BERT, section 4.1',
    )


def shares_of(text: str) -> tuple[float, ...]:
    """The sizes of train, validation and test; the last may be left out."""
    try:
        found = tuple(float(each) for each in text.split(","))
    except ValueError:
        found = ()
    if not 1 <= len(found) <= 3 or not min(found) >= 0 or not 0 < sum(found) < 1e9:
        raise BadValue(f"must be the sizes of train, validation and test, such as 70,15,15, not {text}")
    return found


def _splits(text: str) -> str:
    shares_of(text)
    return text


@dataclass(frozen=True)
class SplitShares:
    """The splits; part of the fingerprint."""

    group: ClassVar[str] = "choices by hash"

    splits: str = option(
        "100",
        takes=_splits,
        metavar="N,N,N",
        help="sizes of train, validation and test; a pair is in one of them by its hash",
        more="Both directions of a pair are in one split",
    )

    @property
    def shares(self) -> tuple[float, ...]:
        return shares_of(self.splits)


@dataclass(frozen=True)
class ContrastRules:
    """How many contrast phrases a pair gets; part of the fingerprint."""

    group: ClassVar[str] = "contrasts"

    contrasts: int = option(
        9,
        takes=count,
        metavar="K",
        help="contrast phrases of each pair, drawn uniformly from all phrases",
        more="The paper has 9, 29 and 99, and 99 in its evaluation",
        source="Zhou, Huang and Ji 2017",
    )
