"""How a model is loaded, and what it is given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from schemas.options import BadValue, count, option
from transforms.encoders.options import POOLINGS, PRECISIONS

MENTIONS = ("words", "mask", "masks")


def layers_of(text: str) -> tuple[int, ...]:
    """Numbers and ranges with commas between, in order.

    >>> layers_of("0-2,12")
    (0, 1, 2, 12)
    """
    if not re.fullmatch(r"\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*", text.replace(" ", "")):
        raise BadValue(f"must be numbers of layers, such as 0-4 or 1,12, not {text}")
    found: set[int] = set()
    for each in text.replace(" ", "").split(","):
        first, _, last = each.partition("-")
        if last and int(last) < int(first):
            raise BadValue(f"must be numbers of layers, such as 0-4 or 1,12, not {text}")
        found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded, and what it is given. All but `vectors` decide its vectors."""

    group: ClassVar[str] = "model"

    layers: str | None = option(
        None,
        takes=lambda text: ",".join(map(str, layers_of(text))),
        metavar="LAYERS",
        help="of a transformer, the layers whose mean is taken, such as 0-4; 0: the embeddings",
        unset="the last",
    )
    pooling: str | None = option(
        None,
        choices=tuple(POOLINGS.values()),
        help="of a transformer, how the vectors of its tokens become one",
        unset="as the model's folder says, else mean",
    )
    raw: bool = option(
        False,
        help="of a transformer, its pooled vectors as they are, although its folder says to make their lengths 1",
        more="PEARL's code evaluates E5 so",
    )
    prefix: str = option("", metavar="TEXT", help='of an encoder, put before each text, such as "query: "')
    precision: str = option("float32", choices=PRECISIONS, help="the arithmetic of an encoder")
    mention: str = option(
        "words",
        choices=MENTIONS,
        help="what stands for a mention in its sentence: its words, one mask token, or one for each word",
    )
    words: int | None = option(
        None, takes=count, metavar="N", help="read at most N words of a file of word vectors", unset="all"
    )
    vectors: Path | None = option(
        None,
        takes=Path,
        place=True,
        metavar="DIR",
        help="keep the vectors of encoders in a folder, so that another run does not compute them again",
        unset="not kept",
    )
