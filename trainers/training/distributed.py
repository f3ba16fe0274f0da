"""Several processes (torchrun): what each knows of the others.

Not accelerate, which would wrap the network so that gradients are averaged as they come: with GradCache each weight
gets several in a step, and only their sum is to be averaged. What is left is a call to start and a sum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn

from trainers.loading.torch_batches import process_rank

PATIENCE = timedelta(hours=12)
"""How long a rank waits for the others: the first one evaluates while the others wait."""


@contextmanager
def processes() -> Iterator[None]:
    """Join the other processes that torchrun started, if it started this one."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1 or distributed.is_initialized():
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(device())
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def device() -> torch.device:
    """Where this process computes."""
    return (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")
    )


def is_first() -> bool:
    """Whether this process is the one that writes and prints."""
    return process_rank()[0] == 0


def _alone() -> bool:
    return not distributed.is_initialized() or distributed.get_world_size() == 1


def gathered(vectors: Tensor) -> tuple[Tensor, int]:
    """The rows of all ranks, in order of the ranks, and the number of the first that is of this rank; with gradients.

    The ranks may have different numbers of rows.
    """
    if _alone():
        return vectors, 0
    sizes = _sizes(vectors)
    rows: Tensor = _Gathered.apply(vectors, sizes)
    return rows, sum(sizes[: distributed.get_rank()])


def _sizes(vectors: Tensor) -> list[int]:
    own = torch.tensor([len(vectors)], device=vectors.device)
    found = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(found, own)
    return [int(each) for each in found]


class _Gathered(torch.autograd.Function):
    """The gradient of a row is the sum over the ranks, which all have used it."""

    @staticmethod
    def forward(context: Any, vectors: Tensor, sizes: Sequence[int]) -> Tensor:
        first = sum(sizes[: distributed.get_rank()])
        context.own = slice(first, first + len(vectors))
        padded = vectors.new_zeros(max(sizes), *vectors.shape[1:])
        padded[: len(vectors)] = vectors
        found = [torch.empty_like(padded) for _ in sizes]
        distributed.all_gather(found, padded)
        return torch.cat([rows[:size] for rows, size in zip(found, sizes, strict=True)])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous().clone()
        distributed.all_reduce(total)
        return total[context.own], None


def averaged(weights: Sequence[nn.Parameter], numbers: Sequence[float]) -> list[float]:
    """Average the gradients over the ranks, in place, and some numbers with them. A weight that has no gradient on any
    rank keeps none.
    """
    if _alone():
        return [*numbers]
    there = torch.tensor([*(float(each.grad is not None) for each in weights), *numbers], dtype=torch.float32)
    parts = [there.to(weights[0].device)]
    parts += [(torch.zeros_like(each) if each.grad is None else each.grad).flatten().float() for each in weights]
    flat = torch.cat(parts)
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    said, *found = flat.split([len(each) for each in parts])
    said_here = said.tolist()
    for weight, gradient, has in zip(weights, found, said_here, strict=False):
        if has:
            weight.grad = gradient.view_as(weight).to(weight.dtype)
    return said_here[len(weights) :]
