"""Losses of vectors: pure functions, float32, means over the rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def triplet(anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, margin - |p - p-| + |p - p+|), Euclidean (Phrase-BERT, section 3.3). All are [n, dimension]."""
    return functional.triplet_margin_loss(anchors.float(), positives.float(), negatives.float(), margin=margin)


def info_nce(
    anchors: Tensor, candidates: Tensor, right: Tensor, *, temperature: float, left_out: Tensor | None = None
) -> Tensor:
    """InfoNCE by cosine. anchors [n, dimension]; candidates [m, dimension]; right [n]: the candidate of each anchor.

    left_out [n, m]: candidates that are no negatives of an anchor.
    """
    scores = functional.normalize(anchors.float(), dim=1) @ functional.normalize(candidates.float(), dim=1).T
    scores = scores / temperature
    if left_out is not None:
        scores = scores.masked_fill(left_out, -torch.inf)
    return functional.cross_entropy(scores, right)


def max_margin(anchors: Tensor, positives: Tensor, contrasts: Tensor) -> Tensor:
    """The sum over contrasts of max(0, 1 - p1.p2 + p1.c), a mean over the rows (Pairwise-GRU, section 3).

    anchors, positives [n, dimension]; contrasts [n, k, dimension].
    """
    right = (anchors * positives).sum(dim=1, keepdim=True)
    wrong = torch.einsum("nd,nkd->nk", anchors, contrasts)
    return functional.relu(1 - right + wrong).sum(dim=1).mean()
