"""PEARL: what datasets are for, what is joined to their rows, the losses, the character encoder, and a training."""

from __future__ import annotations

import json
import signal
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
from trainers.pearl import data
from trainers.pearl.data import Chosen, Keys, keys_of, left_out, rows_of, sources_of, window


def written(folder: Path, **columns: list[Any]) -> str:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return str(folder)


def keys(*texts: str) -> Any:
    return keys_of(pa.array(texts))


SHARES = [{"type": "NP-OTHER", "share": 0.75}, {"type": "VP-OTHER", "share": 0.25}]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pearl")
    return {
        "noise": written(folder / "noise", phrase=["The ship", "oak"], augmented=["the shpi", "oka"]),
        "words": written(
            folder / "words", phrase=["ship", "oak", "old"], paraphrase=["boat", "tree", "aged"], score=[0.9, None, 0.2]
        ),
        "typed": written(
            folder / "typed",
            phrase=["oak", "the ship", "new york", "a b c d e f g"],
            entity_type=["OTHER", "OTHER", "GPE", "GPE"],
            type=["NP-OTHER", "NP-OTHER", "NP-GPE", "NP-GPE"],
            type_shares=[SHARES, SHARES[:1], [{"type": "NP-GPE", "share": 1.0}], []],
        ),
        "negatives": written(
            folder / "negatives",
            phrase=["oak", "the ship"],
            negatives=[[{"phrase": "oat"}], [{"phrase": "the shop"}, {"phrase": "the chip"}, {"phrase": "the slip"}]],
        ),
        "mentions": written(
            folder / "mentions", mention_2=["NYC"], text_1=["Off to New York!"], start_char_1=[7], end_char_1=[15]
        ),
        "other": written(folder / "other", text=["a"]),
    }


# ---- What a dataset is for


@pytest.mark.parametrize(
    ("name", "pair", "types", "negatives"),
    [
        ("noise", ("phrase", "augmented"), False, False),
        ("words", ("phrase", "paraphrase"), False, False),
        ("typed", None, True, False),
        ("negatives", None, False, True),
    ],
)
def test_what_a_dataset_is_for(places, name, pair, types, negatives):
    found = data.given(places[name])
    assert (found.pair, found.has_types, found.has_negatives) == (pair, types, negatives)


def test_a_dataset_for_nothing(places, tmp_path):
    with pytest.raises(UserError, match="other: has no pairs, types or hard negatives"):
        data.given(places["other"])
    with pytest.raises(UserError, match="no dataset has pairs"):
        sources_of([data.given(places["typed"])], Chosen(), tmp_path)
    with pytest.raises(UserError, match="no row is left"):
        sources_of([data.given(places["typed"])], Chosen(types=("LAW",)), tmp_path)


def test_which_rows_are_learned_from(places, tmp_path):
    found = [data.given(places[name]) for name in ("typed", "words", "noise", "mentions")]
    sources = sources_of(found, Chosen(0.5, ("GPE",), 6), tmp_path)
    assert [each.rows for each in sources] == [2, 2, 1, 1]
    assert [each.schema.names for each in sources] == [["phrase", "positive"]] * 4
    names = ("pairs-1.parquet", "typed-0.parquet", "mentions-3.parquet")
    read = [pq.read_table(tmp_path / name).to_pylist() for name in names]
    assert read == [
        [{"phrase": "ship", "positive": "boat"}, {"phrase": "oak", "positive": "tree"}],
        [{"phrase": "new york", "positive": "new york"}],
        [{"phrase": "NYC", "positive": "Off to [MASK]!"}],
    ]


# ---- What is joined


@examples(60)
@given(st.lists(st.integers(0, 99), unique=True), st.lists(st.integers(0, 99)))
def test_rows_are_found_by_key(known, asked):
    found = Keys(np.array(sorted(known), np.uint64)).rows(np.array(asked, np.uint64))
    assert [*found] == [sorted(known).index(each) if each in known else -1 for each in asked]


def test_types_of_phrases(places):
    types = data.read_types([data.given(places["typed"])])
    assert types.names == ("NP-GPE", "NP-OTHER", "VP-OTHER")
    asked = keys("Oak", "nothing", "THE SHIP", "new york")
    assert types.classes(asked).tolist() == [1, -1, 1, 0]
    assert types.shares(asked).tolist() == [[0, 0.75, 0.25], [0, 0, 0], [0, 1, 0], [1, 0, 0]]


def test_types_without_their_shares(places):
    types = data.read_types([data.given(places["typed"])], shares=False)
    assert types.names == ("NP-GPE", "NP-OTHER")
    assert types.shares(keys("oak")).tolist() == [[0, 1]]


