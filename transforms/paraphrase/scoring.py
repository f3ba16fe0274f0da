"""Which candidates are paraphrases, why the others are not, and which of several is the best.

    judge = Judge(rules, lexicon=..., wordnet=..., encoder=..., likelihood=...)     once a process
    judged = judge(phrases, owner, candidates)
    best(owner, judged, len(phrases))                                                [n] of candidates; -1: none is left

The cheap filters come first, so that models see only what those leave.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.errors import UserError
from transforms.arrays import I64, U64, strings_hashes
from transforms.augmentation.wordnet import WordNet
from transforms.encoders.interface import Encoder
from transforms.hub import locate_model, sha256_of_model
from transforms.paraphrase import filters
from transforms.paraphrase.contrasts import Contrasts, other_form
from transforms.paraphrase.filters import Lexicon
from transforms.paraphrase.options import ParaphraseFilters
from transforms.paraphrase.words import content_words, words

if TYPE_CHECKING:
    from transforms.paraphrase.transformers_classifiers import Classifier

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]

Likelihood = Callable[[Sequence[str]], F64]
"""[n] the log probability (natural) of each text under a causal language model: the sum over its tokens."""

REASONS = (
    "empty",
    "duplicate",
    "no_content",
    "punctuation",
    "near_copy",
    "length",
    "unknown_word",
    "number",
    "name",
    "denial",
    "contrast",
    "repeated",
    "other_form",
    "near_word",
    "rare_word",
    "drift",
    "content_drift",
    "copy",
    "not_fluent",
    "not_adequate",
    "ill_formed",
    "low_score",
)
"""Why a candidate is refused: the first of these that holds."""


class Original(NamedTuple):
    """A phrase: its text, the label of its constituents, and the names in it (words that may not be lost).

    said: of a corrupted phrase, the phrase and its paraphrase, whose meaning it lost
    """

    text: str
    label: str = ""
    names: tuple[str, ...] = ()
    said: str = ""


class Judged(NamedTuple):
    """[m] of each candidate why it is refused (empty: it is left), and its measures: NaN where not measured.

    `edit_similarity` and `content_similarity` are those of the words of content; `fluency` is the log probability less
    that of the phrase; `log_probability` is that of the candidate given the phrase, as it was passed.
    """

    reason: list[str]
    edit_similarity: F32
    commonness: F32
    similarity: F32
    content_similarity: F32
    fluency: F32
    log_probability: F32
    score: F32


class Judge:
    """The filters and the score of a set of rules, with the models that they need: `needs` says which.

    A candidate's reason and measures depend on it, its phrase and the rules alone (and for "duplicate" on those before
    it), but for the last digits of what a model computes in batches.
    """

    def __init__(
        self,
        rules: ParaphraseFilters,
        *,
        lexicon: Lexicon,
        wordnet: WordNet | None = None,
        encoder: Encoder | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        missing = needs(rules) - {
            name
            for name, each in (("wordnet", wordnet), ("encoder", encoder), ("likelihood", likelihood))
            if each is not None
        }
        if missing:
            raise ValueError(f"the filters need {', '.join(sorted(missing))}")
        self._rules, self._lexicon, self._encoder, self._likelihood = rules, lexicon, encoder, likelihood
        self._classifiers = [
            (reason, load_classifier(model, flag), least, prefix)
            for reason, least, model, flag, prefix in classifiers(rules)
        ]
        self._contrasts = Contrasts(wordnet if "wordnet" in needs(rules) else None)

    def __call__(
        self,
        phrases: Sequence[Original],
        owner: I64,
        candidates: Sequence[str],
        note: Callable[[int], None] = lambda done: None,
        *,
        log_probability: F32 | None = None,
        min_score: float | None = None,
    ) -> Judged:
        """Judge candidates, each of the phrase number `owner`. `note` is called with how many texts were encoded.

        log_probability  [m] of the candidates given their phrases, from the embedded paraphraser; None from others
        min_score        instead of that of the rules
        """
        rules, m = self._rules, len(candidates)
        least = rules.min_score if min_score is None else min_score
        own = [phrases[each] for each in owner.tolist()]
        twice = filters.duplicates(owner.tolist(), candidates)
        reason = [
            next(self._reasons(phrase, text, again), "")
            for phrase, text, again in zip(own, candidates, twice, strict=True)
        ]
        found = Judged(reason, *(np.full(m, np.nan, np.float32) for _ in Judged._fields[1:]))
        if log_probability is not None:
            found.log_probability[:] = log_probability
        left = [row for row in range(m) if not reason[row]]
        for row in left:
            found.edit_similarity[row] = filters.near_copy(own[row].text, candidates[row])
            found.commonness[row] = self._lexicon.commonness(candidates[row])
        if self._encoder:
            pairs = [(own[row].text, candidates[row]) for row in left]
            found.similarity[left] = similarities(self._encoder, pairs, note)
            pairs = [(_content(one), _content(other)) for one, other in pairs]
            found.content_similarity[left] = similarities(self._encoder, pairs, note)
            for row in left:
                if found.similarity[row] < np.float32(rules.min_similarity):
                    reason[row] = "drift"
                elif found.content_similarity[row] < np.float32(rules.min_content_similarity):
                    reason[row] = "content_drift"
                elif found.similarity[row] > np.float32(rules.max_similarity):
                    reason[row] = "copy"
        left = [row for row in left if not reason[row]]
        if self._likelihood:
            texts = [own[row].text for row in left] + [candidates[row] for row in left]
            distinct = {text: place for place, text in enumerate(dict.fromkeys(texts))}
            values = self._likelihood(list(distinct))[[distinct[each] for each in texts]] if texts else np.empty(0)
            found.fluency[left] = values[len(left) :] - values[: len(left)]
            for row in left:
                if found.fluency[row] < -rules.max_loss:
                    reason[row] = "not_fluent"
        for reason_of, classifier, wanted, prefix in self._classifiers:
            left = [row for row in left if not reason[row]]
            texts = [prefix + candidates[row] for row in left]
            first = [own[row].text for row in left]
            good = classifier.probabilities(texts) if prefix else classifier.probabilities(first, texts)
            for row, each in zip(left, good.tolist(), strict=True):
                if each < wanted:
                    reason[row] = reason_of
        found.score[:] = score(found, rules.score)
        for row in range(m):
            if not reason[row] and found.score[row] < least:
                reason[row] = "low_score"
        return found

    def _reasons(self, phrase: Original, text: str, twice: bool) -> Iterator[str]:
        """Why a candidate is refused, as far as no model is needed."""
        rules = self._rules
        if not words(text):
            yield "empty"
        if twice:
            yield "duplicate"
        if len(content_words(text)) < rules.min_content:
            yield "no_content"
        if rules.punctuation and filters.marks(phrase.text, text):
            yield "punctuation"
        if filters.near_copy(phrase.text, text) > rules.max_edit_similarity:
            yield "near_copy"
        if filters.length_ratio(phrase.text, text) > rules.max_length_ratio:
            yield "length"
        if rules.min_known_words and self._lexicon.known(text) < rules.min_known_words:
            yield "unknown_word"
        if rules.numbers and filters.numbers(phrase.text) != filters.numbers(text):
            yield "number"
        if rules.names and filters.lacks_name(text, phrase.names):
            yield "name"
        if rules.contrasts != "any":
            if self._contrasts.denies(phrase.text, text):
                yield "denial"
            if self._contrasts.sisters(phrase.text, text):
                yield "contrast"
            if phrase.said and filters.repeats(phrase.said, text):
                yield "repeated"
        if rules.agreement and (other_form(phrase.text, text, phrase.label) or filters.wrong_article(text)):
            yield "other_form"
        if filters.near_word(phrase.text, text) > rules.max_word_similarity:
            yield "near_word"
        if rules.min_commonness and self._lexicon.commonness(text) < rules.min_commonness:
            yield "rare_word"


class _Classified(NamedTuple):
    """A filter by a classifier: its reason, threshold and model, the flag of that, and what is put before a text."""

    reason: str
    least: float
    model: str
    flag: str
    prefix: str


def classifiers(rules: ParaphraseFilters) -> list[_Classified]:
    """The classifiers that the filters use. Parrot's for fluency was trained with a word before its texts."""
    found = [
        _Classified("not_adequate", rules.min_adequacy, rules.adequacy_model, "--adequacy-model", ""),
        _Classified("ill_formed", rules.min_fluency, rules.fluency_model, "--fluency-model", "Sentence: "),
    ]
    return [each for each in found if each.least]


