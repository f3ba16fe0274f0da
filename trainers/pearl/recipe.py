"""What is trained and minimised (Chen et al. 2024, section 3)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor, nn

from schemas.errors import UserError
from trainers.data import Loader, Source
from trainers.pearl.data import (
    MASK,
    PHRASE,
    Chosen,
    digest_of,
    given,
    left_out,
    read_negatives,
    read_types,
    rows_of,
    sources_of,
)
from trainers.pearl.losses import averaged, type_loss
from trainers.pearl.modules import CharacterEncoder
from trainers.pearl.options import PearlTraining
from trainers.training.distributed import gathered
from trainers.training.encoder import PhraseEncoder
from trainers.training.loop import adamw
from trainers.training.losses import info_nce
from trainers.training.options import Training
from trainers.training.recipe import Batch, Encoded
from trainers.training.schedules import staircase

MOST_TOKENS = 64
USAGE = """\
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("{folder}", trust_remote_code=True)
    vectors = model.encode(["a phrase", "another one"])

where phrasemill is installed (`pip install 'phrasemill[train]'`), which has the character encoder.\
"""
CANDIDATES = ("candidates", "owners", "contexts")
VERSION = 1


class Network(nn.Module):
    """An encoder, and the head that tells types from its vectors."""

    def __init__(self, encoder: PhraseEncoder, types: int, new: Sequence[nn.Module] = ()) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(encoder.dimension, types) if types else None
        self.new = [*new, *([self.head] if self.head is not None else [])]
        """What begins untrained. A list, which torch does not register again."""


class Pearl:
    """The recipe (trainers/training/recipe.py)."""

    name = "pearl"

    def __init__(self, options: PearlTraining) -> None:
        self.options = options
        found = [given(each) for each in options.data]
        # Removed with this object, at the latest when the process ends.
        self._folder = tempfile.TemporaryDirectory(prefix="phrasemill-pearl-")
        chosen = Chosen(options.min_score, options.types_of, options.types_words)
        self.sources = sources_of(found, chosen, Path(self._folder.name))
        self.weights = options.weights or None
        if self.weights and len(self.weights) != len(self.sources):
            places = ", ".join(each.place for each in self.sources)
            raise UserError(f"--weights: {len(self.weights)} for {len(self.sources)} datasets with pairs ({places})")
        self.types = read_types(found, shares=options.type_shares) if options.type_weight else None
        self.negatives = read_negatives(found) if options.hard_negatives else None
        lengths = "have length 1" if options.normalise else "keep their lengths, as those that PEARL's paper evaluates"
        self.about = f"An encoder of phrases, trained as PEARL (Chen et al., Findings of EACL 2024). Vectors {lengths}."
        self.version = [VERSION, digest_of(found)]
        loaded = PhraseEncoder.load(options.model, max_tokens=MOST_TOKENS, options=options)
        self.base = {name: each.clone() for name, each in loaded.state_dict().items()}
        encoder, new = with_characters(loaded, options, phrases=_first_phrases(self.sources[0]))
        self.network = Network(encoder, len(self.types.names) if self.types else 0, new)
        self.usage = USAGE.format(folder=options.output.resolve().name) if options.characters else ""
        self._mask = encoder.model.tokenizer.mask_token

    def optimizer(self, options: Training) -> torch.optim.Optimizer:
        """AdamW, with a higher rate for what begins untrained."""
        new = {id(each) for module in self.network.new for each in module.parameters()}
        times = {True: self.options.new_rate, False: 1.0}
        groups = [
            {**group, "params": part, "times": times[untrained]}
            for group in adamw(self.network, options.rate).param_groups
            for untrained in times
            if (part := [each for each in group["params"] if (id(each) in new) == untrained])
        ]
        return torch.optim.AdamW(groups, lr=options.rate, fused=True)

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
            known["types"] = get(rows.phrases)
        keys = {name: getattr(rows, name) for name in ("phrases", *CANDIDATES)}
        return Batch(self.network.encoder.tokens(texts), table.num_rows, {**keys, **known})

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        return Encoded(self.network.encoder(inputs))

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        options, n = self.options, batch.rows
        phrases, others = vectors[:n], vectors[n:]
        candidates, first = gathered(others)
        right = np.arange(first, first + n)
        keys = np.stack([batch.given[name].view(np.int64) for name in CANDIDATES], axis=1)
        every = gathered(torch.from_numpy(keys).to(vectors.device))[0].cpu().numpy().view(np.uint64)
        keys_of_all, owners, contexts = every.T
        out = left_out(batch.given["phrases"], keys_of_all, owners, contexts, right, apart=options.apart)
        found = {"contrast": self._contrast(phrases, candidates, right, out)}
        if options.symmetric:
            own = slice(first, first + n)
            found["back"] = self._contrast(others[:n], phrases, np.arange(n), out[:, own].T)
        if self.network.head is not None:
            found["types"] = options.type_weight * type_loss(self.network.head(phrases), batch.given["types"])
        return found

    def _contrast(self, vectors: Tensor, candidates: Tensor, right: np.ndarray, out: np.ndarray) -> Tensor:
        places, masked = (torch.from_numpy(np.ascontiguousarray(each)).to(vectors.device) for each in (right, out))
        return info_nce(vectors, candidates, places, temperature=self.options.temperature, left_out=masked)

    def save(self, folder: Path) -> None:
        encoder = self.network.encoder
        tuned = {name: each.clone() for name, each in encoder.state_dict().items()}
        encoder.load_state_dict(averaged(self.base, tuned, self.options.base_share))
        try:
            encoder.save(folder)
        finally:
            encoder.load_state_dict(tuned)


def _first_phrases(source: Source) -> list[str]:
    table = next(iter(Loader(source, batch_size=min(64, source.rows), shuffle=False)))
    return [*map(str, table.column(PHRASE).to_pylist())]


def with_characters(
    loaded: PhraseEncoder, options: PearlTraining, *, phrases: Sequence[str]
) -> tuple[PhraseEncoder, list[nn.Module]]:
    """The encoder with the modules that are trained and saved, and those of them that begin untrained."""
    model: Any = loaded.model
    new: list[nn.Module] = []
    if loaded.normalised:
        model.pop(-1)
    if options.characters and not any(isinstance(each, CharacterEncoder) for each in model):
        plain = PhraseEncoder(model, max_tokens=MOST_TOKENS).eval()
        with torch.no_grad():
            length = float(plain(plain.tokens(phrases)).norm(dim=1).mean())
        new.append(
            CharacterEncoder.new(
                model.tokenizer,
                width=options.character_width,
                dimension=options.character_dimension,
                base=plain.dimension,
                length=length * options.character_length,
            )
        )
        model.append(new[0])
    if options.normalise:
        model.append(Normalize())
    return PhraseEncoder(model, max_tokens=MOST_TOKENS), new
