"""Pairwise-GRU: its loss, its network, what it learns from, and its folder as a model of the evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from schemas.errors import UserError
from trainers.evaluation.model import Passage
from trainers.evaluation.models.options import ModelOptions
from trainers.evaluation.models.registry import find_model
from trainers.evaluation.tasks.bigrams import Instance
from trainers.pgru.options import PairwiseGRU
from trainers.pgru.split import main as split
from trainers.pgru.split import split as divide
from trainers.pgru.tasks import CONTRASTS, TRAINING_SETS, part_of, with_others

WORDS = ("old", "big", "red", "house", "dog", "of", "a")
SEMEVAL = "semeval2013_5a/en.trainSet"
TURNEY = "turney2012/jair.train"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of some word vectors, all of length 2."""
    file = tmp_path_factory.mktemp("words") / "words.txt"
    drawn = np.random.default_rng(0).standard_normal((len(WORDS), 6))
    rows = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * 2
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, rows, strict=True)))
    return str(file)


def write_rows(folder: Path, *rows: tuple[str, str, list[str]]) -> str:
    folder.mkdir()
    columns = [pa.array([*each]) for each in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, names=["phrase", "paraphrase", "contrasts"]), folder / "rows.parquet")
    return str(folder)


def network(vectors: str, **options: Any) -> Any:
    import torch

    from trainers.pgru.recipe import Recipe

    torch.manual_seed(0)
    return Recipe(PairwiseGRU(data=(str(Path(vectors).parent / "rows.parquet"),), model=vectors, units=4, **options))


@pytest.fixture(scope="module")
def recipe(vectors: str) -> Any:
    rows = [("a dog", "old dog", ["big house", "zebra"]), ("red house", "house", ["dog", "a dog"])]
    columns = [pa.array([*each]) for each in zip(*rows, strict=True)]
    pq.write_table(
        pa.table(columns, names=["phrase", "paraphrase", "contrasts"]), Path(vectors).parent / "rows.parquet"
    )
    return network(vectors)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
@examples(10)
def test_the_loss_is_that_of_a_plain_loop(rows: int, contrasts: int, size: int, seed: int) -> None:
    import torch

    from trainers.training.losses import max_margin

    drawn = np.random.default_rng(seed).standard_normal((rows, 2 + contrasts, size))
    total = 0.0
    for one, other, *wrong in drawn:
        for each in wrong:
            total += max(0.0, 1 - sum(one * other) + sum(one * each))
    given_ = torch.from_numpy(drawn)
    assert max_margin(given_[:, 0], given_[:, 1], given_[:, 2:]).item() == pytest.approx(total / rows)


def test_a_phrase_is_encoded_once_and_the_loss_takes_it_wherever_it_is(recipe: Any) -> None:
    rows = [("a dog", "old dog", ["big house", "zebra"]), ("red house", "house", ["old dog", "a dog"])]
    table = pa.table(
        [pa.array([*each]) for each in zip(*rows, strict=True)], names=["phrase", "paraphrase", "contrasts"]
    )
    batch = recipe.prepare(table)
    assert batch.inputs == [[6, 4], [0, 4], [1, 3], [], [2, 3], [3]]  # zebra is no word that is known
    assert batch.given["asked"].tolist() == [[0, 1, 2, 3], [4, 5, 1, 0]]
    recipe.network.eval()
    found = recipe.encode(batch.inputs).vectors.detach().double().numpy()
    total = sum(
        max(0.0, 1 - found[one] @ found[other] + found[one] @ found[each])
        for one, other, *wrong in batch.given["asked"]
        for each in wrong
    )
    loss = recipe.losses(recipe.encode(batch.inputs).vectors, batch)["margin"]
    assert loss.item() == pytest.approx(total / 2, rel=1e-5)


def test_contrasts_of_different_numbers_are_refused(recipe: Any) -> None:
    columns = [pa.array(["a dog", "red"]), pa.array(["dog", "old"]), pa.array([["house"], ["big", "of"]])]
    with pytest.raises(UserError, match=r"'red', 'old': has 2 contrasts, and 'a dog' has 1"):
        recipe.prepare(pa.table(columns, names=["phrase", "paraphrase", "contrasts"]))


