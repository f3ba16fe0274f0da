"""UCTopic's training (Li et al. 2022, sections 3.1 and 4.1): InfoNCE over pairs of mentions, and masked words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from schemas.errors import UserError
from trainers.data import Source
from trainers.training.distributed import gathered
from trainers.training.losses import info_nce
from trainers.training.recipe import Batch, Encoded
from trainers.uctopic.network import HEADS, Mention, MentionEncoder, Tokens, masked
from trainers.uctopic.options import MentionTraining, UCTopicTraining
from transforms.arrays import strings_hashes

_SIDE = ("text", "start_char", "end_char", "mention", "entity_id", "target_title", "section")
COLUMNS = (*(f"{name}_{side}" for side in (1, 2) for name in _SIDE), "unmasked")


USAGE = """A mention is the mean of its sub-tokens' last states in its sentence, and for LUKE its entity's last state:

    from trainers.uctopic.network import Mention, MentionEncoder

    encoder = MentionEncoder.load("FOLDER", max_tokens=128, head=False)
    vectors = encoder.encode([Mention("Albania was occupied by Fascist Italy.", 24, 37)])
"""


class Input(NamedTuple):
    """A mention: its sentence, whether it keeps its words there, and which share of its batch it is."""

    tokens: Tokens
    keeps_words: bool
    share: float


class UCTopic:
    """The first mention of a pair is near the second, and far from the second of the other pairs of a batch."""

    name = "uctopic"
    usage = USAGE
    weights = None

    def __init__(self, options: UCTopicTraining) -> None:
        self._options = options
        self.sources = [Source.open(each, columns=COLUMNS) for each in options.data]
        self.network = MentionEncoder.load(
            options.model, max_tokens=options.max_tokens, head=options.mlm_weight > 0, options=options
        )
        if options.mlm_weight and not any(hasattr(self.network.model, each) for each in HEADS):
            raise UserError(f"--model {options.model}: has no head for masked words that is known: --mlm-weight 0")

    def prepare(self, table: pa.Table) -> Batch:
        """The first mentions of the pairs, then the second ones."""
        unmasked = table.column("unmasked").to_numpy()
        inputs = [
            Input(tokens, keeps, 0.5 / len(table))
            for side in (1, 2)
            for tokens, keeps in zip(
                self.network.tokens(mentions_in(table, f"_{side}")), (unmasked == side).tolist(), strict=True
            )
        ]
        return Batch(inputs, len(table), {"names": names_of(table)})

    def encode(self, inputs: Sequence[Input]) -> Encoded:
        vectors = vectors_of(self.network, inputs, self._options)
        if not self._options.mlm_weight or not torch.is_grad_enabled():
            return Encoded(vectors)
        share = self._options.mlm_weight * sum(each.share for each in inputs)
        return Encoded(
            vectors, {"masked words": share * self.network.masked_words_loss([each.tokens for each in inputs])}
        )

    def losses(self, vectors: Tensor, batch: Batch) -> Mapping[str, Tensor]:
        anchors, positives = vectors[: batch.rows], vectors[batch.rows :]
        candidates, first = gathered(positives)
        right = torch.arange(first, first + batch.rows, device=vectors.device)
        left_out = None
        if self._options.same_entity == "excluded":
            names = torch.from_numpy(batch.given["names"]).to(vectors.device)
            left_out = same_phrase(names, gathered(names)[0], right)
        loss = info_nce(anchors, candidates, right, temperature=self._options.temperature, left_out=left_out)
        return {"contrast": loss}

    def save(self, folder: Path) -> None:
        self.network.save(folder)


def vectors_of(network: MentionEncoder, inputs: Sequence[Input], options: MentionTraining) -> Tensor:
    """[n, dimension] of mentions in their sentences, masked unless they keep their words."""
    one = options.masks == "one"
    return cast(
        Tensor,
        network([each.tokens if each.keeps_words else masked(each.tokens, network.mask, one=one) for each in inputs]),
    )


def mentions_in(table: pa.Table, suffix: str = "") -> list[Mention]:
    """The mentions of rows; UserError if one is not in its sentence."""
    columns = (table.column(f"{name}{suffix}").to_pylist() for name in ("text", "start_char", "end_char"))
    found = [Mention(*each) for each in zip(*columns, strict=True)]
    for text, start, end in found:
        if not 0 <= start < end <= len(text):
            raise UserError(f"a mention at {start:,} to {end:,} of {text[:100]!r}: is not in its sentence: see `check`")
    return found


def names_of(table: pa.Table) -> Any:
    """[n, 4] hashes of the entities and the surfaces of both mentions of each pair."""
    found = []
    for side in (1, 2):
        mention, entity_id, title, section = (table.column(f"{name}_{side}").to_pylist() for name in _SIDE[3:])
        found.append(["s\0" + each for each in mention])
        entities = zip(entity_id, title, section, strict=True)
        found.append([f"e\0{number or name}\0{part}" for number, name, part in entities])
    return np.stack([strings_hashes(pa.array(each))[0].view(np.int64) for each in found], axis=1)


def same_phrase(names: Tensor, others: Tensor, right: Tensor) -> Tensor:
    """[n, m] whether a pair shares an entity or a surface with another pair; not with itself, which is `right`.

    names [n, 4], others [m, 4]
    """
    same = (names[:, None, :, None] == others[None, :, None, :]).any(dim=3).any(dim=2)
    same[torch.arange(len(right), device=same.device), right] = False
    return same
