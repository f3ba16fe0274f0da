"""Scores of items that are drawn with weights: how often each item is drawn.

A score is a function of the items and of `weights` [draws, n]; it gives [draws] scores, one for each row of weights.
That of the items themselves has weights of 1. So a thousand draws of a bootstrap are a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Columns = Mapping[str, npt.NDArray[Any]]
"""What was found for each item: arrays of one length, by name."""

F64 = npt.NDArray[np.float64]
Score = Callable[[Columns, F64], F64]


def mean_of(column: str, *, parts: str = "") -> Score:
    """The mean of a column: an accuracy where it has 0 and 1.

    `parts`: a column of the names of parts; the mean of their means, each part counting as much as any other.
    """

    def score(items: Columns, weights: F64) -> F64:
        values = np.asarray(items[column], dtype=np.float64)
        shares = _shares(items[parts]) if parts else np.ones(len(values))
        return (weights @ (values * shares)) / (weights @ shares)

    return score


def _shares(parts: npt.NDArray[Any]) -> F64:
    """[n] for each item 1 / the number of items of its part."""
    _, part, sizes = np.unique(parts, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / sizes[part], dtype=np.float64)


def pearson_of(one: str, other: str) -> Score:
    """Pearson's correlation of two columns; 0 where one of them is constant."""

    def score(items: Columns, weights: F64) -> F64:
        x, y = (np.asarray(items[each], dtype=np.float64) for each in (one, other))
        x, y = x - x.mean(), y - y.mean()  # near 0, so that the sums of squares lose no digits
        total = weights.sum(axis=1)
        sums = weights @ np.stack([x, y, x * x, y * y, x * y], axis=1) / total[:, None]
        mean_x, mean_y, xx, yy, xy = sums.T
        spread = np.sqrt(np.maximum(xx - mean_x**2, 0) * np.maximum(yy - mean_y**2, 0))
        return np.asarray(np.divide(xy - mean_x * mean_y, spread, out=np.zeros_like(spread), where=spread > 1e-15))

    return score


def spearman_of(one: str, other: str) -> Score:
    """Spearman's correlation of two columns: Pearson's of their ranks among all items."""

    def score(items: Columns, weights: F64) -> F64:
        return pearson_of("one", "other")({"one": _ranks(items[one]), "other": _ranks(items[other])}, weights)

    return score


def _ranks(values: npt.NDArray[Any]) -> F64:
    """[n] the ranks from 1; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], dtype=np.float64)


def contingency(labels: npt.NDArray[Any], clusters: npt.NDArray[Any], weights: F64) -> F64:
    """[draws, labels, clusters] how often each label is drawn in each cluster."""
    names, label = np.unique(labels, return_inverse=True)
    found, cluster = np.unique(clusters, return_inverse=True)
    cells = label * len(found) + cluster
    order = np.argsort(cells, kind="stable")
    used, starts = np.unique(cells[order], return_index=True)
    counts = np.zeros((len(weights), len(names) * len(found)))
    counts[:, used] = np.add.reduceat(weights[:, order], starts, axis=1)
    return counts.reshape(len(weights), len(names), len(found))


def nmi_of(labels: str, clusters: str) -> Score:
    """Normalised mutual information of labels and clusters: over the arithmetic mean of their entropies."""

    def score(items: Columns, weights: F64) -> F64:
        counts = contingency(items[labels], items[clusters], weights)
        counts /= counts.sum(axis=(1, 2), keepdims=True)
        label, cluster = counts.sum(axis=2), counts.sum(axis=1)
        both = _entropy(counts.reshape(len(counts), -1))
        of_labels, of_clusters = _entropy(label), _entropy(cluster)
        mutual, mean = np.maximum(of_labels + of_clusters - both, 0), (of_labels + of_clusters) / 2
        return np.asarray(np.divide(mutual, mean, out=np.ones_like(mean), where=mean > 1e-15))

    return score


def _entropy(shares: F64) -> F64:
    """[draws] the entropy of rows of shares."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=1))


def matched_of(labels: str, clusters: str) -> Score:
    """Accuracy of clusters: the share of items whose cluster is matched with their label, one to one."""

    def score(items: Columns, weights: F64) -> F64:
        from scipy.optimize import linear_sum_assignment

        counts = contingency(items[labels], items[clusters], weights)
        right = [each[linear_sum_assignment(each, maximize=True)].sum() for each in counts]
        return np.asarray(right / weights.sum(axis=1))

    return score