def classifier_identities(rules: ParaphraseFilters) -> list[dict[str, str]]:
    """What decides the output of the classifiers that the filters use. UserError if one is missing."""
    found = []
    for each in classifiers(rules):
        try:
            folder = locate_model(each.model)
        except (ModuleNotFoundError, OSError) as error:
            raise UserError(f"{each.flag}: {error}") from error
        found.append({"classifier": each.model.rpartition("/")[2], "sha256": sha256_of_model(folder)})
    return found


def load_classifier(name: str, flag: str) -> Classifier:
    """A classifier. UserError if it, or a library, is missing."""
    try:
        module = importlib.import_module("transforms.paraphrase.transformers_classifiers")
    except ModuleNotFoundError as error:
        raise UserError(f"{flag} {name}: needs {error.name}: pip install 'phrasemill[transformers]'") from error
    classifier: Classifier = module.Classifier(name, flag=flag)
    return classifier


def needs(rules: ParaphraseFilters) -> set[str]:
    """What the filters and the score need: of "wordnet", "encoder", "likelihood".

    The weighted score and `max_loss` take a likelihood too where there is one.
    """
    found = set()
    if rules.contrasts == "wordnet":
        found.add("wordnet")
    bounds = (rules.min_similarity, rules.min_content_similarity, -rules.max_similarity)
    if max(bounds) > -1 or rules.score in ("weighted", "similarity"):
        found.add("encoder")
    if rules.score == "likelihood":
        found.add("likelihood")
    return found


