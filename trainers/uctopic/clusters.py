"""Cluster-assisted contrastive learning (UCTopic, section 3.2): labels from clusters, and negatives from other ones.

Other pairs of a batch are often of the same topic, and no negatives. So mentions are clustered, those nearest to each
centroid label the phrases, and a mention is contrasted with one mention of each other cluster.

    network = MentionEncoder.load("out/uctopic", max_tokens=128, head=False)
    network, topics = fine_tuned(network, mentions, ClusterTraining(topics=(3,), output=Path("out/ccl")))
    topics.labels      # of each mention
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch.nn import functional

from schemas.errors import UserError
from trainers.data import Source
from trainers.evaluation.clustering import kmeans
from trainers.training import distributed
from trainers.training.loop import fit
from trainers.training.recipe import Batch, Encoded
from trainers.uctopic.network import Mention, MentionEncoder
from trainers.uctopic.options import ClusterTraining
from trainers.uctopic.recipe import USAGE, Input, vectors_of
from transforms.arrays import mix64
from transforms.encoders.interface import F32

ABOUT = "Fine-tunes a model of mentions by their clusters (CCL)."
I64 = npt.NDArray[np.int64]
SAMPLE = 10_000
"""How many mentions the silhouette is of (section 5.1)."""


class Topics(NamedTuple):
    """Clusters of mentions.

    labels        [n] the nearest centroid of each mention
    centroids     [K, dimension], of length 1
    similarities  [n, K] of the mentions to the centroids (cosine)
    """

    labels: I64
    centroids: F32
    similarities: F32


def fine_tuned(
    network: MentionEncoder, mentions: Sequence[Mention], options: ClusterTraining, *, command: str = ""
) -> tuple[MentionEncoder, Topics]:
    """A model of mentions, fine-tuned on mentions by their clusters and written to the output; and their topics by it.

    UserError if there are too few mentions, or no phrase is mentioned twice.
    """
    network.to(distributed.device())
    topics = topics_of(network.encode(mentions), options.topics, seed=options.seed)
    labels = labels_of_phrases(mentions, topics, options.nearest)
    rows = contrasts(mentions, labels, options)
    folder = options.output / "contrasts"
    if distributed.is_first():
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / "contrasts.parquet")
    fit(ClusterContrast(network, mentions, str(folder), options), options, command=command, about=ABOUT)
    after = MentionEncoder.load(str(options.output), max_tokens=options.max_tokens, head=False)
    after.to(distributed.device())
    return after, topics_of(after.encode(mentions), (len(topics.centroids),), seed=options.seed)


def topics_of(vectors: F32, numbers: Sequence[int], *, seed: int) -> Topics:
    """The clusters of vectors [n, dimension] by their directions; of several numbers the one of the best silhouette."""
    if len(vectors) <= max(numbers):
        raise UserError(f"{len(vectors):,} mentions for {max(numbers)} topics: give more, or a lower --topics")
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    found = {each: kmeans(unit, each, seed=seed) for each in numbers}
    best = numbers[0]
    if len(numbers) > 1:
        from sklearn.metrics import silhouette_score

        size = min(SAMPLE, len(unit))
        scores = {
            each: silhouette_score(unit, labels, sample_size=size, random_state=seed) for each, labels in found.items()
        }
        best = max(numbers, key=lambda each: scores[each])
    centroids = np.stack([unit[found[best] == each].mean(axis=0) for each in range(best)])
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    similarities = (unit @ centroids.T).astype(np.float32)
    return Topics(similarities.argmax(axis=1), centroids.astype(np.float32), similarities)


def phrase_of(mention: Mention) -> str:
    return mention.text[mention.start_char : mention.end_char].casefold()


def labels_of_phrases(mentions: Sequence[Mention], topics: Topics, nearest: float) -> dict[str, int]:
    """The label of each phrase that is mentioned among the nearest of a cluster: that of most of these mentions.

    If two labels have as many, that of the greater sum of similarities.
    """
    votes: dict[str, dict[int, tuple[int, float]]] = {}
    for label in range(len(topics.centroids)):
        (members,) = np.nonzero(topics.labels == label)
        order = members[np.argsort(-topics.similarities[members, label], kind="stable")]
        for each in order[: max(1, round(nearest * len(members)))].tolist():
            of_phrase = votes.setdefault(phrase_of(mentions[each]), {})
            number, total = of_phrase.get(label, (0, 0.0))
            of_phrase[label] = number + 1, total + float(topics.similarities[each, label])
    return {phrase: max(found, key=found.__getitem__) for phrase, found in votes.items()}


def contrasts(mentions: Sequence[Mention], labels: Mapping[str, int], options: ClusterTraining) -> pa.Table:
    """What is learned from, a row for each row of each step: mentions by their numbers, drawn by hash.

    anchor      a mention of a labelled phrase that is mentioned more than once
    candidates  another mention of it, then one mention of each other label
    unmasked    whether each of these keeps its words
    """
    of_phrase: dict[str, list[int]] = {}
    of_label: dict[int, list[int]] = {}
    for number, mention in enumerate(mentions):
        if (label := labels.get(phrase := phrase_of(mention))) is not None:
            of_phrase.setdefault(phrase, []).append(number)
            of_label.setdefault(label, []).append(number)
    anchors = [(each, phrase) for phrase, found in of_phrase.items() if len(found) > 1 for each in found]
    if not anchors or len(of_label) < 2:
        why = "no labelled phrase is mentioned twice" if not anchors else "all labelled phrases have one label"
        raise UserError(f"the clusters: {why}: give more mentions, or a higher --nearest")
    number = (options.steps or 1) * options.batch_size
    rows = []
    for row in range(number):
        drawn = iter(mix64(np.arange(2 * len(of_label) + 2, dtype=np.uint64) + _first(options.seed, row)).tolist())
        anchor, phrase = anchors[next(drawn) % len(anchors)]
        others = [each for each in of_phrase[phrase] if each != anchor]
        candidates = [others[next(drawn) % len(others)]]
        candidates += [found[next(drawn) % len(found)] for label, found in of_label.items() if label != labels[phrase]]
        unmasked = [next(drawn) < options.unmasked * 2.0**64 for _ in candidates]
        rows.append({"anchor": anchor, "candidates": candidates, "unmasked": unmasked})
    return pa.Table.from_pylist(rows)


def _first(seed: int, row: int) -> npt.NDArray[np.uint64]:
    return mix64(mix64(np.array([seed], np.uint64)) + np.array([row], np.uint64))


class ClusterContrast:
    """A masked mention is near another one of its phrase, and far from one of each other cluster."""

    name = "uctopic_clusters"
    usage = USAGE
    weights = None

    def __init__(
        self, network: MentionEncoder, mentions: Sequence[Mention], rows: str, options: ClusterTraining
    ) -> None:
        self.network, self._mentions, self._options = network, mentions, options
        self.sources = [Source.open(rows)]

    def prepare(self, table: pa.Table) -> Batch:
        """The anchors, then the candidates of each."""
        anchors, candidates, unmasked = (
            table.column(name).to_pylist() for name in ("anchor", "candidates", "unmasked")
        )
        numbers = [*anchors, *(each for some in candidates for each in some)]
        keeps = [*[False] * len(anchors), *(each for some in unmasked for each in some)]
        tokens = self.network.tokens([self._mentions[each] for each in numbers])
        return Batch([Input(*each, 0.0) for each in zip(tokens, keeps, strict=True)], len(anchors))

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        return Encoded(vectors_of(self.network, inputs, self._options))

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        unit = functional.normalize(vectors.float(), dim=1)
        anchors, candidates = unit[: batch.rows], unit[batch.rows :].unflatten(0, (batch.rows, -1))
        scores = torch.einsum("nd,nkd->nk", anchors, candidates) / self._options.temperature
        right = torch.zeros(batch.rows, dtype=torch.long, device=vectors.device)
        return {"contrast": functional.cross_entropy(scores, right)}

    def save(self, folder: Path) -> None:
        self.network.save(folder)
