"""Wikitext to text and links: tables of markup, real articles, any markup at all."""

from __future__ import annotations

import bz2
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from properties import examples
from prose_rules import assert_prose

from transforms.sources.wikitext import Site, TooComplex, plain_text

ENGLISH = Site(
    language="en",
    namespaces={"Media": -2, "Special": -1, "User": 2, "Wikipedia": 4, "Template": 10, "Help": 12, "Portal": 100},
)
GERMAN = Site(language="de", namespaces={"Datei": 6, "Kategorie": 14, "Vorlage": 10, "Spezial": -1})


def text_of(wikitext: str, site: Site = ENGLISH) -> str:
    return plain_text(wikitext, site=site)[0]


def links_of(wikitext: str, site: Site = ENGLISH) -> list[tuple[str, str]]:
    """(anchor, target) of each link."""
    text, links = plain_text(wikitext, site=site)
    return [(text[link.start_char : link.end_char], link.target_title) for link in links]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        # Quotes
        ("''a'' '''b''' '''''c'''''", "a b c"),
        ("'''Paris''' is", "Paris is"),
        ("l''''amour''' fou", "l'amour fou"),
        ("dog's 'n' cats'", "dog's 'n' cats'"),
        ("L'''Homme'' et '''femme'''", "L'Homme et femme"),
        ("''open\n\nnext''", "open\n\nnext"),
        # Comments
        ("a<!-- b -->c", "ac"),
        ("a\n<!-- a line of its own -->\nb", "a b"),
        ("a <!-- never closed", "a"),
        # Templates that are dropped, and the gaps they leave
        ("a {{b}} c", "a c"),
        ("a{{b}}, c", "a, c"),
        ("a {{b}}, c", "a, c"),
        ("a ((({{b}}))) c, (({{b}})) d (({{b}}) e)", "a c, d (e)"),
        ("a ({{b}}) c", "a c"),
        ("a ({{b}}; {{c}}) d", "a d"),
        ("Goethe ({{IPA-de|x}}; born {{b}}, 1749) wrote", "Goethe (born, 1749) wrote"),
        ("a (b; {{c}}) d", "a (b) d"),
        ("a (b, {{c}}, d) e", "a (b, d) e"),
        ("a, {{b}}, c", "a, c"),
        ("a; {{b}}. (b: {{b}}, c)", "a. (b: c)"),
        ("a ({{b}}c) d", "a (c) d"),
        ("{{b}} a", "a"),
        ("“{{b}} a”", '"a"'),
        ("the f() function", "the f() function"),
        ("end.{{cn}} Next", "end. Next"),
        ("end.<ref>x</ref>Next", "end. Next"),
        ("3.<ref>x</ref>5", "3.5"),
        ("{{Infobox\n| a = {{b|c}}\n| d = [[e]] {{{f|}}}\n}}\nText", "Text"),
        ("{{a|{{b|{{c}}}}}}d", "d"),
        ("a {{#if:x|y|z}} b", "a b"),
        ("{{DEFAULTSORT:Doe, John}}a", "a"),
        # Templates that represent words
        ("{{lang|fr|mot}}", "mot"),
        ("{{Lang|fr|''mot juste''}} is", "mot juste is"),
        ("({{lang-fr|mot}})", "(French: mot)"),
        ("{{lang-xyz|mot}}", "mot"),
        ("{{transl|ru|slovo}} {{transl|ru|ISO|slovo}}", "slovo slovo"),
        ("{{nihongo|Tokyo Tower|東京タワー|Tōkyō tawā}}", "Tokyo Tower (東京タワー, Tōkyō tawā)"),
        ("{{nihongo||東京|Tōkyō}}", "東京, Tōkyō"),
        ("{{convert|5|km}}", "5 km"),
        ("{{convert|5|km|mi|abbr=on}} wide", "5 km wide"),
        ("{{cvt|1234567.5|sqmi|km2}}", "1,234,567.5 sq mi"),
        ("{{convert|5|to|10|km|mi}}", "5 to 10 km"),
        ("{{convert|5|-|10|C|F}}", "5–10 °C"),
        ("{{convert|5|ft|11|in|m}}", "5 ft 11 in"),
        ("a {{convert|5|mi|adj=on}} run", "a 5-mi run"),
        ("{{convert|166|Goilbbl}}", "166 billion barrels"),
        ("{{convert|2|e6km2}}", "2 million km2"),
        ("{{nowrap|a b}} {{small|c}} {{abbr|d|e}}", "a b c d"),
        ("{{circa|1800}} {{c.}} {{fl.|1200}} {{reign|1|2}}", "c. 1800 c. fl. 1200 r. 1–2"),
        ("1{{ndash}}2 3{{snd}}4 5{{nbsp}}6 {{'}}n{{'s}}", "1–2 3 – 4 5 6 'n's"),
        ("{{frac|1|2}} {{frac|1|2|3}} {{val|1.5|e=6|u=km}}", "1/2 1 2/3 1.5×10^6 km"),
        ("{{chem|H|2|O}} {{sfrac|a|b}} {{math|''x''}}", "H2O a/b x"),
        ("{{birth date and age|1950|1|31}}", "31 January 1950"),
        ("{{start date|2001|9|mf=yes}}", "September 2001"),
        ("{{As of|2010|7|lc=y}}, it", "as of July 2010, it"),
        ("{{as of|2017|alt=measured by revenue|post=,}}", "measured by revenue,"),
        ("{{US$|5 million}} {{£|3}}", "US$5 million £3"),
        ("{{lang|1=fr|2=mot}} {{subst:nowrap|a}} {{formatnum:1234}}", "mot a 1234"),
        ("{{nowrap|[[a|b]] c}}", "b c"),
        ("{{sic|teh}} {{sic}} {{angbr|a}}", "teh ⟨a⟩"),
        ("{{quote|To be}}", "To be"),
        ("He said:\n{{quote|text=To be}}\nand went.", "He said:\n\nTo be\n\nand went."),
        ("{{ubl|a|b}}", "a\nb"),
        ("{{hlist|a|b}}", "a, b"),
        ("{{Columns-list|2|\n* a\n* b}}c{{unknown|x\n* y\n* z|w=\n* v}}", "a\nb\n\nc\n\nx\n\ny\nz"),
        ("{{columns|width=9em|col1=\n* a|col2=\n* b}}", "a\nb"),
        ("* {{Lbb|Severn}} (1996)\n* {{Lbb|Tamar}}", "Severn (1996)\nTamar"),
        ("{{{1|default}}}", "default"),
        ("{{{1}}}a", "a"),
        ("{{ {{nowrap|lang}}|fr|mot}}a", "a"),
        # Braces that do not match
        ("a {{b", "a"),
        ("a {{b\nc", "a c"),
        ("a }} b", "a b"),
        ("{{a|[[b}} c", "c"),
        ("x {y} z", "x {y} z"),
        ("{{Infobox\n| a = b\n\nText", "Text"),
        # Tables
        ("a.\n{| class=x\n|-\n| b || c\n|}\nd", "a.\n\nd"),
        ("{|\n| a\n{|\n| b\n|}\n| c\n|}\nd", "d"),
        ("{{a|\n{|\n| b\n|}}}c", "c"),
        ("{|\n| never closed\n\nText", "Text"),
        ("|-\n| left || over\nText", "Text"),
        # Their titles
        ("== A ==\nCourses offered:\n\n{|\n|}\n== B ==\nb", "B\n\nb"),
        ("== A ==\n'''Men's singles'''\n{|\n|}\n\nb", "A\n\nb"),
        ("; a\n{|\n|}\n* b\n<table></table>\nc", "c"),
        ("== A ==\na\n== B ==\nb:\n{|\n|}\n{|\n|}\nc", "A\n\na\n\nB\n\nc"),
        ("We list them all in the table that comes next:\n{|\n|}", "We list them all in the table that comes next:"),
        ("It was so.\n{|\n|}\na\nb\n* c\n* d\n{|\n|}\ne", "It was so.\n\na b\n\nc\nd\n\ne"),
        ("a [[b|c\n{|\n|}\n]] d", "a c d"),
        ("<table><tr><td>a</td></tr></table>b", "b"),
        # References and other tags whose content is not prose
        ("a<ref>b</ref>.", "a."),
        ('a<ref name="b">[[c]] {{d}}</ref> e<ref name=b /> f<REF>g</REF>', "a e f"),
        ("a<ref>never closed", "anever closed"),
        ("a<references/>b<references><ref>c</ref></references>d", "abd"),
        ("<gallery>\nFile:a.jpg|[[b]]\n</gallery>\nc", "c"),
        ("a <math>\\frac{1}{2}</math> b <math>x</math> c <math>E = m</math>", "a \ufffd b x c E = m"),
        # Formulas
        (
            "(<math>\\alpha</math>) <math> </math>b <math>~x\\,</math> <chem>H2O</chem> <ce>A -> B</ce>",
            "(\ufffd) b x H2O \ufffd",
        ),
        ("A is\n:<math>\\alpha</math>,\nwhere b", "A is \ufffd, where b"),
        ("A is\n\n: <math>\\alpha</math>\n\nwhere b.\n\nC", "A is \ufffd where b.\n\nC"),
        ("A is\n:<math>\\alpha</math>\n:<math>= \\beta</math>.\nNext", "A is \ufffd.\n\nNext"),
        ("A.\n:<math>\\alpha</math>\nB", "A.\n\nB"),
        ("A is <math display=block>\\alpha</math> where b", "A is \ufffd where b"),
        ("* If\n*:<math>\\alpha</math>\n* else", "If \ufffd\nelse"),
        ("== A ==\na\n== B ==\n<math>\\alpha</math>\nb", "A\n\na\n\nB\n\nb"),
        ("A is {{NumBlk|:|<math>\\alpha</math>|1}}\nhere", "A is \ufffd here"),
        ("== A ==\n<math>\\alpha</math>", ""),
        ("== A ==\na\n:<math>\\alpha</math>\n== B ==\n, c", "A\n\na \ufffd\n\nB\n\nc"),
        ("<syntaxhighlight lang=c>int x;</syntaxhighlight>a <score>b</score><timeline>c</timeline>", "a"),
        ('the <syntaxhighlight lang="c" inline>int x;</syntaxhighlight> line', "the int x; line"),
        ("<includeonly>a</includeonly><noinclude>b</noinclude>", "b"),
        # Tags of formatting only
        ("<small>a</small> <big>b</big> <span style='x'>c</span> <code>d</code> <s>e</s>", "a b c d e"),
        ("H<sub>2</sub>O m<sup>2</sup> 10<sup>6</sup> 10<sup>-3</sup>", "H2O m2 10^6 10^-3"),
        ("a<br>b<br/>c<BR clear=all />d", "a\nb\nc\nd"),
        ("* a<br>b", "a\nb"),
        ("* '''a'''<br />b {{br}} c", "a\nb\nc"),
        ("a{{break}}b{{pb}}c", "a\nb\n\nc"),
        ("a<blockquote>b</blockquote>c", "a\n\nb\n\nc"),
        ("<div>a</div><p>b</p>", "a\n\nb"),
        ("<ul><li>a</li><li>b</li></ul>", "a\nb"),
        ("<poem>\nRoses\nare ''red''\n</poem>", "Roses\nare red"),
        ("<pre>\na  '''b'''\n</pre>", "a '''b'''"),
        ("a < b and c > d, x<y", "a < b and c > d, x<y"),
        ("<nowiki>'''[[a]] {{b}}''' | <ref></nowiki>", "'''[[a]] {{b}}''' | <ref>"),
        ("<nowiki>\n* a = b</nowiki>", "* a = b"),
        # Characters
        ("a&nbsp;b&ndash;c &amp; d&#39;s &lt;i&gt; &#x41; &unknown; AT&T", "a b–c & d's <i> A &unknown; AT&T"),
        ("&amp;lt;", "&lt;"),
        ("&#42; not a list\n\n&#91;&#91;a&#93;&#93;", "* not a list\n\n[[a]]"),
        ("a\u00a0b\u202fc\u3000d", "a b c d"),
        ("so\u00adft \u200bzero\u2060 &shy;&zwnj;", "soft zero"),
        ("a\tb   c \n", "a b c"),
        ("a\r\nb", "a b"),
        ("&#10;&#0;&#xD800;a", "&#xD800;a"),
        # Headings
        ("== A ==\ntext", "A\n\ntext"),
        ("==A==\n===B===\ntext\n===C===\n==D==\n", "A\n\nB\n\ntext"),
        ("==See also==\n==References==\n{{reflist}}", ""),
        ("text\n== [[A]] <ref>x</ref>==\nmore", "text\n\nA\n\nmore"),
        ("a = b\n=c", "a = b =c"),
        ("'''Footnotes'''\n{{reflist}}\n\n'''Novels'''\n* a", "Novels\n\na"),
        # Lists
        ("* a\n** b\n# c\n*# d", "a\nb\nc\nd"),
        ("text:\n* a\n* b\nmore", "text:\n\na\nb\n\nmore"),
        ("; term : meaning", "term\nmeaning"),
        (";term:meaning\n;Notes:\n* a", "term\nmeaning\n\nNotes:\n\na"),
        ("; term\n: meaning", "term\n\nmeaning"),
        ("; a : [[b: c]]", "a\nb: c"),
        (": indented\n:: more", "indented\nmore"),
        ("* {{cite book|x}}\n* a", "a"),
        ("*\n*   \n* —", ""),
        # Paragraphs
        ("one\nparagraph\n\n\n\nanother", "one paragraph\n\nanother"),
        ("a\n----\nb", "a\n\nb"),
        (" preformatted", "preformatted"),
        ("means\n<math>\\alpha</math>, though", "means \ufffd, though"),
        ("__NOTOC__\na __TOC__ b", "a b"),
        ("-{zh-hans:a; zh-hant:b}- -{c}-", "a c"),
        ("", ""),
        # Addresses
        ("[http://a.org label] b", "label b"),
        ("[http://a.org] b", "b"),
        ("[//a.org x] [mailto:a@b.c y]", "x y"),
        ("see http://a.org now", "see http://a.org now"),
        ("* http://a.org\n* [https://a.org Site]", "Site"),
        ("[http://a.org '''x''' [[y]] z] [sic]", "x y z [sic]"),
        ("[[http://a.org label]]", "label"),
    ],
)
def test_text(wikitext: str, text: str) -> None:
    assert text_of(wikitext) == text


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        ("[[a]]", "a", [("a", "A")]),
        ("[[a|b]]", "b", [("b", "A")]),
        ("[[a b|c ''d'']]", "c d", [("c d", "A b")]),
        ("[[dog]]s and [[cat|feline]]s.", "dogs and felines.", [("dogs", "Dog"), ("felines", "Cat")]),
        ("[[dog]]'s [[dog]]2", "dog's dog2", [("dog", "Dog"), ("dog", "Dog")]),
        ("[[dog]]<nowiki/>s", "dogs", [("dog", "Dog")]),
        ("x[[ a | b ]]y", "x b y", [("b y", "A")]),
        ("[[a_b]] [[A__b|c]]", "a b c", [("a b", "A b"), ("c", "A b")]),
        ("[[a#b|c]] [[a#b]]", "c a#b", [("c", "A"), ("a#b", "A")]),
        ("[[#b|c]] [[#d]]", "c #d", []),
        ("[[AT&amp;T|&quot;it&quot;]]", '"it"', [('"it"', "AT&T")]),
        ("[[a (b)|]] [[Boston, Massachusetts|]] [[Help:c (d)|]]", "a Boston c",
         [("a", "A (b)"), ("Boston", "Boston, Massachusetts")]),
        ("[[:Category:x]] [[:File:y.jpg|z]]", "Category:x z", []),
        ("[[Category:x]][[category:y|z]] a", "a", []),
        ("[[File:a.jpg|thumb|x [[b]] [[c|d]] y]] e", "e", []),
        ("[[Image:a.jpg|thumb|b [http://c d]\n\n[[e]] ]]f", "f", []),
        ("[[File:a.jpg|thumb|[[File:b.jpg]] c]]d", "d", []),
        ("[[File:a.jpg|thumb|at [[b]]]]\nc [[d]]", "c d", [("d", "D")]),
        ("[[File:a.jpg|thumb|never closed\n\nb [[c]]", "b c", [("c", "C")]),
        ("[[de:Hund]] [[zh-min-nan:x]] a", "a", []),
        ("[[:fr:chien|chien]] [[wikt:dog|dog]] [[doi:10.1/x]]", "chien dog doi:10.1/x", []),
        ("[[CSI: Miami]] [[Re:Zero]]", "CSI: Miami Re:Zero", [("CSI: Miami", "CSI: Miami"), ("Re:Zero", "Re:Zero")]),
        ("[[Special:Search|s]] [[Media:a.ogg|m]] [[Portal:p|q]]", "s m q", []),
        ("[[a|[b]]] [[c|d [e] f]]", "[b] d [e] f", [("[b]", "A"), ("d [e] f", "C")]),
        ("[[a|b\nc]]", "b c", [("b c", "A")]),
        ("[[a|b<br>c]]", "b c", [("b c", "A")]),
        ("[[a|b<ref>x</ref>]]", "b", [("b", "A")]),
        ("[[a|{{lang|fr|b}}]]", "b", [("b", "A")]),
        ("[[a|{{b}}]] c", "c", []),
        ("[[a|b [[c]] d]]", "b c d", [("c", "C")]),
        ("[[a]] [[b", "a b", [("a", "A")]),
        ("a]] [[]] [[|b]] [[ ]]", "a b", []),
        ("''[[a]]'' '''[[b|c]]'''", "a c", [("a", "A"), ("c", "B")]),
        ("== [[a]] ==\n* [[b]]", "a\n\nb", [("a", "A"), ("b", "B")]),
        ("( [[a]] ) {{x|[[b]]}}", "( a )", [("a", "A")]),
        ("{{HMS|Hood|51}} and {{flag|France}}", "HMS Hood and France",
         [("HMS Hood", "HMS Hood (51)"), ("France", "France")]),
        ("é [[ñ|ü]] 𝔘 [[𝔙]]", "é ü 𝔘 𝔙", [("ü", "Ñ"), ("𝔙", "𝔙")]),
        ("a  [[b]]&nbsp; [[c]]", "a b c", [("b", "B"), ("c", "C")]),
        # Titles as MediaWiki reads them
        ("[[ß]] [[ǆ]] [[აბ]]", "ß ǆ აბ", [("ß", "ß"), ("ǆ", "Ǆ"), ("აბ", "აბ")]),
        ("[[caf%C3%A9]] [[a%23b|c]] [[100%]] [[%FF|d]]", "café c 100% d",
         [("café", "Café"), ("c", "A"), ("100%", "100%")]),
        ("[[%02a%04|b]] [[a%0Ab|c]]", "b c", [("b", "A"), ("c", "A b")]),
        ("[[Category&#58;a]][[a&#35;b|c]] [[a&#95;b|d]]", "c d", [("c", "A"), ("d", "A b")]),
        ("[[a&lt;b]] [[a&#91;b|c]]", "a<b c", []),
        ("[[:en:a|b]] [[en:c]] [[en:File:d.jpg]]", "b en:c", [("b", "A"), ("en:c", "C")]),
        ("a[[b| ]] c [[b|&nbsp;]]", "a c", []),
    ],
)  # fmt: skip
def test_links(wikitext: str, text: str, links: list[tuple[str, str]]) -> None:
    assert (text_of(wikitext), links_of(wikitext)) == (text, links)


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("a\n== See also ==\n* [[b]]\n=== c ===\nd\n== E ==\nf", "a\n\nE\n\nf"),
        ("== A ==\n=== See Also: ===\nb\n=== C ===\nd", "A\n\nC\n\nd"),
        ("=== See also ===\n'''b'''\n; c\n: d\n== E ==\nf [[g]]", "E\n\nf g"),
        ("'''See also'''\n* b\n== C ==\nd", "C\n\nd"),
        ("a\n==  ==\nsee also", "a\n\nsee also"),
        ("a\n== See also ==\n:<math>\\b</math>\n{|\n|}\nc", "a"),
    ],
)
def test_sections_are_left_out(wikitext: str, text: str) -> None:
    found, links = plain_text(wikitext, site=ENGLISH, left_out=frozenset(["see also"]))
    assert found == text
    assert [found[each.start_char : each.end_char] for each in links] == (["g"] if "[[g]]" in wikitext else [])


