"""The options of phrases (docs/phrases.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import count, natural, option, some_of
from schemas.terms import PHRASE_LABELS

MOST_PHRASES = 100_000
"""How many phrases a dataset has where nothing is said: Phrase-BERT, section 3."""

LEAST_FREQUENCY = 2
"""How often a phrase occurs at least where nothing is said: what occurs once is mostly a clause or a parsing error."""


@dataclass(frozen=True)
class PhraseRules:
    """Which constituents are phrases, and in which form; part of the fingerprint of what is counted."""

    group: ClassVar[str] = "phrases"

    labels: tuple[str, ...] = option(
        ("NP", "VP", "ADJP", "ADVP"),
        takes=some_of(PHRASE_LABELS),
        metavar="L,L",
        help="constituents to take",
        more="PP is taken only if it is named",
        source="Phrase-BERT, section 3",
    )
    max_tokens: int = option(
        10,
        takes=natural,
        flag="--max-phrase-tokens",
        metavar="N",
        help="leave out longer phrases; 0: none",
        source="Phrase-BERT, section 3",
    )
    lowercase: bool = option(True, flag="--keep-case", help="keep upper case")
    strip_punctuation: bool = option(True, flag="--keep-punctuation", help="keep leading and trailing punctuation")
    strip_determiners: bool = option(True, flag="--keep-determiners", help="keep leading determiners")
    strip_possessives: bool = option(True, flag="--keep-possessives", help="keep a trailing possessive 's")
    drop_auxiliaries: bool = option(
        True,
        flag="--keep-auxiliaries",
        help="keep verb phrases that an auxiliary, a modal or to leads",
        more="What they lead is a constituent of its own",
    )
    drop_pronouns: bool = option(True, flag="--keep-pronouns", help="keep lone pronouns")
    drop_numbers: bool = option(
        True,
        flag="--keep-numbers",
        help="keep lone numbers, also with function words",
        opposite="leave out lone numbers, also with function words",
    )
    drop_dates: bool = option(
        True, flag="--keep-dates", help="keep dates with a number", opposite="leave out dates with a number"
    )
    drop_measures: bool = option(
        True, flag="--keep-measures", help="keep numbers with units", opposite="leave out numbers with units"
    )
    drop_function_words: bool = option(True, flag="--keep-function-words", help="keep phrases of function words only")
    min_letters: int = option(
        2,
        takes=natural,
        flag="--min-phrase-letters",
        metavar="N",
        help="leave out phrases in which no word of meaning has N letters",
    )
    drop_clauses: bool = option(True, flag="--keep-clauses", help="keep phrases with a clause inside")
    nested: str = option(
        "base",
        choices=("all", "outermost", "base"),
        help="which to keep of nested constituents with the same head",
    )


@dataclass(frozen=True)
class Vocabulary:
    """Which phrases are kept; part of the fingerprint."""

    group: ClassVar[str] = "phrases"

    max_phrases: int | None = option(
        None,
        takes=natural,
        metavar="K",
        help="keep the K most frequent, of equally frequent ones those of lowest hash; 0: all",
        unset=f"{MOST_PHRASES:,}; all with --min-frequency",
        source="Phrase-BERT, section 3",
    )
    min_frequency: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="leave out phrases that occur fewer than N times",
        unset=str(LEAST_FREQUENCY),
    )

    @property
    def most(self) -> int | None:
        """How many phrases at most; None where their frequency alone decides."""
        if self.max_phrases is None:
            return MOST_PHRASES if self.min_frequency is None else None
        return self.max_phrases or None

    @property
    def least(self) -> int:
        """How often a phrase occurs at least."""
        return LEAST_FREQUENCY if self.min_frequency is None else self.min_frequency


MATCHES = ("exact", "head", "contained")


@dataclass(frozen=True)
class TypeRules:
    """Which entity gives an occurrence of a phrase its type; part of the fingerprint."""

    group: ClassVar[str] = "types"

    entity_match: str = option(
        "head",
        choices=MATCHES,
        help="the entity of a phrase: the one with its words, or also one inside that has its head, or any inside",
    )


TYPED_RULES = PhraseRules(
    labels=PHRASE_LABELS, max_tokens=0, drop_numbers=False, drop_dates=False, drop_measures=False, nested="all"
)
TYPED_VOCABULARY = Vocabulary(max_phrases=0, min_frequency=LEAST_FREQUENCY)
"""Which phrases are typed where nothing is said: those of all labels and lengths that occur twice (PEARL, section 4.1).

Numbers, dates and measures are types of phrases. Of nested constituents all are kept: phrases without their contexts
do not overlap, and "president" and "president of the senate" are two.
"""
