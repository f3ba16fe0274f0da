"""Augmentations of characters and of the order of tokens: tables of phrases, and properties of all texts."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.characters import clusters
from schemas.kinds.augmentations import verified
from transforms.arrays import mix64
from transforms.augmentation.edits import Characters
from transforms.augmentation.registry import load_augmenter

OPTIONS = {"min_word_letters": 3, "swap": "adjacent"}
LETTERS = ("swap_characters", "drop_character", "insert_character", "keyboard")
OPERATIONS = (*LETTERS, "swap_tokens")


def augmented(operation, phrases, seeds, **options):
    return load_augmenter(operation, OPTIONS | options).augment(pa.array(phrases, pa.string()), seeds).to_pylist()


def seeds_of(number, first=0):
    return mix64(np.arange(first, first + number, dtype=np.uint64))


def outcomes(operation, phrase, **options):
    """All that an operation makes of a phrase."""
    return {*augmented(operation, [phrase] * 400, seeds_of(400), **options)}


@pytest.mark.parametrize(
    ("operation", "phrase", "expected"),
    [
        ("swap_characters", "cat", {"act", "cta"}),
        ("swap_characters", "an oar", {"an aor", "an ora"}),  # no word of fewer letters, nothing over a blank
        ("swap_characters", "oool", {"oolo"}),  # different letters only
        ("swap_characters", "well-off", {"ewll-off", "wlel-off", "well-fof"}),  # nothing over a hyphen
        ("swap_characters", "Ada", {"Aad"}),  # a capital before lower case keeps its place
        ("swap_characters", "USA", {"SUA", "UAS"}),
        ("swap_characters", "192.168.1.1", {None}),
        ("swap_characters", "x1y2z3", {None}),
        ("swap_characters", "ne\u0301o", {"e\u0301no", "noe\u0301"}),  # a mark stays on its letter
        ("swap_characters", "क्षमा", {None}),  # of two characters
        ("swap_characters", "क्षमा गमनम्", {"क्षमा मगनम्", "क्षमा गनमम्"}),  # the end would join what came after it
        ("swap_characters", "日本語", {"本日語", "日語本"}),
        ("swap_characters", "abc👩\u200d👩\u200d👧", {"bac👩\u200d👩\u200d👧", "acb👩\u200d👩\u200d👧"}),
        ("drop_character", "cats", {"ats", "cts", "cas", "cat"}),
        ("drop_character", "an Ox", {None}),
        ("drop_character", "Oxen 12", {"Oen 12", "Oxn 12", "Oxe 12"}),
        ("drop_character", "ne\u0301o", {"e\u0301o", "no", "ne\u0301"}),
        ("drop_character", "🇫🇷 abc", {"🇫🇷 bc", "🇫🇷 ac", "🇫🇷 ab"}),
        ("keyboard", "abc", {*"qbc wbc sbc zbc avc agc ahc anc abx abd abf abv".split()}),
        ("keyboard", "9 USÉ", {f"9 {each}" for each in "YSÉ ISÉ HSÉ JSÉ UAÉ UDÉ UWÉ UEÉ UZÉ UXÉ".split()}),
        ("keyboard", "москва", {None}),
        ("keyboard", "日本語", {None}),
        ("insert_character", "да нет", {f"да {each}" for each in "ннет неет нтет нент нетн нете нетт".split()}),
        ("insert_character", "НЕТ", {*"ННЕТ НЕЕТ НТЕТ НЕНТ НЕТН НЕТЕ НЕТТ".split()}),
        ("insert_character", "Нет", {*"Нтет Неет Нете Нетт".split()}),  # no capital before lower case
        ("insert_character", "日本語", {*"日日本語 日本日語 日本語日 日本本語 日本語本 日語本語 日本語語".split()}),
        ("swap_tokens", "new york city", {"york new city", "new city york"}),
        ("swap_tokens", "the the cat", {"the cat the", None}),
        ("swap_tokens", "192.168.1.1", {None}),
        ("swap_tokens", "1.1.1.1 , port  80", {", 1.1.1.1 port  80", "1.1.1.1 port ,  80", "1.1.1.1 , 80  port"}),
        ("swap_tokens", "東京\u3000大学", {"大学\u3000東京"}),
        ("swap_tokens", "", {None}),
    ],
)  # fmt: skip
def test_what_an_operation_makes(operation, phrase, expected):
    assert outcomes(operation, phrase) == expected


ALPHABET = [*"abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("Ada", {f"A{x}da" for x in ALPHABET} | {f"Ad{x}a" for x in ALPHABET} | {f"Ada{x}" for x in ALPHABET}),
        ("an EU1 é", {None}),
        ("EUR", {word for x in "".join(ALPHABET).upper() for word in (f"E{x}UR", f"EU{x}R", f"EUR{x}")}),
    ],
)
def test_latin_words_get_any_letter(phrase, expected):
    assert {*augmented("insert_character", [phrase] * 3000, seeds_of(3000))} == expected


def test_any_two_tokens():
    expected = {"b a c", "c b a", "a c b"}
    assert outcomes("swap_tokens", "a b c", swap="any") == expected
    assert outcomes("swap_tokens", "a", swap="any") == {None}


@pytest.mark.parametrize(("least", "expected"), [(3, {"act mmdam", "cta mmdam"}), (5, {None})])
def test_least_letters_of_a_word(least, expected):
    found = outcomes("swap_characters", "cat mmdam", min_word_letters=least)
    assert found - {"cat mdmam", "cat mmadm", "cat mmdma"} == expected - {None}
    assert (None in outcomes("swap_characters", "cat map", min_word_letters=least)) == (least == 5)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_choices_are_even(operation):
    """Every outcome of a phrase comes about as often."""
    found = augmented(operation, ["abcde fghij klmno pqrst"] * 6000, seeds_of(6000))
    counts = [found.count(each) for each in {*found}]
    if operation == "insert_character":
        assert len(counts) == 26 * 20 - 16
    elif operation == "keyboard":  # by letter: letters have from 2 to 6 neighbours
        counts = [sum(each[place] != before for each in found) for place, before in enumerate("abcde fghij klmno")]
        counts = [each for each in counts if each]
    expected = sum(counts) / len(counts)
    assert max(counts) < expected + 5 * expected**0.5 + (operation == "insert_character") * expected
    assert min(counts) > expected - 5 * expected**0.5 - (operation == "insert_character") * expected


SCRIPTS = (
    "ab Zé e\u0301 \u0323क्षमा की한글각\u1100\u1161\u11a8日本ァｶﾞไทยำ"
    "עִבְרִית 🇫🇷👩\u200d👧👍🏽❤\ufe0f москва İıßſ 1\u00ad2-'\u3000\u0600\U0001f1e6"
)
phrases = st.one_of(st.text(alphabet=SCRIPTS), st.text(), st.text(alphabet="abAB -")).map(str.strip)


def graphemes(text: str) -> list[str]:
    """The characters of a text as another program finds them, except that none goes on over white space."""
    return [each for part in regex.split(r"(?<=\S)(?=\s)", text) for each in regex.findall(r"\X", part)]


@pytest.mark.parametrize("operation", OPERATIONS)
@examples(60)
@given(texts=st.lists(phrases, max_size=12), first=st.integers(0, 1000), swap=st.sampled_from(["adjacent", "any"]))
def test_an_operation_does_what_it_says_and_no_more(operation, texts, first, swap):
    """Each row is what the independent check of rows says, and no character that people see is parted."""
    seeds = seeds_of(len(texts), first)
    found = augmented(operation, texts, seeds, swap=swap)
    for text, after in zip(texts, found, strict=True):
        if after is None:
            continue
        assert verified({"swap": swap})[operation](text, after)
        assert after == after.strip()
        before, now = (sorted(graphemes(each)) for each in (text, after))
        if operation.startswith("swap"):
            assert before == now
        else:  # one character more, or less, or another
            assert abs(len(before) - len(now)) == (operation != "keyboard") or not after.isascii()
            assert len([each for each in now if each in before]) >= len(now) - 1


@pytest.mark.parametrize("operation", OPERATIONS)
@examples(30)
@given(texts=st.lists(phrases, min_size=1, max_size=12), data=st.data())
def test_the_batch_does_not_matter(operation, texts, data):
    """A row is reproduced from its phrase and its seed alone."""
    seeds = seeds_of(len(texts))
    together = augmented(operation, texts, seeds)
    row = data.draw(st.integers(0, len(texts) - 1))
    assert augmented(operation, texts[row : row + 1], seeds[row : row + 1]) == together[row : row + 1]
    order = data.draw(st.permutations(range(len(texts))))
    again = augmented(operation, [texts[each] for each in order], seeds[list(order)])
    assert again == [together[each] for each in order]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_slice_of_an_array_is_a_batch(operation):
    every = pa.array(["nothing of this", "", "cats and dogs", "nésè पानी", "as well"])
    augmenter = load_augmenter(operation, OPTIONS)
    part = augmenter.augment(every.slice(2, 2), seeds_of(2))
    assert part.to_pylist() == augmented(operation, every.to_pylist()[2:4], seeds_of(2))


JOINING = (
    *"ab Z1-कषकé한👩❤א\u0301\u0323\u094d\u093c\u200d\u200c",
    *"\u0600\u0e33\u1100\u1161\u11a8\uff9e\U0001f3fd\U0001f1eb\u00ad\u3000",
)


@examples(150)
@given(st.lists(st.one_of(st.text(alphabet=JOINING), st.text(alphabet=SCRIPTS), st.text()), max_size=6))
def test_clusters_never_part_a_character(texts):
    """Ours are made of whole ones of Unicode (UAX #29), as another program finds them; a batch has the same."""
    found = Characters.of(pa.array(texts, pa.string()))
    data = found.data.tobytes()
    for text, first, end in zip(texts, found.first.tolist(), found.first[1:].tolist(), strict=False):
        own = [data[found.start[n] : found.start[n + 1]].decode() for n in range(first, end)]
        assert own == clusters(text)
        ends = {*itertools.accumulate(map(len, own))}
        unicode_ends = {*itertools.accumulate(map(len, regex.findall(r"\X", text)))}
        assert {each for each in ends if not text[each : each + 1].isspace()} <= unicode_ends
