"""An encoder as a network to train: its vectors, its folder, its changes, and the evaluation of a training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from masked_models import make_masked_lm

from schemas.errors import UserError
from trainers.training.options import Training

TEXTS = ["sea", "the red sea horse", "", "Fire fly, fire bird", "blue bell of the sea", "x"]
QUESTIONS = """\
red bird | redbird | horse | bell | sea | fly | red | bird
sea horse | seahorse | bird | the | of | red | sea | horse
fire fly | firefly | sea | blue | x | bell | fire | fly
"""


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = ["sea", "red", "horse", "fire", "fly", "bird", "blue", "bell", "of", "the"]
    return make_masked_lm(tmp_path_factory.mktemp("bert") / "tiny", words)


@pytest.fixture(scope="module")
def folder(bert: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with modules of sentence-transformers, as we save it."""
    from trainers.training.encoder import PhraseEncoder

    saved = tmp_path_factory.mktemp("saved")
    PhraseEncoder.load(bert).save(saved)
    return saved


def test_vectors_are_those_of_sentence_transformers(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    from trainers.training.encoder import PhraseEncoder
    from transforms.encoders.registry import load_encoder

    encoder = PhraseEncoder.load(str(folder)).eval()
    found = encoder(encoder.tokens(TEXTS)).detach().numpy()
    assert (found.shape, encoder.dimension, encoder.normalised) == ((6, 16), 16, False)
    for other in (SentenceTransformer(str(folder), device="cpu"), load_encoder(str(folder))):
        np.testing.assert_allclose(found, other.encode(TEXTS), atol=1e-5)
    assert encoder([]).shape == (0, 16)


def test_the_folder_is_one_that_earlier_versions_read(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    assert [each["type"] for each in modules] == [
        f"sentence_transformers.models.{each}" for each in ("Transformer", "Pooling")
    ]
    assert json.loads((folder / "1_Pooling/config.json").read_text()) == {
        "word_embedding_dimension": 16,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
    }
    assert json.loads((folder / "sentence_bert_config.json").read_text()) == {
        "max_seq_length": 512,
        "do_lower_case": False,
    }
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] != "TokenizersBackend"


def test_lower_case_and_prompts_of_the_folder(folder: Path, tmp_path: Path) -> None:
    import shutil

    from sentence_transformers import SentenceTransformer

    from trainers.training.encoder import PhraseEncoder

    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other/sentence_bert_config.json").write_text('{"max_seq_length": 4, "do_lower_case": true}')
    prompts = {"prompts": {"query": "The "}, "default_prompt_name": "query"}
    (tmp_path / "other/config_sentence_transformers.json").write_text(json.dumps(prompts))
    encoder = PhraseEncoder.load(str(tmp_path / "other")).eval()
    theirs = SentenceTransformer(str(tmp_path / "other"), device="cpu").encode(["Red SEA horse"])
    np.testing.assert_allclose(encoder(encoder.tokens(["Red SEA horse"])).detach().numpy(), theirs, atol=1e-5)
    ids = encoder._tokenizer(["the red"])["input_ids"]
    assert encoder.tokens(["Red SEA horse"]) == ids
    encoder.save(tmp_path / "again")
    again = PhraseEncoder.load(str(tmp_path / "again"))
    assert again.tokens(["Red SEA horse"]) == ids


def test_new_weights_and_fewer_layers(bert: str) -> None:
    import torch

    from trainers.training.encoder import PhraseEncoder

    def loaded(seed: int = 0, **options: Any) -> Any:
        torch.manual_seed(seed)
        return PhraseEncoder.load(bert, options=Training(data=(), model=bert, **options)).inner

    def embeddings(inner: Any) -> Any:
        return inner.get_input_embeddings().weight

    base, new = loaded(), loaded(random_weights=True)
    assert torch.equal(embeddings(new), embeddings(loaded(random_weights=True)))
    assert not torch.equal(embeddings(new), embeddings(base))
    assert not torch.equal(embeddings(new), embeddings(loaded(1, random_weights=True)))
    one = loaded(layers=1)
    assert torch.equal(embeddings(one), embeddings(base))
    assert (len(one.encoder.layer), one.config.num_hidden_layers) == (1, 1)
    with pytest.raises(UserError, match=r"--layers 3: .* has 2 layers; choose fewer"):
        loaded(layers=3)


def test_what_is_no_model_is_refused() -> None:
    from trainers.training.encoder import PhraseEncoder

    with pytest.raises(UserError, match="--model: no model 'nothing/'"):
        PhraseEncoder.load("nothing/")


# ---- A training with it


def trained(
    bert: str, tmp_path: Path, *, output: str = "model", ran: list[int] | None = None, **options: Any
) -> tuple[Any, Any]:
    """The recipe and what is known of the training; `ran` gets a number for each run of the first layer."""
    import torch
    from torch import Tensor

    from trainers.data import Source
    from trainers.training.encoder import PhraseEncoder
    from trainers.training.loop import fit
    from trainers.training.losses import info_nce
    from trainers.training.recipe import Batch, Encoded

    texts = ["sea horse", "fire fly", "red bird", "blue bell"]
    rows = pa.table({"anchor": texts, "positive": [each.replace(" ", "") for each in texts]})
    pq.write_table(rows, tmp_path / "rows.parquet")
    chosen = Training(
        data=(str(tmp_path / "rows.parquet"),),
        model=bert,
        output=tmp_path / output,
        batch_size=2,
        rate=1e-2,
        **options,
    )

    class Phrases:
        name, weights, about = "phrases", None, "An encoder of phrases."
        sources = (Source.open(chosen.data[0]),)
        network = PhraseEncoder.load(bert)

        def prepare(self, table: pa.Table) -> Batch:
            return Batch(
                self.network.tokens([*table["anchor"].to_pylist(), *table["positive"].to_pylist()]), len(table)
            )

        def encode(self, inputs: Sequence[Any]) -> Encoded:
            return Encoded(self.network(inputs))

        def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
            one, other = vectors.chunk(2)
            return {"contrast": info_nce(one, other, torch.arange(batch.rows), temperature=0.1)}

        def save(self, folder: Path) -> None:
            self.network.save(folder)

    recipe = Phrases()
    if ran is not None:
        recipe.network.inner.encoder.layer[0].attention.register_forward_hook(lambda *_: ran.append(1))
    return recipe, fit(recipe, chosen, command="train phrases")


def test_evaluated_before_during_and_after(bert: str, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "eval/turney").mkdir(parents=True)
    (tmp_path / "eval/turney/turney.txt").write_text(QUESTIONS)
    _, results = trained(bert, tmp_path, evaluation=tmp_path / "eval", evaluation_steps=1, steps=2, tasks=("turney",))
    output = tmp_path / "model"
    assert [*results["scores"]] == ["0", "1", "2"]
    after = results["scores"]["2"]["turney"]["accuracy"]
    assert after["before"] == results["scores"]["0"]["turney"]["accuracy"]["mean"]
    assert after["difference"] == pytest.approx(after["mean"] - after["before"], abs=1e-5)
    assert sorted(each.name for each in (output / "evaluation").iterdir()) == ["step-0", "step-1", "step-2"]
    assert not [*output.rglob("model")]
    events = EventAccumulator(str(output / "tensorboard")).Reload()
    assert [each.step for each in events.Scalars("evaluation/mean")] == [0, 1, 2]
    card = (output / "README.md").read_text()
    assert card.startswith(
        "---\nlanguage: en\npipeline_tag: sentence-similarity\nlibrary_name: sentence-transformers\n"
    )
    assert "An encoder of phrases." in card
    assert 'SentenceTransformer("model")' in card
    assert f"| turney | accuracy | {after['before']:.1f} | {after['mean']:.1f} | {after['difference']:+.1f} |" in card


def test_half_precision(bert: str, tmp_path: Path) -> None:
    _, results = trained(bert, tmp_path, epochs=6.0, precision="bfloat16")
    losses = [each["contrast"] for _, each in results["losses"]]
    assert losses[-1] < losses[0]


def test_activations_are_computed_again(bert: str, tmp_path: Path) -> None:
    """Each layer runs twice a step, and the losses are those of a training that keeps them."""
    losses = []
    for checkpointing in (False, True):
        ran: list[int] = []
        _, results = trained(bert, tmp_path, checkpointing=checkpointing, ran=ran, output=f"{checkpointing}")
        assert len(ran) == results["steps"] * (2 if checkpointing else 1)
        losses += [each["contrast"] for _, each in results["losses"]]
    assert losses[:2] == pytest.approx(losses[2:], rel=1e-4)
