"""Text normalisation: characters, lines, and hard-wrapped paragraphs."""

from __future__ import annotations

import textwrap
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.sources.text import clean, plain_text, tidy, unwrap, without_typewriter_marks, wrap_width

LOREM = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a "
    "wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood, this "
    "truth is so well fixed in the minds of the surrounding families, that he is considered the rightful property of "
    "some one or other of their daughters."
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\rc\r\r\nd\u2028e", "a\nb\nc\nd\ne"),
        ("a\u00a0b\u2009c\u3000d", "a b c d"),
        ("\ufeffso\u00adft\u2060—\u200bend\u200e", "soft—end"),
        ("‘it’s’ “so” „so‟", '\'it\'s\' "so" "so"'),
        ("wait… well\u2011known ⸺ﬁne", "wait... well-known ——fine"),
        ("cafe\u0301", "café"),
        ("a\x00b\x07c\x7f", "abc"),
        ("don\x92t \x93go\x94 \x96 \x80", 'don\'t "go" – €'),
        ("\ud83d alone", "\ufffd alone"),
        ("می\u200cخواهم, co\u200coperate", "می\u200cخواهم, cooperate"),
        ("1–2 — 5′ «x» ½ ”", '1–2 — 5′ «x» ½ "'),
        ("def f():\n\tpass", "def f():\n\tpass"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.text())
def test_clean_and_tidy_are_idempotent(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    once.encode()
    assert tidy(tidy(once)) == tidy(once)


@given(st.text(alphabet="ab Z.,\n\t—-_'\"\u00a0“’", max_size=400))
def test_plain_text_keeps_the_contract_of_documents(text: str) -> None:
    lines = plain_text(text).split("\n")
    assert all(line == line.strip() and "  " not in line and "\t" not in line for line in lines)
    assert not any(not above and not below for above, below in pairwise(lines))
    assert lines == [""] or (lines[0] and lines[-1])


@given(
    st.lists(st.lists(st.from_regex("[A-Za-z]{1,12}[.,]?", fullmatch=True), min_size=1, max_size=80), max_size=8),
    st.integers(40, 90),
)
def test_unwrapping_undoes_wrapping(paragraphs: list[list[str]], width: int) -> None:
    """No character is lost. That paragraphs are restored is tested below, on real prose."""
    wrapped = "\n\n".join(textwrap.fill(" ".join(words), width) for words in paragraphs)
    assert plain_text(wrapped).split() == wrapped.split()


@pytest.mark.parametrize("width", [50, 60, 72, 80, 100])
@pytest.mark.parametrize("indent", ["", "   "])
def test_prose_wrapped_at_any_width_comes_back_whole(width: int, indent: str) -> None:
    sentences = LOREM.split(". ")
    paragraphs = [LOREM, sentences[1], LOREM + " " + LOREM]
    wrapped = "\n\n".join(textwrap.fill(p, width, initial_indent=indent) for p in paragraphs)
    assert plain_text(wrapped) == "\n\n".join(paragraphs)


def test_indented_paragraphs_without_empty_lines() -> None:
    paragraphs = [LOREM, LOREM, LOREM]
    wrapped = "\n".join(textwrap.fill(p, 66, initial_indent="    ") for p in paragraphs)
    assert plain_text(wrapped) == "\n".join(paragraphs)


WRAPPED = textwrap.fill(LOREM, 72)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        # verse
        (
            "  Come live with me, and be my Love,\n  And we will all the pleasures prove\n  Of valleys, groves, hills",
            "Come live with me, and be my Love,\nAnd we will all the pleasures prove\nOf valleys, groves, hills",
        ),
        ("    Roses are red,\n    Violets are blue.", "Roses are red,\nViolets are blue."),
        # a heading above its text, an address, a signature
        (f"CHAPTER I\n{WRAPPED}", f"CHAPTER I\n{LOREM}"),
        (
            "Mr. Sherlock Holmes,\n221b Baker Street,\nLondon",
            "Mr. Sherlock Holmes,\n221b Baker Street,\nLondon",
        ),
        ("Yours, &c.\nE. GARDINER", "Yours, &c.\nE. GARDINER"),
        # tables and lists
        ("Alabama      1887   February.\nColorado     1885   April.", "Alabama 1887 February.\nColorado 1885 April."),
        ("1. Reading\n2. Writing\n3. Arithmetic", "1. Reading\n2. Writing\n3. Arithmetic"),
        (
            "1. Reading, which is the first and the noblest of all the arts that we\n"
            "   teach in this school.\n"
            "2. Writing.",
            "1. Reading, which is the first and the noblest of all the arts that we teach in this school.\n2. Writing.",
        ),
        # a quotation indented on both sides
        (
            textwrap.indent(textwrap.fill(LOREM, 50), "     "),
            LOREM,
        ),
        # dialogue whose second line is one word
        (
            '"Was it unlooked-for on your part, or was it not?" asked the knight,\ndistrustfully.',
            '"Was it unlooked-for on your part, or was it not?" asked the knight, distrustfully.',
        ),
        # dashes and hyphens at a line's end
        (
            "There is nothing that I would not do for those who are my friends, sir--\nwe have no notion of loving by "
            "halves.",
            "There is nothing that I would not do for those who are my friends, sir—we have no notion of loving by "
            "halves.",
        ),
        (
            "There is nothing that I would not do for all of these, our neighbour-\nhood and families that surround "
            "it, and for that very well-\nknown man, and for the friends of these two families in the pre-\nand "
            "post-war years.",
            "There is nothing that I would not do for all of these, our neighbourhood and families that surround "
            "it, and for that very well-known man, and for the friends of these two families in the pre- and post-war "
            "years.",
        ),
        # marks of the typewriter
        ("_You_ want to tell me -- and ``I'' object--", 'You want to tell me — and "I" object—'),
        ("[Illustration: “He came down [_Copyright_] to see”]\n\nText.", "Text."),
        ("One.\n\n     *       *       *       *       *\n\nTwo.", "One.\n\nTwo."),
        ("He said so,[12] twice.[A]", "He said so, twice."),
        ("[Footnote 1: From the French.]", "From the French."),
    ],
)
def test_blocks_of_a_wrapped_book(block: str, expected: str) -> None:
    assert plain_text(f"{WRAPPED}\n\n{block}\n\n{WRAPPED}") == f"{LOREM}\n\n{expected}\n\n{LOREM}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one line",
        "\n".join(LOREM.split(". ") * 5),  # a paragraph a line
        "\n".join(sentence.lower() for sentence in LOREM.split(", ") * 5),  # a lower-case sentence a line
        "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n" * 7,
        "- milk\n- bread\n- eggs\n" * 5,
        "def clean(text):\n    text = text.strip()\n    return text\n" * 5,
    ],
)
def test_what_is_not_wrapped_keeps_its_lines(text: str) -> None:
    assert wrap_width(text) == 0
    assert plain_text(text) == tidy(text)
    assert plain_text("use __init__ and --help\nnext") == "use __init__ and --help\nnext"


def test_typewriter_marks_leave_names_alone() -> None:
    assert without_typewriter_marks("snake_case, _two words_, _un_happy, Mr. ----, 2=3") == (
        "snake_case, two words, unhappy, Mr. ——, 2=3"
    )


def test_one_paragraph_of_any_length_is_joined_in_linear_time() -> None:
    wrapped = textwrap.fill(" ".join([LOREM] * 5_000), 72)
    assert unwrap(wrapped, 72).count("\n") == 1
