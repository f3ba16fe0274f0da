"""A model of mentions as the evaluation asks an encoder: needed for LUKE, whose vector of a mention is no mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from trainers.uctopic.network import Mention, MentionEncoder, masked
from transforms.encoders.interface import F32, EncoderIdentity, Passage
from transforms.encoders.spans import placed


class Mentions:
    """A text is a mention of itself."""

    def __init__(self, folder: Path, identity: EncoderIdentity, *, prefix: str, precision: str) -> None:
        self.identity = identity
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = MentionEncoder.load(str(folder), max_tokens=512, head=False).to(self.device).eval()
        self.dimension = self._network.dimension
        self._prefix, self._half = prefix, precision == "bfloat16"

    def encode(self, texts: Sequence[str], note: Callable[[int], None] = lambda done: None) -> F32:
        before = len(self._prefix)
        return self._encode([Mention(self._prefix + each, before, before + len(each)) for each in texts], None, note)

    def encode_spans(
        self, passages: Sequence[Passage], *, masks: int | None = None, note: Callable[[int], None] = lambda done: None
    ) -> F32:
        """With `masks` 0 a mention has one mask for each of its sub-tokens, as LUKE sees them."""
        places = [placed(each, prefix=self._prefix) for each in passages]
        return self._encode([Mention(each.text, each.start_char, each.end_char) for each in places], masks, note)

    def _encode(self, mentions: Sequence[Mention], masks: int | None, note: Callable[[int], None]) -> F32:
        network = self._network
        inputs = network.tokens(mentions)
        if masks is not None:
            inputs = [masked(each, network.mask, one=masks == 1) for each in inputs]
        with torch.inference_mode(), torch.autocast(self.device, torch.bfloat16, enabled=self._half):
            found: F32 = network(inputs).cpu().numpy()
        note(len(mentions))
        return found
