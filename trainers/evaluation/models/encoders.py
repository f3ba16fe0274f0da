"""Sentence-transformers models and transformers: a folder, or a name on the hub."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from schemas.errors import UserError
from schemas.storage.folder import Folder
from trainers.evaluation.model import F32, Contextless, FoundModel, Model, Passage
from trainers.evaluation.models.baselines import BASELINES
from trainers.evaluation.models.options import ModelOptions, layers_of
from transforms.encoders.files import encoder_identity, find_encoder
from transforms.encoders.interface import Encoder, SpanEncoder
from transforms.encoders.registry import load_encoder

T = TypeVar("T")

VERSION = 1
CHUNK = 1 << 14
"""How many texts are tokenised at a time: it bounds memory."""
MASKS = {"words": None, "mask": 1, "masks": 0}
"""What `SpanEncoder.encode_spans` takes for each of `options.MENTIONS`."""


def find(name: str, options: ModelOptions) -> FoundModel:
    try:
        files = find_encoder(name, asked="MODEL")
    except UserError as error:
        others = f"a file of word vectors, a spaCy pipeline that has some, {', '.join(BASELINES)}"
        raise UserError(f"{error}; other models are {others}") from error
    identity: dict[str, Any] = encoder_identity(name, asked="MODEL")._asdict()
    identity |= {"evaluated": VERSION, "pooling": options.pooling or files.pooling or "its own modules"}
    identity["normalised"] = files.normalised and not options.raw
    chosen = {"layers": options.layers, "prefix": options.prefix, "precision": options.precision}
    identity |= {each: value for each, value in chosen.items() if value not in (None, "", "float32")}
    if options.mention != "words":
        identity["mention"] = options.mention

    def load() -> Model:
        kept = _Kept(options.vectors, identity)
        if is_luke(files.folder):
            if options.pooling or options.layers:
                raise UserError(f"MODEL {name}: has vectors of its own, so --pooling and --layers do not apply")
            from trainers.uctopic.evaluated import Mentions

            own = encoder_identity(name, asked="MODEL")
            mentions = Mentions(files.folder, own, prefix=options.prefix, precision=options.precision)
            return InContext(name, mentions, kept, MASKS[options.mention])
        encoder = load_encoder(
            name,
            prefix=options.prefix,
            precision=options.precision,
            pooling=options.pooling or "",
            raw=options.raw,
            layers=layers_of(options.layers) if options.layers else (),
            asked="MODEL",
        )
        return InContext(name, encoder, kept, MASKS[options.mention]) if files.pooling else Encoded(name, encoder, kept)

    return FoundModel(name, identity, load)


def is_luke(folder: Path) -> bool:
    """Whether a model is LUKE, in which a mention has a vector of its own."""
    config = folder / "config.json"
    return config.is_file() and json.loads(config.read_bytes()).get("model_type") == "luke"


class _Kept:
    """Vectors in a folder, if there is one: a file a call.

    So a run has the same batches, and the same vectors to the last bit, whether or not other runs came before it.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, Any]) -> None:
        self._folder = Folder(str(folder)) if folder else None
        self._identity = identity

    def get(self, inputs: Sequence[Any], compute: Callable[[], F32]) -> F32:
        """What was kept for these inputs, or else what `compute` gives, which is then kept."""
        if self._folder is None:
            return compute()
        key = json.dumps([self._identity, inputs], sort_keys=True)
        name = f"{hashlib.sha256(key.encode()).hexdigest()}.npy"
        if self._folder.exists(name):
            found: F32 = np.load(io.BytesIO(self._folder.read(name)))
            return found
        found, file = compute(), io.BytesIO()
        np.save(file, found)
        self._folder.write(name, file.getvalue())
        return found


class Encoded(Contextless):
    """An encoder that gives vectors of whole texts."""

    def __init__(self, name: str, encoder: Encoder, kept: _Kept) -> None:
        self.name, self._encoder, self._kept = name, encoder, kept
        self.dimension = encoder.dimension

    def encode(self, texts: Sequence[str]) -> F32:
        return self._kept.get([*texts], lambda: _in_chunks(texts, self._encoder.encode, self.dimension))


class InContext(Encoded):
    """An encoder of which we have the states of the tokens: a span is the mean over its sub-tokens in its sentence."""

    contextual = True
    _encoder: SpanEncoder

    def __init__(self, name: str, encoder: Encoder, kept: _Kept, masks: int | None) -> None:
        super().__init__(name, encoder, kept)
        self._masks, self._empty = masks, 0

    def encode_spans(self, passages: Sequence[Passage]) -> F32:
        def compute(some: Sequence[Passage]) -> F32:
            return self._encoder.encode_spans(some, masks=self._masks)

        inputs = [[[*tokens], start, end] for tokens, start, end in passages]
        found = self._kept.get(inputs, lambda: _in_chunks(passages, compute, self.dimension))
        self._empty += int((~found.any(axis=1)).sum())
        return found

    def remarks(self) -> list[str]:
        empty, self._empty = self._empty, 0
        return [f"{empty:,} mentions without a sub-token: vectors of zeros"] if empty else []


def _in_chunks(inputs: Sequence[T], compute: Callable[[Sequence[T]], F32], dimension: int) -> F32:
    chunks = (inputs[first : first + CHUNK] for first in range(0, len(inputs), CHUNK))
    return np.concatenate([np.empty((0, dimension), np.float32), *map(compute, chunks)])
