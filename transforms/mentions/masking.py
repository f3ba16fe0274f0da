"""Mentions masked in their sentences: by one mask token, or by one for each sub-token (UCTopic, figure 1).

    masker = load_masker(MaskRules("<mask>", "subtokens", "roberta-base"))
    for pairs in Dataset.open("out/mention-pairs").tables():
        anchor, positive = masked_pairs(pairs, masker)

The mask begins where the mention begins and nothing before it moves, so `start_char` of a pair also holds in the masked
text. If a sentence already contains the mask token, the token's first character becomes a space. So every mask in the
result replaces a mention, and a sentence that keeps its words has none.

The sub-tokens of a mention are those of the whole sentence's encoding that overlap it, as a model would see them. With
a byte-level BPE such as RoBERTa's, the space before a word belongs to the word's first sub-token, so " Paris" may be
one sub-token where "Paris", encoded alone, is two. A sub-token that reaches beyond the mention counts. A mention for
which the tokenizer has no sub-token gets one mask.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from schemas.errors import UserError
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS
from transforms.mentions.options import MaskRules

SENTENCES_A_BATCH = 2048
"""An encoding takes a few kilobytes."""


class Masker:
    """Masks mentions in many sentences at once. Created by `load_masker`."""

    def __init__(self, mask_token: str, subtokens: Subtokens | None = None) -> None:
        self.mask_token = mask_token
        self._subtokens = subtokens

    def mask(self, texts: Sequence[str], starts: Sequence[int], ends: Sequence[int]) -> list[str]:
        """n sentences, each with the mention [start, end), in code points, replaced."""
        masks = [1] * len(texts) if self._subtokens is None else self._subtokens.count(texts, starts, ends)
        separator = " " if self._subtokens is None else self._subtokens.separator
        spans = zip(texts, starts, ends, masks, strict=True)
        return [
            mask(text, start, end, mask_token=self.mask_token, masks=n, separator=separator)
            for text, start, end, n in spans
        ]


def mask(text: str, start: int, end: int, *, mask_token: str, masks: int = 1, separator: str = " ") -> str:
    """The sentence with [start, end), in code points, replaced by masks; mask tokens elsewhere in it are broken.

    >>> mask("in New York [MASK]", 3, 11, mask_token="[MASK]", masks=2)
    'in [MASK] [MASK]  MASK]'
    """
    instead = separator.join([mask_token] * masks)
    return without_masks(text[:start], mask_token) + instead + without_masks(text[end:], mask_token)


def without_masks(text: str, mask_token: str) -> str:
    """The text, of the same length, with the first character of each mask token that is not a space made a space."""
    if mask_token in text:
        bare = mask_token.lstrip()
        broken = " " * (len(mask_token) - len(bare) + 1) + bare[1:]
        while mask_token in text:
            text = text.replace(mask_token, broken)
    return text


def masked_pairs(pairs: pa.Table, masker: Masker) -> tuple[pa.Array, pa.Array]:
    """The anchors and positives of pairs (MENTION_PAIRS), each masked unless the pair's `unmasked` names it."""
    unmasked = pairs.column("unmasked").to_numpy()
    anchor, positive = (_masked_side(pairs, side, unmasked != side, masker) for side in (1, 2))
    return anchor, positive


def _masked_side(pairs: pa.Table, side: int, masked: npt.NDArray[np.bool_], masker: Masker) -> pa.Array:
    texts = pairs.column(f"text_{side}").to_pylist()
    starts, ends = (pairs.column(f"{name}_char_{side}").to_pylist() for name in ("start", "end"))
    for rows in _batches(np.flatnonzero(masked).tolist()):
        here = [[column[row] for row in rows] for column in (texts, starts, ends)]
        for row, text in zip(rows, masker.mask(*here), strict=True):
            texts[row] = text
    for row in np.flatnonzero(~masked).tolist():
        texts[row] = without_masks(texts[row], masker.mask_token)
    return pa.array(texts, MASKED_MENTION_PAIRS.field("anchor").type)


