"""The options of paraphrases (docs/paraphrases.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from schemas.options import count, natural, number, option, rate, some_of

CONTRASTS = ("wordnet", "affixes", "any")
SCORES = ("weighted", "similarity", "diversity", "likelihood", "first")

_whole_share = number(float, lambda each: 0 <= each <= 1, "a number from 0 to 1")
_cosine = number(float, lambda each: -1 <= each <= 1, "a number from -1 to 1")
_from_one = number(float, lambda each: each >= 1, "a number of 1 or more, or inf")


@dataclass(frozen=True)
class ParaphraseFilters:
    """Which candidates are paraphrases, and which of several is taken; part of the fingerprint."""

    group: ClassVar[str] = "filters"

    max_edit_similarity: float = option(
        0.8,
        takes=_whole_share,
        metavar="S",
        help="refuse near copies: candidates whose words of content are more than S alike in letters; 1: none",
        more="Words of content are all but stop words, in lower case. The similarity is RapidFuzz's ratio",
    )
    max_word_similarity: float = option(
        0.8,
        takes=_whole_share,
        metavar="S",
        help="refuse candidates with a word of content that is more than S alike another one of the phrase; 1: none",
        more='Mostly another part of speech: "the destructive" for "the destruction"',
    )
    max_length_ratio: float = option(
        2.5,
        takes=_from_one,
        metavar="R",
        help="refuse candidates with more than R times the phrase's words, or of which it has R times; inf: none",
    )
    min_content: int = option(
        1,
        takes=natural,
        metavar="N",
        help="refuse candidates of fewer than N words of content; 0: none",
    )
    min_known_words: float = option(
        1.0,
        takes=_whole_share,
        metavar="S",
        help="refuse candidates of which less than the share S of words is known to be English; 0: none",
        more="Known are the words of the phrases, and the forms of 80,000 lemmas that the base install has",
    )
    punctuation: bool = option(
        True,
        flag="--allow-punctuation",
        opposite="refuse candidates with a mark that the phrase lacks",
        help="take candidates with a mark that the phrase lacks, such as a comma at the end",
    )
    numbers: bool = option(
        True,
        flag="--allow-other-numbers",
        opposite="refuse candidates with other numbers than the phrase",
        help="take candidates with other numbers than the phrase",
    )
    names: bool = option(
        True,
        flag="--allow-other-names",
        opposite="refuse candidates that lack a name of the phrase",
        help="take candidates that lack a name of the phrase",
    )
    contrasts: str = option(
        "wordnet",
        choices=CONTRASTS,
        help="refuse candidates that deny the phrase, or hold a word contrary to one of it, or beside it under a word "
        "of broader meaning: by WordNet and affixes, or by affixes alone; any: refuse none",
        more="A negative also needs a word that the phrase and its positive lack",
    )
    agreement: bool = option(
        True,
        flag="--allow-other-forms",
        opposite="refuse candidates of another number, tense or degree than the phrase",
        help="take candidates of another number, tense or degree than the phrase",
    )
    min_similarity: float = option(
        0.8,
        takes=_cosine,
        metavar="C",
        help="refuse candidates that have drifted: whose embedding has a cosine below C with the phrase's; -1: none",
    )
    min_content_similarity: float = option(
        0.75,
        takes=_cosine,
        metavar="C",
        help="the same for the words of content alone, as stop words make short texts alike; -1: none",
    )
    max_similarity: float = option(
        0.99,
        takes=_cosine,
        metavar="C",
        help="refuse copies: candidates whose embedding has a cosine above C with the phrase's; 1: none",
    )
    max_loss: float = option(
        15.0,
        takes=number(float, lambda each: each >= 0, "a number of 0 or more, or inf"),
        metavar="L",
        help="refuse candidates whose log probability by the language model is more than L below the phrase's; inf: "
        "none",
        more="Of whole texts: per token it tells nothing, as rare words have likely tokens. Nothing is refused where "
        "the generator gives no likelihood",
    )
    min_commonness: float = option(
        0.0,
        takes=_whole_share,
        metavar="S",
        help="refuse candidates with a word rarer than S; 0: none",
    )
    min_adequacy: float = option(
        0.0,
        takes=_whole_share,
        metavar="P",
        help="refuse candidates that --adequacy-model gives less than P to mean what the phrase does; 0: no such model",
        more="Parrot takes 0.9",
    )
    adequacy_model: str = option(
        "prithivida/parrot_adequacy_model",
        metavar="NAME",
        help="a classifier of pairs with two labels: a folder, or a name on the Hugging Face hub",
    )
    min_fluency: float = option(
        0.0,
        takes=_whole_share,
        metavar="P",
        help="refuse candidates that --fluency-model gives less than P to be fluent; 0: no such model",
        more="Parrot takes 0.9",
    )
    fluency_model: str = option(
        "prithivida/parrot_fluency_model",
        metavar="NAME",
        help="a classifier of texts with two labels: a folder, or a name on the Hugging Face hub",
    )
    score: str = option(
        "weighted",
        choices=SCORES,
        help="what chooses among the candidates that are left",
    )
    min_score: float = option(
        0.0,
        takes=number(float, lambda each: each == each, "a number, or -inf"),
        metavar="S",
        help="refuse candidates with a score below S; -inf: none",
        more="The weighted score is the log odds that a reader accepts a candidate; other scores need another bound",
    )
    min_negative_score: float = option(
        -4.0,
        takes=number(float, lambda each: each == each, "a number, or -inf"),
        metavar="S",
        help="the same for the corrupted phrase's; -inf: none",
        more="Lower, as p- has to differ from p: that it is near to the corrupted phrase matters less",
    )


@dataclass(frozen=True)
class TrainingPairRules:
    """Which pairs train a paraphraser (Krishna et al., section 2.1); part of the fingerprint."""

    group: ClassVar[str] = "training pairs"

    max_tau: float = option(
        0.0,
        takes=number(float, lambda each: -1 <= each <= 2, "a number from -1 to 2"),
        metavar="T",
        help="take pairs whose common words have an order with a Kendall tau below T; 2: any order",
        more="Pairs with fewer than two common words have a tau of -1",
        source="Krishna et al.",
    )
    max_precision: float = option(
        0.5,
        takes=number(float, lambda each: 0 < each <= 2, "a number above 0 and up to 2"),
        metavar="S",
        help="take pairs of which less than the share S of the paraphrase's words is the phrase's; 2: any",
        source="Krishna et al.",
    )
    max_length_difference: int = option(
        5,
        takes=natural,
        metavar="N",
        help="take pairs whose numbers of words differ by at most N",
        source="Krishna et al.",
    )
    min_english: float = option(
        0.5,
        takes=_whole_share,
        metavar="S",
        help="take pairs of which one text has at least the share S of words that are known to be English; 0: any",
        more="Letters that are not Latin are never English. The paper's code takes the language of a classifier",
    )


NO_FILTERS = ParaphraseFilters(
    max_edit_similarity=1,
    max_word_similarity=1,
    max_length_ratio=math.inf,
    min_content=0,
    min_known_words=0,
    punctuation=False,
    numbers=False,
    names=False,
    contrasts="any",
    agreement=False,
    min_similarity=-1,
    min_content_similarity=-1,
    max_similarity=1,
    max_loss=math.inf,
    min_commonness=0,
    score="first",
    min_score=-math.inf,
    min_negative_score=-math.inf,
)
"""All candidates pass but duplicates, and the first one is taken: as in the paper."""

PARROT = replace(NO_FILTERS, max_edit_similarity=0.95, min_adequacy=0.9, min_fluency=0.9, score="diversity")
"""Parrot's filters with its thresholds: of what they leave, the candidate that is least alike in letters."""

