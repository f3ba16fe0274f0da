"""The options of encoders (docs/negatives.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from schemas.options import option

PRECISIONS = ("float32", "bfloat16")

POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
"""What we pool ourselves, by the names that sentence-transformers has for it."""


@dataclass(frozen=True)
class EncoderOptions:
    """Which encoder, and how it is given texts; part of the fingerprint."""

    group: ClassVar[str] = "encoder"

    encoder: str = option(
        "intfloat/e5-small-v2",
        metavar="NAME",
        help="the encoder: a folder, or a name on the Hugging Face hub",
        more="A sentence-transformers model, or any transformer: without a pooling of its own the mean of its tokens",
        source="PEARL's code",
    )
    encoder_prefix: str = option(
        "",
        metavar="TEXT",
        help='put before each phrase, such as "query: "',
        more="PEARL's code puts nothing there",
    )
    encoder_precision: str = option(
        "float32",
        choices=PRECISIONS,
        help="the arithmetic of the encoder",
        more="bfloat16 is faster on a GPU and on CPUs that have it, and less exact",
    )