def test_offsets_are_code_points() -> None:
    text, links = plain_text("'''𝔘'''&nbsp;and  [[a|é]]s.", site=ENGLISH)
    assert text == "𝔘 and és."
    assert [tuple(link) for link in links] == [(6, 8, "A", "", "")]


@pytest.mark.parametrize(
    ("wikitext", "title", "section"),
    [
        ("[[a#b c|d]]", "A", "b c"),
        ("[[a#b_c_|d]]", "A", "b c"),
        ("[[a # b|d]]", "A", "b"),
        ("[[a#%C3%89|d]]", "A", "É"),
        ("[[a#b#c|d]]", "A", "b#c"),
        ("[[a#''b''&amp;c|d]]", "A", "''b''&c"),
        ("[[a#|d]]", "A", ""),
        ("[[a|d#e]]", "A", ""),
    ],
)
def test_sections(wikitext: str, title: str, section: str) -> None:
    _, (link,) = plain_text(wikitext, site=ENGLISH)
    assert (link.target_title, link.section) == (title, section)


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        ("[[Datei:a.jpg|mini|[[b]]]][[Bild:a.jpg]][[File:a.jpg]]c", "c", []),
        ("[[Kategorie:a]][[Category:b]]c", "c", []),
        ("[[Haus]]tür [[Straße]]nnähe", "Haustür Straßennähe",
         [("Haustür", "Haus"), ("Straßennähe", "Straße")]),
        ("[[en:House]]a", "a", []),
        ("[[Spezial:Suche|x]]", "x", []),
    ],
)  # fmt: skip
def test_german_site(wikitext: str, text: str, links: list[tuple[str, str]]) -> None:
    assert (text_of(wikitext, GERMAN), links_of(wikitext, GERMAN)) == (text, links)


