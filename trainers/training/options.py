"""The options that all recipes have. A recipe's own class derives from `Training`, with the paper's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from schemas.options import BadValue, count, number, option, options_of, share, whole
from trainers.evaluation.options import Evaluation, seeds
from transforms.encoders.options import PRECISIONS

positive = number(float, lambda each: 0 < each < float("inf"), "a number above 0")


def weights(text: str) -> tuple[float, ...]:
    """Numbers above 0 with commas between."""
    try:
        return tuple(positive(each) for each in text.split(","))
    except BadValue:
        raise BadValue(f"give numbers above 0 with commas between, not {text}") from None


def changed(of: type, name: str, default: Any, *, source: str = "") -> Any:
    """The option of a class with another default, for a class derived from it.

    rate: float = changed(Training, "rate", 3e-5, source="PEARL, section 4.2")
    """
    (was,) = (each for each in options_of(of) if each.name == name)
    said = {**vars(was), "flag": was.own_flag, "default": default, "source": source or was.source}
    if default != was.default:
        said["unset"] = ""
    return option(**{each: value for each, value in said.items() if each not in ("name", "own_flag")})


@dataclass(frozen=True)
class Training:
    """How a model is trained."""

    group: ClassVar[str] = "training"
    free: ClassVar[tuple[str, ...]] = (
        *("data", "model", "output", "checkpoint_steps", "evaluation", "evaluation_steps", "tasks", "seeds"),
        *("workers", "threads", "checkpointing"),
    )
    """Options that do not decide the weights: of the data and the model their content does."""

    data: tuple[str, ...] = option(
        repeated=True,
        place=True,
        metavar="DIR",
        help="a dataset to learn from; repeatable, for datasets of several kinds",
    )
    model: str = option(metavar="MODEL", help="the model to begin with: a folder, or a name on the hub")
    random_weights: bool = option(False, help="of that model only its shape and its tokenizer, with new weights")
    layers: int | None = option(None, takes=count, metavar="N", help="only its first N layers", unset="all")
    output: Path = option(Path("out/model"), takes=Path, place=True, metavar="DIR", help="the folder of the model")
    epochs: float = option(1.0, takes=positive, metavar="X", help="how often each row is learned from")
    steps: int | None = option(None, takes=count, metavar="N", help="end after N steps", unset="after the epochs")
    batch_size: int = option(16, takes=count, metavar="N", help="rows of a step, of all processes together")
    chunk: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="at most N texts are in memory with their gradients at a time; the gradients are those of the whole batch",
        unset="the whole batch",
    )
    rate: float = option(2e-5, takes=positive, metavar="X", help="the highest learning rate")
    warm_up: float = option(0.0, takes=share, metavar="X", help="share of the steps in which the rate rises linearly")
    clip: float | None = option(None, takes=positive, metavar="X", help="the largest norm of the gradient", unset="any")
    precision: str = option("float32", choices=PRECISIONS, help="the arithmetic of the network's products")
    checkpointing: bool = option(False, help="compute activations again rather than keep them: less memory, more time")
    patience: int | None = option(
        None,
        takes=count,
        metavar="N",
        help="end when N evaluations in turn on held-out rows, where a recipe has some, are no better",
        unset="never",
    )
    checkpoint_steps: int = option(500, takes=count, metavar="N", help="steps between two checkpoints")
    evaluation: Path | None = option(
        None,
        takes=Path,
        place=True,
        metavar="DIR",
        help="evaluate on the sets in this folder, before, during and after",
    )
    evaluation_steps: int | None = option(
        None, takes=count, metavar="N", help="steps between two evaluations", unset="only before and after"
    )
    tasks: tuple[str, ...] | None = changed(Evaluation, "tasks", None)
    seeds: tuple[int, ...] = option(
        (0, 1, 2), takes=seeds, metavar="N", help="of the evaluation: how many, or which ones", unset="3"
    )
    workers: int = option(0, takes=whole, metavar="N", help="processes that read and tokenise; 0: this one")
    threads: int | None = option(None, takes=count, metavar="N", help="torch's threads", unset="the number of cores")
    seed: int = option(0, takes=whole, metavar="N", help="of new weights, the order of the rows, and all that is drawn")
