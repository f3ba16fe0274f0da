"""The loss of types, and the mean of two models: pure functions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def type_loss(scores: Tensor, types: np.ndarray) -> Tensor:
    """The cross-entropy of types: classes [n] (-1: unknown), or shares [n, types] (zeros: unknown). A mean over those
    that are known; 0 if none is.
    """
    scores = scores.float()
    known = torch.from_numpy(types >= 0 if types.ndim == 1 else types.any(axis=1)).to(scores.device)
    if not known.any():
        return scores.sum() * 0
    return functional.cross_entropy(scores[known], torch.from_numpy(types).to(scores.device)[known])


def averaged(base: Mapping[str, Tensor], tuned: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """The mean of two models, of which the first has a weight of `share`; what only the second has is its own."""
    return {
        name: torch.lerp(each, base[name].to(each.device), share)
        if name in base and each.is_floating_point()
        else each.clone()
        for name, each in tuned.items()
    }
