"""Constituents of literal sentences -> phrases, or why they are left out (docs/phrases.md)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import brute_force
import numpy as np
import pyarrow as pa
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from literal import Shard, sentences, shard

from schemas.kinds import FILTER_REASONS
from schemas.kinds.sentences import SENTENCES
from schemas.terms import PHRASE_LABELS
from transforms.arrays import slice_hashes, slice_strings, strings_hashes
from transforms.phrases.lexicon import CLITICS, DETERMINERS
from transforms.phrases.occurrences import find_occurrences
from transforms.phrases.options import PhraseRules
from transforms.phrases.tokens import SENTENCE_COLUMNS, read_tokens

Phrases = list[tuple[str, str]]


def find(table: pa.Table, rules: PhraseRules) -> tuple[Phrases, dict[str, int]]:
    """The phrases of a shard with their labels, in order of the text, and what was filtered."""
    tokens = read_tokens(table, lowercase=rules.lowercase)
    found = find_occurrences(table, tokens, rules)
    words = slice_strings(tokens.buffer, tokens.byte_start[found.start], tokens.byte_end[found.end - 1])
    assert found.read == len(found.start) + sum(found.filtered.values())
    assert set(found.filtered) <= set(FILTER_REASONS)
    return [(PHRASE_LABELS[label], word) for label, word in zip(found.label, words.to_pylist(), strict=True)], dict(
        found.filtered
    )


def phrases(brackets: str, **options: object) -> list[str]:
    """The phrases of one sentence, without the label NP; a filtered constituent is "<reason>"."""
    found, filtered = find(sentences(brackets), PhraseRules(**options))  # type: ignore[arg-type]
    return [word if label == "NP" else f"{label} {word}" for label, word in found] + [
        f"<{reason}>" for reason, times in sorted(filtered.items()) for _ in range(times)
    ]


@pytest.mark.parametrize(
    ("brackets", "options", "expected"),
    [
        # blanks as in the text, one for any gap
        ("[NP New  York]", {}, ["new york"]),
        ("[NP a well ~- ~known man]", {}, ["well-known man"]),
        ("[NP Smith ~'s house ~, Rome]", {}, ["smith's house, rome"]),
        ("[VP ca ~n't stop]", {"drop_auxiliaries": False}, ["VP can't stop"]),
        # case
        ("[NP The Old Man]", {"lowercase": False}, ["Old Man"]),
        ("[NP GROẞE Straße]", {}, ["große straße"]),
        ("[NP İstanbul] and [NP Isparta]", {}, ["i\u0307stanbul", "isparta"]),
        # composed and decomposed, curly and straight have one form
        ("[NP Cafe\u0301] [NP café]", {}, ["café", "café"]),
        ("[NP Smith ~\u2019s hat] [NP Smith ~'s hat]", {}, ["smith's hat", "smith's hat"]),
        # punctuation at both ends
        ('[NP " ~The old man ~, ~" ~.]', {}, ["old man"]),
        ("[NP ( ~Rome ~) ~: ~—]", {}, ["rome"]),
        ("[NP ( ~the old man ~)] ~.", {}, ["old man"]),
        ('[NP the " ~old ~" man]', {}, ['"old" man']),
        ('[NP " ~The old man ~, ~"]', {"strip_punctuation": False}, ['"the old man,"']),
        ("[NP 😀 whale ❤️]", {}, ["whale"]),
        ("[NP —] [NP ... ~!]", {}, ["<punctuation>", "<punctuation>"]),
        ("[NP —]", {"strip_punctuation": False}, ["<punctuation>"]),
        # signs that carry meaning
        ("[NP $ ~5 bill]", {}, ["$5 bill"]),
        ("[NP 50 ~% growth]", {}, ["50% growth"]),
        ("[NP # ~1 hit]", {}, ["#1 hit"]),
        ("[NP AT/NNP ~& ~T]", {}, ["at&t"]),
        ("[NP rain at 5 ~°]", {}, ["rain at 5°"]),
        # determiners: leading ones only, several, and quotes among them
        ("[NP The cat] [NP a cat] [NP an owl] [NP this cat] [NP those cats]", {}, ["cat", "cat", "owl", "cat", "cats"]),
        ("[NP all the king ~'s men]", {}, ["all the king's men"]),
        ('[NP the " ~the Wall ~" ~]', {}, ["wall"]),
        ("[NP The cat]", {"strip_determiners": False}, ["the cat"]),
        ("[ADVP this way]", {}, ["ADVP way"]),
        # pronouns and determiners alone
        ("[NP It] [NP himself] [NP Who] [NP there]", {}, ["<pronoun>"] * 4),
        ("[NP This] [NP that]", {}, ["<pronoun>"] * 2),
        ("[NP each other] [NP one another] [NP the other] [NP those who]", {}, ["<pronoun>"] * 4),
        ('[NP " ~It ~"]', {}, ["<pronoun>"]),
        ('[NP " ~It ~"]', {"strip_punctuation": False}, ["<pronoun>"]),
        ("[NP he ~/ ~she] [NP the he ~, the it]", {}, ["<pronoun>"] * 2),
        ("[NP It] [NP this] [NP The]", {"drop_pronouns": False}, ["it", "this", "the"]),
        ("[NP This] [NP the]", {"strip_determiners": False}, ["<pronoun>"] * 2),
        ("[NP she who waits] [NP my cat]", {}, ["she who waits", "my cat"]),
        ("[NP US troops] in [NP the US]", {}, ["us troops", "<pronoun>"]),
        ("[NP the US] and [NP us]", {"drop_pronouns": False, "lowercase": False}, ["US", "us"]),
        ("[NP It] [NP about it]", {"drop_pronouns": False}, ["it", "<function_words>"]),
        ("[NP the US] and [NP us]", {"lowercase": False}, ["<pronoun>"] * 2),
        # numbers alone
        ("[NP 1984] [NP two] [NP $ ~5 million] [NP 50 ~%] [NP 3 - 4]", {}, ["<number>"] * 5),
        ("[NP the twenty ~- ~five]", {}, ["<number>"]),
        ("[NP two whales] [NP 1984 ~'s end] [NP the 1980s]", {}, ["two whales", "1984's end", "<date>"]),
        ("[NP 1984] [NP two] [NP the first]", {"drop_numbers": False}, ["1984", "two", "first"]),
        ("[PP in/IN [NP 1984]]", {"labels": ("PP",)}, ["<function_words>"]),
        ("[PP in/IN [NP 1984]]", {"labels": ("PP",), "drop_numbers": False}, ["PP in 1984"]),
        ("[PP in/IN [NP it/PRP]]", {"labels": ("PP",), "drop_numbers": False}, ["<function_words>"]),
        ("[NP $ ~%] [NP 4 ~%]", {"drop_numbers": False}, ["4%", "<too_short>"]),
        # an unknown word of a corpus that withholds it
        ("[NP the \ufffd ship] and [NP ship]", {}, ["ship", "<unknown_token>"]),
        # labels
        ("[PP in [NP Rome]] [ADJP very old] [ADVP gladly] [S x]", {}, ["rome", "ADJP very old", "ADVP gladly"]),
        ("[PP in [NP Rome]]", {"labels": ("NP", "PP")}, ["PP in rome", "rome"]),
        # a PP and what is in it are phrases, also if that is a PP: each has its preposition for a head
        (
            "[PP from/IN [PP near/IN [NP Rome/NNP]]]",
            {"labels": ("NP", "PP")},
            ["PP from near rome", "PP near rome", "rome"],
        ),
        ("[PP [PP in/IN [NP Rome/NNP]] ,]", {"labels": ("PP",)}, ["PP in rome", "<nested>"]),
        ("[VP fled] [NP Rome]", {"labels": ("VP",)}, ["VP fled"]),
        # a unary chain, also one that results from trimming, counts once, under the first label of the fixed order
        ("[NP [NP Rome]]", {"nested": "all"}, ["rome", "<same_words>"]),
        ("[VP [NP [ADVP home]]]", {}, ["home", "<same_words>", "<same_words>"]),
        ("[ADVP [ADJP loud]]", {}, ["ADJP loud", "<same_words>"]),
        ("[VP [VP fled] ~.]", {"nested": "all"}, ["VP fled", "<same_words>"]),
        ("[NP the [ADJP old]]", {}, ["old", "<same_words>"]),
        ("[NP [NP the [VP seen]] ~,]", {}, ["seen", "<nested>", "<same_words>"]),
        # the limit is on the phrase, not on the constituent
        ('[NP " ~The a red fox ~"]', {"max_tokens": 3}, ["red fox"]),
        ("[NP a big red fox]", {"max_tokens": 3}, ["big red fox"]),
        ("[NP a big old red fox]", {"max_tokens": 3}, ["<too_long>"]),
        ("[NP red [NP old [NP fox]]]", {"max_tokens": 1}, ["fox", "<too_long>", "<too_long>"]),
        ("[NP 1 2 3 4 5]", {"max_tokens": 3}, ["<number>"]),
    ],
)
def test_rules(brackets, options, expected):
    assert phrases(brackets, **options) == expected


@pytest.mark.parametrize(
    ("brackets", "options", "expected"),
    [
        # verb phrases that an auxiliary, a modal or "to" leads; what they lead counts
        ("[VP has/VBZ [VP been/VBN [VP seen/VBN]]]", {}, ["VP seen", "<auxiliary>", "<auxiliary>"]),
        ("[VP will/MD not/RB [VP go/VB home/NN]]", {}, ["VP go home", "<auxiliary>"]),
        ("[VP to/TO [VP flee/VB]]", {}, ["VP flee", "<auxiliary>"]),
        ("[VP to/TO [VP flee/VB]]", {"drop_auxiliaries": False, "nested": "all"}, ["VP to flee", "VP flee"]),
        ("[VP is/VBZ [NP a/DT fish/NN]]", {}, ["fish", "<auxiliary>"]),
        ("[VP never/RB ~, had/VBD [VP slept/VBN]]", {}, ["VP slept", "<auxiliary>"]),
        # "have" and "do" may be verbs
        ("[VP had/VBD lunch/NN]", {}, ["VP had lunch"]),
        ("[VP had/VBD quickly/RB [VP eaten/VBN]]", {}, ["VP eaten", "<auxiliary>"]),
        ("[VP had/VBD to/TO eat/VB]", {}, ["<auxiliary>"]),
        ("[VP do/VBP n't/RB [VP care/VB]]", {}, ["VP care", "<auxiliary>"]),
        ("[VP done/VBN good/JJ work/NN] [VP do/VBP]", {}, ["VP done good work", "<function_words>"]),
        ("[VP had lunch] [VP will go] [VP might/NN]", {}, ["VP had lunch", "VP might", "<auxiliary>"]),
        # no phrase begins with the end of a word
        ("[S he [VP ~'s/VBZ [VP lying/VBG down/RP]]]", {}, ["VP lying down", "<auxiliary>"]),
        ("it [NP ~'s/POS old/JJ hat/NN]", {}, ["old hat"]),
        ("it [NP ~'s/POS] [VP ~'re/VBP]", {}, ["<function_words>"] * 2),
        ("[VP ~n't/RB the/DT whale/NN]", {"drop_auxiliaries": False}, ["VP whale"]),
        # a trailing possessive
        ("[NP [NP Ahab/NNP ~'s/POS] leg/NN]", {}, ["ahab", "ahab's leg"]),
        ("[NP the boys/NNS ~'/POS] [NP it/PRP ~'s/POS]", {}, ["boys", "<pronoun>"]),
        ("[NP Ahab/NNP ~'s/POS]", {"strip_possessives": False}, ["ahab's"]),
        # function words only
        ("[ADVP then/RB] [ADVP as/RB far/RB] [NP few/JJ] [ADVP not/RB] [NP nothing/NN]", {}, ["<function_words>"] * 5),
        ("[NP one of/IN the others/NNS] [NP the first two]", {}, ["<function_words>"] * 2),
        ("[ADVP then] [VP did it]", {"drop_function_words": False}, ["ADVP then", "VP did it"]),
        ("[NP the can/NN] [NP the past/NN] [VP near/VB] [NP will]", {}, ["can", "past", "VP near", "<function_words>"]),
        ("[ADVP amidst/IN] [ADVP amidst]", {}, ["ADVP amidst", "<function_words>"]),
        # dates and measures; what is more than that stays
        ("[NP 12/CD May/NNP 1921/CD] [NP the 19th/JJ century/NN] [NP ten o'clock]", {}, ["<date>"] * 3),
        ("[NP May/NNP] [NP Monday] [NP May/NNP Fair/NNP 1921]", {}, ["may", "monday", "may fair 1921"]),
        ("[NP 12 May/NNP 1921]", {"drop_dates": False}, ["12 may 1921"]),
        ("[NP as/IN one may/MD]", {}, ["<function_words>"]),
        ("[NP 5 km] [NP about/RB three years] [NP 5km] [NP 4 ~- ~bit]", {}, ["<measure>"] * 4),
        ("[NP a few days] [NP half an hour] [NP many miles] [NP the same day]", {}, ["same day", *["<measure>"] * 3]),
        ("[NP years] [NP three long/JJ years]", {}, ["years", "three long years"]),
        ("[NP 5 km]", {"drop_measures": False}, ["5 km"]),
        # initials and letters
        ("[NP G. J.] [NP x] [NP J. S. Mill] [NP pi]", {}, ["j. s. mill", "pi", "<too_short>", "<too_short>"]),
        ("[NP b ~, c and d] [NP x of them]", {}, ["<too_short>"] * 2),
        ("[NP x] [NP Mill]", {"min_letters": 4}, ["mill", "<too_short>"]),
        # "a few" is not "few"
        ("[NP a/DT few/JJ whales/NNS] [NP few/JJ whales/NNS]", {}, ["a few whales", "few whales"]),
        ("[NP a/DT little/JJ girl/NN] [ADJP a/DT little/JJ tired/JJ]", {}, ["little girl", "ADJP a little tired"]),
        ("[NP a/DT little/JJ of/IN wine/NN] [NP the/DT few/JJ men/NNS]", {}, ["a little of wine", "few men"]),
        ("[NP an/DT owl/NN] [NP a/DT few/JJ]", {}, ["owl", "<function_words>"]),
        # clauses
        ("[NP [NP men] [SBAR who [S [VP sing]]]]", {}, ["men", "VP sing", "<clause>"]),
        ("[VP want [S [VP to [VP sing]]]]", {}, ["VP sing", "<auxiliary>", "<clause>"]),
        ("[VP want [S to sing]]", {"drop_clauses": False}, ["VP want to sing"]),
        # one of those with the same head
        ("[NP [NP an old man/NN] [PP of/IN [NP the sea/NN]]]", {}, ["old man", "sea", "<nested>"]),
        (
            "[NP [NP an old man/NN] [PP of/IN [NP the sea/NN]]]",
            {"nested": "outermost"},
            ["old man of the sea", "sea", "<nested>"],
        ),
        ("[NP [NP [NP man/NN] ~,] here]", {"nested": "outermost"}, ["man, here", "<nested>", "<nested>"]),
        # a name is whole
        (
            "[NP [NP the University/NNP] [PP of/IN [NP California/NNP]]]",
            {},
            ["university of california", "california", "<nested>"],
        ),
        # another head: a noun or a conjunction beside the children
        ("[NP [NP Ahab/NNP ~'s/POS] [ADJP old/JJ] leg/NN]", {}, ["ahab", "ahab's old leg", "ADJP old"]),
        ("[NP [NP men/NNS] and/CC [NP ships/NNS]]", {}, ["men", "men and ships", "ships"]),
        ("[VP [VP sing/VB] [PP in/IN Rome/NNP]]", {}, ["VP sing", "<nested>"]),
        ("[VP keep/VB [VP singing/VBG]]", {}, ["VP keep singing", "VP singing"]),
        # those left out are no part of a chain
        ("[NP [NP three/CD] [PP of/IN [NP the men/NNS]]]", {}, ["three of the men", "men", "<number>"]),
    ],
)
def test_rules_by_tag(brackets, options, expected):
    assert phrases(brackets, **options) == expected


def test_a_phrase_begins_and_ends_where_its_surface_does():
    table = shard({"d": '😀 é [NP " ~The Old 𝔸 ~, ~"] [VP ran]'}).sentences
    tokens = read_tokens(table, lowercase=True)
    found = find_occurrences(table, tokens, PhraseRules())
    text = table.column("text")[0].as_py()
    surfaces = [
        text[start:end]
        for start, end in zip(tokens.start_char[found.start], tokens.end_char[found.end - 1], strict=True)
    ]
    assert surfaces == ["Old 𝔸", "ran"]


def test_the_order_is_that_of_the_text_the_shorter_first():
    assert phrases("[VP saw [NP whales [VP eat]] [NP fish]]") == [
        "VP saw whales eat fish",
        "whales eat",
        "VP eat",
        "fish",
    ]


@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"d": "no constituents here"},
        {"a": "x y", "b": "[NP x]", "c": "z | [NP y] z | w"},
        {"a": "é [NP xx]\n\n😀 [NP xx] | (( gone )) | [VP 😀 yy]", "b": "[NP —]", "c": "[NP the xx]"},
    ],
)
def test_shards_of_any_shape(documents):
    table = shard(documents).sentences
    expected = brute_force.find(table.to_pylist(), PhraseRules())
    assert find(table, PhraseRules()) == (
        [(each.label, each.phrase) for each in expected.occurrences],
        dict(expected.filtered),
    )


def test_a_shard_in_pieces_and_slices_is_the_same():
    table = shard({"a": "[NP é xx] | [VP yy]", "b": "[NP 😀 z zz] | [NP the xx]"}).sentences
    pieces = pa.concat_tables([SENTENCES.empty_table(), table.slice(0, 1), table.slice(1, 2), table.slice(3)])
    assert find(pieces, PhraseRules()) == find(table, PhraseRules())
    assert find(table.slice(1, 2), PhraseRules()) == ([("VP", "yy"), ("NP", "z zz")], {})


def test_only_the_columns_named_are_read():
    names = {name.split(".")[0] for name in SENTENCE_COLUMNS}
    table = shard({"a": "[NP é xx]"}).sentences.select([name for name in SENTENCES.names if name in names])
    assert find(table, PhraseRules()) == ([("NP", "é xx")], {})


# ---- Any shard, compared with the plain Python of tests/brute_force.py

WORDS = st.sampled_from(
    [
        *"the a This THAT it who each other two 1984 $ % whale Whale n't 's x — . , ' ( ) \" few little not".split(),
        *"Whale/NNP whale/NN old/JJ had/VBD had to/TO do/VB seen/VBN go/VB will/MD will/NN and/CC of/IN".split(),
        *"May/NNP may/MD 5 km 19th 1980s century first days 's/POS be/VB soon/RB".split(),
        *"\u00c9 e\u0301 \u00e9 İ ß ẞ 😀 ❤️ \u2019 \ufffd".split(),
    ]
)


@st.composite
def sentence(draw: st.DrawFn) -> str:
    """A sentence in brackets, with any words and any nested constituents."""

    def words(depth: int) -> str:
        pieces = []
        for _ in range(draw(st.integers(1, 4))):
            if depth and draw(st.booleans()):
                pieces.append(f"[{draw(st.sampled_from(['NP', *PHRASE_LABELS, 'S']))} {words(depth - 1)}]")
            else:
                pieces.append(draw(st.sampled_from(["", "", "~"])) + draw(WORDS))
        return " ".join(pieces)

    return words(3)


SHARDS = st.lists(st.lists(sentence(), min_size=1, max_size=4).map(" | ".join), min_size=0, max_size=4).map(
    lambda texts: shard({f"d{number}": text for number, text in enumerate(texts)})
)

RULES = st.builds(
    PhraseRules,
    labels=st.sets(st.sampled_from(PHRASE_LABELS), min_size=1).map(
        lambda labels: tuple(label for label in PHRASE_LABELS if label in labels)
    ),
    max_tokens=st.integers(1, 10),
    lowercase=st.booleans(),
    strip_punctuation=st.booleans(),
    strip_determiners=st.booleans(),
    drop_pronouns=st.booleans(),
    drop_numbers=st.booleans(),
    strip_possessives=st.booleans(),
    drop_auxiliaries=st.booleans(),
    drop_dates=st.booleans(),
    drop_measures=st.booleans(),
    drop_function_words=st.booleans(),
    min_letters=st.integers(0, 3),
    drop_clauses=st.booleans(),
    nested=st.sampled_from(["all", "outermost", "base"]),
)


@given(SHARDS, RULES)
def test_any_shard_by_any_rules(given_shard: Shard, rules: PhraseRules):
    table = given_shard.sentences
    expected = brute_force.find(table.to_pylist(), rules)
    found, filtered = find(table, rules)
    assert found == [(each.label, each.phrase) for each in expected.occurrences]
    assert Counter(filtered) == expected.filtered


@given(SHARDS, RULES)
def test_every_phrase(given_shard: Shard, rules: PhraseRules):
    """Its surface gives the phrase again; it begins with no part of a word, and with no auxiliary where these go."""
    table = given_shard.sentences
    tokens = read_tokens(table, lowercase=rules.lowercase)
    found = find_occurrences(table, tokens, rules)
    words = slice_strings(tokens.buffer, tokens.byte_start[found.start], tokens.byte_end[found.end - 1]).to_pylist()
    rows = table.to_pylist()
    for place, (sentence, start, end) in enumerate(
        zip(*(each.tolist() for each in (found.sentence, found.start, found.end)), strict=True)
    ):
        first = int(tokens.first[sentence])
        inside = brute_force.tokens_of(rows[sentence], lowercase=rules.lowercase)[start - first : end - first]
        assert brute_force.join(inside) == words[place]
        label = PHRASE_LABELS[found.label[place]]
        assert brute_force.phrase_span(inside, label, 0, len(inside), rules) == (0, len(inside))
        assert inside[0].form not in CLITICS
        if rules.drop_auxiliaries and label == "VP":
            assert inside[0].tag not in {"MD", "TO"}
        if rules.strip_possessives:
            assert inside[-1].form != "'s"


def chain(links: list[str], noun: str) -> str:
    """An NP in NPs, each with something after it: [NP [NP noun] [PP of it]]."""
    brackets = f"[NP the {noun}/NN]"
    for link in links:
        brackets = f"[NP {brackets} {link}]"
    return brackets


LINKS = st.sampled_from(["[PP of/IN [NP seas/NNS]]", "[ADJP red/JJ]", "here/RB", "~,", "[PP in/IN it/PRP]"])


@given(st.lists(LINKS, max_size=4), st.sampled_from(["outermost", "base"]))
def test_one_of_a_chain_is_left(links: list[str], nested: str):
    rules = PhraseRules(nested=nested, labels=("NP",))
    found, filtered = find(sentences(chain(links, "whale")), rules)
    whales = [phrase for _, phrase in found if "whale" in phrase.split()[0]]
    assert len(whales) == 1
    assert filtered.get("nested", 0) == len(links)
    if nested == "base":
        assert whales == ["whale"]


@given(st.lists(st.text(max_size=12), max_size=20))
def test_the_hash_of_a_slice_is_that_of_its_bytes(texts):
    data = [text.encode() for text in texts]
    edges = np.cumsum([0, *map(len, data)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(data), dtype=np.uint8)
    hi, lo = slice_hashes(buffer, edges[:-1], edges[1:])
    whole = strings_hashes(pa.array(texts, pa.string()))
    assert (hi.tolist(), lo.tolist()) == tuple(each.tolist() for each in whole)
    assert lo.tolist() == [brute_force.low_hash(text) for text in texts]
    assert len(set(zip(hi.tolist(), lo.tolist(), strict=True))) == len(set(texts))
    assert slice_strings(buffer, edges[:-1], edges[1:]).to_pylist() == texts


def test_hashes_of_many_short_strings_differ():
    words = [f"{a}{b}{c}" for a in "abcdefghijklmnop" for b in "0123456789ab" for c in range(500)]
    hi, lo = strings_hashes(pa.array(words))
    assert len(set(hi.tolist())) == len(set(lo.tolist())) == len(words)


# ---- The page for users


def examples() -> list[tuple[str, str]]:
    """Constituent and phrase of each row of the table in docs/phrases.md; "-" if it is left out."""
    page = (Path(__file__).parents[2] / "docs/phrases.md").read_text()
    table = page[page.index("| rule |") : page.index("The surface shrinks")]
    rows = [[cell.strip().strip("`") for cell in line.split("|")[2:4]] for line in table.splitlines()[2:] if line]
    return [(constituent, phrase) for constituent, phrase in rows]


@pytest.mark.parametrize(("constituent", "phrase"), examples())
def test_the_examples_of_the_page(constituent, phrase):
    tokens = spacy.blank("en")(constituent)
    pieces = [
        ("" if not number or tokens[number - 1].whitespace_ else "~") + each.text for number, each in enumerate(tokens)
    ]
    found, filtered = find(sentences(f"[NP {' '.join(pieces)}]"), PhraseRules())
    assert [word for _, word in found] == ([] if phrase == "-" else [phrase])
    assert len(filtered) == (phrase == "-")


def test_the_page_names_the_reasons_and_lists():
    page = (Path(__file__).parents[2] / "docs/phrases.md").read_text().replace("\n", " ")
    reasons = ("unknown_token", "punctuation", "pronoun", "number", "too_long", "same_words")
    for reason in reasons:
        assert reason in FILTER_REASONS
        assert f"`{reason}`" in page
    listed = re.search(r"leading determiners go: ([a-z, ]+) \|", page)
    assert listed is not None
    assert set(listed[1].split(", ")) == DETERMINERS
    assert ", ".join(PHRASE_LABELS) in page