def test_hard_negatives_of_phrases(places):
    negatives = data.read_negatives([data.given(places["negatives"])])
    owner, texts = negatives.drawn(keys("the ship", "nothing", "Oak"), number=2)
    assert owner.tolist() == [0, 0, 2]
    assert texts.to_pylist()[2] == "oat"
    assert len({*texts.to_pylist()[:2]}) == 2
    assert {*texts.to_pylist()[:2]} < {"the shop", "the chip", "the slip"}


def test_hard_negatives_differ_between_batches_and_not_between_runs(places):
    negatives = data.read_negatives([data.given(places["negatives"])])
    drawn = [negatives.drawn(keys("the ship", f"{n}"), number=1)[1].to_pylist() for n in range(30)]
    assert {each for (each,) in drawn} == {"the shop", "the chip", "the slip"}
    assert drawn == [negatives.drawn(keys("the ship", f"{n}"), number=1)[1].to_pylist() for n in range(30)]


def test_rows_of_a_step(places):
    negatives = data.read_negatives([data.given(places["negatives"])])
    table = pa.table({"phrase": ["oak", "elm"], "positive": ["a tall [MASK] by the gate", "an elm"]})
    found = rows_of(table, negatives=negatives, number=2, words=1)
    assert found.texts == ["oak", "elm", "tall [MASK] by", "an elm", "oat"]
    assert found.candidates[1:].tolist() == keys("an elm", "oat").tolist()
    assert found.owners.tolist() == keys("oak", "elm", "oat").tolist()
    assert found.contexts.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("no mask here at all", 1, "no mask here at all"),
        ("[MASK]", 3, "[MASK]"),
        ("he saw [MASK], then left; [MASK] came", 1, "saw [MASK], then"),
        ('he "[MASK]" then', 0, '"[MASK]"'),
    ],
)
def test_window(text, words, found):
    assert window(text, words) == found


# Two rows with the phrases 1 and 2, whose positives are the candidates 0 and 1; then hard negatives.
@pytest.mark.parametrize(
    ("candidates", "owners", "contexts", "apart", "found"),
    [
        pytest.param([7, 8], [1, 2], [0, 0], False, [[0, 0], [0, 0]], id="nothing in common"),
        pytest.param([1, 2], [1, 2], [0, 0], False, [[0, 0], [0, 0]], id="its own positive, though it is the phrase"),
        pytest.param([7, 1], [1, 2], [0, 0], False, [[0, 1], [0, 0]], id="a positive that is another phrase"),
        pytest.param([7, 7], [1, 2], [0, 0], False, [[0, 1], [1, 0]], id="the same positive"),
        pytest.param([7, 8, 1], [1, 2, 1], [0, 0, 0], False, [[0, 0, 1], [0, 0, 0]], id="a hard negative is a phrase"),
        pytest.param([7, 8, 9], [1, 2, 9], [1, 0, 0], False, [[0, 0, 0], [0, 0, 0]], id="together"),
        pytest.param([7, 8, 9], [1, 2, 9], [1, 0, 0], True, [[0, 1, 1], [1, 0, 0]], id="apart"),
    ],
)
def test_left_out(candidates, owners, contexts, apart, found):
    arrays = (np.array(each, np.uint64) for each in ([1, 2], candidates, owners, contexts))
    assert left_out(*arrays, np.arange(2), apart=apart).astype(int).tolist() == found


def test_other_positives_of_a_phrase_are_left_out():
    arrays = (np.array(each, np.uint64) for each in ([1, 1], [7, 8], [1, 1], [0, 0]))
    assert left_out(*arrays, np.arange(2)).tolist() == [[False, True], [True, False]]


# ---- The losses, and the mean of two models


def test_type_loss():
    import torch

    from trainers.pearl.losses import type_loss

    scores = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]))
    assert type_loss(scores, np.array([0, -1])).item() == pytest.approx(np.log(2))
    assert type_loss(scores, np.array([0, 1])).item() == pytest.approx((np.log(2) + np.log(2.5)) / 2)
    assert type_loss(scores, np.array([-1, -1])).item() == 0
    shares = np.array([[0, 0.5, 0.5], [0, 0, 0]], np.float32)
    assert type_loss(scores, shares).item() == pytest.approx(np.log(4))


@pytest.mark.parametrize(("share", "found"), [(0.5, [3.0, 5.0]), (0.0, [4.0, 8.0]), (1.0, [2.0, 2.0])])
def test_averaged(share, found):
    import torch

    from trainers.pearl.losses import averaged

    base = {"a": torch.tensor([2.0, 2.0]), "n": torch.tensor(3)}
    tuned = {"a": torch.tensor([4.0, 8.0]), "n": torch.tensor(4), "new": torch.tensor([9.0])}
    mean = averaged(base, tuned, share)
    assert {name: each.tolist() for name, each in mean.items()} == {"a": found, "n": 4, "new": [9.0]}


