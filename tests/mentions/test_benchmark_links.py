"""Every link of an article is one of ours or has a reason: literal wikitext, the shipped sample, larger dumps."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from transforms.sources.items import Document, Link
from transforms.sources.sample import sample_inputs
from transforms.sources.wikitext import Site, plain_text

# What `python -m` finds, pytest does not: the benchmarks are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks.links import FOUND, REASONS, Unexplained, account, compare, is_anchor, links_of, main, resolve

ENGLISH = Site(language="en", namespaces={"Special": -1, "Talk": 1, "User": 2, "Wikipedia": 4, "Help": 12})


@pytest.mark.parametrize(
    ("written", "title", "reason"),
    [
        ("a", "A", ""),
        (" a__b ", "A b", ""),
        ("a#b", "A", ""),
        ("A&nbsp;b", "A b", ""),
        ("AT&T", "AT&T", ""),
        ("AT&amp;T", "AT&T", ""),
        ("Caf%C3%A9", "Café", ""),
        ("e\u0301tude", "Étude", ""),
        ("\u200eA", "A", ""),
        ("ßa", "ßa", ""),
        (":a", "A", ""),
        (":en:a", "A", ""),
        ("CSI: Miami", "CSI: Miami", ""),
        ("#a", "", "section"),
        ("File:a.jpg", "", "file"),
        ("category: a", "", "file"),
        (":Category:a", "", "namespace"),
        ("user talk:a", "User talk:a", ""),  # not of this wiki
        ("Help:a", "", "namespace"),
        ("wikt:a", "", "wiki"),
        (":fr:a", "", "wiki"),
        ("a&lt;b", "", "no title"),
        ("a%ZZ%41", "A%ZZA", ""),
        ("http://a.org b", "", "no title"),
        ("..", "", "no title"),
        ("a" * 256, "", "no title"),
        (" ", "", "no title"),
    ],
)
def test_resolve(written: str, title: str, reason: str) -> None:
    assert resolve(written, ENGLISH) == (title, reason)


@pytest.mark.parametrize(
    ("wikitext", "links"),
    [
        ("[[a]] [[b|''c'' d]] [[e]]s", [("A", "a", ""), ("B", "c d", ""), ("E", "es", "")]),
        ("'' {{x|[[a]]}} [[b]]", [("A", "a", "template"), ("B", "b", "")]),
        ("{{nowrap|[[a]]}} {{nowrap|x|[[b]]}}", [("A", "a", ""), ("B", "b", "template")]),
        ("{{nowrap|{{x|[[a]]|y}} [[b]]<ref>{{x|c|d}}</ref>}}", [("A", "a", "template"), ("B", "b", "")]),
        ("[[a|{{nowrap|b}} c]] [[d|{{x|e}}]]", [("A", "b c", ""), ("D", "", "no anchor")]),
        ("<ref>[[a]]</ref> <math>[[b]]</math> <nowiki>[[c]]</nowiki>",
         [("A", "a", "reference"), ("B", "b", "no wikitext"), ("C", "c", "no wikitext")]),
        ("<!-- [[a]] [[b -->", [("A", "a", "comment"), ("", "", "comment")]),
        ("<gallery>\nFile:x|[[a]]\n</gallery>", [("A", "a", "gallery")]),
        ("{|\n| [[a]]\n|}\n<table><tr><td>[[b]]</td></tr></table>", [("A", "a", "table"), ("B", "b", "table")]),
        ("[[File:x|thumb|[[a]]]]", [("", "thumb|a", "file"), ("A", "a", "caption")]),
        ("[[a|b [[c]]]]", [("A", "b c", "outer"), ("C", "c", "")]),
        ("[[a|b [c]]]", [("A", "b [c]", "")]),
        ("[[a\n", [("", "", "no link")]),
        ("[http://x [[a]]] <b>[[b]]</b> * [[c]]", [("A", "a", ""), ("B", "b", ""), ("C", "c", "")]),
    ],
)  # fmt: skip
def test_links_of_the_wikitext(wikitext: str, links: list[tuple[str, str, str]]) -> None:
    found = links_of(wikitext, ENGLISH)
    assert [(each.title, each.reason) for each in found] == [(title, reason) for title, _, reason in links]
    assert len(found) == wikitext.count("[[")
    for each, (_, anchor, reason) in zip(found, links, strict=True):
        assert wikitext.startswith(each.written, each.position)
        assert reason in (*REASONS, "")
        assert reason or is_anchor(each.anchor, anchor)


def test_a_link_that_a_template_makes() -> None:
    (made,) = links_of("{{flag|France}}", ENGLISH)
    assert (made.title, made.made, made.reason) == ("France", True, "")


WIKITEXT = "'''A''' is [[b]] and [[c|d]]s, {{x|[[e]]}} {{flag|France}}\n\n== [[f]] ==\n{{x}}\n== [[g]] ==\nText [[b]]."


def document(wikitext: str) -> Document:
    text, links = plain_text(wikitext, site=ENGLISH)
    return Document("enwiki:1", "enwiki", "A", "", "", text, links)


def test_all_found_or_explained() -> None:
    counts, made, unexplained = compare(links_of(WIKITEXT, ENGLISH), document(WIKITEXT), WIKITEXT)
    assert (counts, made, unexplained) == ({FOUND: 4, "template": 1, "heading": 1}, 1, [])


@pytest.mark.parametrize(
    ("change", "unexplained"),
    [
        (lambda links: links[1:], [(1, "not ours", "[[b]]")]),
        (lambda links: [*links, Link(0, 1, "Z")], [(0, "not in the wikitext", "[[Z|A]]")]),
        (lambda links: [*links, links[0]], [(0, "not in the wikitext", "[[B|b]]")]),
        (
            lambda links: [links[0]._replace(target_title="Z"), *links[1:]],
            [(1, "not ours", "[[b]]"), (0, "not in the wikitext", "[[Z|b]]")],
        ),
        (
            lambda links: [links[0], links[1]._replace(end_char=links[1].end_char - 1), *links[2:]],
            [(1, "not ours", "[[c|d]]"), (0, "not in the wikitext", "[[C|d]]")],
        ),
        (
            lambda links: [each for each in links if each.target_title != "France"],
            [(1, "a template's link is not ours", "[[France]]")],
        ),
    ],
)
def test_what_is_wrong_is_unexplained(change, unexplained: list[tuple[int, str, str]]) -> None:
    whole = document(WIKITEXT)
    changed = whole._replace(links=tuple(change(list(whole.links))))
    assert compare(links_of(WIKITEXT, ENGLISH), changed, WIKITEXT)[2] == [
        Unexplained("A", line, what, link) for line, what, link in unexplained
    ]


def dump(folder: Path, *wikitexts: str) -> Path:
    pages = "".join(
        f"<page><title>P{number}</title><ns>0</ns><id>{number}</id><revision><text>{escape(wikitext)}</text></revision>"
        "</page>"
        for number, wikitext in enumerate(wikitexts)
    )
    path = folder / "wiki.xml"
    path.write_text(f'<mediawiki xml:lang="en">{pages}</mediawiki>', encoding="utf-8")
    return path


def test_pages_that_are_not_compared(tmp_path: Path) -> None:
    path = dump(tmp_path, "[[a]] b", "#redirect [[P0]]", "{{x}}")
    found = account(path)
    assert found.pages == {"compared": 1, "redirect": 1, "no document": 1}
    assert (found.wikitext, found.ours, found.counts) == (1, 1, {FOUND: 1})
    assert account(path, seconds_a_page=0).pages == {"took too long": 1, "redirect": 1, "no document": 1}


def check_account(path: Path, *, links: int, found: int) -> None:
    result = account(path)
    assert result.unexplained == []
    assert result.wikitext == result.counts.total() == links
    assert result.counts[FOUND] == found
    assert result.ours == found + result.made
    assert set(result.counts) <= {FOUND, *REASONS}
    assert set(result.pages) <= {"compared", "redirect"}


def test_sample() -> None:
    check_account(sample_inputs()[0], links=19_526, found=14_440)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "links", "found"), [("enwiki-fragment", 32_374, 22_660), ("enwiki-minidump", 6_881, 4_984)]
)
def test_dumps(test_data: Path, name: str, links: int, found: int) -> None:
    check_account(test_data / "corpora" / "wikipedia" / f"{name}.xml.bz2", links=links, found=found)


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump(tmp_path, "[[a]] {{x|[[b]]}}")
    with pytest.raises(SystemExit) as ended:
        main([str(path), "--json", str(tmp_path / "links.json")])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert REASONS["template"] in printed
    assert REASONS["gallery"] not in printed
    assert '"found": 1' in (tmp_path / "links.json").read_text(encoding="utf-8")
