"""Several processes (torchrun): what each knows of the others."""

from __future__ import annotations

import torch
from torch import Tensor


def gathered(vectors: Tensor) -> tuple[Tensor, int]:
    """The rows of all ranks, in order of the ranks, and the number of the first that is of this rank; with gradients.

    The ranks may have different numbers of rows.
    """
    if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
        return vectors, 0
    raise NotImplementedError  # h-loop
