"""The command of cluster-assisted fine-tuning: mentions -> a model of them, and their topics."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import UserError
from trainers.data import Source
from trainers.evaluation.tasks.mention_clustering import CORPORA
from trainers.training import distributed
from trainers.uctopic.clusters import fine_tuned, phrase_of
from trainers.uctopic.network import Mention, MentionEncoder
from trainers.uctopic.options import ClusterTraining
from trainers.uctopic.recipe import mentions_in
from transforms.arrays import strings_hashes
from transforms.encoders.spans import placed

TOPICS = "topics.parquet"


def fine_tune(options: ClusterTraining, *, command: str) -> None:
    """Write the model, and topics.parquet: each mention with its topic, and its similarity to the centroid (cosine)."""
    mentions = fewest(read_mentions(options), options.most_mentions)
    network = MentionEncoder.load(options.model, max_tokens=options.max_tokens, head=False, options=options)
    _, topics = fine_tuned(network, mentions, options, command=command)
    if not distributed.is_first():
        return
    columns = {name: [getattr(each, name) for each in mentions] for name in Mention._fields}
    nearest = topics.similarities.max(axis=1)
    table = {**columns, "topic": pa.array(topics.labels, pa.int32()), "similarity": nearest}
    pq.write_table(pa.table(table), options.output / TOPICS)
    for label in range(len(topics.centroids)):
        (members,) = np.nonzero(topics.labels == label)
        phrases = dict.fromkeys(phrase_of(mentions[each]) for each in members[np.argsort(-nearest[members])].tolist())
        print(f"topic {label}: {len(members):,} mentions: {', '.join([*phrases][:8])}", file=sys.stderr)


def read_mentions(options: ClusterTraining) -> list[Mention]:
    """UserError if the options name none, or two places."""
    if bool(options.data) == bool(options.mentions_of):
        raise UserError("the mentions: give --data, or --mentions-of with --evaluation")
    if options.mentions_of is None:
        sources = [Source.open(each, columns=Mention._fields) for each in options.data]
        return [each for source in sources for table in _tables(source) for each in mentions_in(table)]
    found = {each.name: each for each in CORPORA}.get(options.mentions_of)
    if found is None or options.evaluation is None:
        names = ", ".join(each.name for each in CORPORA)
        raise UserError(f"--mentions-of {options.mentions_of}: give one of {names}, and their folder as --evaluation")
    places = (placed(each.passage) for each in found.mentions(Path(options.evaluation)).mentions)
    return [Mention(each.text, each.start_char, each.end_char) for each in places]


def _tables(source: Source) -> list[pa.Table]:
    from trainers.data import Loader

    return [*Loader(source, batch_size=1 << 14, shuffle=False)]


def fewest(mentions: Sequence[Mention], most: int) -> list[Mention]:
    """At most so many, those of lowest hash of their sentence and place, in the same order."""
    if len(mentions) <= most:
        return [*mentions]
    names = pa.array([f"{text}\0{start}\0{end}" for text, start, end in mentions])
    chosen = np.sort(np.argsort(strings_hashes(names)[0], kind="stable")[:most])
    return [mentions[each] for each in chosen.tolist()]
