"""UCTopic: sub-tokens of mentions, masks, what a batch excludes; small trainings of BERT and LUKE."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from masked_models import make_luke, make_masked_lm
from properties import examples

from schemas.errors import UserError

WORDS = ("a", "cat", "in", "the", "old", "town", "of", "Paris", "paris", "sat", "##s", "river", "dog", "ran")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_masked_lm(tmp_path_factory.mktemp("models") / "bert", WORDS)


@pytest.fixture(scope="module")
def luke(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_luke(tmp_path_factory.mktemp("models") / "luke")


def encoder(folder: str, **options: Any) -> Any:
    from trainers.uctopic.network import MentionEncoder

    return MentionEncoder.load(folder, **{"max_tokens": 64, **options})


def mention(marked: str) -> Any:
    """A sentence with its mention in angle brackets."""
    from trainers.uctopic.network import Mention

    before, _, rest = marked.partition("<")
    inside, _, after = rest.partition(">")
    return Mention(before + inside + after, len(before), len(before) + len(inside))


@pytest.mark.parametrize(
    ("marked", "most", "pieces", "span"),
    [
        ("A cat in <paris>.", 64, "[CLS] a cat in paris . [SEP]", "paris"),
        ("a cat, a <cat>", 64, "[CLS] a cat , a cat [SEP]", "cat"),  # the second one: offsets are counted
        ("in the <old towns> of paris", 64, "[CLS] in the old town ##s of paris [SEP]", "old town ##s"),
        ("in the old <town>s", 64, "[CLS] in the old town ##s [SEP]", "town"),
        ("a [MASK] in <paris>", 64, "[CLS] a [UNK] m ##a ##s ##k [UNK] in paris [SEP]", "paris"),  # is no mask
        ("a cat in the <town> of the old river", 7, "[CLS] in the town of the [SEP]", "town"),
        ("the <old town of the old river> ran", 5, "[CLS] old town of [SEP]", "old town of"),
    ],
)
def test_sub_tokens_of_a_mention(bert: str, marked: str, most: int, pieces: str, span: str) -> None:
    network = encoder(bert, max_tokens=most)
    (found,) = network.tokens([mention(marked)])
    said = network._tokenizer.convert_ids_to_tokens(found.ids)
    assert " ".join(said) == pieces
    assert " ".join(said[found.start : found.end]) == span


def test_a_mention_without_a_sub_token_is_refused(bert: str) -> None:
    with pytest.raises(UserError, match=r"the mention .* has no sub-token: leave its row out"):
        encoder(bert).tokens([mention("a <\u200b> cat")])


def test_words_are_whole(bert: str) -> None:
    (found,) = encoder(bert).tokens([mention("the old towns, a <cat>")])
    assert found.words == [[1], [2], [3, 4], [5], [6], [7]]


@pytest.mark.parametrize(
    ("one", "ids", "span", "words"),
    [
        (True, [1, 7, 103, 9, 2], (2, 3), [[1], [3]]),
        (False, [1, 7, 103, 103, 9, 2], (2, 4), [[1], [4]]),
    ],
)
def test_masks(one: bool, ids: list[int], span: tuple[int, int], words: list[list[int]]) -> None:
    from trainers.uctopic.network import Tokens, masked

    found = masked(Tokens([1, 7, 8, 5, 9, 2], 2, 4, [[1], [2, 3], [4]]), 103, one=one)
    assert found == Tokens(ids, *span, words)


@examples(30)
@given(sizes=st.lists(st.integers(1, 4), max_size=40), seed=st.integers(0, 1000))
def test_hidden_words(sizes: list[int], seed: int) -> None:
    """Whole words, 15 % of the sub-tokens at most, and no others change."""
    import torch

    from trainers.uctopic.network import Tokens, with_masked_words

    words, place = [], 1
    for size in sizes:
        words.append([*range(place, place + size)])
        place += size
    tokens = Tokens([101, *[1000 + n for n in range(place - 1)], 102], 0, 1, words)
    torch.manual_seed(seed)
    ids, places = with_masked_words(tokens, 103, 500)
    assert len(places) <= max(1, round(0.15 * len(ids)))
    assert bool(places) >= (1 in sizes)
    assert sorted(places) == sorted(each for word in words if word[0] in places for each in word)
    changed = [n for n, (one, other) in enumerate(zip(ids, tokens.ids, strict=True)) if one != other]
    assert {*changed} <= {*places}
    assert all(ids[each] == 103 or ids[each] < 500 for each in changed)
    torch.manual_seed(seed)
    assert with_masked_words(tokens, 103, 500) == (ids, places)


SIDE = {"text": "", "start_char": 0, "end_char": 1, "mention": "", "entity_id": "", "target_title": "", "section": ""}


def rows(*pairs: tuple[str, str, int], **more: Any) -> pa.Table:
    """Pairs of sentences with their mentions in brackets, each the title of its entity, and `unmasked`."""
    found = []
    for *sides, unmasked in pairs:
        row: dict[str, Any] = {"unmasked": unmasked}
        for side, marked in enumerate(sides, start=1):
            text, start, end = mention(marked)
            said = {"text": text, "start_char": start, "end_char": end, "mention": text[start:end]}
            known = SIDE | said | {"target_title": text[start:end].title()} | more
            row |= {f"{name}_{side}": value for name, value in known.items()}
        found.append(row)
    return pa.Table.from_pylist(found)


def recipe(folder: str, data: Path, table: pa.Table, **options: Any) -> Any:
    from trainers.training.checkpoint import seed_torch
    from trainers.uctopic.options import UCTopicTraining
    from trainers.uctopic.recipe import UCTopic

    data.mkdir(exist_ok=True)
    pq.write_table(table, data / "rows.parquet")
    chosen = UCTopicTraining(data=(str(data),), model=folder, max_tokens=32, **options)
    seed_torch(chosen.seed)
    return UCTopic(chosen), chosen


def test_the_data_say_which_mention_keeps_its_words(bert: str, tmp_path: Path) -> None:
    table = rows(("a <cat>", "the <cat> sat", 0), ("a <dog>", "the <dog> ran", 1), ("<paris>", "in <paris>", 2))
    made, _ = recipe(bert, tmp_path / "data", table)
    batch = made.prepare(table)
    assert [each.keeps_words for each in batch.inputs] == [False, True, False, False, False, True]
    assert sum(each.share for each in batch.inputs) == pytest.approx(1)
    given = []
    made.network.forward = lambda inputs: given.extend(inputs)
    made._options = replace(made._options, mlm_weight=0.0)
    made.encode(batch.inputs)
    said = [" ".join(made.network._tokenizer.convert_ids_to_tokens(each.ids[1:-1])) for each in given]
    assert said == ["a [MASK]", "a dog", "[MASK]", "the [MASK] sat", "the [MASK] ran", "in paris"]


def test_pairs_of_the_same_phrase() -> None:
    """A shared entity, or a shared surface of two entities, on any side; never the pair itself."""
    import torch

    from trainers.uctopic.recipe import names_of, same_phrase

    table = pa.concat_tables(
        [
            rows(("<Georgia>", "in <Tbilisi>", 0)),
            rows(("<Atlanta>", "<Georgia>", 0), entity_id="Q1428"),  # another Georgia, by its Wikidata id
            rows(("<river>", "a <river>", 0)),
            rows(("<rivers>", "a <stream>", 0), target_title="River"),
        ]
    )
    names = torch.from_numpy(names_of(table))
    found = same_phrase(names, names, torch.arange(4))
    assert found.int().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


@pytest.mark.parametrize("excluded", [False, True])
def test_the_switch_for_the_same_entity(bert: str, tmp_path: Path, excluded: bool) -> None:
    """Vectors at right angles: a loss of log 2 where another pair of the entity is a negative, else nearly 0."""
    import torch

    table = rows(("<cat>", "a <cat>", 0), ("<cat>", "the <cat>", 0), ("<dog>", "a <dog>", 0))
    made, _ = recipe(bert, tmp_path / "data", table, same_entity="excluded" if excluded else "kept")
    vectors = torch.eye(2)[[0, 0, 1, 0, 0, 1]]
    loss = made.losses(vectors, made.prepare(table))["contrast"].item()
    assert loss == pytest.approx(0 if excluded else 2 / 3 * np.log(2), abs=1e-6)


def test_a_model_without_a_head(bert: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import transformers

    transformers.AutoModel.from_pretrained(bert).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(bert).save_pretrained(tmp_path)
    assert not hasattr(encoder(str(tmp_path), head=False).model, "cls")
    assert "a new one" not in capsys.readouterr().err
    network = encoder(str(tmp_path))
    assert "a new one is learned" in capsys.readouterr().err
    embeddings = network.model.get_input_embeddings().weight
    assert network.model.cls.predictions.decoder.weight is embeddings


def test_luke_gets_the_places_of_its_mention(luke: str) -> None:
    """The vector is that of LUKE's own tokenizer and its entity, for a mention in its words."""
    import torch
    import transformers

    network = encoder(luke, head=False).eval()
    tokenizer, model = network._tokenizer, transformers.LukeModel.from_pretrained(luke).eval()
    for marked in ("in <New York> now", "a <caf\u00e9>, a", "so long a sentence, that pads the others: <it>"):
        text, start, end = mention(marked)
        given = tokenizer(" " + text, entity_spans=[(start + 1, end + 1)], return_tensors="pt")
        with torch.no_grad():
            right = model(**given).entity_last_hidden_state[0]
            found = network(network.tokens([mention(marked), mention("the <cat> sat on it in the old town")]))[:1]
        torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-4)