KEPT = ("names", "numbers")
"""Words that a paraphrase may hold although the phrase does."""

REPLACEMENTS = ("like", "uniform")

_odds = number(float, lambda each: 0 <= each <= 1, "a number from 0 to 1")


@dataclass(frozen=True)
class ConstraintRules:
    """Which words of a phrase its paraphrases may not hold, and how a phrase is corrupted; part of the fingerprint."""

    group: ClassVar[str] = "constraint"

    inflections: bool = option(
        True,
        flag="--exact-words",
        opposite="ban other forms and words of the same stem, too",
        help="ban the words of the phrase as they stand, not their other forms",
        more="The other forms are the inflections of the word, the words with its stem, and theirs",
    )
    keep: tuple[str, ...] = option(
        KEPT,
        takes=some_of((*KEPT, "none")),
        metavar="WHAT,WHAT",
        help="words of the phrase that a paraphrase may hold: names, numbers, none",
        more="Names are told by the capital letters of the surface and the entity type, numbers by digits and as words",
    )
    word_goes_on: float = option(
        0.002,
        takes=_odds,
        metavar="P",
        help="how likely a word goes on after a token that completes a banned one; 0: such tokens are forbidden",
        more="The logits of such tokens are lowered by its logarithm. It is an estimate; 1 lowers nothing",
    )
    replacement: str = option(
        "like",
        choices=REPLACEMENTS,
        help="what replaces a word in the corrupted phrase: a word of like frequency and part of speech, or any",
        source="Phrase-BERT",
    )

    @property
    def unlikely(self) -> float:
        """What such a token costs, in natural logarithms."""
        return -math.log(self.word_goes_on) if self.word_goes_on else math.inf


EXACT_WORDS = ConstraintRules(inflections=False, keep=("none",), replacement="uniform")
"""As in the paper."""


GENERATORS = ("phrasemill", "pairs", "prompted", "seq2seq", "ctranslate2")
"""The names of generators: `generators/identities.py` says what they are."""

