"""A teacher's soft labels on raw text, from which a student learns besides treebanks (Hinton et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
import xxhash

from schemas.dataset import Dataset
from trainers.parser.data import Example
from trainers.parser.fit import Vocabulary
from trainers.parser.network import Batch, ParserNetwork, real_spans
from transforms.parsing.interface import Constituent
from transforms.parsing.phrasemill.encoding import Encoder

LEAST = 0.03
"""The lowest probability of a span that is written; lower ones count as 0."""

BATCH_PIECES = 2_000
POOL = 2_000  # sentences encoded together


def raw_sentences(datasets: Sequence[str], *, words: int, longest: int, seed: int) -> list[list[str]]:
    """Distinct sentences from sentences datasets, with 3 to `longest` words each and about `words` words in total.

    The choice and order depend on the hash of each sentence with the seed.
    """
    keyed: dict[bytes, list[str]] = {}
    for dataset in datasets:
        for table in Dataset.open(dataset).tables(columns=["start_char", "text", "tokens"]):
            for first, text, tokens in zip(
                *(table.column(name).to_pylist() for name in table.column_names), strict=True
            ):
                if 3 <= len(tokens) <= longest:
                    sentence = [text[token["start_char"] - first : token["end_char"] - first] for token in tokens]
                    keyed[xxhash.xxh3_128_digest(text.encode(), seed=seed)] = sentence
    chosen: list[list[str]] = []
    for key in sorted(keyed):
        if words <= 0:
            break
        chosen.append(keyed[key])
        words -= len(keyed[key])
    return chosen


@torch.inference_mode()
def label(
    network: ParserNetwork, vocabulary: Vocabulary, sentences: Iterable[Sequence[str]]
) -> Iterator[list[Example]]:
    """The sentences with the network's spans and tags, in order, up to `POOL` at a time."""
    network.eval()
    device = next(network.parameters()).device
    encoder = Encoder()
    stream = iter(sentences)
    while pool := list(islice(stream, POOL)):
        found: list[Example | None] = [None] * len(pool)
        for numbers, arrays in encoder.encode(pool).batches(BATCH_PIECES):
            batch = Batch(*(torch.from_numpy(array).to(device) for array in arrays))
            with torch.autocast(device.type, torch.bfloat16):
                output = network(batch)
            probabilities = output.spans.float().sigmoid() * real_spans(batch)
            likely = probabilities > LEAST
            places, values = likely.nonzero().cpu().numpy(), probabilities[likely].cpu().numpy()
            tags = output.tags.argmax(2).cpu().numpy()
            edges = np.searchsorted(places[:, 0], np.arange(len(numbers) + 1))
            for row, number in enumerate(numbers):
                mine = slice(edges[row], edges[row + 1])
                found[number] = Example(
                    words=list(pool[number]),
                    tags=[vocabulary.tags[tag] for tag in tags[row, : len(pool[number])]],
                    spans=[
                        Constituent(vocabulary.labels[which], start, end)
                        for _, which, start, end in places[mine].tolist()
                    ],
                    probabilities=values[mine].tolist(),
                )
        yield [each for each in found if each is not None]
