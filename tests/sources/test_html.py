"""Pages' HTML to text and links: tables of markup, real pages, any markup at all."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from prose_rules import assert_prose

from transforms.sources.html import Limits, plain_text, target_of
from transforms.sources.prose import TooComplex
from transforms.sources.wikitext import Site

ENGLISH = Site(namespaces={"Special": -1, "Help": 12, "Portal": 100})


def text_of(html: str) -> str:
    return plain_text(html, site=ENGLISH)[0]


def links_of(html: str, title: str = "") -> list[tuple[str, str]]:
    """(anchor, target) of each link."""
    text, links = plain_text(html, site=ENGLISH, title=title)
    return [(text[link.start_char : link.end_char], link.target_title) for link in links]


def wiki(title: str, anchor: str, attributes: str = "") -> str:
    return f'<a rel="mw:WikiLink" href="./{title}" title="x" {attributes} id="mwAb">{anchor}</a>'


MATH = '<span class="mwe-math-element"><math alttext="{\\displaystyle \\alpha }"><mi>α</mi></math></span>'


@pytest.mark.parametrize(
    ("html", "text"),
    [
        # Paragraphs
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("<p>one\nparagraph</p>\n\n<p>another</p>", "one paragraph\n\nanother"),
        ('<section data-mw-section-id="0" id="mwAQ"><p id="mwAg">a</p>\n\n<p>b\n\nc</p></section>', "a\n\nb c"),
        ("a<br>b<br/>c<BR clear=all />d", "a\nb\nc\nd"),
        ("<p>a</p><hr/><div>b<blockquote>c</blockquote>d</div>", "a\n\nb\n\nc\n\nd"),
        ('<div class="poem"><p>\nRoses<br>\nare <i>red</i>\n</p></div>', "Roses\nare red"),
        ("<pre>\na  b\nc\n</pre>", "a b\nc"),
        ('<body class="mw-parser-output"><p>a</p></body>', "a"),
        ("<!DOCTYPE html><html><head><title>T</title><base href='//a'/></head><body><p>a</p></body></html>", "a"),
        ("<head><meta charset=utf-8><body>a", "a"),
        ("", ""),
        # Words and their formatting
        ("<p><b>a</b> <i>b</i><span>c</span> <small>d</small> <s>e</s> <code>f</code></p>", "a bc d e f"),
        ("<p>H<sub>2</sub>O m<sup>2</sup> 10<sup>6</sup> 10<sup>−3</sup> 1<sup>st</sup></p>", "H2O m2 10^6 10^−3 1st"),
        ('<abbr title="circa">c.</abbr>&nbsp;1800', "c. 1800"),
        ('<i typeof="mw:Entity">&lt;</i>b&gt; &amp;lt; &#39;&#x41;&nbsp;&unknown; AT&T', "<b> &lt; 'A &unknown; AT&T"),
        ("a\u00a0b\u202fc so\u00adft \u200bzero", "a b c soft zero"),
        ("&#10;&#0;&#xD800;a&#99999999;", "&#xD800;a&#99999999;"),
        ("<ruby>漢<rt>kan</rt></ruby>", "漢kan"),
        # Headings
        ('<h2 id="A">A</h2><p>text</p>', "A\n\ntext"),
        ("<h2>A</h2><h3>B</h3><p>text</p><h3>C</h3><h2>D</h2>", "A\n\nB\n\ntext"),
        (
            '<div class="mw-heading mw-heading2"><h2 id="A">A</h2><span class="mw-editsection">[<a href="x">edit</a>]'
            "</span></div><p>b</p>",
            "A\n\nb",
        ),
        (
            '<h2><span class="mw-headline" id="A">A</span><span class="mw-editsection">[edit]</span></h2>\n<p>b</p>',
            "A\n\nb",
        ),
        ("<p><b>Novels</b></p><ul><li>a</li></ul>", "Novels\n\na"),
        ("<p><b>Footnotes</b></p>\n<p><b>Novels</b>\nare</p>", "Novels\n\nare"),
        ("<p><b>Paris</b> is</p>", "Paris is"),
        # Lists
        ("<ul><li>a\n<ul><li>b</li></ul></li>\n<li>c</li></ul>\n<ol><li>d</li></ol>", "a\nb\nc\nd"),
        ("<ul><li>a</li></ul>\n\n<ul><li>b</li></ul>", "a\n\nb"),
        ("<p>text:</p>\n<ul><li>a</li>\n<li>b</li></ul>\n<p>more</p>", "text:\n\na\nb\n\nmore"),
        ("<ul><li>a<ul><li>b</li></ul>c</li></ul>", "a\nb\n\nc"),
        ("<dl><dt>term</dt><dd>meaning</dd></dl>", "term\n\nmeaning"),
        ("<dl><dt>term</dt></dl><p>x</p>", "term\n\nx"),
        ("<dl><dd>indented<dl><dd>more</dd></dl></dd></dl>", "indented\nmore"),
        ("<ul><li>a<br>b</li><li>—</li></ul>", "a\nb"),
        ("<ul><li><b>a</b><br/>b</li></ul>", "a\nb"),
        ("<ul><li><p>a</p></li></ul>", "a"),
        # Left out: boxes, navigation, tables
        ('<table class="infobox"><tbody><tr><td>a</td></tr></tbody></table><p>b</p>', "b"),
        ("a.<table><tr><td>b<table><tr><td>c</td></tr></table>d</td></tr></table>e", "a.\n\ne"),
        # The titles of tables
        ("<h2>A</h2><p>Courses offered:</p>\n<table></table><h2>B</h2><p>b</p>", "B\n\nb"),
        ("<h2>A</h2><p><b>Men's singles</b>:</p><table></table><p>b</p>", "A\n\nb"),
        ("<dl><dt>a</dt></dl><table></table><ul><li>b</li></ul><table></table>c", "c"),
        ("<h2>A</h2><p>a</p><h2>B</h2>b:<table></table><table></table>c", "A\n\na\n\nB\n\nc"),
        ("<p>a</p><table class='infobox'></table>b", "a\n\nb"),
        ('<div role="navigation" class="navbox"><ul><li>a</li></ul></div>b', "b"),
        ('<div role="note" class="hatnote navigation-not-searchable">a</div>b', "b"),
        ('<div class="dablink">a</div><div class="sidebar">b</div><table class="ambox metadata"></table>c', "c"),
        ('<div id="toc" class="toc"><ul><li>a</li></ul></div>b', "b"),
        ('<span style="display: none;">a</span>b <span style="DISPLAY:none">c</span>', "b"),
        ('<style data-mw-deduplicate="x">.a>b{}</style><script>if (a < b) "</p>"</script>c', "c"),
        ('<div class="noprint">a</div><link rel="mw:PageProp/Category" href="./Category:X"/><meta name="x"/>b', "b"),
        ('a<span class="mw-empty-elt"></span> b', "a b"),
        # Left out: references
        ('a<sup class="mw-ref reference" typeof="mw:Extension/ref"><a href="./X#c"><span>[1]</span></a></sup>.', "a."),
        ('end.<sup class="reference" id="c"><a href="#n">&#91;1&#93;</a></sup>Next', "end. Next"),
        ('<div class="mw-references-wrap"><ol class="mw-references references"><li>a</li></ol></div>b', "b"),
        ('<ul><li><cite class="citation book cs1">a</cite><span class="Z3988"></span></li></ul><cite>b</cite>', "b"),
        ('a<sup class="noprint Inline-Template">[<i>citation needed</i>]</sup>, b', "a, b"),
        # Left out: pictures, formulas, sounds, coordinates; the gaps close
        ('<p>a</p><figure typeof="mw:File"><a href="./File:A"><img/></a><figcaption>b</figcaption></figure>', "a"),
        ('a <span class="mw-default-size" typeof="mw:File"><a href="./File:A"><img alt="b"/></a></span>, c', "a, c"),
        ('<figure-inline typeof="mw:Image"><span>File:A</span></figure-inline>b', "b"),
        ('<div class="thumb tright"><div class="thumbinner">a<div class="thumbcaption">b</div></div></div>c', "c"),
        ('<ul class="gallery mw-gallery-traditional"><li class="gallerybox">a</li></ul>b', "b"),
        (
            'a <span class="mwe-math-element"><span style="display:none"><math alttext="{\\displaystyle x}"><mi>x</mi>'
            '</math></span><img alt="y"/></span> b',
            "a x b",
        ),
        ('a <span typeof="mw:Extension/math" data-mw=\'{"body":{"extsrc":"E = m"}}\'>?</span>.', "a E = m."),
        (f"a ({MATH}) b", "a (\ufffd) b"),
        # Formulas
        (f"<p>A is</p><dl><dd>{MATH},</dd></dl><p>where b</p>", "A is \ufffd, where b"),
        (f"<p>A is {MATH} here.</p><p>{MATH}</p><p>B is</p>{MATH}<p>C</p>", "A is \ufffd here.\n\nB is \ufffd\n\nC"),
        (f"<ul><li>If<dl><dd>{MATH}</dd></dl></li><li>else</li></ul>", "If \ufffd\nelse"),
        (f"<h2>A</h2><p>{MATH}</p>", ""),
        ('<span typeof="mw:Extension/ce"><img/></span> b', "\ufffd b"),
        ('Goethe (<span class="IPA">[ɡ]</span>; born 1749) wrote', "Goethe (born 1749) wrote"),
        ('<span class="rt-commentedText"><small>/</small></span>(<span class="geo-inline">1°N</span>) a', "a"),
        ('a (( <span class="noprint">b</span>; )) c', "a c"),
        ('<div class="mw-highlight mw-content-ltr"><pre>a;</pre></div>b <code class="mw-highlight">c</code>', "b c"),
        # Careless markup
        ("<ul><li>a<li>b</ul><p>c<p>d", "a\nb\n\nc\n\nd"),
        ("<dl><dt>a<dd>b</dl>c</p>d", "a\n\nb\n\nc\n\nd"),
        ("<b>a<i>b</b>c</i></div>d", "abcd"),
        ("a < b, c<d > e, f <3 g", "a < b, c e, f <3 g"),
        ("a<!-- <p> --> b<!--> c<? x > d</ > e<!x> f", "a b c d e f"),
        ("a<!-- never closed", "a"),
        ("a<b title='never closed>b", "a"),
        ("<p class=noprint id=a/b>a</p><P CLASS = 'noprint' x>b</P><div class= noprint>c</div>d", "d"),
        ('<a title="a > b">c</a><i data-mw=\'{"a":"<div class=\\"infobox\\">"}\'>d</i>', "cd"),
        ("<table>never closed<p>a</p>", ""),
        ("<script>never closed", ""),
        # Languages with variants
        ('<i typeof="mw:LanguageVariant" data-mw-variant=\'{"twoway":[{"l":"zh-hans","t":"软"}]}\'></i>件', "软件"),
        ('<span data-mw-variant=\'{"disabled":{"t":"a"}}\'></span><span data-mw-variant="{["></span>b', "ab"),
    ],
)  # fmt: skip
def test_text(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    ("html", "text", "links"),
    [
        (wiki("A", "a"), "a", [("a", "A")]),
        (f"<p>x {wiki('A_b', 'c <i>d</i>')}.</p>", "x c d.", [("c d", "A b")]),
        (f"x{wiki('A', ' b ')}y", "x b y", [("b", "A")]),
        (wiki("Caf%C3%A9_%26_bar", "a") + wiki("AT&amp;T", "b") + wiki("C%2B%2B", "c"), "abc",
         [("a", "Café & bar"), ("b", "AT&T"), ("c", "C++")]),
        (wiki("What%3F", "a") + wiki("X#y", "b") + wiki("dog", "c"), "abc", [("a", "What?"), ("b", "X"), ("c", "Dog")]),
        (wiki("X?action=edit&amp;redlink=1", "a", 'class="new" typeof="mw:LocalizedAttrs"'), "a", [("a", "X")]),
        (wiki("X", "a", 'class="mw-redirect"') + wiki("Y", "b", 'class="mw-disambig"'), "ab", [("a", "X"), ("b", "Y")]),
        (wiki("Help:IPA", "a") + wiki("Special:B", "b") + wiki(":Category:C", "c") + wiki("File:D", "d"), "abcd", []),
        (wiki("CSI:_Miami", "a") + wiki("2001:_A_Space_Odyssey", "b"), "ab",
         [("a", "CSI: Miami"), ("b", "2001: A Space Odyssey")]),
        ('<a rel="mw:WikiLink/Interwiki" href="https://fr.wikipedia.org/wiki/x" class="extiw">a</a>', "a", []),
        ('<a rel="mw:ExtLink nofollow" href="http://a.org/wiki/X" class="external text">a</a>', "a", []),
        ('<a rel="mw:ExtLink" href="http://a.org" class="external autonumber">[1]</a>b', "b", []),
        ('<a class="mw-selflink selflink">a</a> <a>b</a> <a id="c"></a>d', "a b d", []),
        ('<a rel="mw:WikiLink/ISBN" href="./Special:BookSources/1">ISBN 1</a>', "ISBN 1", []),
        # The older parser's
        ('<a href="/wiki/A_b" title="A b">c</a>', "c", [("c", "A b")]),
        ('<a href="/w/index.php?title=A_b&amp;action=edit&amp;redlink=1" class="new">c</a>', "c", [("c", "A b")]),
        ('<a href="/wiki/X" class="mw-redirect" title="Y">a</a><a href="#s">b</a>', "ab", [("a", "X")]),
        ('<a href="//en.wikipedia.org/wiki/X">a</a><a href="https://a.org" class="external">b</a>', "ab", []),
        # The content of an anchor
        (wiki("A", 'b<sup class="reference">1</sup>'), "b", [("b", "A")]),
        (wiki("A", "b<br/>c\nd"), "b c d", [("b c d", "A")]),
        (wiki("A", '<span class="IPA">b</span>') + "c", "c", []),
        (wiki("A", "\u200b"), "", []),
        (wiki("A", "a<div>b</div>"), "a\n\nb", []),
        ('<a href="/wiki/A">b<a href="/wiki/C">d</a>', "bd", [("b", "A"), ("d", "C")]),
        ('<a href="/wiki/A">never closed', "never closed", [("never closed", "A")]),
        ("10<sup>" + wiki("A", "6") + "</sup>", "106", [("6", "A")]),
        # The place of an anchor
        (f"<h2>{wiki('A', 'a')}</h2><ul><li>{wiki('B', 'b')}</li></ul>", "a\n\nb", [("a", "A"), ("b", "B")]),
        (f"<p><b>{wiki('A', '<b>a</b>')}</b></p><p>b</p>", "a\n\nb", [("a", "A")]),
        (f"<table><tr><td>{wiki('A', 'a')}</td></tr></table>b", "b", []),
        (f"é {wiki('%C3%B1', 'ü')} 𝔘 {wiki('𝔙', '𝔙')}", "é ü 𝔘 𝔙", [("ü", "Ñ"), ("𝔙", "𝔙")]),
    ],
)  # fmt: skip
def test_links(html: str, text: str, links: list[tuple[str, str]]) -> None:
    assert (text_of(html), links_of(html)) == (text, links)


@pytest.mark.parametrize(
    ("href", "title"),
    [
        ("./A", "A"),
        ("../A/B", "A/B"),
        ("./AC/DC", "AC/DC"),
        ("./", ""),
        ("./?a", ""),
        ("#a", ""),
        ("./Own#Section", ""),
        ("./Own", "Own"),
        ("./%", "%"),
        ("./%FF", ""),
        ("./A%23b", "A"),
        ("./A%7Cb", ""),
        ("./A%00", ""),
        ("./A%0Ab", "A b"),
        ("./" + "a" * 10_000, ""),
        ("/w/index.php?oldid=1", ""),
        ("/", ""),
        ("//a/b", ""),
        ("/wiki//b", ""),
        ("./wiki/A", "Wiki/A"),
    ],
)
def test_titles(href: str, title: str) -> None:
    assert target_of(href, site=ENGLISH, own_title="Own").partition("#")[0] == title


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("./A#b_c", "A#b c"),
        ("./A_b?x=1#%C3%89", "A b#É"),
        ("/wiki/A#", "A#"),
        ("./A", "A#"),
        ("./Own#b", ""),
        ("./A#b%0Ac", "A#b c"),
        ("./A#b%00c", "A#"),
        ("./A#1#2", "A#1#2"),
    ],
)
def test_sections(href: str, target: str) -> None:
    assert target_of(href, site=ENGLISH, own_title="Own") == target


def test_sections_are_left_out() -> None:
    html = f"<p>a</p><h2>See also</h2><ul><li>{wiki('B', 'b')}</li></ul><h3>c</h3><p>d</p><h2>E</h2><p>f</p>"
    assert plain_text(html, site=ENGLISH, left_out=ENGLISH.link_sections) == ("a\n\nE\n\nf", ())
    assert text_of(html) == "a\n\nSee also\n\nb\n\nc\n\nd\n\nE\n\nf"


def test_offsets_are_code_points() -> None:
    text, links = plain_text(f"<p>𝔘&nbsp;and  {wiki('A', 'é')}s.</p>", site=ENGLISH)
    assert text == "𝔘 and és."
    assert [tuple(link) for link in links] == [(6, 7, "A", "", "")]


@pytest.mark.parametrize(
    ("html", "limits", "reason"),
    [
        ("<b>" * 11, Limits(nodes=10), "too_many_nodes"),
        ("<b>" * 11, Limits(depth=10), "too_deep"),
        ("<table>" * 11, Limits(depth=10), "too_deep"),
        ("<div><table>" + "<i>" * 9, Limits(depth=10), "too_deep"),
        ("<b>aaa</b>bbb", Limits(characters=5), "page_too_large"),
    ],
)
def test_limits(html: str, limits: Limits, reason: str) -> None:
    with pytest.raises(TooComplex) as raised:
        plain_text(html, site=ENGLISH, limits=limits)
    assert raised.value.reason == reason


def test_no_limit_is_met_by_what_is_left_out_or_closed() -> None:
    html = "<br>" * 10 + "<b></b>" * 4 + "<style>aaaa</style>bbb"
    assert plain_text(html, site=ENGLISH, limits=Limits(characters=3, depth=1))[0] == "bbb"


MARKUP = [
    *"<p> </p> <b> </b> <i> </i> <sup> </sup> <ul> <li> </li> </ul> <dl> <dt> <dd> </dl> <h2> </h2> <h3>".split(),
    *"<div> </div> <table> <td> </table> <pre> <br> <a> <math> </math> <style> </style>".split(),
    *("<a href='/wiki/A'>", '<a rel="mw:WikiLink" href="./B_c#d">', "<span class='IPA'>", "</span>"),
    *('<sup class="reference">', '<div class="navbox">', "<i style='display:none'>", '<span class="mwe-math-element">'),
    *"<!-- --> &amp; &nbsp; &#2; &lt; &; < > \" ' = / ! ( ) , ; : . a Word 1 é 𝔘 -".split(),
    *("\n", "\n\n", " ", "\x01", "\x02", "\x03", "\x06", "\x07", "\x08", "\x0e", "\u00a0", "\u00ad", "\u200b"),
    *("\ufdd0", "\ufffd", MATH, "<h2>See also</h2>"),
]  # fmt: skip


def check(html: str) -> None:
    """What must hold for any HTML."""
    text, links = plain_text(html, site=ENGLISH, left_out=ENGLISH.link_sections, limits=Limits(depth=10_000))
    assert_prose(text, links)


@given(st.lists(st.sampled_from(MARKUP), max_size=60))
@examples(600)
def test_any_markup(parts: list[str]) -> None:
    check("".join(parts))


@given(st.text(max_size=200))
@examples(300)
def test_any_text(html: str) -> None:
    check(html)


WORDS = st.lists(st.sampled_from(["a", "Word", "é", "𝔘", "10", "<i>b</i>", "&amp;", "e\u0301"]), min_size=1, max_size=4)
PIECES = st.lists(st.tuples(st.booleans(), WORDS), max_size=12)


@given(PIECES)
@examples(300)
def test_every_link_keeps_its_words(pieces: list[tuple[bool, list[str]]]) -> None:
    """Among words that nothing removes, the anchor of each link is exactly its own words, in order."""
    html = " ".join(
        wiki(f"T{n}", " ".join(words)) if link else " ".join(words) for n, (link, words) in enumerate(pieces)
    )
    shown = [(text_of(f"<p>{' '.join(words)}</p>"), f"T{n}") for n, (link, words) in enumerate(pieces) if link]
    assert [each for each in links_of(f"<p>{html}</p>") if re.search(r"\w", each[0])] == [
        each for each in shown if re.search(r"\w", each[0])
    ]


def cpu_seconds(html: str) -> float:
    start = time.process_time()
    plain_text(html, site=ENGLISH, limits=Limits(10**9, 10**9, 10**9))
    return time.process_time() - start


WORST = [
    *"<b> </b> <b></i> <li> <p> <a href=/wiki/A> <a> <table> <sup> <sup>1 < <! </ <!-- <style> <math>".split(),
    *"& &#1 &#x1 <ul> </ul> <ul></ul> <ul><li> <h2> <h2>a</h2> <dt> <br> <b>a</b> ( ,".split(),
    *(
        "<a ",
        '<a b="',
        "<a b='",
        "<a b=",
        "<a x",
        " ",
        "\n",
        "\n\n",
        "<b>a</b>\n",
        "<pre>\n",
        "(<img>",
        "<img>, ",
        "\x0e",
    ),
    *('<a href="/wiki/A">a</a>', "<span class='a'>", "<i style=';'>", "<sup class=reference></sup>"),
]


@pytest.mark.parametrize("unit", WORST)
def test_time_is_linear_in_the_worst_case(unit: str) -> None:
    """A hundred thousand characters of each unit: quadratic work would take minutes."""
    assert cpu_seconds((unit * 100_000)[:100_000]) < 2


@pytest.mark.parametrize(
    "html",
    [
        "<b>" * 30_000 + "</i>" * 30_000 + "</b>" * 30_000,
        "<i><b>" * 20_000 + "</i>" * 20_000,
        "<b " + "a " * 100_000 + ">",
        "<b " + 'a="x" ' * 50_000 + ">",
        "<b " + 'class="x" ' * 50_000 + "\"'>",
        "<span class='" + "a " * 100_000 + "'>b",
        "<i style='" + "display " * 50_000 + "'>b",
        "<i style='display" + " " * 100_000 + "'>b",
        "<i" + " " * 100_000 + "<",
        "<a href='/wiki/" + "%41" * 50_000 + "'>b</a>",
        "<a href='/w/index.php?" + "&" * 100_000 + "'>b</a>",
        "<a href='/wiki/A'>" + "<b>a</b>" * 30_000 + "</a>",
        "<math alttext='{\\displaystyle " + "{" * 100_000 + "'>",
        "<i typeof='" + "mw:Extension/ " * 10_000 + "'>",
        "<ul>" * 30_000 + "</ul> \n" * 30_000 + "a",
        f"<p>a</p>{MATH}" * 3_000,
        f"<p>a {MATH}</p><table></table>" * 3_000,
    ],
)  # fmt: skip
def test_time_is_linear_in_one_tag(html: str) -> None:
    assert cpu_seconds(html) < 2