def test_case_sensitive_site_keeps_the_first_letter() -> None:
    site = Site(namespaces={}, capitalise=False)
    assert links_of("[[dog]]s [[a b|c]]", site) == [("dogs", "dog"), ("c", "a b")]


@pytest.mark.parametrize(
    ("wikitext", "limits", "reason"),
    [
        ("{{a}}" * 11, {"max_nodes": 10}, "too_many_nodes"),
        ("[[a]]" * 11, {"max_nodes": 10}, "too_many_nodes"),
        ("{{a|" * 11 + "}}" * 11, {"max_depth": 10}, "too_deep"),
        ("\n{|\n|" * 11, {"max_depth": 10}, "too_deep"),
        ("[[File:a|" * 12 + "]]" * 12, {"max_depth": 10}, "too_deep"),
    ],
)
def test_limits(wikitext: str, limits: dict[str, int], reason: str) -> None:
    with pytest.raises(TooComplex) as raised:
        plain_text(wikitext, site=ENGLISH, **limits)
    assert raised.value.reason == reason


MARKUP = [
    *"{{ }} [[ ]] {| | ''' '' [ ] # : = ; . , ( ) 1 a é 𝔘 Word <!-- --> -{ }- ---- {{{ }}}".split(),
    *"<ref> </ref> <ref/> <nowiki> </nowiki> <br> <poem> </poem> <math> </math> <table> </table> <sup> </sup>".split(),
    *"{{convert| {{lang|fr| {{quote| {{ubl| {{HMS| File: Category: de: __TOC__ &nbsp; &amp; &#93;".split(),
    *("\n", "\n\n", " ", "\n{|", "\n|}", "\n==", "==\n", "* ", "\n* ", "\n; ", " : ", "[http://x ", "[http://x"),
    *("\x01", "\x02", "\x03", "\x04", "\u00a0", "\u00ad", "\ufdd0", "\ufffd"),
    *("\n:<math>\\a</math>", "\n== See also ==\n", "{{columns|col1=", "{{x|\n* "),
]


