"""A small classifier on frozen vectors, as Phrase-BERT trains it (section 4.1): NumPy, one hidden layer.

Layers, first weights, Adam and the end of training are those of the released code, which uses PyTorch, so the layers
that classify are those of the last epoch, not of the best one. Two things differ: what decides the end of training is
the accuracy over the rows of the dev part, not the mean of the accuracies of its batches, the last of which is smaller;
and all that is random comes from the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from trainers.evaluation.model import F32

I64 = npt.NDArray[np.int64]

HIDDEN = 256
RATE = 1e-4
BATCH = 200
EPOCHS = 100
LEAST_EPOCHS = 3
PATIENCE = 5

FEWEST = 7
"""Rows: with fewer the last part of a split 70/15/15 is empty."""

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, as PyTorch's defaults."""


class Parts(NamedTuple):
    """The numbers of the rows to learn from, of those that say when to stop, and of those to be classified."""

    train: I64
    dev: I64
    test: I64


def split(names: Sequence[str], *, seed: int) -> Parts:
    """70, 15 and 15 of a hundred rows, in the order of the hashes of their names with the seed.

    Which part a row is in does not depend on the order of a file; in a sample of a set nearly all rows stay in theirs.
    """
    order = np.argsort(
        [xxhash.xxh3_64_intdigest(f"split\0{name}".encode(), seed=seed) for name in names], kind="stable"
    )
    ends = [-(-len(names) * share // 100) for share in (70, 85)]
    return Parts(*np.split(order, ends))


class Layers(NamedTuple):
    """The weights of both layers, [inputs, 256], [256], [256, outputs], [outputs]: views of the array `weights`."""

    weights: F32
    inner: F32
    inner_bias: F32
    outer: F32
    outer_bias: F32

    @classmethod
    def zero(cls, inputs: int, outputs: int) -> Layers:
        shapes = (inputs, HIDDEN), (HIDDEN,), (HIDDEN, outputs), (outputs,)
        ends = np.cumsum([np.prod(shape) for shape in shapes])
        weights = np.zeros(ends[-1], np.float32)
        return cls(weights, *map(np.reshape, np.split(weights, ends[:-1]), shapes))

    @classmethod
    def drawn(cls, inputs: int, outputs: int, rng: np.random.Generator) -> Layers:
        """What training begins with: uniform within 1 / sqrt(inputs of the layer), as PyTorch's Linear draws them."""
        layers = cls.zero(inputs, outputs)
        layers.weights[:] = rng.uniform(-1, 1, len(layers.weights))
        for values, fan_in in zip(layers[1:], (inputs, inputs, HIDDEN, HIDDEN), strict=True):
            values /= np.sqrt(fan_in)
        return layers

    def found(self, vectors: F32) -> I64:
        """[rows] the class of each vector. With one output it is 1 from a probability of 0.5 on."""
        logits = np.maximum(vectors @ self.inner + self.inner_bias, 0) @ self.outer + self.outer_bias
        return logits.argmax(axis=1) if logits.shape[1] > 1 else (logits[:, 0] >= 0).astype(np.int64)


def classify(vectors: F32, labels: I64, parts: Parts, *, classes: int, seed: int) -> I64:
    """[test rows] the class found for each row of the test part.

    vectors   [rows, inputs]
    labels    [rows] from 0; in the training part less than `classes`
    classes   two: one output and its sigmoid; more: an output each, and their softmax
    seed      of the first weights, and of the order of the training part in each epoch
    """
    rng = np.random.default_rng(seed)
    layers = Layers.drawn(vectors.shape[1], 1 if classes == 2 else classes, rng)
    train(layers, vectors, labels, parts, rng=rng)
    return layers.found(vectors[parts.test])


def train(layers: Layers, vectors: F32, labels: I64, parts: Parts, *, rng: np.random.Generator) -> int:
    """Changes the weights until five epochs are no better on the dev part than the best; the number of epochs."""
    gradient = Layers.zero(len(layers.inner), len(layers.outer_bias))
    adam = _Adam(layers.weights)
    best, waited = -1, 0
    for epoch in range(1, EPOCHS + 1):
        order = rng.permutation(parts.train)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            _differentiate(layers, vectors[batch], labels[batch], gradient)
            adam.step(gradient.weights)
        right = int(np.count_nonzero(layers.found(vectors[parts.dev]) == labels[parts.dev]))
        best, waited = (right, 0) if right > best else (best, waited + 1)
        if waited >= PATIENCE and epoch >= LEAST_EPOCHS:
            break
    return epoch


def _differentiate(layers: Layers, inputs: F32, labels: I64, gradient: Layers) -> None:
    """Writes the gradient of the mean cross-entropy of a batch."""
    hidden = inputs @ layers.inner
    hidden += layers.inner_bias
    np.maximum(hidden, 0, out=hidden)
    logits = hidden @ layers.outer + layers.outer_bias
    if logits.shape[1] == 1:
        error = 0.5 + 0.5 * np.tanh(0.5 * logits)  # the sigmoid, without an overflow
        error[:, 0] -= labels
    else:
        error = np.exp(logits - logits.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    np.matmul(hidden.T, error, out=gradient.outer)
    error.sum(axis=0, out=gradient.outer_bias)
    below = error @ layers.outer.T
    below *= hidden > 0
    np.matmul(inputs.T, below, out=gradient.inner)
    below.sum(axis=0, out=gradient.inner_bias)


class _Adam:
    """Adam (Kingma and Ba 2015), in place; epsilon is added after the correction of the square, as in PyTorch."""

    def __init__(self, weights: F32) -> None:
        self._weights = weights
        self._mean, self._square, self._change = (np.zeros_like(weights) for _ in range(3))
        self._steps = 0

    def step(self, gradient: F32) -> None:
        """Changes the weights; the gradient is overwritten."""
        self._steps += 1
        change = self._change
        self._mean *= MEAN_DECAY
        self._mean += np.multiply(gradient, 1 - MEAN_DECAY, out=change)
        gradient *= gradient
        gradient *= 1 - SQUARE_DECAY
        self._square *= SQUARE_DECAY
        self._square += gradient
        np.sqrt(self._square, out=change)
        change /= (1 - SQUARE_DECAY**self._steps) ** 0.5
        change += EPSILON
        np.divide(self._mean, change, out=change)
        change *= RATE / (1 - MEAN_DECAY**self._steps)
        self._weights -= change
