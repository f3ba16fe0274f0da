"""Mentions in their sentences: which links become mentions, and why others are left out."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.mentions.dates import is_date
from transforms.mentions.finding import Source, Target, find_mentions, spans_of, titles_of
from transforms.mentions.options import MentionRules

RULES = MentionRules()
FURTHER = MentionRules(own_titles=True, repeated_anchors=True)


def document(marked: str, title: str = "Page") -> Source:
    """A document whose links are written [anchor], [anchor|Title] or [anchor|Title#Section]."""
    text, links = "", []
    for piece in re.split(r"(\[[^\]]*\])", marked):
        if piece.startswith("["):
            anchor, _, target = piece[1:-1].partition("|")
            target, _, section = target.partition("#")
            links.append(
                {
                    "start_char": len(text),
                    "end_char": len(text) + len(anchor),
                    "target_title": target or anchor[:1].upper() + anchor[1:],
                    "entity_id": "",
                    "section": section,
                }
            )
            text += anchor
        else:
            text += piece
    return Source(title, text, links)


def found(
    source: Source, rules: MentionRules = RULES, **targets: Target
) -> tuple[list[tuple[str, ...]], dict[str, int]]:
    meanings = {title: Target("", title, "NIL") for title in titles_of(source, rules)} | targets
    filtered: Counter[str] = Counter()
    rows = [
        (each.mention, f"{each.text[: each.start_char]}[{each.text[each.start_char : each.end_char]}]", each.origin)
        for each in find_mentions(source, meanings, rules, filtered)
    ]
    return rows, dict(filtered)


@pytest.mark.parametrize(
    ("marked", "rows", "filtered"),
    [
        ("He lived in [Paris].", [("Paris", "He lived in [Paris]", "link")], {}),
        ("It rained. He lived in [Paris]. Then he left.", [("Paris", "He lived in [Paris]", "link")], {}),
        ("A heading\n\nIn [Rome] he met [Ann Lee].",
         [("Rome", "In [Rome]", "link"), ("Ann Lee", "In Rome he met [Ann Lee]", "link")], {}),
        ("Tyger, burning bright\nIn the [forest] of the night,\nwhat hand or [eye]\nCould frame thee?",
         [("forest", "Tyger, burning bright\nIn the [forest]", "link"),
          ("eye", "Tyger, burning bright\nIn the forest of the night,\nwhat hand or [eye]", "link")], {}),
        ("Born in [1903] in [Rome].", [("Rome", "Born in 1903 in [Rome]", "link")], {"date": 1}),
        ("On [5 May] she sang with [77|77 (film)].", [], {"date": 1, "number": 1}),
        ("It is the [No. 5|Chanel No. 5] of all.", [("No. 5", "It is the [No. 5]", "link")], {}),
        ("She saw [†|Dagger (mark)] there.", [], {"punctuation": 1}),
        ("[Paris]", [], {"whole_sentence": 1}),
        ("– [Paris], 1923.", [], {"whole_sentence": 1}),
        ("He wrote [The End. The Start] in Rome.", [], {"across_sentences": 1}),
        ("He is " + "[one two three four five six seven eight nine ten eleven|X].", [], {"long_mention": 1}),
        ("word " * 100 + "[Paris].", [], {"long_sentence": 1}),
        ("😀 near [Zürich] and [𝒳|X (letter)].",
         [("Zürich", "😀 near [Zürich]", "link"), ("𝒳", "😀 near Zürich and [𝒳]", "link")], {}),
        ("", [], {}),
    ],
)  # fmt: skip
def test_links_in_their_sentences(marked, rows, filtered):
    assert found(document(marked)) == (rows, filtered)


def test_rules_can_be_turned_off():
    keep = MentionRules(drop_numbers=False, drop_dates=False, drop_whole_sentences=False)
    rows, filtered = found(document("[Paris]\nIn [1903] and [300]."), keep)
    assert [row[0] for row in rows] == ["Paris", "1903", "300"]
    assert filtered == {}


@pytest.mark.parametrize("title", ["List of cities", "Lists of cities", "Index of Rome", "Timeline of Rome"])
def test_lists(title):
    assert found(document("In [Rome] he met [Ann].", title)) == ([], {"list_page": 2})
    assert len(found(document("In [Rome] he met [Ann].", title), MentionRules(drop_lists=False))[0]) == 2


def test_disambiguation_and_red_links():
    source = document("In [Rome] he met [Ann].", "Meeting")
    rome = Target("", "Rome (disambiguation)", "redirect", disambiguation=True)
    rows, filtered = found(source, Rome=rome)
    assert ([row[0] for row in rows], filtered) == (["Ann"], {"to_disambiguation": 1})
    rows, filtered = found(source, MentionRules(drop_red_links=True), Rome=Target("Q220", "Rome", "qid"))
    assert ([row[0] for row in rows], filtered) == (["Rome"], {"red_link": 1})
    lists = found(source, Meeting=Target("", "Meeting", "title", disambiguation=True))
    assert lists == ([], {"list_page": 2})


def test_a_link_may_say_its_entity_itself():
    source = document("In [Rome] he slept.")
    source.links[0]["entity_id"] = "Q220"
    filtered: Counter[str] = Counter()
    targets = {title: Target("", title, "NIL") for title in titles_of(source, RULES)}
    (mention,) = find_mentions(source, targets, RULES, filtered)
    assert mention.target == Target("Q220", "Rome", "qid")


@pytest.mark.parametrize(
    ("marked", "title", "rules", "further", "ambiguous"),
    [
        ("Ada was here. [Lord Byron] met Ada. Lord Byron left.", "Ada", FURTHER,
         [("Ada", "title", 0), ("Ada", "title", 29), ("Lord Byron", "repeat", 34)], 0),
        ("Ada was here. [Lord Byron] met Ada. Lord Byron left.", "Ada", MentionRules(own_titles=True),
         [("Ada", "title", 0), ("Ada", "title", 29)], 0),
        ("The Alien saw Aliens and an alien in Alien.", "Alien (film)", FURTHER,
         [("Alien", "title", 4), ("Alien", "title", 37)], 0),
        ("Byron came. [Byron|Lord Byron] met [Byron|Allegra Byron]; Byron left.", "X", FURTHER, [], 1),
        ("[New York] and York; New York, Yorkshire.", "X", FURTHER, [("New York", "repeat", 19)], 0),
        ("[York] saw New York and [New York] New York York.", "X", FURTHER,
         [("York", "repeat", 13), ("New York", "repeat", 31), ("York", "repeat", 40)], 0),
        ("It is of no use: [of|Of (word)] the of.", "X", FURTHER, [], 0),
    ],
)  # fmt: skip
def test_further_mentions(marked, title, rules, further, ambiguous):
    source = document(marked, title)
    spans, left_out = spans_of(source, rules)
    seen = [(source.text[each.start : each.end], each.origin, each.start) for each in spans if each.origin != "link"]
    assert (seen, left_out) == (further, ambiguous)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "Ann ", "\n", "x. Y ", " ", "5 May ", "𝒳. "]),
            st.sampled_from(["Ann", "of a. B", "1903", "†", " ", "é"]),
        ),
        max_size=12,
    )
)
def test_every_candidate_is_a_mention_or_counted(pieces):
    source = document("".join(f"{before}[{anchor}]" for before, anchor in pieces), "Ann")
    targets = {title: Target("", title, "NIL") for title in titles_of(source, FURTHER)}
    filtered: Counter[str] = Counter()
    mentions = list(find_mentions(source, targets, FURTHER, filtered))
    spans, ambiguous = spans_of(source, FURTHER)
    assert len(mentions) + filtered.total() == len(spans) + ambiguous
    assert all(a.end <= b.start for a, b in pairwise(spans))
    for each in mentions:
        assert each.text[each.start_char : each.end_char] == each.mention
        assert source.text.startswith(each.text, each.sentence_start)


@pytest.mark.parametrize(
    ("mention", "target", "expected"),
    [
        ("1984", "1984", True),
        ("1984", "Nineteen Eighty-Four", True),
        ("5 May", "May 5", True),
        ("May 5, 1821", "1821", True),
        ("May", "May", True),
        ("May", "Theresa May", False),
        ("March", "March (territory)", False),
        ("the 1990s", "1990s", True),
        ("'90s", "1990s", True),
        ("19th century", "19th century", True),
        ("fourth century BC", "4th century BC", True),
        ("300 BC", "300s BC", True),
        ("1914–18", "World War I", True),
        ("World War II", "World War II", False),
        ("Second", "Second", False),
        ("The Second", "Second Manassas", False),
        ("5", "5 (number)", False),
        ("Sunday", "Sunday", True),
        ("Boeing 747", "Boeing 747", False),
        ("early modern", "Early modern period", False),
    ],
)
def test_dates(mention, target, expected):
    assert is_date(mention, target) is expected