def check(wikitext: str) -> tuple[str, int]:
    """What must hold for any wikitext; returns the text and the number of links."""
    text, links = plain_text(wikitext, site=ENGLISH, left_out=ENGLISH.link_sections, max_depth=10_000)
    assert_prose(text, links)
    return text, len(links)


@given(st.lists(st.sampled_from(MARKUP), max_size=60))
@examples(600)
def test_any_markup(parts: list[str]) -> None:
    check("".join(parts))


@given(st.text(max_size=200))
@examples(300)
def test_any_text(wikitext: str) -> None:
    check(wikitext)


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        (
            "[[a|x -{b; c]] d [[e|f}- g]]",
            "x -{b; c d f}- g",
            [("x -{b; c", "A"), ("f}- g", "E")],
        ),  # variants across links
        ("a \x7f\n\n[[b|c \u061c]]", "a\n\nc", [("c", "B")]),
        ("[[a|ب\u200d \u200d]] b \u200d", "ب b", [("ب", "A")]),
        ("{{HMS|" * 30 + "a" + "|1}}" * 30, "HMS " * 30 + "a", [("HMS a", "HMS a (1)")]),
    ],
)
def test_found_by_fuzzing(wikitext: str, text: str, links: list[tuple[str, str]]) -> None:
    assert text_of(wikitext) == text
    assert links_of(wikitext) == links


