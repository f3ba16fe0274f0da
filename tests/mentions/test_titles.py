"""All ways to write a title, and the keys of titles."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from transforms.mentions.titles import MAX_BYTES, capitalised, normalise, page_keys, title_keys

PREFIXES = frozenset({"category", "file", "talk", "user talk", "fr", "wikt"})
HOST = "en.wikipedia.org"


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Anarchism", "Anarchism"),
        ("anarchism", "Anarchism"),
        ("New_York  City ", "New York City"),
        ("__New__York_", "New York"),
        ("a\u00a0b\u2009c\u3000d\te\nf", "A b c d e f"),
        # entities
        ("AT&amp;T", "AT&T"),
        ("R&D", "R&D"),
        ("Caf&eacute; &#8211; &#x2014;", "Café – —"),
        ("Tom&nbsp;&amp;_Jerry", "Tom & Jerry"),
        ("a &bogus b", "A &bogus b"),
        ("a &bogus; b", ""),
        ("a &amp;amp; b", ""),
        ("a &#1114112; b", "A &"),
        # percent escapes
        ("Caf%C3%A9", "Café"),
        ("A%20b%3F", "A b?"),
        ("100%", "100%"),
        ("5%_rule", "5% rule"),
        ("100%25ab", ""),
        ("Caf%E9", ""),
        # fragments, colons
        ("Anarchism#History", "Anarchism"),
        ("Anarchism #History", "Anarchism"),
        ("#History", ""),
        (":Anarchism", "Anarchism"),
        (" : anarchism", "Anarchism"),
        ("::Anarchism", ""),
        ("CSI: Miami", "CSI: Miami"),
        ("2001: A Space Odyssey", "2001: A Space Odyssey"),
        # forms of Unicode
        ("Cafe\u0301", "Café"),
        ("\u212bngström", "Ångström"),
        ("\u200eAbba\u200f \u202aX\u202c", "Abba X"),
        ("🙂", "🙂"),
        ("日本", "日本"),
        # first letters
        ("éclair", "Éclair"),
        ("ω", "Ω"),
        ("ß", "ß"),
        ("ŉ", "ŉ"),
        ("ﬁ", "ﬁ"),
        ("თბილისი", "თბილისი"),
        ("𐐨x", "𐐀x"),
        # paths and addresses
        ("./New_York?action=edit&redlink=1", "New York"),
        ("./What%27s_Up,_Doc%3F#Plot", "What's Up, Doc?"),
        ("What's Up, Doc?", "What's Up, Doc?"),
        ("/wiki/A_b", "A b"),
        ("https://en.wikipedia.org/wiki/A_b?x=y#z", "A b"),
        ("//en.wikipedia.org/wiki/A_b", "A b"),
        ("HTTP://EN.m.wikipedia.org/wiki/A_b", "A b"),
        ("https://en.wikipedia.org/w/index.php?title=a+b%2Bc&action=edit", "A b+c"),
        ("/w/index.php?action=edit&title=A_b#c", "A b"),
        ("https://fr.wikipedia.org/wiki/A_b", ""),
        ("https://en.wikipedia.org/", ""),
        ("https://en.wikipedia.org/static/a.png", ""),
        ("https://example.org", ""),
        (".hack//Sign", ".hack//Sign"),
        ("AC/DC", "AC/DC"),
        # not an article
        ("", ""),
        (" _ ", ""),
        (":", ""),
        ("Category:Physics", ""),
        (":category : Physics", ""),
        ("User_talk:X", ""),
        ("USER  TALK:X", ""),
        ("fr:Anarchisme", ""),
        ("./File:A.jpg", ""),
        *((f"a{mark}b", "") for mark in "<>[]{}|\0\x7f\ufffd\ud800"),
        ("a~~~b", ""),
        *((title, "") for title in (".", "..", "../a", "a/../b", "a/./b", "a/..", "a/.")),
        ("a/...", "A/..."),
        ("a" * 255, "A" + "a" * 254),
        ("a" * 256, ""),
        ("é" * 127, "É" + "é" * 126),
        ("é" * 128, ""),
    ],
)
def test_normalise(written: str, title: str):
    assert normalise(written, prefixes=PREFIXES, host=HOST) == title


@pytest.mark.parametrize(
    ("written", "title"), [("water", "water"), (":eau_douce", "eau douce"), ("Water", "Water"), ("./a_b", "a b")]
)
def test_a_wiki_with_titles_in_small_letters(written: str, title: str):
    assert normalise(written, capitalise=False) == title


@pytest.mark.parametrize("written", ["https://en.wikipedia.org/wiki/A", "//en.wikipedia.org/wiki/A"])
def test_addresses_need_a_host(written: str):
    assert normalise(written) == ""
    assert normalise(written, host="en.wikipedia.org") == "A"


CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from(" _:#%&;/.?<|aA\u200e\u0301\u00a0")


@examples(400)
@given(st.text(CHARACTERS, max_size=20), st.booleans())
def test_a_title_stays_as_it_is(written, capitalise):
    title = normalise(written, capitalise, prefixes=PREFIXES)
    assert len(title.encode()) <= MAX_BYTES
    assert title == " ".join(title.split()).replace("_", " ")
    assert not set("<>[]{}|#") & set(title)
    assert unicodedata.is_normalized("NFC", title)
    if not title.startswith(("/", ":")) and "index.php" not in title:
        assert normalise(title, capitalise, prefixes=PREFIXES) == title


@given(st.text(min_size=1))
def test_capitalised_changes_one_letter_at_most(text):
    assert capitalised(text)[1:] == text[1:]
    assert capitalised(capitalised(text)) == capitalised(text)


def digests(pairs: list[tuple[str, str]]) -> list[int]:
    return [xxhash.xxh3_128_intdigest(f"{source}\0{title}".encode()) for source, title in pairs]


def joined(keys) -> list[int]:
    hi, lo = keys
    assert hi.dtype == lo.dtype == "uint64"
    return [(high << 64) | low for high, low in zip(hi.tolist(), lo.tolist(), strict=True)]


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=8))))
def test_title_keys(pairs):
    sources, titles = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    expected = digests(pairs)
    assert joined(title_keys(sources, titles)) == expected
    assert joined(title_keys(sources.to_pylist(), titles.to_pylist())) == expected
    assert joined(title_keys(pa.chunked_array([sources[:1], sources[1:]]), titles)) == expected
    assert joined(title_keys("enwiki", titles)) == digests([("enwiki", title) for _, title in pairs])


def test_more_keys_than_are_made_at_once():
    titles = [f"T{n}" for n in range(70_000)]
    expected = digests([("dewiki", title) for title in titles])
    assert joined(title_keys("dewiki", titles)) == expected
    assert joined(title_keys(pa.repeat("dewiki", 70_000), pa.chunked_array([titles[:9], titles[9:]]))) == expected


def test_page_keys():
    expected = digests([("enwiki", "12"), ("enwiki", "345")])
    assert joined(page_keys("enwiki", [12, 345])) == expected
    assert joined(page_keys("enwiki", pa.array(["12", "345"]))) == expected
    assert joined(page_keys(["enwiki", "enwiki"], pa.array([12, 345], pa.int32()))) == expected
    assert joined(page_keys("enwiki", [])) == []


def test_as_many_sources_as_titles():
    with pytest.raises(ValueError, match="1 sources of 2 titles"):
        title_keys(["enwiki"], ["a", "b"])
