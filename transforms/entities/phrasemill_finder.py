"""The entity finder `phrasemill`: a head on the network of the shipped parser."""

from __future__ import annotations

from collections.abc import Sequence

import onnxruntime

from transforms.entities import identities
from transforms.entities.best_labels import best_labels
from transforms.entities.identities import labels_of
from transforms.entities.interface import Entity, Words, types_of
from transforms.entities.tags import Tag, spans, tags_of
from transforms.parsing.phrasemill.encoding import MAX_WORDS, Encoder
from transforms.parsing.phrasemill.head import with_head
from transforms.parsing.phrasemill.model_file import ENTITY_HEAD, not_a_network, read_model_file
from transforms.parsing.phrasemill.network import MAX_BATCH_PIECES, session_options


class PhrasemillFinder:
    """Entities by the layers of the shipped parser's network, and a head that `trainers.train entities` made.

    `model` is the path of a head, by default the shipped one. The entities of a sentence depend only on its words. A
    sentence of more than `encoding.MAX_WORDS` words is read in parts. `types` gives types other names (`types_of`).
    Raises UserError for a file that is no such head, or one that was made for another parser.
    """

    def __init__(self, model: str = "", *, types: str = "") -> None:
        self.identity = identities.phrasemill(model, types=types)
        parser, head = read_model_file(), read_model_file(model or None, ENTITY_HEAD)
        content = with_head(parser.content, head.content)
        try:
            self._session = onnxruntime.InferenceSession(content, session_options(), ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise not_a_network(head.name, error) from error
        self._encoder = Encoder()
        self._tags = tags_of(dict(enumerate(labels_of(head))))
        self._types = types_of(sorted({each.type for each in self._tags} - {""}), types)

    def find(self, sentences: Sequence[Words]) -> list[list[Entity]]:
        parts = [
            (number, each.words[first : first + MAX_WORDS])
            for number, each in enumerate(sentences)
            for first in range(0, len(each.words), MAX_WORDS)
        ]
        encoded = self._encoder.encode([words for _, words in parts])
        tags: list[list[Tag]] = [[] for _ in parts]
        for chosen, batch in encoded.equal_batches(MAX_BATCH_PIECES):
            (scores,) = self._session.run(None, batch._asdict())
            labels = best_labels(scores, encoded.words[chosen])
            for part, row in zip(chosen.tolist(), labels.tolist(), strict=True):
                tags[part] = [self._tags[label] for label in row[: len(parts[part][1])]]
        joined: list[list[Tag]] = [[] for _ in sentences]
        for (number, _), each in zip(parts, tags, strict=True):
            joined[number] += each
        return [spans(each, self._types) for each in joined]
