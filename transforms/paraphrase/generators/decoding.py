"""The decoding loop: many phrases and draws at once, each row as if it were alone.

Rows of a batch have prompts of one length, so nothing is padded. Draws of a phrase that have the same tokens so far are
one row: they part where their tokens do. Draws that have ended leave the batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch

from transforms.arrays import I64, U64, Bools
from transforms.paraphrase.generators.sampling import F64, Sampling, draw, nuclei

MIN_ROWS = 8
"""A batch has at least as many rows, repeated if need be: matrix products of fewer rows have other last bits."""
CHUNK_ROWS = 64
"""Tokens are drawn for as many rows at a time, so that their logits stay in a core's cache."""


class Steps(Protocol):
    """A model's state for the rows of one batch. Logits are [rows, vocabulary], float32, the caller's to change."""

    def begin(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits after prompts of one length."""
        ...

    def advance(self, parents: I64, tokens: I64) -> torch.Tensor:
        """The logits of new rows: the row `parents[i]` with the token `tokens[i]` after it."""
        ...


class Constraint(Protocol):
    """What may not come next in each row of one batch (`BannedRows`)."""

    def restrict(self, logits: torch.Tensor, *, last: bool) -> torch.Tensor:
        """Change the logits of the next tokens in place; `last`: no token can follow these."""
        ...

    def select(self, rows: Iterable[int]) -> None: ...

    def advance(self, tokens: Iterable[int]) -> None: ...


class Drawn(NamedTuple):
    """What was drawn: tokens [draws, limit], how many, their log probabilities, and whether the end is among them."""

    tokens: I64
    lengths: I64
    log_probabilities: F64
    finished: Bools


def decode(
    steps: Steps,
    prompts: Sequence[Sequence[int]],
    seeds: U64,
    *,
    draws: range,
    limit: int,
    is_end: Bools,
    sampling: Sampling,
    constraint: Constraint | None,
) -> Drawn:
    """All draws of a batch of prompts of one length: those of the first prompt, then those of the second, and so on.

    `is_end` [vocabulary]: tokens that end a candidate.
    """
    n = len(prompts) * len(draws)
    row = np.repeat(np.arange(len(prompts)), len(draws))
    seed, number = np.repeat(seeds, len(draws)), np.tile(np.array(draws, np.uint64), len(prompts))
    tokens, lengths = np.zeros((n, limit), np.int64), np.zeros(n, np.int64)
    log_probabilities, finished = np.zeros(n), np.zeros(n, bool)
    alive = np.arange(n)
    logits = steps.begin(prompts)
    for step in range(limit):
        restrict = functools.partial(constraint.restrict, last=step == limit - 1) if constraint else None
        drawn, said = _next(logits, row, seed[alive], number[alive], step, sampling, restrict)
        tokens[alive, step] = drawn
        log_probabilities[alive] += said
        lengths[alive] += 1
        ended = is_end[drawn]
        finished[alive[ended]] = True
        alive, row, drawn = alive[~ended], row[~ended], drawn[~ended]
        if not len(alive) or step == limit - 1:
            break
        new, row = np.unique(row * len(is_end) + drawn, return_inverse=True)
        by_row = np.argsort(row, kind="stable")
        alive, row = alive[by_row], row[by_row]
        parents, following = new // len(is_end), new % len(is_end)
        if constraint:
            constraint.select(parents.tolist())
            constraint.advance(following.tolist())
        logits = steps.advance(parents, following)
    return Drawn(tokens, lengths, log_probabilities, finished)


def _next(
    logits: torch.Tensor,
    row: I64,
    seed: U64,
    number: U64,
    step: int,
    sampling: Sampling,
    restrict: Callable[[torch.Tensor], torch.Tensor] | None,
) -> tuple[I64, F64]:
    """The next token of each draw, whose row is `row` (in order), and its log probability."""
    tokens = np.empty(len(row), np.int64)
    allowed = logits
    if restrict:
        allowed = restrict(logits.clone())
        # A row that is cut inside of a character may have no token left. Its text is refused afterwards.
        stuck = torch.isinf(allowed.amax(dim=1))
        allowed[stuck] = logits[stuck]
    for first in range(0, len(logits), CHUNK_ROWS):
        here = slice(*np.searchsorted(row, (first, first + CHUNK_ROWS)))
        found = nuclei(allowed[first : first + CHUNK_ROWS], sampling)
        places = draw(found, row[here] - first, seed[here], number[here], step)
        tokens[here] = found.tokens[places]
    rows = torch.from_numpy(row).to(logits.device)
    whole = torch.logsumexp(logits, dim=1)
    said = (logits[rows, torch.from_numpy(tokens).to(logits.device)] - whole[rows]).double().cpu().numpy()
    return tokens, said


def batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Items of one length, at most `most` together; the shortest first, ties in the input's order."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    first = 0
    while first < len(order):
        length = lengths[order[first]]
        batch = [item for item in order[first : first + most] if lengths[item] == length]
        yield batch
        first += len(batch)


def filled(rows: I64) -> I64:
    """Rows with repetitions of the first, `MIN_ROWS` in all.

    >>> filled(np.array([5, 6]))
    array([5, 6, 5, 5, 5, 5, 5, 5])
    """
    return np.append(rows, np.repeat(rows[:1], max(0, MIN_ROWS - len(rows))))