@given(st.lists(st.lists(st.integers(0, len(WORDS) - 1), max_size=5), max_size=6), st.integers(1, 3))
@examples(15)
def test_padding_does_not_count(recipe: Any, phrases: list[list[int]], at_once: int) -> None:
    """A vector is that of the phrase by itself, step by step, whatever is in the batch; of no word it is 0."""
    import torch

    recipe.network.eval()
    gru = torch.nn.GRUCell(6, 4)
    gru.load_state_dict({name.removesuffix("_l0"): value for name, value in recipe.network.gru.state_dict().items()})
    with torch.no_grad():
        expected = []
        for phrase in phrases:
            state = torch.zeros(4)
            for word in phrase:
                state = gru(recipe.network.vectors[word], state)
            expected.append(state)
        parts = [recipe.network(phrases[first : first + at_once]) for first in range(0, len(phrases), at_once)]
        whole = recipe.network(phrases)
    assert whole.shape == (len(phrases), 4)
    if phrases:
        assert torch.allclose(whole, torch.stack(expected), atol=1e-6)
        assert torch.allclose(torch.cat(parts), torch.stack(expected), atol=1e-6)


def test_order_counts_and_dropout_is_of_training_only(recipe: Any) -> None:
    import torch

    recipe.network.eval()
    one, turned, again = recipe.network([[1, 3], [3, 1], [1, 3]])
    assert (one - turned).abs().max() > 1e-3
    assert torch.equal(one, again)
    recipe.network.train()
    torch.manual_seed(1)
    one, again = recipe.network([[1, 3], [1, 3]])
    recipe.network.eval()
    assert (one - again).abs().max() > 1e-3


def test_vectors_of_words_are_brought_to_one_length(vectors: str, recipe: Any, tmp_path: Path) -> None:
    from trainers.pgru.network import LENGTH

    lengths = recipe.network.vectors.norm(dim=1)
    assert lengths.tolist() == pytest.approx([LENGTH] * len(WORDS))
    (tmp_path / "zero.txt").write_text("old 0 0\n")
    with pytest.raises(UserError, match=r"--model .*zero.txt: has no vectors of words that are not 0"):
        network(str(tmp_path / "zero.txt"))
    with pytest.raises(UserError, match="--model nothing-there: is no file of word vectors"):
        network("nothing-there")


def test_the_folder_is_a_model_of_the_evaluation(recipe: Any, tmp_path: Path) -> None:
    texts = ["Red house", "zebra", "old-dog", "old dog", ""]
    recipe.save(tmp_path)
    found = find_model(str(tmp_path), ModelOptions())
    model = found.load()
    vectors = model.encode(texts)
    recipe.network.eval()
    expected = recipe.network([[2, 3], [], [0, 4], [0, 4], []]).detach().numpy()
    assert np.array_equal(vectors, expected)
    assert model.encode_spans([Passage(["the", "red", "house"], 1, 3)]) == pytest.approx(expected[:1], abs=1e-6)
    assert model.remarks() == ["1 of 7 words unknown (14.3%), 2 of 6 texts without a known word"]
    again = tmp_path / "again"
    again.mkdir()
    recipe.save(again)
    assert find_model(str(again), ModelOptions()).identity == found.identity
    (again / "words.txt").write_text((again / "words.txt").read_text().replace("dog", "cat"))
    assert find_model(str(again), ModelOptions()).identity != found.identity


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors: no such file; train the model"),
        (lambda folder: (folder / "words.txt").write_text("old\n"), "cannot be read"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"{}"), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text('{"phrasemill": "pgru", "units": "x"}'), "config.json: "),
    ],
)
def test_a_damaged_folder_is_named(recipe: Any, tmp_path: Path, damage: Any, said: str) -> None:
    recipe.save(tmp_path)
    damage(tmp_path)
    with pytest.raises(UserError, match=said) as error:
        find_model(str(tmp_path), ModelOptions()).load()
    assert str(tmp_path) in str(error.value)


