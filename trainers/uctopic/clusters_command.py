"""Fine-tune a model of mentions by clusters (UCTopic, section 3.2): mentions in their sentences -> model, and topics.

    python -m trainers.train uctopic_clusters --data out/mentions --topics 5-30 --model out/uctopic --output out/topics

The output is a folder like that of UCTopic, with topics.parquet: each mention and its topic.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from schemas.commands import Tool
from trainers.uctopic.options import ClusterTraining

TOOL = Tool(
    "trainers.train uctopic_clusters",
    "Fine-tunes a model of mentions by their clusters, and says their topics (CCL).",
    ClusterTraining,
)


def main(arguments: Sequence[str]) -> int:
    options = TOOL.flags.parse(arguments)[ClusterTraining]
    if options.mentions_of and options.tasks is None:
        options = replace(options, tasks=(f"mention_clustering_{options.mentions_of}",))
    import torch

    from trainers.training import distributed
    from trainers.training.checkpoint import seed_torch
    from trainers.uctopic.fine_tuning import fine_tune

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    with distributed.processes():
        seed_torch(options.seed)
        fine_tune(options, command=shlex.join([*TOOL.flags.parser.prog.split(), *TOOL.flags.arguments(options)]))
    return 0
