"""A readable row of each kind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import alias_pair, context, document, mention, mention_pair, phrase, sentence

from schemas.kinds import alias_pairs, contexts, documents, mention_pairs, mentions, phrases, sentences
from schemas.shown import Piece, Shown, web_address


def shown(row: Shown) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in row.pieces]


MASK = {"mask_token": "[MASK]"}


@pytest.mark.parametrize(
    ("row", "pieces"),
    [
        (context("sea", "the [MASK] is wide"), [("", "the "), ("mark", "sea"), ("", " is wide")]),
        (context("sea", "[MASK]"), [("mark", "sea")]),
        (
            context("sea", "no [MASK] but [MASK] and [MASK]", mask_start=14),
            [
                ("", "no "),
                ("mask", "[MASK]"),
                ("", " but "),
                ("mark", "sea"),
                ("", " and "),
                ("mask", "[MASK]"),
            ],
        ),
        (
            context("sea", "x" * 1000 + "[MASK]" + "y" * 1000),
            [("", "… "), ("", "x" * 360), ("mark", "sea"), ("", "y" * 360), ("", " …")],
        ),
    ],
)
def test_a_context_has_its_surface_marked(row, pieces):
    assert shown(contexts.show(row, MASK)) == pieces


def test_what_stands_around_a_context():
    passage = contexts.show(context("sea", "the [MASK]", frequency=1200), MASK)
    assert passage.heading == "sea · NP · 1,200×"
    assert (passage.origin, passage.url) == ("Title", "https://example.org/1")
    assert passage.remarks == (("negative", "another [MASK] here"),)
    without = context("sea", "the [MASK]", negative="", title="")
    assert contexts.show(without, MASK).remarks == ()
    assert contexts.show(without, MASK).origin == "wiki:1"


def test_a_sentence_has_its_constituents_in_brackets():
    row = sentence("the old man saw it", [("S", 0, 5), ("NP", 0, 3), ("ADJP", 1, 2), ("VP", 3, 5)], start=100)
    assert shown(sentences.show(row, {})) == [
        ("open", "NP"),
        ("", "the"),
        ("", " "),
        ("open", "ADJP"),
        ("", "old"),
        ("close", ""),
        ("", " "),
        ("", "man"),
        ("close", ""),
        ("", " "),
        ("open", "VP"),
        ("", "saw"),
        ("", " "),
        ("", "it"),
        ("close", ""),
    ]


def test_a_long_sentence_is_cut_and_its_brackets_are_closed():
    row = sentence(" ".join("w" * 100), [("NP", 0, 100), ("NP", 99, 100)])
    pieces = shown(sentences.show(row, {}))
    assert pieces[0] == ("open", "NP")
    assert pieces[-2:] == [("close", ""), ("", " …")]
    assert pieces.count(("", "w")) == 70


@given(st.data())
def test_brackets_are_balanced_and_the_text_is_whole(data):
    """For any spans, including crossing ones, which no parser should give."""
    words = data.draw(st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=60))
    spans = data.draw(st.lists(st.tuples(st.integers(0, len(words) - 1), st.integers(1, len(words))), max_size=20))
    row = sentence(" ".join(words), [("NP", start, end) for start, end in spans if start < end], start=7)
    pieces = sentences.show(row, {}).pieces
    assert "".join(each.text for each in pieces if not each.kind) == row["text"]
    depth = 0
    for each in pieces:
        depth += {"open": 1, "close": -1}.get(each.kind, 0)
        assert depth >= 0
    assert depth == 0


def link(start: int, end: int) -> dict[str, object]:
    return {"start_char": start, "end_char": end, "target_title": "Target", "entity_id": "", "section": ""}


def test_a_document_has_its_links_marked():
    row = document(3, text="Ships sail the seas.", links=[link(0, 5), link(15, 19)])
    passage = documents.show(row, {})
    assert passage.pieces == (
        Piece("link", "Ships", "Target"),
        Piece("", " sail the "),
        Piece("link", "seas", "Target"),
        Piece("", "."),
    )
    assert passage.remarks == (("length", "20 characters, 2 links"), ("licence", "CC BY-SA 4.0"))


def test_a_long_document_is_cut_with_the_links_beyond():
    row = document(3, text="x" * 5000, links=[link(719, 722), link(4000, 4001)])
    assert shown(documents.show(row, {})) == [("", "x" * 720 + " …")]


def test_a_mention_is_marked_in_its_sentence():
    passage = mentions.show(mention("The [white whale] sank.", "Whale", "Q160"), {})
    assert passage.pieces == (Piece("", "The "), Piece("mark", "white whale", "Whale (Q160)"), Piece("", " sank."))
    assert passage.heading == "white whale → Whale (Q160) · qid · link"
    assert (passage.origin, passage.url, passage.remarks) == ("Title", "https://example.org/1", ())


def test_a_long_sentence_is_cut_around_its_mention():
    passage = mentions.show(mention("x" * 1000 + "[sea]" + "y" * 1000), {})
    assert shown(passage) == [("", "… "), ("", "x" * 360), ("mark", "sea"), ("", "y" * 360), ("", " …")]


def test_a_pair_has_both_mentions_marked():
    one, other = mention("The [whale] sank.", "Whale", "Q160"), mention("[Whales] sing", "Whale", "Q160")
    passage = mention_pairs.show(mention_pair(one, other, unmasked=2), {})
    assert passage.heading == "Q160 · entity · Whale (Q160)"
    assert shown(passage) == [
        *(("", "The "), ("mark", "whale"), ("", " sank."), ("", "\n")),
        *(("mark", "Whales"), ("", " sing")),
    ]
    assert (passage.origin, passage.url) == ("wiki:1#0 · wiki:1#0", "")
    assert passage.remarks == (("keeps its words", "the second"),)


def test_a_masked_pair_has_what_it_trains_on_below():
    one, other = mention("A [whale].", "Whale"), mention("The [whale].", "Whale (band)")
    row = mention_pair(one, other, kind="surface", anchor="A [MASK].", positive="The [MASK].")
    passage = mention_pairs.show(row, {})
    assert passage.heading == "whale · surface · Whale / Whale (band)"
    assert passage.remarks[1:] == (("anchor", "A [MASK]."), ("positive", "The [MASK]."))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("http://example.org", "http://example.org"),
        ("javascript:alert(1)", ""),
        (" https://example.org", ""),
        ("//example.org", ""),
        ("data:text/html,x", ""),
        ("", ""),
        ("https://" + "x" * 2000, ""),
    ],
)
def test_only_web_addresses_become_links(url, address):
    assert web_address(url) == address


HOUSE = mention("The [white whale] sank it.", "Whale", "Q160")
BAND = mention("A [whale] breathes.", "Whale (band)")


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        (
            documents.show(document(3, text="Ships sail.\nFar.", links=[link(0, 5)]), {}),
            ["Title (wiki:3)", "    Ships sail. Far."],
        ),
        (
            sentences.show(sentence("the old man", [("NP", 0, 3)], start=7), {}),
            ["wiki:1#7 (3 tokens)", "    the old man"],
        ),
        (
            phrases.show(phrase("old man", 1200), {}),
            ["old man: surface Old man 75%, label NP, frequency 1,200, document frequency 1, label shares NP 100%"],
        ),
        (
            contexts.show(context("sea", "x" * 150 + " [MASK] is wide. [MASK]!"), MASK),
            ["sea · NP · 1× (Title)", "    ..." + "x" * 99 + " [sea] is wide. [MASK]!"],
        ),
        (
            mentions.show(HOUSE, {}),
            ["white whale → Whale (Q160) · qid · link (Title)", "    The [white whale] sank it."],
        ),
        (
            mention_pairs.show(mention_pair(BAND, HOUSE, kind="surface"), {}),
            [
                "whale · surface · Whale (band) / Whale (Q160) (wiki:1#0 · wiki:1#0)",
                "    A [whale] breathes.",
                "    The [white whale] sank it.",
            ],
        ),
        (
            alias_pairs.show(alias_pair("whale", "whales", 1200, 3), {}),
            ["whale / whales: mentions 1,200 and 3, entity Whale"],
        ),
    ],
)
def test_a_row_as_plain_text(shown, lines):
    assert list(shown.lines()) == lines


@pytest.mark.parametrize(
    ("kind", "one", "other", "heading"),
    [
        ("entity", "Troy", "Troy", "Troy · entity"),
        ("surface", "Troy", "Troy (film)", "Troy · surface · Troy / Troy (film)"),
        ("surface", "Troy (film)", "Troy", "Troy · surface · Troy (film) / Troy"),
    ],
)
def test_the_heading_of_a_pair_names_all_its_entities(kind, one, other, heading):
    row = mention_pair(mention("In [Troy].", one), mention("See [Troy].", other), kind=kind, key="Troy")
    assert mention_pairs.show(row, {}).heading == heading