# ---- The training sets of tasks


def semeval(*pairs: tuple[str, str, int]) -> str:
    return "".join("{}\tJJ\n{}\tNN\n{}\n{}\n".format(*bigram.split(), word, same) for bigram, word, same in pairs)


def turney(bigram: str, word: str, others: str) -> str:
    one, other = bigram.split()
    return f"{one}\tJJ\n{other}\tNN\n" + "\n".join([word, one, other, *others.split()]) + "\n"


def test_rows_of_semeval() -> None:
    found = [
        Instance("hot", "dog", ["sausage", "1"]),
        Instance("hot", "dog", ["poodle", "0"]),
        Instance("red", "wine", ["claret", "1"]),
        Instance("red", "wine", ["merlot", "1"]),
    ]
    rows = TRAINING_SETS["semeval2013_5a"].rows(found)
    assert [row[:2] for row in rows] == [("hot dog", "sausage"), ("red wine", "claret"), ("red wine", "merlot")]
    assert [row.contrasts[0] for row in rows[:1]] == ["poodle"]
    assert [{*row.contrasts} for row in rows] == [{"poodle", "claret", "merlot"}, *[{"sausage", "poodle"}] * 2]


def test_rows_of_turney() -> None:
    found = [
        Instance("hot", "dog", ["sausage", "hot", "dog", "heat", "puppy", "lamp", "ode"]),
        Instance("red", "wine", ["claret", "red", "wine", "pink", "beer", "sock", "nut"]),
    ]
    five = TRAINING_SETS["turney2012_5"].rows(found)
    assert [row[:2] for row in five] == [("hot dog", "sausage"), ("red wine", "claret")]
    assert five[0].contrasts == ["heat", "puppy", "lamp", "ode", "claret"]
    ten = TRAINING_SETS["turney2012_10"].rows(found)
    assert ten[:2] == five
    assert ten[2:] == [("sausage", "hot dog", ["dog hot", "red wine"]), ("claret", "red wine", ["wine red", "hot dog"])]


@given(st.lists(st.text("abc", min_size=1), max_size=4), st.sets(st.text("abc", min_size=1)), st.text("abc"))
@examples(30)
def test_contrasts_are_distinct_and_never_what_is_right(first: list[str], others: set[str], right: str) -> None:
    found = with_others("a text", first, sorted(others), {right})
    allowed = {*first, *others} - {right}
    assert {*found} <= allowed
    assert len({*found}) == len(found) == min(CONTRASTS, len(allowed))
    assert found == with_others("a text", first, sorted(others, reverse=True), {right})


