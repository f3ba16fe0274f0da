"""Train the parser `phrasemill`: treebanks -> teacher -> soft labels on raw text -> student -> ONNX file.

    python -m trainers.train parser --treebanks DIR --sentences out/mix-sentences --output out/parser

The output holds teacher.pt, soft-labels.parquet, and for each seed student-SEED.pt, parser-SEED.onnx and
scores-SEED.json. The .made.json of each file records what it was made from, and how long that took. A step is skipped
if its result exists and was made from the same inputs and settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path


def main(arguments: Sequence[str]) -> int:
    options = _parse_arguments(arguments)
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


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainers.train parser", description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--treebanks", type=Path, required=True, metavar="DIR", help="the folder of the recipe's treebanks")
    add("--sentences", action="append", required=True, metavar="DATASET", help="raw text to label; repeatable")
    add("--output", type=Path, default=Path("out/parser"), metavar="DIR", help="default out/parser")
    add("--recipe", type=Path, metavar="FILE.toml", help="default: the recipe of the shipped weights")
    add("--seed", type=int, default=0, help="the student's seed (default 0)")
    add("--teacher-encoder", metavar="PATH", help="a BERT on disk in place of the recipe's hub id")
    add("--student-encoder", metavar="PATH", help="likewise")
    add("--threads", type=int, help="torch's threads (default: the number of cores)")
    return parser.parse_args(arguments)