def similarities(
    encoder: Encoder, pairs: Sequence[tuple[str, str]], note: Callable[[int], None] = lambda done: None
) -> F32:
    """[m] the cosine of both texts of each pair; each text is encoded once."""
    distinct = {text: place for place, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    if not pairs:
        return np.empty(0, np.float32)
    vectors = encoder.encode(list(distinct), note)
    length = np.sqrt((vectors * vectors).sum(axis=1, dtype=np.float32))
    vectors = vectors / np.where(length > 0, length, np.float32(1))[:, None]
    one, other = (np.array([distinct[pair[side]] for pair in pairs]) for side in (0, 1))
    found: F32 = np.clip((vectors[one] * vectors[other]).sum(axis=1, dtype=np.float32), -1, 1)
    return found


INTERCEPT, SIMILARITY, CONTENT_SIMILARITY, FLUENCY = -20.7, 9.5, 13.3, 0.1
"""The weights of the score: those of a logistic regression on judged candidates, rounded (docs/paraphrases.md)."""

OWN_INTERCEPT, OWN_CONTENT_SIMILARITY, OWN_LOG_PROBABILITY, LEAST_LOG_PROBABILITY = -20.4, 24.4, 0.67, -12.0
"""The same for candidates of the embedded paraphraser, whose log probabilities say more than those of other models."""


def score(measured: Judged, kind: str) -> F32:
    """[m] the score: the greatest of a phrase's candidates is the best."""
    if kind == "similarity":
        return measured.similarity
    if kind == "likelihood":
        return measured.fluency
    if kind == "diversity":
        return 1 - measured.edit_similarity
    if kind == "first":
        return np.zeros(len(measured.reason), np.float32)
    # A text that is likelier than the phrase is no better: often it says less.
    weighted = (
        INTERCEPT
        + SIMILARITY * measured.similarity
        + CONTENT_SIMILARITY * measured.content_similarity
        + FLUENCY * np.minimum(np.nan_to_num(measured.fluency), 0)
    )
    own = (
        OWN_INTERCEPT
        + OWN_CONTENT_SIMILARITY * measured.content_similarity
        + OWN_LOG_PROBABILITY * np.maximum(measured.log_probability, LEAST_LOG_PROBABILITY)
    )
    return np.where(np.isnan(measured.log_probability), weighted, own).astype(np.float32)


def _content(text: str) -> str:
    return " ".join(content_words(text)) or text


def best(owner: I64, candidates: pa.Array, judged: Judged, phrases: int) -> I64:
    """[n] for each phrase the candidate of the highest score among those that are left, -1 for none.

    The first of several of one score where the score is "first"; else the hash of the texts decides.
    """
    found = np.full(phrases, -1)
    left = np.array([row for row, reason in enumerate(judged.reason) if not reason], np.int64)
    if not len(left):
        return found
    ties: U64 = strings_hashes(candidates)[0]
    score = judged.score[left]
    order = left[np.lexsort((ties[left] if score.any() else left, -score, owner[left]))]
    first = np.concatenate(([True], np.diff(owner[order]) > 0))
    found[owner[order[first]]] = order[first]
    return found
