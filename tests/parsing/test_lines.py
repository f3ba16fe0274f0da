"""Which lines of a document are parsed as one text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.parsing.lines import MAX_JOINED, parts
from transforms.parsing.sentence_ends import sentence_starts

# " / " is a line break that is joined, " // " one that is not; "" an empty line.
BLOCKS = {
    "verse": [
        "Tyger! Tyger! burning bright / In the forests of the night, / What immortal hand or eye / Could frame it?",
        "The night was dark, no father was there, / The child was wet with dew; / The mire was deep.",
        "Of Man's first disobedience, and the fruit / Of that Forbidden Tree, whose mortal taste / Brought death.",
    ],
    "a sentence ends": ["He left. // She stayed, / And slept.", 'He cried "Go!" // She went, / and slept.'],
    "a small letter follows the mark": ["Alas! / and alack, / And woe is me."],
    "wrapped": [
        "(a) You must give any other recipients of the Work or / Derivative Works a copy.",
        "I saw it in the year in which the / great fire was.",
        "THERE IS NO WARRANTY FOR THE PROGRAM, TO THE EXTENT / PERMITTED BY LAW, AND FOR / ITS PARTS.",
    ],
    "names and titles": [
        "Aberdeen, Kentucky // Aberdeen, Maryland // Aberdeen, Ohio",
        "The Saffron Revolution // The Arab Spring",
        "Your affectionate brother, // Robert Walton.",
        "On Interpretation // Prior Analytics // Of the Soul // Of Dreams",
    ],
    "items": [
        "the patient // the integration of medicine // the impact of it",
        "1. Open the box and // 2. Close it.",
        "- bread, // - butter, // - milk",
        "The Governors; // The members of the Council; // The chiefs of the police; // The judges.",
        "over 3,047 m: 5 // 2,438 to 3,047 m: 8 // under 914 m: 42",
    ],
    "headings": [
        "XIV // When forty winters shall besiege thy brow, / And dig deep trenches,",
        "Chapter VII // On my return, I found the letter.",
        "TO THE READER // A song of the sea, / And of the sky.",
    ],
    "speech": [
        'The duke says: // "Leastways, I did it." // "You did?"',
        '"I know, but—" // "Well, I will count them again, and so / on."',
        "Macb. My dearest love, / Duncan comes here to-night. // Lady. And when goes hence, / my lord?",
        "Enter the king, and / Macb. Speak.".replace(" / ", " // "),
    ],
    "paragraphs": ["He came home, " + "and he slept, " * 40 + "// and she ate, / and so on."],
}


@pytest.mark.parametrize("marked", [each for texts in BLOCKS.values() for each in texts])
def test_lines_of_a_block(marked: str) -> None:
    text = marked.replace(" // ", "\n").replace(" / ", "\n").replace("// ", "\n")
    expected = [each.strip().replace(" / ", "\n") for each in marked.split("// ")]
    assert [text[start:end].strip() for start, end in parts(text)] == expected


def test_an_empty_line_and_nothing() -> None:
    assert list(parts("")) == list(parts("\n\n")) == []
    text = "A song of the sea,\n\nAnd of the sky,\nand of it."
    assert [text[start:end] for start, end in parts(text)] == ["A song of the sea,", "And of the sky,\nand of it."]


def test_a_sentence_that_is_too_long_is_cut_after_its_strongest_mark() -> None:
    stanza = ["And all that we have seen of it,"] * 8
    text = "\n".join([*stanza, "And more than that;", *stanza, *stanza])
    found = [text[start:end] for start, end in parts(text)]
    assert [each.count("\n") + 1 for each in found] == [9, 8, 8]
    assert found[0].endswith("more than that;")
    sentences = "\n".join(["He saw the sea. And", *stanza[:3]] * 8)
    assert len(list(parts(sentences))) == 1  # long, but of short sentences


LINE = st.lists(
    st.sampled_from(
        ["and", "of", "The", "sea", "Sea", "said:", "sky,", "end.", "(a)", '"Who', "x;", "—", "7", "II", "a" * 90]
    ),
    min_size=1,
    max_size=9,
).map(" ".join)
TEXT = st.lists(st.one_of(LINE, st.just("")), max_size=40).map("\n".join)


@examples(150)
@given(text=TEXT)
def test_parts_are_whole_lines_in_order(text: str) -> None:
    found = list(parts(text))
    end = -1
    for start, next_end in found:
        assert not text[end + 1 : start].strip("\n")
        assert start == 0 or text[start - 1] == "\n"
        assert next_end == len(text) or text[next_end] == "\n"
        end = next_end
        part = text[start:next_end]
        assert part
        assert "\n\n" not in part
        for first, last in pairwise([*sentence_starts(part.replace("\n", " ")), len(part)]):
            assert last - first <= MAX_JOINED or "\n" not in part[first:last].strip()
    assert not text[end + 1 :].strip("\n")


@given(texts=st.lists(TEXT.map(lambda text: text.strip("\n")), max_size=4))
def test_blocks_do_not_depend_on_each_other(texts: list[str]) -> None:
    at = 0
    expected = []
    for text in texts:
        expected += [(at + start, at + end) for start, end in parts(text)]
        at += len(text) + 2
    assert list(parts("\n\n".join(texts))) == expected


@pytest.mark.parametrize("line", ["a,", "a", ";", "And so on. And", "A.", '"', "(" * 90, "And " * 20 + "\n" + "so;"])
def test_time_is_linear_in_hard_text(line: str) -> None:
    text = (line + "\n") * (100_000 // len(line))
    begin = time.process_time()
    found = list(parts(text))
    assert time.process_time() - begin < 20  # a quadratic step takes minutes
    assert found[-1][1] == len(text) - 1
