"""The whole training of a paraphraser, by our command, on pairs that it learns by heart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paraphrasers import PAIRS, train_tiny

from trainers.train import main


def test_it_knows_its_pairs_by_heart(tiny_paraphraser: Path) -> None:
    from transforms.paraphrase.generators.interface import Request
    from transforms.paraphrase.generators.registry import load_generator
    from transforms.paraphrase.options import GeneratorOptions

    generator = load_generator(GeneratorOptions(generator="pairs", generator_model=str(tiny_paraphraser), top_k=1))
    said = generator.generate([Request(phrase, (), 1) for phrase, _ in PAIRS], draws=1)
    right = [each.text == paraphrase for (each,), (_, paraphrase) in zip(said, PAIRS, strict=True)]
    assert sum(right) > 0.9 * len(PAIRS)


def test_transformers_loads_it(tiny_paraphraser: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

    assert isinstance(AutoModelForCausalLM.from_pretrained(tiny_paraphraser), GPT2LMHeadModel)
    tokenizer = AutoTokenizer.from_pretrained(tiny_paraphraser)
    assert tokenizer.decode(tokenizer.encode("The house's (old) street-sea, 3!")) == "the house's (old) street-sea, 3!"
    scores = json.loads((tiny_paraphraser / "scores.json").read_text())
    card = (tiny_paraphraser / "README.md").read_text()
    assert f"{scores['weights']:,} weights" in card
    assert not (tiny_paraphraser / "checkpoint.pt").exists()


def test_a_killed_training_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended after a checkpoint, within an epoch, it ends with the bytes of a training that was not."""
    from trainers.paraphraser import training

    few = ("--epochs", "1.5", "--checkpoint-steps", "3", "--dropout", "0.1")
    (tmp_path / "whole").mkdir()
    whole = train_tiny(tmp_path / "whole", *few)
    (tmp_path / "ended").mkdir()

    class Killed(BaseException):
        pass

    note = training.Progress.note

    def dying(self: training.Progress, step: int, *losses: Any, **more: Any) -> None:
        note(self, step, *losses, **more)
        if step == 4:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(training.Progress, "note", dying)
        with pytest.raises(Killed):
            train_tiny(tmp_path / "ended", *few)
    assert (tmp_path / "ended" / "model" / "checkpoint.pt").exists()
    ended = train_tiny(tmp_path / "ended", *few)
    for name in ("model.safetensors", "scores.json"):
        assert (ended / name).read_bytes() == (whole / name).read_bytes()


def test_it_goes_on_only_with_its_own_options(
    tiny_paraphraser: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model that is done is not made again; a checkpoint of other options is not taken."""
    shutil.copytree(tiny_paraphraser.parent, tmp_path, dirs_exist_ok=True)
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    train_tiny(tmp_path)
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before
    import torch

    torch.save({"fingerprint": "another", "step": 1}, tmp_path / "model" / "checkpoint.pt")
    (tmp_path / "model" / "scores.json").unlink()
    capsys.readouterr()
    with pytest.raises(AssertionError):
        train_tiny(tmp_path)
    assert "is a checkpoint of another training (other data or options)" in capsys.readouterr().err


def test_fine_tuning(tiny_paraphraser: Path, tmp_path: Path) -> None:
    """Any causal language model on disk; here only its last layer is trained."""
    from transformers import AutoModelForCausalLM

    pq.write_table(pa.table({"phrase": ["the old sea"], "paraphrase": ["her big road"]}), tmp_path / "pairs.parquet")
    given = ["--pairs", str(tmp_path / "pairs.parquet"), "--output", str(tmp_path / "model"), "--held-out", "0"]
    given += ["--base", str(tiny_paraphraser), "--trained-layers", "1", "--epochs", "3", "--threads", "1"]
    assert main(["paraphraser", *given]) == 0
    before, after = (AutoModelForCausalLM.from_pretrained(each) for each in (tiny_paraphraser, tmp_path / "model"))
    changed = {
        name.split(".")[2]
        for (name, one), other in zip(before.named_parameters(), after.parameters(), strict=True)
        if not one.equal(other)
    }
    assert changed == {"1"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["--pairs", "{here}/none"], "none"),
        (["--pairs", "{here}/empty.parquet"], "has no pair of two phrases"),
        (["--pairs", "{here}/some.parquet", "--base", "{here}/none"], "--base {here}/none: no model"),
        (["--pairs", "{here}/some.parquet", "--embeddings", "{here}/none"], "--embeddings {here}/none: no model"),
    ],
)
def test_errors(given: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"phrase": ["a"], "paraphrase": ["a"]}), tmp_path / "empty.parquet")
    pq.write_table(pa.table({"phrase": ["a", "c"], "paraphrase": ["b", "d"]}), tmp_path / "some.parquet")
    arguments = [each.format(here=tmp_path) for each in given]
    assert main(["paraphraser", *arguments, "--output", str(tmp_path / "model")]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert error.format(here=tmp_path) in said[-1]