# ---- The character encoder

TOKENS = ["[PAD]", "[CLS]", "ab", "##c", "d", "'"]


def character_encoder() -> Any:
    import torch

    from trainers.pearl.modules import CharacterEncoder

    class Tokenizer:
        all_special_ids = (0, 1)

        def __len__(self) -> int:
            return len(TOKENS)

        def convert_ids_to_tokens(self, numbers: Any) -> list[str]:
            return [TOKENS[each] for each in numbers]

    torch.manual_seed(0)
    return CharacterEncoder.new(Tokenizer(), width=6, dimension=4, base=3, length=2.0).eval()


def test_words_are_spelled():
    import torch

    found = character_encoder().words(
        torch.tensor([[1, 2, 3, 4], [3, 5, 0, 0], [1, 0, 0, 0]]),
        torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]),
    )
    said = {0: "", 1: "<", 2: "|", 3: ">", **dict(enumerate("'abcd", 4)), **dict(enumerate(TOKENS, 9))}
    assert ["".join(said[each] for each in row) for row in found.sequences.tolist()] == [
        "<abc|ab##c>",
        "<d|d>",
        "<c|##c>",  # the first token of a text begins a word
        "<'|'>",
    ]
    assert found.text.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("tokens", "texts", "begins"),
    [
        (["a", "##b"], ["a", "b"], [True, False]),
        (["Ġa", "b"], ["a", "b"], [True, False]),
        (["▁a", "b", "<s>"], ["a", "b", ""], [True, False, False]),
    ],
)
def test_spelling_of_vocabularies(tokens, texts, begins):
    from trainers.pearl.modules import spelling_of

    found = spelling_of(tokens, {2})
    numbers = {each: number for number, each in enumerate(sorted({*"".join(texts)}), 4)}
    assert found.begins.tolist() == begins
    assert [[each for each in row if each] for row in found.characters.tolist()] == [
        [numbers[each] for each in text] for text in texts
    ]


def test_a_text_has_the_same_vector_in_any_batch():
    import torch

    encoder = character_encoder()
    ids, mask = (
        torch.tensor([[1, 2, 3, 4], [1, 5, 0, 0], [1, 0, 0, 0]]),
        torch.tensor([[1] * 4, [1, 1, 0, 0], [1, 0, 0, 0]]),
    )
    with torch.no_grad():
        both = encoder({"sentence_embedding": torch.ones(3, 3), "input_ids": ids, "attention_mask": mask})
        alone = encoder.encode(ids[1:2, :2], mask[1:2, :2])
    vectors = both["sentence_embedding"]
    assert vectors.shape == (3, encoder.get_embedding_dimension()) == (3, 7)
    assert vectors[:, :3].tolist() == [[1.0] * 3] * 3
    assert vectors[1, 3:].tolist() == pytest.approx(alone[0].tolist(), abs=1e-6)
    assert vectors[2, 3:].tolist() == [0.0] * 4  # no word
    assert 0 < vectors[0, 3:].norm() < 2 * (6 / 4) ** 0.5 + 1e-4
    with torch.no_grad():
        half = encoder.to(torch.bfloat16).encode(ids[1:2, :2], mask[1:2, :2])
    assert half[0].tolist() == pytest.approx(alone[0].tolist(), abs=0.05)


def test_a_character_encoder_is_saved(tmp_path):
    import torch

    from trainers.pearl.modules import CharacterEncoder

    encoder = character_encoder()
    encoder.save(str(tmp_path))
    again = CharacterEncoder.load(str(tmp_path)).eval()
    ids, mask = torch.tensor([[1, 2, 3, 4]]), torch.ones(1, 4, dtype=torch.long)
    with torch.no_grad():
        assert torch.equal(again.encode(ids, mask), encoder.encode(ids, mask))
    assert again.config == encoder.config


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"modules.json": [{"type": "sentence_transformers.models.Transformer"}]}, True),
        ({"modules.json": [{"type": "trainers.pearl.modules.CharacterEncoder"}], "2/config.json": {}}, True),
        ({"modules.json": [{"type": "custom.Encoder"}]}, False),
        ({"modules.json": [{"type": "trainers.pearl.modules.CharacterEncoder"}], "trainers.py": ""}, False),
        ({"modules.json": [], "config.json": {"auto_map": {"AutoModel": "custom.Model"}}}, False),
    ],
)
def test_which_folders_bring_no_code(tmp_path, files, found):
    from transforms.encoders.files import brings_no_code

    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    assert brings_no_code(tmp_path) is found


