"""What is trained and minimised (Chen et al. 2024, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import UserError
from trainers.pearl.data import (
    MASK,
    PHRASE,
    digest_of_joined,
    given,
    left_out,
    read_negatives,
    read_types,
    rows_of,
    sources_of,
)
from trainers.pearl.modules import CharacterEncoder
from trainers.pearl.options import PearlTraining
from trainers.training.distributed import gathered
from trainers.training.encoder import PhraseEncoder
from trainers.training.loop import adamw
from trainers.training.losses import info_nce
from trainers.training.options import Training
from trainers.training.recipe import Batch, Encoded
from trainers.training.schedules import staircase
from transforms.libraries import quiet_transformers

MOST_TOKENS = 64
VERSION = 1


class Network(nn.Module):
    """An encoder, and the head that tells types from its vectors."""

    def __init__(self, encoder: PhraseEncoder, types: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.dimension, types) if types else None


class Pearl:
    """The recipe (trainers/training/recipe.py)."""

    name = "pearl"

    def __init__(self, options: PearlTraining) -> None:
        self.options = options
        found = [given(each) for each in options.data]
        self.sources = sources_of(found)
        self.weights = options.weights or None
        if self.weights and len(self.weights) != len(self.sources):
            places = ", ".join(each.place for each in self.sources)
            raise UserError(f"--weights: {len(self.weights)} for {len(self.sources)} datasets with pairs ({places})")
        self.types = read_types(found) if options.type_weight else None
        self.negatives = read_negatives(found) if options.hard_negatives else None
        self.version = [VERSION, digest_of_joined(found)]
        with quiet_transformers():
            loaded = PhraseEncoder.load(options.model, max_tokens=MOST_TOKENS)
        self.base = {name: each.clone() for name, each in loaded.state_dict().items()}
        encoder = with_characters(loaded, options, phrases=_first_phrases(self.sources[0]))
        self.network = Network(encoder, len(self.types.names) if self.types else 0)
        self._mask = encoder.model.tokenizer.mask_token

    def optimizer(self, options: Training) -> torch.optim.Optimizer:
        """AdamW, with a higher rate for the weights of a new character encoder."""
        found = adamw(self.network, self.options.rate)
        new = {
            id(each)
            for module in self.network.modules()
            if isinstance(module, CharacterEncoder)
            for each in module.parameters()
        }
        groups = [
            {**group, "params": part, "times": times}
            for group in found.param_groups
            for times, part in (
                (1.0, [each for each in group["params"] if id(each) not in new]),
                (self.options.character_rate, [each for each in group["params"] if id(each) in new]),
            )
            if part
        ]
        return torch.optim.AdamW(groups, lr=self.options.rate, fused=True)

    def rate_at(self, step: int, steps: int) -> float:
        options = self.options
        rising = min(1.0, (step + 1) / max(1.0, options.warm_up * steps))
        return options.rate * rising * staircase(step, factor=options.decay, every=options.decay_steps)

    def prepare(self, table: pa.Table) -> Batch:
        options = self.options
        rows = rows_of(table, negatives=self.negatives, number=options.hard_negatives, words=options.context_words)
        texts = rows.texts if self._mask in (None, MASK) else [each.replace(MASK, self._mask) for each in rows.texts]
        known: dict[str, Any] = {}
        if self.types:
            get = self.types.shares if options.type_shares else self.types.classes
            known["types"] = get(rows.anchors)
        keys = {"anchors": rows.anchors, "candidates": rows.candidates, "owners": rows.owners}
        return Batch(self.network.encoder.tokens(texts), table.num_rows, {**keys, **known})

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        return Encoded(self.network.encoder(inputs))

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        options, n = self.options, batch.rows
        anchors, candidates = vectors[:n], vectors[n:]
        keys = {
            name: torch.from_numpy(batch.given[name].view(np.int64)).to(vectors.device)
            for name in ("candidates", "owners")
        }
        all_candidates, first = gathered(candidates)
        all_keys, all_owners = (gathered(keys[name])[0].cpu().numpy().view(np.uint64) for name in keys)
        right = np.arange(first, first + n)
        own, positives = batch.given["anchors"], batch.given["candidates"][:n]
        out = torch.from_numpy(left_out(own, positives, all_keys, all_owners, right)).to(vectors.device)
        places = torch.from_numpy(right).to(vectors.device)
        found = {"contrast": info_nce(anchors, all_candidates, places, temperature=options.temperature, left_out=out)}
        if options.symmetric:
            back = torch.from_numpy(left_out(positives, own, own, own, np.arange(n))).to(vectors.device)
            found["back"] = info_nce(
                candidates[:n],
                anchors,
                torch.arange(n, device=vectors.device),
                temperature=options.temperature,
                left_out=back,
            )
        if self.network.head is not None:
            found["types"] = options.type_weight * type_loss(self.network.head(anchors), batch.given["types"])
        return found

    def save(self, folder: Path) -> None:
        encoder = self.network.encoder
        tuned = encoder.state_dict()
        encoder.load_state_dict(averaged(self.base, tuned, self.options.base_share))
        try:
            encoder.save(folder)
        finally:
            encoder.load_state_dict(tuned)


def _first_phrases(source: Any) -> list[str]:
    from trainers.data import Loader

    table = next(iter(Loader(source, batch_size=min(64, source.rows), shuffle=False)))
    return [*map(str, table.column(PHRASE).to_pylist())]


def with_characters(loaded: PhraseEncoder, options: PearlTraining, *, phrases: Sequence[str]) -> PhraseEncoder:
    """The encoder with the modules that are trained and saved: a character encoder, and vectors of length 1, or not."""
    modules: list[nn.Module] = [*loaded.model]
    if type(modules[-1]).__name__ == "Normalize":
        modules.pop()
    has = any(isinstance(each, CharacterEncoder) for each in modules)
    if options.characters and not has:
        plain = PhraseEncoder(SentenceTransformer(modules=modules), max_tokens=MOST_TOKENS).eval()
        with torch.no_grad():
            length = float(plain(plain.tokens(phrases)).norm(dim=1).mean())
        modules.append(
            CharacterEncoder.new(
                loaded.model.tokenizer,
                width=options.character_width,
                dimension=options.character_dimension,
                base=plain.dimension,
                length=length * options.character_length,
            )
        )
    if options.normalise:
        from sentence_transformers.models import Normalize

        modules.append(Normalize())
    return PhraseEncoder(SentenceTransformer(modules=modules), max_tokens=MOST_TOKENS)


def type_loss(scores: Tensor, types: np.ndarray) -> Tensor:
    """The cross-entropy of types: classes [n] (-1: unknown), or shares [n, types] (zeros: unknown). A mean over those
    that are known; 0 if none is.
    """
    scores = scores.float()
    known = torch.from_numpy(types >= 0 if types.ndim == 1 else types.any(axis=1)).to(scores.device)
    if not known.any():
        return scores.sum() * 0
    return functional.cross_entropy(scores[known], torch.from_numpy(types).to(scores.device)[known])


def averaged(base: Mapping[str, Tensor], tuned: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """The mean of two models, of which the first has a weight of `share`; what only the second has is its own."""
    return {
        name: torch.lerp(each, base[name].to(each.device), share)
        if name in base and each.is_floating_point()
        else each.clone()
        for name, each in tuned.items()
    }
