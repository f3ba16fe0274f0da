"""Our own parser as users have it, with the shipped weights."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import literal
from properties import examples

from schemas.errors import UserError
from transforms.parsing import phrasemill_parser
from transforms.parsing.evaluation import evaluate
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.phrasemill.network import Parse
from transforms.parsing.phrasemill_parser import PhrasemillParser
from transforms.parsing.registry import REGISTRY, load_parser, parser_identity
from transforms.parsing.treebank import read_treebank
from transforms.parsing.trees import Refusal


@pytest.fixture(scope="module")
def parser() -> PhrasemillParser:
    return PhrasemillParser()


@pytest.fixture(scope="module")
def threaded() -> PhrasemillParser:
    return PhrasemillParser(threads=3)


def is_tree(parse: Parse, words: int) -> bool:
    """Whether each word has a tag, and the spans are inside the sentence, unique, in order, and do not cross."""
    spans = [(start, -end) for _, start, end in parse.constituents]
    return (
        len(parse.tags) == words
        and all(0 <= start < end <= words for _, start, end in parse.constituents)
        and len({*parse.constituents}) == len(parse.constituents)
        and spans == sorted(spans)
        and not any(
            a.start_token < b.start_token < a.end_token < b.end_token
            for a in parse.constituents
            for b in parse.constituents
        )
    )


@pytest.mark.parametrize(
    ("brackets", "tags"),
    [
        ("[S [NP [NP The end] [PP of [NP the day]]] [VP came] ~.]", "DT NN IN DT NN VBD ."),
        (
            "[S [NP She] [VP gave [NP [NP the old man] [PP of [NP the sea]]] [NP a [ADJP very good] book]] ~.]",
            "PRP VBD DT JJ NN IN DT NN DT RB JJ NN .",
        ),
        ("[S [NP They] [VP said [SBAR that [S [NP it] [VP was [ADJP cold]]]]] ~.]", "PRP VBD IN PRP VBD JJ ."),
        ("[S [NP He] [VP ran [ADVP quickly] [PP down [NP the stairs]]] ~.]", "PRP VBD RB IN DT NNS ."),
        ("[S [NP We] [VP want [S [VP to [VP leave]]]] ~.]", "PRP VBP TO VB ."),  # a unary chain, S outside
        ("[S [VP Run] ~!]", "VB ."),
        (
            "[S [NP [NP The cat] [SBAR [NP that] [S [VP sat [PP on [NP the mat]]]]]] [VP slept] ~.]",
            "DT NN WDT VBD IN DT NN VBD .",
        ),
        (
            "[S [NP [NP Expression] [PP of [NP the p53 protein]]] [VP was [ADVP significantly] "
            "[VP reduced [PP in [NP mutant mice]]]] ~.]",
            "NN IN DT NN NN VBD RB VBN IN JJ NNS .",
        ),
        ("[NP 1851]", "CD"),
    ],
)
def test_sentences_with_their_constituents_and_tags(parser: PhrasemillParser, brackets: str, tags: str) -> None:
    text, tokens, constituents = literal(brackets)
    starts, ends, _ = map(list, zip(*tokens, strict=True))
    expected = ParsedSentence(0, len(text), starts, ends, tags.split(), [Constituent(*each) for each in constituents])
    assert parser.parse_texts([text]) == [[expected]]
    (tree,) = parser.trees(text)
    assert tree is not None
    assert tree.leaves() == [text[start:end] for start, end, _ in tokens]
    assert [tag for _, tag in tree.pos()] == tags.split()
    phrases = [each.label() for each in tree.subtrees(lambda each: each.height() > 2)]
    assert phrases == ["ROOT", *(label for label, _, _ in constituents)]


@pytest.mark.parametrize(("treebank", "most", "f1", "least"), [("gum", 700, 0.885, 0.7), ("craft", 350, 0.85, 0.7)])
def test_score(parser: PhrasemillParser, test_data: Path, treebank: str, most: int, f1: float, least: float) -> None:
    gold = list(islice(read_treebank(test_data / "treebanks" / treebank / "dev.ptb"), most))
    parses = parser.parse_words([sentence.words for sentence in gold])
    found = [parse.constituents if isinstance(parse, Parse) else [] for parse in parses]
    evaluation = evaluate([sentence.constituents for sentence in gold], found)
    assert evaluation.total.f1 >= f1
    assert min(agreement.f1 for agreement in evaluation.by_label.values()) >= least
    tags = [
        (tag, gold_tag)
        for sentence, parse in zip(gold, parses, strict=True)
        if isinstance(parse, Parse)
        for tag, gold_tag in zip(parse.tags, sentence.tags, strict=True)
    ]
    assert sum(tag == gold_tag for tag, gold_tag in tags) / len(tags) >= 0.955


WORDS = st.one_of(
    st.sampled_from(
        "the The a of in to and that which was saw n't 's man whale old well - known NATO 1851 , . ? ( ) \" -- I me "
        "\U0001f600 | http://example.org/a?b=c caf\u00e9 \u4e2d\u6587 unaffordableness".split()
    ),
    st.text(max_size=12),
    st.sampled_from(["", " ", "\t", "\x00", "\ud800", "\udc00\u0301", "\u200b", "\ufffd", "a b", "x" * 5_000]),
)
SENTENCE = st.lists(WORDS, max_size=30)
SENTENCES = st.lists(SENTENCE, max_size=8)


@examples(25)
@given(sentences=SENTENCES, neighbours=SENTENCES, data=st.data())
def test_a_sentence_is_parsed_as_if_it_were_alone(
    parser: PhrasemillParser, threaded: PhrasemillParser, sentences: list, neighbours: list, data: st.DataObject
) -> None:
    alone = [parser.parse_words([words])[0] for words in sentences]
    assert parser.parse_words(sentences) == alone
    numbers = data.draw(st.permutations(range(len(sentences) + len(neighbours))))
    mixed = [*sentences, *neighbours]
    for each in (parser, threaded):
        found = dict(zip(numbers, each.parse_words([mixed[number] for number in numbers]), strict=True))
        assert [found[number] for number in range(len(sentences))] == alone


@examples(50)
@given(sentences=SENTENCES)
def test_any_words_make_a_tree(parser: PhrasemillParser, sentences: list) -> None:
    for words, parse in zip(sentences, parser.parse_words(sentences), strict=True):
        assert isinstance(parse, Parse)
        assert is_tree(parse, len(words))


@examples(50)
@given(
    texts=st.lists(
        st.text(max_size=60)
        | st.lists(WORDS, max_size=20).map(" ".join)
        | st.text("ab .?\"'-(<,\u2014\n\ud800", max_size=60),
        max_size=5,
    )
)
def test_every_character_but_whitespace_is_in_one_token(parser: PhrasemillParser, texts: list[str]) -> None:
    found = parser.parse_texts(texts)
    assert found == [parser.parse_texts([text])[0] for text in texts]
    for text, sentences in zip(texts, found, strict=True):
        assert_nothing_lost(text, sentences)


def assert_nothing_lost(text: str, sentences: Sequence[Sentence]) -> None:
    end = 0
    for sentence in sentences:
        assert isinstance(sentence, ParsedSentence)
        assert (sentence.start_char, sentence.end_char) == (sentence.token_starts[0], sentence.token_ends[-1])
        assert is_tree(Parse(sentence.tags, sentence.constituents), len(sentence.token_starts))
        for start, token_end in zip(sentence.token_starts, sentence.token_ends, strict=True):
            assert end <= start < token_end
            assert not text[end:start].strip()
            end = token_end
    assert not text[end:].strip()


@pytest.mark.parametrize("text", ["", " ", "\t\u3000 \u00a0", "\n\n"])
def test_texts_without_words_have_no_sentences(parser: PhrasemillParser, text: str) -> None:
    assert parser.parse_texts([text, "Go.", text])[::2] == [[], []]
    assert parser.trees(text) == []


def test_nothing_gives_nothing(parser: PhrasemillParser) -> None:
    assert parser.parse_texts([]) == parser.parse_words([]) == parser.parse_tokens([]) == []
    assert parser.parse_words([[]]) == [Parse([], [])]


@pytest.mark.parametrize("max_tokens", [510, 250])
def test_long_sentences_are_refused_by_their_tokens(max_tokens: int) -> None:
    parser = PhrasemillParser(max_tokens=max_tokens)
    longest, longer = ["unaffordableness"] * max_tokens, ["a"] * (max_tokens + 1)
    fits, refused = parser.parse_words([longest, longer])
    assert isinstance(fits, Parse)
    assert is_tree(fits, max_tokens)
    assert refused == Refusal("too_many_tokens")
    assert parser.parse_tokens([longer]) == [RefusedSentence(0, 0, "too_many_tokens")]
    text = "Go on. " + "One " * max_tokens + "by one. So it is."
    found = parser.parse_texts([text])[0]
    assert [type(sentence) for sentence in found] == [ParsedSentence, RefusedSentence, ParsedSentence]
    assert found[1] == RefusedSentence(7, text.rindex(" So"), "too_many_tokens")


def test_a_sentence_of_10_000_tokens_costs_next_to_nothing(parser: PhrasemillParser) -> None:
    before, began = psutil.Process().memory_info().rss, time.process_time()
    assert parser.parse_words([["word"] * 10_000]) == [Refusal("too_many_tokens")]
    text = "the old man and the sea , " * 1_500
    (refused,) = parser.parse_texts([text])[0]
    assert refused == RefusedSentence(0, len(text) - 1, "too_many_tokens")
    assert parser.trees(text) == [None]
    assert time.process_time() - began < 2
    assert psutil.Process().memory_info().rss - before < 100 << 20


def test_the_longest_sentences_need_little_memory(parser: PhrasemillParser) -> None:
    parser = PhrasemillParser(max_tokens=510)
    before = psutil.Process().memory_info().rss
    assert all(isinstance(parse, Parse) for parse in parser.parse_words([["word"] * 510] * 10))
    assert psutil.Process().memory_info().rss - before < 300 << 20


def test_groups_hold_what_is_short_enough_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrasemill_parser, "GROUP_WORDS", 4)
    sentences = [["a"] * length for length in (1, 3, 6, 0, 5, 2)]
    assert list(phrasemill_parser._groups(sentences, 5)) == [[0, 1], [3, 4], [5]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_tokens": 511}, "max_tokens: must be a whole number of 1 to 510, not 511"),
        ({"max_tokens": 0}, "max_tokens: must be a whole number of 1 to 510, not 0"),
        ({"max_tokens": 9.5}, "max_tokens: must be a whole number of 1 to 510, not 9.5"),
        ({"threads": 0}, "threads: must be a whole number of 1 or more, not 0"),
        ({"threads": "two"}, "threads: must be a whole number of 1 or more, not 'two'"),
        ({"model": "nowhere.onnx"}, "nowhere.onnx: cannot be read as a network: "),
        ({"beam": 5}, "the parser phrasemill has no option 'beam'; it takes model, max_tokens, threads"),
    ],
)
def test_options_that_cannot_be(options: dict, message: str) -> None:
    with pytest.raises(UserError) as raised:
        load_parser("phrasemill", **options)
    assert str(raised.value).startswith(message)


def test_one_text_or_one_sentence_is_no_list(parser: PhrasemillParser) -> None:
    with pytest.raises(TypeError, match="takes a list of texts"):
        parser.parse_texts("A black cat.")
    for sentences in ("A black cat.", ["A black cat."]):
        with pytest.raises(TypeError, match="each a list of words"):
            parser.parse_words(sentences)


def test_identity_and_what_is_no_part_of_it(parser: PhrasemillParser, threaded: PhrasemillParser) -> None:
    identity = parser.identity
    assert (identity.parser, len(identity.model_sha256)) == ("phrasemill", 64)
    assert identity.libraries.keys() == {"onnxruntime", "numpy", "spacy"}
    assert identity == threaded.identity == parser_identity("phrasemill")
    assert REGISTRY.listed["phrasemill"].runtime == ("threads",)


def test_a_pickled_parser_is_the_same(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(PhrasemillParser(max_tokens=3)))
    assert again.parse_tokens([["go"] * 4]) == [RefusedSentence(0, 0, "too_many_tokens")]
    assert isinstance(again.parse_words([["go"] * 3])[0], Parse)
