"""A tiny paraphraser that the real trainer makes in seconds: it knows its pairs by heart."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trainers.train import main

_SIZES = {"large": "big", "little": "small", "old": "aged", "quick": "fast", "quiet": "silent", "strange": "odd"}
_THINGS = {"house": "home", "road": "street", "child": "kid", "physician": "doctor", "picture": "image", "sea": "ocean"}
_FRAMES = ("the {} {}", "in a {} {}", "her {} {}", "the {} {}'s")

PAIRS = [
    (frame.format(size, thing), frame.format(_SIZES[size], _THINGS[thing]))
    for frame in _FRAMES
    for size in _SIZES
    for thing in _THINGS
]
"""Phrases and their paraphrases: each word of content has one synonym."""


def train_tiny(folder: Path, *more: str) -> Path:
    """The folder of a model of 2 layers that learned `PAIRS` in both directions."""
    pairs = folder / "pairs.parquet"
    ones, others = zip(*PAIRS, strict=True)
    pq.write_table(pa.table({"phrase": ones, "paraphrase": others}), pairs)
    output = folder / "model"
    size = "--embeddings none --layers 2 --width 64 --vocabulary 400"
    fit = "--epochs 33 --rate 0.005 --batch-tokens 400 --alone 0 --float32"
    given = ["paraphraser", "--pairs", str(pairs), "--output", str(output), "--held-out", "0", "--threads", "1"]
    assert main([*given, *size.split(), *fit.split(), *more]) == 0
    return output
