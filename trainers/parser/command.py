"""Train the parser `phrasemill`: treebanks -> teacher -> soft labels on raw text -> student -> ONNX file.

    python -m trainers.train parser --treebanks DIR --sentences out/mix-sentences --output out/parser

The output holds teacher.pt, soft-labels.parquet, and for each seed student-SEED.pt, parser-SEED.onnx and
scores-SEED.json. The .made.json of each file records what it was made from, and how long that took. A step is skipped
if its result exists and was made from the same inputs and settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.commands import Tool
from schemas.options import count, option, whole


@dataclass(frozen=True)
class Training:
    """What the parser is trained on."""

    treebanks: Path = option(takes=Path, metavar="DIR", help="the folder of the recipe's treebanks")
    sentences: tuple[str, ...] = option(repeated=True, metavar="DATASET", help="raw text to label; repeatable")
    output: Path = option(Path("out/parser"), takes=Path, metavar="DIR", help="the folder to write")
    recipe: Path | None = option(
        None,
        takes=Path,
        metavar="FILE.toml",
        help="data and hyperparameters",
        unset="the recipe of the shipped weights",
    )
    seed: int = option(0, takes=whole, metavar="N", help="the student's seed")
    teacher_encoder: str | None = option(None, metavar="PATH", help="a BERT on disk in place of the recipe's hub id")
    student_encoder: str | None = option(None, metavar="PATH", help="likewise")
    threads: int | None = option(None, takes=count, metavar="N", help="torch's threads", unset="the number of cores")


TOOL = Tool(
    "trainers.train parser", "Trains the parser `phrasemill`, from treebanks and raw text to its ONNX file.", Training
)


def main(arguments: Sequence[str]) -> int:
    options = TOOL.flags.parse(arguments)[Training]
    import torch
    from transformers.utils import logging

    from trainers.parser.recipe import RECIPE, read_recipe
    from trainers.parser.training import train

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    logging.set_verbosity_error()  # no warning about the encoder's layers that are left out
    recipe = read_recipe(options.recipe or RECIPE)
    recipe = replace(
        recipe,
        teacher=replace(recipe.teacher, encoder=options.teacher_encoder or recipe.teacher.encoder),
        student=replace(recipe.student, encoder=options.student_encoder or recipe.student.encoder),
    )
    options.output.mkdir(parents=True, exist_ok=True)
    train(recipe, options.treebanks, options.sentences, options.output, seed=options.seed)
    return 0