def test_lukes_head_is_tied_and_its_entities_are_kept(luke: str, tmp_path: Path) -> None:
    import torch

    network = encoder(luke)
    words = network.model.luke.embeddings.word_embeddings.weight
    assert network.model.lm_head.decoder.weight is words
    assert not network.model.luke.get_entity_embeddings().weight.requires_grad
    with torch.no_grad():
        words.add_(1)
    network.save(tmp_path)
    again = encoder(str(tmp_path))
    assert again.model.lm_head.decoder.weight is again.model.luke.embeddings.word_embeddings.weight
    for (name, one), (_, other) in zip(network.state_dict().items(), again.state_dict().items(), strict=True):
        torch.testing.assert_close(one, other, msg=name)


TOWNS = ("paris", "the old town", "a river", "the dog")


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["bert", "luke"])
def test_training(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The losses fall; stopped and gone on with, it ends with the same bytes; transformers loads it."""
    import transformers

    from trainers.training.loop import fit

    folder = request.getfixturevalue(kind)
    told = ("{} sat", "the cat ran in {}", "of {} a cat", "in {}")
    pairs = [
        (one.format(f"<{town}>"), other.format(f"<{town}>"), (n + m) % 3)
        for town in TOWNS
        for n, one in enumerate(told)
        for m, other in enumerate(told)
    ]
    table = rows(*pairs)
    options = {"batch_size": 16, "epochs": 12, "rate": 3e-3, "checkpoint_steps": 5}
    whole = fit(*recipe(folder, tmp_path / "data", table, output=tmp_path / "whole", **options))
    for name in ("contrast", "masked words"):
        losses = [each[name] for _, each in whole["losses"]]
        assert losses[-1] < 0.9 * losses[0], name

    made, chosen = recipe(folder, tmp_path / "data", table, output=tmp_path / "parts", **options)
    prepare, calls = made.prepare, iter(range(100))

    def dies(given: pa.Table) -> Any:
        if next(calls) == 23:
            raise KeyboardInterrupt
        return prepare(given)

    made.prepare = dies
    with pytest.raises(KeyboardInterrupt):
        fit(made, chosen)
    fit(*recipe(folder, tmp_path / "data", table, output=tmp_path / "parts", **options))
    one, other = ((tmp_path / each / "model.safetensors").read_bytes() for each in ("whole", "parts"))
    assert one == other
    loaded, report = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "whole", output_loading_info=True)
    assert not report["unexpected_keys"]
    assert type(loaded).__name__.lower().startswith(kind)


def test_the_evaluation_takes_luke(luke: str) -> None:
    import numpy.testing

    from trainers.evaluation.model import Passage
    from trainers.evaluation.models.options import ModelOptions
    from trainers.evaluation.models.registry import find_model

    model = find_model(luke).load()
    network = encoder(luke, head=False)
    found = model.encode_spans([Passage(["in", "the", "town"], 1, 3), Passage(["town"], 0, 1)])
    numpy.testing.assert_allclose(found, network.encode([mention("in <the town>"), mention("<town>")]), atol=1e-5)
    numpy.testing.assert_allclose(model.encode(["town"]), found[1:], atol=1e-5)
    with pytest.raises(UserError, match="--pooling and --layers do not apply"):
        find_model(luke, ModelOptions(pooling="max")).load()
