"""Nucleus sampling whose randomness belongs to the row: from its seed, draw and step, by hash.

A token is drawn by the Gumbel trick: of the tokens of the nucleus, the one with the highest sum of its score and a
Gumbel number hashed from (seed, draw, step, token). That is a sample of the nucleus by the softmax of the scores
(Gumbel 1954; Maddison, Tarlow and Minka 2014). Last bits of the scores decide only where two sums are equal but for
these bits; in the inverse of a cumulative distribution they would move every boundary after them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from transforms.arrays import I64, U64, Bools, mix64, places_in_runs, run_begins

F64 = npt.NDArray[np.float64]

_GAPS = (5.0, 10.0, np.inf)
"""Tokens of a score lower than the best by more are looked at only if the others are no nucleus."""
_SHARES = 2.0**40
"""Probabilities are summed as whole numbers of this part: exactly, so that no row depends on the rows beside it."""


class Sampling(NamedTuple):
    """How tokens are drawn. `top_k` 0: no limit."""

    top_p: float = 0.8
    top_k: int = 0
    temperature: float = 1.0


class Nuclei(NamedTuple):
    """The tokens that may be drawn, of several rows, one after the other: `starts` [rows + 1].

    `scores` are logits over the temperature.
    """

    starts: I64
    tokens: I64
    scores: F64


def nuclei(logits: torch.Tensor, sampling: Sampling) -> Nuclei:
    """The nucleus of each row of logits [rows, vocabulary] (float32; -inf: may not be drawn).

    It has the likeliest tokens that together reach `top_p` of what may be drawn, at most `top_k`, and those that are
    exactly as likely as the last of them.
    """
    if sampling.temperature != 1:
        logits = logits / sampling.temperature
    whole, best = torch.logsumexp(logits, dim=1), logits.amax(dim=1)
    left = np.arange(len(logits))
    found: list[tuple[I64, I64, F64]] = []
    for gap in _GAPS:
        here = torch.from_numpy(left).to(logits.device)
        scores = logits if len(left) == len(logits) else logits[here]
        row, token = (scores > (best[here] - gap)[:, None]).nonzero(as_tuple=True)
        score = scores[row, token].double().cpu().numpy()
        rows = row.cpu().numpy()
        shares = np.exp(score - whole[here].double().cpu().numpy()[rows])
        enough = np.bincount(rows, shares, minlength=len(left)) >= sampling.top_p
        if sampling.top_k:
            enough |= np.bincount(rows, minlength=len(left)) >= sampling.top_k
        enough |= gap == np.inf
        kept = enough[rows]
        below = best[here].double().cpu().numpy()[rows[kept]] - score[kept]
        kept[kept] = _in_nucleus(rows[kept], below, shares[kept], sampling)
        found.append((left[rows[kept]], token.cpu().numpy()[kept], score[kept]))
        left = left[~enough]
        if not len(left):
            break
    of, tokens, scores_of = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(of, kind="stable")
    return Nuclei(np.searchsorted(of[order], np.arange(len(logits) + 1)), tokens[order], scores_of[order])


def _in_nucleus(rows: I64, below: F64, shares: F64, sampling: Sampling) -> Bools:
    """Which tokens are in the nucleus of their row; `below`: by how much a score is lower than the best one.

    Only values are sorted: a token is in it if its score is at least that of the last one.
    """
    if not len(rows):
        return np.zeros(0, bool)
    keys = rows * 1024.0 + np.minimum(below, 1000.0)
    ordered = np.sort(keys)
    row = np.floor(ordered / 1024).astype(np.int64)
    first = run_begins(row)
    begins = np.flatnonzero(first)
    run = np.cumsum(first) - 1
    new = run_begins(rows)
    highest = np.maximum.reduceat(shares, np.flatnonzero(new))
    parts = np.rint(highest[run] * np.exp(row * 1024 - ordered) * _SHARES).astype(np.int64)
    before = np.cumsum(parts) - parts
    before -= before[begins][run]
    inside = before < sampling.top_p * _SHARES
    inside[begins] = True
    if sampling.top_k:
        inside &= places_in_runs(first) < sampling.top_k
    last = begins + np.add.reduceat(inside, begins, dtype=np.int64) - 1
    within: Bools = keys <= ordered[last][np.cumsum(new) - 1]
    return within


def draw(found: Nuclei, row: I64, seed: U64, number: U64, step: int) -> I64:
    """[draws] the place in `found` of a token for each draw: from the nucleus of its row, by its seed and number."""
    sizes = (found.starts[1:] - found.starts[:-1])[row]
    ends = np.cumsum(sizes)
    begins = ends - sizes
    places = np.arange(ends[-1]) - np.repeat(begins - found.starts[row], sizes)
    key = mix64(mix64(mix64(seed) + number) + np.uint64(step))
    mixed = mix64(np.repeat(key, sizes) + found.tokens[places].astype(np.uint64))
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    sums = found.scores[places] - np.log(-np.log(uniform))
    highest = np.repeat(np.maximum.reduceat(sums, begins), sizes)
    hits = np.flatnonzero(sums == highest)
    owner = np.repeat(np.arange(len(row)), sizes)[hits]
    chosen: I64 = places[hits[run_begins(owner)]]
    return chosen
