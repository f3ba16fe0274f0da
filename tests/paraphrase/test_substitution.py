"""Paraphrases by substitution: what stays, what is replaced and by what, what the language model changes."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from transforms.augmentation.wordnet import WordNet
from transforms.paraphrase.constraints import banned_words, kept_words, violations
from transforms.paraphrase.masked_words import View
from transforms.paraphrase.substitution import Analysed, Substitution, read_thesaurus

MOBY = """\
big,large,huge,vast,immense
large,big,huge,vast,immense
huge,big,large,vast,immense
vessel,boat,ship,craft
ship,vessel,boat,craft
"""


class Alike:
    """Words that are all alike and known: what is left are WordNet and the thesaurus."""

    def likeness(self, one: str, other: str) -> float:
        return 0.5

    def knows(self, word: str) -> bool:
        return True

    def rarity(self, word: str) -> float:
        return 0.0


@pytest.fixture(scope="module")
def substitution(database: WordNet, tmp_path_factory: pytest.TempPathFactory) -> Substitution:
    lists = tmp_path_factory.mktemp("moby") / "words.txt"
    lists.write_text(MOBY)
    return Substitution(database, Alike(), read_thesaurus(str(lists)))


def made(substitution: Substitution, phrase: str, tags: str, surface: str = "", most: int = 8) -> list[str] | str:
    found = substitution.analyse(phrase, surface or phrase, tags.split())
    return found if isinstance(found, str) else [each.text for each in substitution.paraphrases(found, {}, most=most)]


FOUND = [
    ("began", "VBD", "started"),
    ("famous physicians", "JJ NNS", "renowned doctors"),
    ("an important physician", "DT JJ NN", "a key doctor"),
    ("a large ship", "DT JJ NN", "a big vessel"),
    ("the king's physicians,", "DT NN NNS", "the monarch's doctors,"),
    ("abandoned his physician", "VBD PRP$ NN", "deserted his doctor"),
    ("gives up", "VBZ RP", "abandons"),
    ("larger ships", "JJR NNS", "bigger vessels"),
    ("of the 12 physicians", "IN DT CD NNS", "of the 12 doctors"),
    ("two physicians", "CD NNS", "two doctors"),
    ("of course", "IN NN", "naturally"),
    ("in turn", "IN NN", "successively"),
]


@pytest.mark.parametrize(("phrase", "tags", "paraphrase"), FOUND)
def test_paraphrases(phrase: str, tags: str, paraphrase: str, substitution: Substitution) -> None:
    assert paraphrase in made(substitution, phrase, tags, most=200)


LEFT_OUT = [
    ("of it", "IN PRP", "", "no_content"),
    ("in 1984", "IN CD", "", "no_content"),
    ("charles darwin", "NNP NNP", "Charles Darwin", "no_content"),
    ("qxzw", "NN", "", "no_substitute"),
    ("whistled up", "VBD RP", "", "no_substitute"),
    ("famous qxzw", "JJ NN", "", "no_substitute"),
]


@pytest.mark.parametrize(("phrase", "tags", "surface", "reason"), LEFT_OUT)
def test_reasons(phrase: str, tags: str, surface: str, reason: str, substitution: Substitution) -> None:
    assert made(substitution, phrase, tags, surface) == reason


def test_names_and_numbers_stay(substitution: Substitution) -> None:
    phrase, surface = "charles darwin's 2 famous ships", "Charles Darwin's 2 famous ships"
    found = made(substitution, phrase, "NNP NNP CD JJ NNS", surface)
    assert "charles darwin's 2 renowned vessels" in found
    assert all(each.startswith("charles darwin's 2 ") for each in found)


def test_rivals_and_contraries_are_no_substitutes(substitution: Substitution) -> None:
    for word, part, form, wrong in [
        ("month", "n", "singular", {"year", "week", "day"}),
        ("father", "n", "singular", {"mother", "parent"}),
        ("hot", "a", "plain", {"cold"}),
        ("large", "a", "plain", {"small", "little", "larger", "largest"}),
        ("colour", "n", "singular", {"color"}),
        ("minute", "n", "singular", {"min"}),
    ]:
        assert not wrong & {each.text for each in substitution.substitutes(word, part, form)}


def test_the_language_model_prefers_what_it_expects(substitution: Substitution) -> None:
    found = substitution.analyse("his letters", "his letters", ["PRP$", "NNS"])
    assert isinstance(found, Analysed)
    assert found.asked == [1]
    scores = {
        likely: {
            each.text: each.score
            for each in substitution.paraphrases(
                found, {1: View(-0.1, {"letters": -0.1, likely: -1.0, "poems": -2.0})}, most=99
            )
        }
        for likely in ("missives", "documents")
    }
    assert scores["missives"]["his missives"] > scores["documents"]["his missives"]
    assert scores["missives"]["his documents"] < scores["documents"]["his documents"]


def test_scores_fall_and_are_limited(substitution: Substitution) -> None:
    found = substitution.analyse("famous large ships", "famous large ships", ["JJ", "JJ", "NNS"])
    assert isinstance(found, Analysed)
    every = substitution.paraphrases(found, {}, most=99)
    scores = [each.score for each in every]
    assert scores == sorted(scores, reverse=True)
    assert len({each.text for each in every}) == len(every) > 3
    assert all(0 < each < 1 for each in scores)
    least = scores[2]
    assert substitution.paraphrases(found, {}, most=99, least=least) == [each for each in every if each.score >= least]
    assert substitution.paraphrases(found, {}, most=2) == every[:2]
    # The score is the product over the words.
    parts = [max(1 / (1 + math.exp(-each.logit)) for each in place.substitutes) for place in found.places]
    assert scores[0] == pytest.approx(math.prod(parts))


WORDS = {
    "JJ": "famous large old quick strange important".split(),
    "NN": "ship physician king idea war house letter".split(),
    "NNS": "ships kings debates methods soldiers".split(),
    "IN": "of in with".split(),
    "DT": "a the this".split(),
    "VBD": "began showed destroyed bought helped".split(),
}
PATTERNS = ["DT JJ NN", "IN DT NN", "JJ JJ NNS", "VBD DT NN", "VBD NNS IN DT JJ NN", "NN"]


@examples(40)
@given(st.data())
def test_no_word_of_content_comes_back(substitution: Substitution, data: st.DataObject) -> None:
    tags = data.draw(st.sampled_from(PATTERNS)).split()
    phrase = " ".join(data.draw(st.sampled_from(WORDS[tag])) for tag in tags)
    found = substitution.analyse(phrase, phrase, tags)
    if isinstance(found, str):
        return
    banned = banned_words(phrase, inflections=True, kept=kept_words(phrase, surface=phrase))
    assert found.banned == banned
    for each in substitution.paraphrases(found, {}, most=20):
        assert violations(each.text, banned, inflections=True) == []
        assert tags[0] != "IN" or each.text.split()[0] == phrase.split()[0]


def test_a_thesaurus_without_lists(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--thesaurus .*nowhere: No such file"):
        read_thesaurus(str(tmp_path / "nowhere"))
    empty = tmp_path / "words.txt"
    empty.write_text("\nword\n")
    with pytest.raises(UserError, match=r"--thesaurus .*words\.txt: has no line"):
        read_thesaurus(str(empty))
    empty.write_text("Big,Large\r\nbig,huge\r\n")
    assert read_thesaurus(str(empty)) == {"big": {"large", "huge"}}
