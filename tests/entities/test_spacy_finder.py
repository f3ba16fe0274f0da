"""spaCy's recogniser over given tokens: what it finds is what spaCy finds, for any pipeline with a recogniser."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from schemas.terms import ENTITY_TYPES
from transforms.entities import spacy_finder
from transforms.entities.interface import Words
from transforms.entities.registry import REGISTRY, finder_identity, load_finder
from transforms.entities.spacy_finder import SpacyFinder

LINES = """Barack Obama was born in Honolulu , Hawaii , on August 4 , 1961 .
The whale
London
Last year the European Commission fined Google $ 2.7 billion , or 3 % of its sales in 28 countries .
J. R. R. Tolkien wrote " The Lord of the Rings " at Oxford University between 1937 and 1949 .
the first two Germans swam 21 miles across the English Channel in eleven hours
New York 's mayor , Bill de Blasio , speaks Spanish
\u00e9t\u00e9 \U0001f40b \u4f60\u597d \ufffd 192.168.1.1""".splitlines()
SENTENCES = [Words(line.split(), [True] * len(line.split())) for line in LINES]


@pytest.fixture(scope="module")
def finder() -> SpacyFinder:
    return SpacyFinder()


def by_spacy(finder: SpacyFinder, sentences: list[Words]) -> list[list[tuple[int, int, str]]]:
    return [*spacy_finder._spans(finder._nlp, sentences)]


def test_names_are_found_with_their_types(finder):
    found = [
        [(" ".join(words.words[first:last]), type_) for first, last, type_ in entities]
        for words, entities in zip(SENTENCES, finder.find(SENTENCES), strict=True)
    ]
    assert found[:3] == [
        [("Barack Obama", "PERSON"), ("Honolulu", "GPE"), ("Hawaii", "GPE"), ("August 4 , 1961", "DATE")],
        [],
        [("London", "GPE")],
    ]
    assert {("the European Commission", "ORG"), ("$ 2.7 billion", "MONEY"), ("3 %", "PERCENT")} <= {*found[3]}
    assert finder.identity.types == sorted(ENTITY_TYPES)


def test_all_at_once_is_what_spacy_finds_token_by_token(finder):
    assert finder._greedy is not None
    assert finder.find(SENTENCES) == by_spacy(finder, SENTENCES)


_WORDS = sorted({word for line in LINES for word in line.split()})


@given(st.lists(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=12), max_size=6), st.integers(1, 40))
@examples(8)
def test_so_it_is_for_any_words_and_batches(finder, lines, tokens):
    sentences = [Words(words, [True] * len(words)) for words in lines]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spacy_finder, "BATCH_TOKENS", tokens)
        assert finder.find(sentences) == by_spacy(finder, sentences)


def test_sentences_without_words(finder):
    empty = Words([], [])
    assert finder.find([]) == []
    assert finder.find([empty, SENTENCES[2], empty]) == [[], finder.find(SENTENCES)[2], []]


def test_a_small_vocabulary_gives_the_same(finder, monkeypatch):
    expected = finder.find(SENTENCES)
    monkeypatch.setattr(spacy_finder, "KEPT_STRINGS", 0)
    assert finder.find(SENTENCES) == expected


def test_types_have_other_names_or_are_left_out(finder):
    renamed = SpacyFinder(types="GPE:place,DATE:")
    assert {*renamed.identity.types} == {*ENTITY_TYPES} - {"GPE", "DATE"} | {"place"}
    assert renamed.find(SENTENCES[:1])[0] == [
        each._replace(type="place") if each.type == "GPE" else each
        for each in finder.find(SENTENCES[:1])[0]
        if each.type != "DATE"
    ]


def pipeline(folder: Path, *, architecture: str, attributes: str) -> str:
    """A pipeline whose recogniser was initialised, not trained: it finds anything."""
    import spacy

    nlp = spacy.blank("en")
    rows = {"rows": [50] * len(attributes.split()), "attrs": attributes.split(), "width": 16}
    encoder = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {"@architectures": "spacy.MultiHashEmbed.v2", "include_static_vectors": False, **rows},
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 16,
            "depth": 1,
            "window_size": 1,
            "maxout_pieces": 2,
        },
    }
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    if architecture == "listener":
        nlp.add_pipe("tok2vec", config={"model": encoder})
    model = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": architecture != "no upper",
        "nO": None,
        "tok2vec": listener if architecture == "listener" else encoder,
    }
    nlp.add_pipe("sentencizer")
    names = nlp.add_pipe("beam_ner" if architecture == "beam" else "ner", name="names", config={"model": model})
    for label in ("PER", "thing"):
        names.add_label(label)
    nlp.initialize()
    generator = np.random.default_rng(0)
    for node in names.model.walk():
        for name in node.param_names:
            if node.has_param(name):
                shape = node.get_param(name).shape
                node.set_param(name, generator.normal(size=shape, scale=0.7).astype("float32"))
    nlp.to_disk(folder)
    return str(folder)


@pytest.mark.parametrize(
    ("architecture", "attributes", "at_once"),
    [
        ("own", "NORM PREFIX SHAPE", True),
        ("own", "NORM SPACY", False),
        ("listener", "NORM SHAPE", False),
        ("beam", "NORM", False),
    ],
)
def test_a_recogniser_of_any_architecture(tmp_path, architecture, attributes, at_once):
    import spacy
    from spacy.tokens import Doc

    path = pipeline(tmp_path / "p", architecture=architecture, attributes=attributes)
    finder = load_finder("spacy", model=path)
    assert isinstance(finder, SpacyFinder)
    assert (finder._greedy is not None) == at_once
    assert "sentencizer" not in finder._nlp.pipe_names
    assert finder.identity == finder_identity("spacy", model=path)
    assert finder.identity.types == ["PERSON", "thing"]
    whole = spacy.load(path)
    docs = [whole(Doc(whole.vocab, words=words, spaces=spaces)) for words, spaces in SENTENCES]
    expected = [[(each.start, each.end, finder._types[each.label_]) for each in doc.ents] for doc in docs]
    assert finder.find(SENTENCES) == expected
    assert any(expected)


def test_what_is_no_recogniser_is_refused(tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    for refused in (load_finder, finder_identity):
        with pytest.raises(UserError, match="blank has no recogniser of named entities; use a pipeline such as"):
            refused("spacy", model=str(tmp_path / "blank"))
        with pytest.raises(UserError, match="no spaCy pipeline 'nowhere'"):
            refused("spacy", model="nowhere")
        with pytest.raises(UserError, match="has no option 'threads'; it takes model, types"):
            refused("spacy", threads=2)
        with pytest.raises(UserError, match="no entity finder 'flair'; choose among phrasemill, spacy, transformers"):
            refused("flair")


def test_an_extra_that_is_missing_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "transforms.entities.transformers_finder", None)
    with pytest.raises(UserError, match=r"transformers needs .*: pip install 'phrasemill\[transformers\]'"):
        load_finder("transformers", model="x")


def test_the_identity_is_a_json_value(finder):
    assert json.loads(json.dumps(finder.identity._asdict()))["model_sha256"] == finder.identity.model_sha256
    assert finder.identity == finder_identity("spacy")


def test_the_options_listed_are_those_of_the_class():
    assert [*inspect.signature(SpacyFinder).parameters] == REGISTRY.listed["spacy"].options.split()