def test_a_divided_training_set_shares_no_bigram(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, output = tmp_path / "data", tmp_path / "parts"
    for name, text in (
        (SEMEVAL, semeval(*((f"w{n} v{n % 7}", f"x{n}", n % 2) for n in range(100)), ("v3 w3", "y", 1))),
        (TURNEY, "".join(turney(f"w{n} v{n}", f"x{n}", "a b c d") for n in range(50))),
    ):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_text(text)
    assert len(divide(data, output)) == 4
    for name in ("semeval2013_5a", "turney2012_10"):
        task = TRAINING_SETS[name]
        train, test = task.read(output / task.train), task.read(output / task.test)
        assert sorted([*train, *test]) == sorted(task.read(data / task.train))
        assert len(train) > 2 * len(test) > 0
        assert not {frozenset(each[:2]) for each in train} & {frozenset(each[:2]) for each in test}
    for seed in range(8):
        one, turned = (part_of(Instance(*words, []), (1, 1), seed=seed) for words in (("A", "b"), ("B", "a")))
        assert one == turned
    assert {part_of(each, (9, 1), seed=1) for each in train} == {0, 1}  # it can have a dev set
    assert split([str(data), str(output)]) == 2
    assert "has them already" in capsys.readouterr().err


def test_a_task_is_learned_from_and_held_out(vectors: str, recipe: Any, tmp_path: Path) -> None:
    """A tenth of the bigrams is the dev set of a model that learns from the rest; all of them that of another."""
    from trainers.pgru.recipe import DEV_SHARES, Recipe

    bigrams = [f"{one} {other}" for one in WORDS for other in WORDS if one < other]
    file = tmp_path / TURNEY
    file.parent.mkdir()
    file.write_text("".join(turney(each, "dog", "big red a house") for each in bigrams))
    task = TRAINING_SETS["turney2012_5"]
    held_out = [each for each in task.read(file) if part_of(each, DEV_SHARES, seed=1) == 1]
    assert 0 < len(held_out) < len(bigrams) / 2
    made = Recipe(
        PairwiseGRU(data=(str(tmp_path),), model=vectors, output=tmp_path / "model", task="turney2012_5", units=4)
    )
    learned = set(pq.read_table(tmp_path / "model" / "rows.parquet").column("phrase").to_pylist())
    assert learned == {*bigrams} - {each.bigram for each in held_out}
    made.network.eval()
    assert made.held_out() == task.score(made._model, held_out)
    rows = str(Path(vectors).parent / "rows.parquet")
    watched = Recipe(PairwiseGRU(data=(rows,), model=vectors, dev="turney2012_5", dev_data=tmp_path, units=4))
    watched.network.eval()
    assert watched.held_out() == task.score(watched._model, task.read(file))
    assert not hasattr(Recipe(PairwiseGRU(data=(rows,), model=vectors, units=4)), "held_out")  # it has no other split
    with pytest.raises(UserError, match="--random-weights, --layers: are for transformers"):
        Recipe(PairwiseGRU(data=(rows,), model=vectors, layers=1))
    with pytest.raises(UserError, match="--dev, --dev-data: give both, and no --task, or none"):
        Recipe(PairwiseGRU(data=(rows,), model=vectors, dev="turney2012_5"))


# ---- Training


def toy(folder: Path, pairs: int = 40) -> tuple[str, str]:
    """Phrases "aN bN" that mean the same as "cN"; of their words each has a vector of its own. Vectors and rows."""
    words = [f"{letter}{n}" for n in range(pairs) for letter in "abc"]
    drawn = np.random.default_rng(0).standard_normal((len(words), 16))
    file = folder / "toy.txt"
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, drawn, strict=True)))
    rows = [(f"a{n} b{n}", f"c{n}", [f"c{(n + k) % pairs}" for k in range(1, 10)]) for n in range(pairs)]
    return str(file), write_rows(folder / "toy", *rows)


@pytest.mark.heavy
def test_training_lifts_the_choice_and_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from trainers.evaluation.tasks.ppdb_choice import choices
    from trainers.pgru.recipe import Recipe
    from trainers.training import loop

    vectors, data = toy(tmp_path)
    options = PairwiseGRU(
        data=(data,),
        model=vectors,
        output=tmp_path / "whole",
        epochs=40,
        batch_size=8,
        units=32,
        dropout=0.1,
        checkpoint_steps=100,
    )

    def made(options: PairwiseGRU) -> Any:
        torch.manual_seed(options.seed)
        return Recipe(options)

    rows = [[f"a{n} b{n}", f"c{n}", *(f"c{(n + k) % 40}" for k in range(1, 10))] for n in range(40)]

    def right(folder: Path | str) -> float:
        return float(choices(find_model(str(folder)).load(), rows)["right"].mean())

    loop.fit(made(options), options)
    assert right(vectors) < 0.3
    assert right(options.output) > 0.9

    other = replace(options, output=tmp_path / "stopped")
    real = loop.write_checkpoint

    def stop(*arguments: Any, **state: Any) -> None:
        real(*arguments, **state)
        raise SystemExit

    monkeypatch.setattr(loop, "write_checkpoint", stop)
    with pytest.raises(SystemExit):
        loop.fit(made(other), other)
    assert not (other.output / "model.safetensors").exists()
    monkeypatch.undo()
    loop.fit(made(other), other)
    assert (other.output / "model.safetensors").read_bytes() == (options.output / "model.safetensors").read_bytes()
    assert json.loads((other.output / "config.json").read_text())["units"] == 32