PRECISIONS = ("float32", "bfloat16", "float16", "int8")

_positive = number(float, lambda each: 0 < each < math.inf, "a number above 0")


@dataclass(frozen=True)
class GeneratorOptions:
    """Which generator draws candidates, and how; part of the fingerprint."""

    group: ClassVar[str] = "generator"

    generator: str = option(
        "phrasemill",
        choices=GENERATORS,
        help="what draws candidates: the package's own paraphraser, a language model that was trained on pairs or is "
        "prompted with examples, a sequence-to-sequence model, or one that was trained on pairs run by CTranslate2",
    )
    generator_model: str | None = option(
        None,
        metavar="NAME",
        help="its model: a folder, or a name on the Hugging Face hub",
        unset="the generator's own",
    )
    prompt: str | None = option(
        None,
        place=True,
        metavar="FILE",
        help="for prompted: a text with {phrase} in it, after which the model goes on with a paraphrase",
        unset="eight examples",
    )
    top_p: float = option(
        0.8,
        takes=rate,
        metavar="P",
        help="draw tokens from the likeliest that together have the probability P",
        source="Phrase-BERT",
    )
    top_k: int = option(0, takes=natural, metavar="K", help="and from at most K; 0: no limit")
    temperature: float = option(
        1.0, takes=_positive, metavar="T", help="the higher, the more alike are the probabilities of tokens"
    )
    max_extra_tokens: int = option(
        10,
        takes=natural,
        metavar="N",
        help="cut a candidate that has N tokens more than its phrase",
        source="the released code of Krishna et al.",
    )
    generator_precision: str = option(
        "float32",
        choices=PRECISIONS,
        help="the arithmetic of the generator",
        more="bfloat16 is faster on a GPU and on CPUs that have it, and less exact. int8 is for ctranslate2",
    )


@dataclass(frozen=True)
class DrawingRules:
    """How many candidates are drawn of each phrase, and of its corrupted form; part of the fingerprint."""

    group: ClassVar[str] = "candidates"

    draws: int = option(
        8,
        takes=count,
        metavar="N",
        help="candidates of each phrase, and of its corrupted form",
        more="The filters and the score choose one of them. The paper takes one",
    )
    attempts: int = option(
        3,
        takes=count,
        metavar="N",
        help="how often candidates are drawn until there are enough without a banned word",
    )
    fluency: bool = option(
        True,
        flag="--no-fluency",
        opposite="measure how likely each text is by itself, for --score and --max-loss",
        help="do not measure how likely each text is by itself, for --score and --max-loss",
    )


PRESETS = ("best", "paper")


@dataclass(frozen=True)
class ParaphrasePreset:
    """Values of options, said once. What is given explicitly wins over them."""

    group: ClassVar[str] = "candidates"
    presets: ClassVar = {"paper": (DrawingRules(draws=1, fluency=False), EXACT_WORDS, NO_FILTERS)}

    preset: str = option(
        "best",
        choices=PRESETS,
        help="the defaults of these options; paper: one draw, exact words banned, any word for another, no filters",
    )


@dataclass(frozen=True)
class SubstitutionRules:
    """Which pairs are made by substitution; part of the fingerprint."""

    group: ClassVar[str] = "substitution"

    masked_lm: str = option(
        "google-bert/bert-base-uncased",
        place=True,
        metavar="NAME",
        help="the masked language model that says what fits in a phrase: a folder, or a name on the Hugging Face hub",
        more="Its vocabulary must be of lower case, its rare words last, as those of the uncased BERTs are",
    )
    masked_lm_precision: str = option(
        "float32",
        choices=("float32", "bfloat16"),
        help="the arithmetic of the masked language model",
        more="bfloat16 is faster on a GPU and on CPUs that have it, and less exact",
    )
    thesaurus: str | None = option(
        None,
        place=True,
        metavar="FILE",
        help="lists of related words, such as words.txt of Moby's thesaurus, for more substitutes than WordNet has",
        more="Lines such as `big,large,huge`; lists that name each other count",
        unset="none",
    )
    pairs: str | None = option(
        None,
        place=True,
        metavar="PATH",
        help="also take the pairs of another dataset, such as aliases, that share no word of content",
        more="A dataset of pairs of texts that mean the same; its rows are the origin; a score is not known of them",
        unset="none",
    )
    max_words: int = option(8, takes=count, metavar="N", help="leave out phrases of more than N words")
    pairs_per_phrase: int = option(5, takes=count, metavar="N", help="at most N paraphrases of a phrase")
    min_score: float = option(
        0.4,
        takes=_whole_share,
        metavar="P",
        help="leave out paraphrases that a person would accept with a probability below P, as estimated",
    )
    min_share_of_best: float = option(
        0.6,
        takes=_whole_share,
        metavar="S",
        help="leave out paraphrases with a score below S times that of the phrase's best",
    )