def cpu_seconds(wikitext: str) -> float:
    start = time.process_time()
    plain_text(wikitext, site=ENGLISH, max_nodes=10**9, max_depth=10**9)
    return time.process_time() - start


WORST = [
    *"{{ }} [[ ]] ''' ' {| {{a| [[a| [[File:a| {{nowrap| [http:// [mailto:'' = * & &amp; -{ | __ [[a|[b < </".split(),
    *"<ref> (<ref/> <ref/>, <nowiki> <!-- <poem> <table>".split(),
    *("\n:<math>\\</math>", "\n\n<math>\\</math>\na", "\na\n\n{|\n|}", "{{x|\n*a", "{{x|\n*a}}", "\n*a<br>"),
    *(" ", "( ", ", ", "<ref>, ", "[[a ", "{{nowrap| ", "[http://a ", "\n", "\n'''a", "\n{|\n|", "\n;a:"),
]


@pytest.mark.parametrize("unit", WORST)
def test_time_is_linear_in_the_worst_case(unit: str) -> None:
    """A hundred thousand characters of each unit: quadratic work would take minutes."""
    assert cpu_seconds((unit * 100_000)[:100_000]) < 2


@pytest.mark.parametrize("inside", ["[[a]]" + "|" * 100_000, " " * 100_000 + "!=x", "a" + "\u0301\u0327" * 50_000])
def test_time_is_linear_in_a_template(inside: str) -> None:
    assert cpu_seconds("{{nowrap|" + inside + "}}") < 2


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[http://", "["), ("[mailto:", "''"), ("[[a", " "), ("{{", "}}"), ("(", "<ref/>)"), ("(<ref/>", ")")],
)
def test_time_is_linear_where_two_meet(opening: str, closing: str) -> None:
    assert cpu_seconds((opening * 50_000)[:50_000] + (closing * 50_000)[:50_000]) < 2