def _batches(rows: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(rows), SENTENCES_A_BATCH):
        yield rows[start : start + SENTENCES_A_BATCH]


class Subtokens:
    """Counts the sub-tokens of mentions. UserError if the tokenizer cannot, or does not know the mask token."""

    def __init__(self, name: str, mask_token: str) -> None:
        self._backend, own = _load_tokenizer(name)
        number = self._backend.token_to_id(mask_token)
        if number is None:
            remedy = f"its own is {own!r}: --mask-token={own!r}" if own else "choose another with --tokenizer"
            raise UserError(f"the tokenizer {name!r}: knows no mask token {mask_token!r}; {remedy}")
        # n masks in a row must be n sub-tokens; with some tokenizers a space between them would be another one.
        for separator in (" ", ""):
            if self._encode([separator.join([mask_token] * 3)])[0].ids == [number] * 3:
                break
        else:
            raise UserError(f"the tokenizer {name!r}: takes {mask_token!r} apart; choose another with --mask-token")
        self.separator = separator

    def count(self, texts: Sequence[str], starts: Sequence[int], ends: Sequence[int]) -> list[int]:
        """How many sub-tokens the mention [start, end) of each sentence has, at least 1."""
        encodings = self._encode(texts)
        return [
            max(sum(first < end and last > start for first, last in encoding.offsets), 1)
            for encoding, start, end in zip(encodings, starts, ends, strict=True)
        ]

    def digest(self) -> str:
        """A hash of the tokenizer's whole definition."""
        return xxhash.xxh3_128_hexdigest(self._backend.to_str().encode())

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        return self._backend.encode_batch(list(texts), add_special_tokens=False)


def _load_tokenizer(name: str) -> tuple[Any, str]:
    """A tokenizer of the library `tokenizers`, which gives the offsets of its sub-tokens, and its own mask token."""
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise UserError(f"--masks=subtokens needs {error.name}: pip install 'phrasemill[train]'") from error
    if name.startswith(("/", "./", "../", "~")) and not Path(name).is_dir():
        raise UserError(f"the tokenizer {name!r}: no such folder; give another with --tokenizer")
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"the tokenizer {name!r}: {reason}; give the name or the folder of one of Hugging Face's with --tokenizer"
        ) from error
    if not tokenizer.is_fast:
        raise UserError(
            f"the tokenizer {name!r}: is written in Python and gives no offsets of its sub-tokens; choose one of the "
            "library 'tokenizers' with the same vocabulary (for LUKE that is roberta-base) with --tokenizer"
        )
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    return backend, tokenizer.mask_token or ""


def load_masker(rules: MaskRules) -> Masker:
    """The masker of these rules. UserError if something is missing or unknown, or the tokenizer has changed."""
    _check(rules)
    if rules.masks == "one":
        return Masker(rules.mask_token)
    subtokens = Subtokens(rules.tokenizer, rules.mask_token)
    if rules.digest and rules.digest != subtokens.digest():
        raise UserError(
            f"the tokenizer {rules.tokenizer!r}: is not the one that the run was started with; restore that one, "
            "or start again with --overwrite"
        )
    return Masker(rules.mask_token, subtokens)


def identified(rules: MaskRules) -> MaskRules:
    """The rules with the digest of their tokenizer, so that its content counts, not only its name. Raises UserError."""
    _check(rules)
    if rules.masks == "one":
        return rules
    return replace(rules, digest=Subtokens(rules.tokenizer, rules.mask_token).digest())


def _check(rules: MaskRules) -> None:
    if not rules.mask_token.strip():
        raise UserError("--mask-token: must not be empty")
    if rules.masks not in ("one", "subtokens"):
        raise UserError(f"--masks: no {rules.masks!r}; choose among one, subtokens")
    if rules.masks == "subtokens" and not rules.tokenizer:
        raise UserError("--masks=subtokens: name the model whose sub-tokens are counted with --tokenizer")


cached_masker = functools.lru_cache(maxsize=2)(load_masker)
"""`load_masker`, once in a process for the same rules."""
