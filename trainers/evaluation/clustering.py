"""K-means of mentions: the common part of both protocols of entity clustering."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from schemas.errors import UserError
from trainers.evaluation.annotated import Found
from trainers.evaluation.model import F32
from trainers.evaluation.task import Columns, Outcome, Setting

RESTARTS = 10
"""How many first centroids are tried; the clusters of the least inertia count.

It was scikit-learn's default until version 1.3, with which the papers' figures were made (UCTopic: 0.24)."""


def kmeans(vectors: F32, clusters: int, *, seed: int) -> npt.NDArray[np.int32]:
    """[n] the cluster of each vector, from first centroids by k-means++.

    On one thread, so that the sums do not depend on the machine's number of cores.
    """
    try:
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise UserError(f"entity clustering needs {error.name}: pip install 'phrasemill[evaluate]'") from error
    with threadpool_limits(1):
        return np.asarray(KMeans(clusters, n_init=RESTARTS, random_state=seed).fit(vectors).labels_, dtype=np.int32)


def clustered(found: Found, vectors: F32, clusters: int, setting: Setting) -> Outcome:
    """The outcome: for each mention its type and its cluster, for each seed; its phrase and sentence, to draw by."""
    known: Columns = {
        "item": np.array([each.item for each in found.mentions], dtype=object),
        "phrase": np.array([each.phrase for each in found.mentions], dtype=object),
        "sentence": np.array([each.sentence for each in found.mentions], dtype=object),
        "type": np.array([each.type for each in found.mentions], dtype=object),
    }
    items = []
    for seed in setting.seeds:
        setting.note(f"k-means, seed {seed}")
        items.append({**known, "cluster": kmeans(vectors, clusters, seed=seed)})
    return Outcome(items, found.read, found.remarks)
