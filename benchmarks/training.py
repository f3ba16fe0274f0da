"""The training loop (trainers/training) beside the trainer of sentence-transformers.

    python -m benchmarks.training --model sentence-transformers/all-MiniLM-L6-v2 --steps 20 --json training.json

Both train the same model on the same pairs with the same loss (InfoNCE by cosine, temperature .05, negatives of the
batch), batch, rate and arithmetic; each pass has its own process. `phrases` are pairs of a phrase with the same words
in another order, `contexts` of a phrase and the line that it is from, in the shipped sample. CPU seconds are those of
all threads from the first step to the saved model, examples are pairs, the memory is the peak of the process (on a GPU:
of its tensors), `waiting` the share of the steps' time in which ours waited for rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import harness
from benchmarks.loader import sample_texts

TEMPERATURE = 0.05
RATE = 2e-5
WAYS = {"ours": (), "ours, chunk": ("--chunk", "16"), "sentence-transformers": ()}


def pairs(kind: str) -> pa.Table:
    phrases, lines = sample_texts()
    others = lines if kind == "contexts" else [" ".join(reversed(each.split())) for each in phrases]
    return pa.table({"anchor": phrases, "positive": others})


def ours(given: argparse.Namespace, folder: Path) -> Callable[[], dict[str, Any]]:
    import torch
    import torch.utils.tensorboard
    from torch import Tensor

    from trainers.data import Source
    from trainers.training.encoder import PhraseEncoder
    from trainers.training.loop import fit
    from trainers.training.losses import info_nce
    from trainers.training.options import Training
    from trainers.training.recipe import Batch, Encoded

    options = Training(
        data=(given.rows,),
        model=given.model,
        output=folder / "model",
        steps=given.steps,
        epochs=1.0,
        batch_size=given.batch_size,
        chunk=given.chunk,
        rate=RATE,
        precision=given.precision,
        workers=given.workers,
    )
    encoder = PhraseEncoder.load(given.model, max_tokens=128)

    def prepare(table: pa.Table) -> Batch:
        texts = [*table["anchor"].to_pylist(), *table["positive"].to_pylist()]
        return Batch(encoder.tokens(texts), table.num_rows)

    def losses(vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        anchors, positives = vectors.chunk(2)
        right = torch.arange(batch.rows, device=vectors.device)
        return {"contrast": info_nce(anchors, positives, right, temperature=TEMPERATURE)}

    recipe: Any = SimpleNamespace(
        name="benchmark",
        network=encoder,
        sources=[Source.open(given.rows)],
        weights=None,
        prepare=prepare,
        encode=lambda inputs: Encoded(encoder(inputs)),
        losses=losses,
        save=encoder.save,
    )
    return lambda: {"waiting": fit(recipe, options)["share_waiting"]}


def theirs(given: argparse.Namespace, folder: Path) -> Callable[[], dict[str, Any]]:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    device = "cuda" if given.device == "cuda" else "cpu"
    model = SentenceTransformer(given.model, device=device)
    model.max_seq_length = 128
    arguments = Arguments(
        output_dir=str(folder / "theirs"),
        max_steps=given.steps,
        per_device_train_batch_size=given.batch_size,
        learning_rate=RATE,
        bf16=given.precision == "bfloat16",
        use_cpu=device == "cpu",
        dataloader_num_workers=given.workers,
        max_grad_norm=0.0,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    loss = MultipleNegativesRankingLoss(model, scale=1 / TEMPERATURE)
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset(pq.read_table(given.rows)), loss=loss
    )

    def run() -> dict[str, Any]:
        trainer.train()
        model.save_pretrained(str(folder / "theirs"), create_model_card=False)
        return {}

    return run


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """A pass, in this process."""
    import torch

    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as name:
        run = (theirs if given.way == "sentence-transformers" else ours)(given, Path(name))
        began, cpu = time.monotonic(), time.process_time()
        more = run()
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    on_gpu = given.device == "cuda"
    peak = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_memory_bytes": peak, **more}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    parser.add_argument("--chunk", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.way:
        print(json.dumps(measured(given)))
        return
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    figures = []
    with tempfile.TemporaryDirectory() as name:
        for kind in ("phrases", "contexts"):
            rows = Path(name) / f"{kind}.parquet"
            pq.write_table(pairs(kind), rows, row_group_size=4096)
            for way, more in WAYS.items():
                names = ("model", "batch_size", "steps", "precision", "device", "threads", "workers")
                passed = [each for one in names for each in (f"--{one.replace('_', '-')}", str(getattr(given, one)))]
                said = harness.run(
                    *("-m", "benchmarks.training", "--way", way, "--rows", str(rows)), *passed, *more
                ).splitlines()
                figures.append({"kind": kind, "way": way, **json.loads(said[-1])})
    examples = given.steps * given.batch_size
    table = [
        (
            f"{each['kind']}, {each['way']}",
            examples / each["seconds"],
            examples / each["cpu_seconds"],
            each["peak_memory_bytes"] / 2**20,
            f"{each['waiting']:.1%}" if "waiting" in each else "",
        )
        for each in figures
    ]
    harness.show(
        f"{given.steps} steps of {given.batch_size} pairs, {given.precision}, {given.device}",
        ("pairs, trainer", "examples/s", "examples/CPU s", "MiB", "waiting"),
        table,
    )
    harness.write(given.json, {"given": {**vars(given), "json": None}, "figures": figures})


if __name__ == "__main__":
    main()