# ---- A training


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny BERT, whose folder ends with a module that makes lengths 1, as E5's does."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("base")
    pieces = [f"{mark}{each}" for mark in ("", "##") for each in "abcdefghijklmnopqrstuvwxyz"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, "the", "ship"]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(vocabulary), **sizes)).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    modules = [Transformer(str(folder / "bert")), Pooling(16), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return str(folder / "model")


def trained(output: Path, base: str, places: dict[str, str], *more: str) -> Path:
    from trainers.train import main

    given_data = [part for name in ("noise", "words", "typed", "negatives") for part in ("--data", places[name])]
    common = ["--model", base, "--output", str(output), "--batch-size", "4", "--rate", "1e-3", "--character-width", "8"]
    assert main(["pearl", *given_data, *common, "--character-dimension", "4", "--threads", "1", *more]) == 0
    return output


@pytest.mark.heavy
def test_training(base, places, tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer

    from trainers.evaluation.models.options import ModelOptions
    from trainers.evaluation.models.registry import find_model
    from trainers.pearl.options import PearlTraining
    from trainers.pearl.recipe import Pearl

    output = trained(tmp_path / "model", base, places, "--steps", "30")
    losses = json.loads((output / "training.json").read_text())["losses"]
    texts = ["the ship", "oak"]
    model = SentenceTransformer(str(output), trust_remote_code=True, device="cpu")
    vectors = model.encode(texts)
    assert vectors.shape == (2, 16 + 4)
    assert not np.allclose(np.linalg.norm(vectors, axis=1), 1)  # as the paper: no Normalize
    measured = find_model(str(output), ModelOptions()).load().encode(texts)
    assert np.abs(measured - vectors).max() < 1e-5
    early, late = losses[:5], losses[-5:]
    for name in ("contrast", "types"):
        assert sum(each[name] for _, each in late) < sum(each[name] for _, each in early) / 2
    # The vectors of the network in training, and of its folder.
    torch.manual_seed(0)
    recipe = Pearl(PearlTraining(data=(places["noise"],), model=base, base_share=0.0, character_width=8))
    recipe.network.eval()
    recipe.save(tmp_path / "new")
    with torch.no_grad():
        own = recipe.encode(recipe.network.encoder.tokens(texts)).vectors.numpy()
    loaded = SentenceTransformer(str(tmp_path / "new"), trust_remote_code=True, device="cpu").encode(texts)
    assert np.abs(own - loaded).max() < 1e-5
    # A training that goes on from a folder with a character encoder keeps it.
    again = Pearl(PearlTraining(data=(places["noise"],), model=str(tmp_path / "new")))
    assert again.network.encoder.dimension == 16 + 96
    # Without characters: a folder of sentence-transformers alone.
    plain = trained(tmp_path / "plain", base, places, "--steps", "2", "--no-characters", "--normalise")
    assert [each["type"] for each in json.loads((plain / "modules.json").read_text())] == [
        f"sentence_transformers.models.{name}" for name in ("Transformer", "Pooling", "Normalize")
    ]
    assert SentenceTransformer(str(plain), device="cpu").encode(texts).shape == (2, 16)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_a_training_goes_on_exactly(base, places, tmp_path):
    from trainers.pearl.options import PearlTraining
    from trainers.pearl.recipe import Pearl
    from trainers.training.checkpoint import digest_of, seed_torch
    from trainers.training.loop import fit

    class Stopped(Pearl):
        """Gets a SIGTERM in a step."""

        steps = 0

        def losses(self, vectors: Any, batch: Any) -> Any:
            self.steps += 1
            if self.steps == 4:
                signal.raise_signal(signal.SIGTERM)
            return super().losses(vectors, batch)

    def ended(recipe: type[Pearl], name: str) -> str:
        options = PearlTraining(
            data=tuple(places[each] for each in ("noise", "words", "typed", "negatives")),
            model=base,
            output=tmp_path / name,
            steps=7,
            batch_size=2,
            seed=3,
            character_width=8,
            rate=1e-3,
            chunk=3,
            symmetric=True,
            type_shares=True,
        )
        seed_torch(options.seed)
        made = recipe(options)
        fit(made, options)
        return digest_of(made.network)

    whole = ended(Pearl, "whole")
    with pytest.raises(SystemExit):
        ended(Stopped, "stopped")
    assert (tmp_path / "stopped" / "checkpoint.pt").exists()
    assert ended(Pearl, "stopped") == whole
