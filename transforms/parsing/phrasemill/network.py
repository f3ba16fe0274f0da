"""The network in ONNX Runtime: words in, tags and constituents out.

The result for a sentence depends only on that sentence, to the last bit, not on others parsed with it. Activations are
quantised with scales fixed in the file, products of integers are exact, and a batch holds only sentences with the same
number of pieces, so that the remaining floating point operations have the same shape in any batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from transforms.parsing.interface import Constituent
from transforms.parsing.phrasemill.decode import constituents, without_modifiers
from transforms.parsing.phrasemill.encoding import GUM, Batch, Encoder, Ints
from transforms.parsing.phrasemill.model_file import not_a_network, read_model_file

MAX_BATCH_PIECES = 1000


class Parse(NamedTuple):
    """The network's result for a sentence of n words."""

    tags: list[str]  # n
    constituents: list[Constituent]  # none crosses another; ordered as in `ParsedSentence`


class _Result(NamedTuple):
    """The result for a batch of B sentences; `sentences` [B] are their numbers in the call."""

    sentences: Ints
    spans: Ints  # [M, 4]: sentence of the batch, label, start, end
    scores: NDArray[np.float32]  # [M]
    tags: Ints  # [B, N]


class Network:
    """A loaded network, for sentences of at most `encoding.MAX_WORDS` words.

    `threshold`: the logit that a span's score must exceed, one for each of `labels`.
    """

    def __init__(self, path: str | Path | None = None, *, threads: int = 1) -> None:
        """`path`: a file written by the training, by default the shipped one.

        `threads`: how many batches are computed at a time; results do not depend on it.
        """
        file = read_model_file(path)
        try:
            self._session = onnxruntime.InferenceSession(file.content, session_options(), ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise not_a_network(file.name, error) from error
        self.metadata = file.metadata
        self.labels: tuple[str, ...] = tuple(json.loads(self.metadata["labels"]))
        self.tags: tuple[str, ...] = tuple(json.loads(self.metadata["tags"]))
        self.threshold = np.array(json.loads(self.metadata["threshold"]), np.float32)
        self._tags = np.array(self.tags, object)
        self._threads = threads
        self._encoder = Encoder()

    def parse(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        convention: int = GUM,
        note: Callable[[int, int], None] = lambda words, sentences: None,
    ) -> list[Parse]:
        """Parse sentences of words with the bracketing `convention`; for speed, give hundreds in a call.

        `note` is called with the numbers of words and of sentences of each batch that is parsed. Raises ValueError for
        a sentence of more than `encoding.MAX_WORDS` words.
        """
        encoded = self._encoder.encode(sentences, convention)
        tags: list[list[str]] = [[] for _ in sentences]
        all_spans, all_scores = [np.empty((0, 4), np.int64)], [np.empty(0, np.float32)]
        for chosen, spans, scores, tag_ids in self._results(encoded.equal_batches(MAX_BATCH_PIECES)):
            spans[:, 0] = chosen[spans[:, 0]]
            all_spans.append(spans)
            all_scores.append(scores)
            for number, row in zip(chosen.tolist(), self._tags[tag_ids].tolist(), strict=True):
                tags[number] = row[: len(sentences[number])]
            note(sum(len(sentences[number]) for number in chosen.tolist()), len(chosen))
        found = constituents(np.concatenate(all_spans), np.concatenate(all_scores), self.labels, len(sentences))
        return list(map(Parse, tags, map(without_modifiers, sentences, tags, found)))

    def _results(self, batches: Iterable[tuple[Ints, Batch]]) -> Iterable[_Result]:
        if self._threads == 1:
            return map(self._run, batches)
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(self._run, batches))

    def _run(self, batch: tuple[Ints, Batch]) -> _Result:
        sentences, arrays = batch
        return _Result(sentences, *self._session.run(None, {**arrays._asdict(), "threshold": self.threshold}))


def session_options() -> onnxruntime.SessionOptions:
    """The options of the session that runs a parser's graph: a run uses only the thread that calls it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph needs no further fusing: SkipLayerNormalization is six times slower on CPUs than the nodes it replaces,
    # and rearranging (de)quantisation would add steps.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    # Batches have different shapes, so memory kept for one does not fit the next.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    return options