def articles(test_data: Path) -> list[tuple[str, str]]:
    found = []
    for name in ("enwiki-fragment", "enwiki-minidump"):
        root = etree.fromstring(bz2.decompress((test_data / f"corpora/wikipedia/{name}.xml.bz2").read_bytes()))
        for page in root.iterfind("{*}page"):
            if page.find("{*}redirect") is None and page.findtext("{*}ns") == "0":
                found.append((page.findtext("{*}title"), page.findtext("{*}revision/{*}text")))
    return found


def test_real_articles_are_clean(test_data: Path) -> None:
    """All 130 articles: no markup is left except what the articles themselves show; every link is at its anchor."""
    debris: list[tuple[str, str]] = []
    anchors = 0
    for title, wikitext in articles(test_data):
        text, links = check(wikitext)
        anchors += links
        debris += [
            (title, text[match.start() - 15 : match.end() + 15])
            for match in re.finditer(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|\||''|<|\(\)|\( ?[;,]|[;,] ?\)|,,| ,|={2}", text)
        ]
    assert anchors > 26_900
    # The rest is also shown to readers of these articles: characters they write about, and mistakes of their authors.
    assert sorted({title for title, _ in debris}) == [
        "ASCII", "Afghanistan", "Agriculture", "Albania", "Apollo", "Asphalt"
    ]  # fmt: skip
    assert len(debris) == 12
