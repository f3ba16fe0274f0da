"""A transformer as an encoder of mentions: sentences in, a vector for a span of each.

LUKE has a vector of its own for an entity, which is given the places of its mention (Yamada et al. 2020, section 3). Of
any other transformer, the mean over the mention's sub-tokens is taken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from schemas.errors import UserError
from trainers.training.encoder import change
from trainers.training.options import Training
from trainers.training.portable import make_tokenizer_portable
from transforms.encoders.interface import F32
from transforms.encoders.spans import Placed, window
from transforms.encoders.transformers_encoders import padded_batches
from transforms.libraries import quiet_transformers

HEADS = ("cls", "lm_head")
"""Where the models of transformers have their heads for masked words, which take states of any shape."""
MLM_SHARE = 0.15
LUKE = "luke"


class Mention(NamedTuple):
    """text[start_char:end_char], in code points."""

    text: str
    start_char: int
    end_char: int


class Tokens(NamedTuple):
    """A sentence, cut around its mention.

    ids    of its sub-tokens, with the special ones
    start, end
           the mention's, in `ids`
    words  the places of each word's sub-tokens, without special ones
    """

    ids: list[int]
    start: int
    end: int
    words: list[list[int]]


def masked(tokens: Tokens, mask: int, *, one: bool) -> Tokens:
    """The mention masked: by one mask, or by one for each of its sub-tokens. `words` are those without the mention's.

    >>> masked(Tokens([1, 7, 8, 9, 2], 2, 4, [[1], [2, 3]]), 103, one=True)
    Tokens(ids=[1, 7, 103, 2], start=2, end=3, words=[[1]])
    """
    ids, start, end, words = tokens
    masks = 1 if one else end - start
    moved = masks - (end - start)
    left = [[each + moved * (each >= end) for each in word if not start <= each < end] for word in words]
    return Tokens([*ids[:start], *[mask] * masks, *ids[end:]], start, start + masks, [each for each in left if each])


def with_masked_words(tokens: Tokens, mask: int, vocabulary: int) -> tuple[list[int], list[int]]:
    """The sub-tokens with 15 % of them hidden, as whole words, and the places of these (UCTopic's code).

    Of the hidden ones 80 % are masks, 10 % any others, 10 % as they were. Drawn from torch's generator.
    """
    ids, places = [*tokens.ids], list[int]()
    most = max(1, round(MLM_SHARE * len(ids)))
    for word in torch.randperm(len(tokens.words)).tolist():
        if len(places) + len(tokens.words[word]) <= most:
            places += tokens.words[word]
    drawn, others = torch.rand(len(places)).tolist(), torch.randint(vocabulary, (len(places),)).tolist()
    for place, share, other in zip(places, drawn, others, strict=True):
        ids[place] = mask if share < 0.8 else other if share < 0.9 else ids[place]
    return ids, places


class LukeForMaskedLM(transformers.LukeForMaskedLM):
    """LUKE with the weights of its head for words tied, as in transformers 4: the head of 5 would be a random one."""

    _tied_weights_keys = {  # noqa: RUF012 (as its base class has it)
        **transformers.LukeForMaskedLM._tied_weights_keys,
        "lm_head.decoder.weight": "luke.embeddings.word_embeddings.weight",
    }


class MentionEncoder(nn.Module):
    """Vectors of mentions, and the loss of masked words.

    dimension   of its vectors
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int) -> None:
        super().__init__()
        self.model = model
        self.is_luke = model.config.model_type == LUKE
        self.dimension = int(model.config.hidden_size)
        self.mask, self.vocabulary = int(tokenizer.mask_token_id), len(tokenizer)
        self._tokenizer, self._backend = tokenizer, tokenizer.backend_tokenizer
        self._backend.no_truncation()
        self._backend.no_padding()
        self._backend.encode_special_tokens = True  # "[MASK]" in a sentence is no mask
        positions = model.config.max_position_embeddings - (tokenizer.pad_token_id + 1 if self.is_luke else 0)
        self._max_tokens = min(max_tokens, positions)
        # RoBERTa's sub-tokens of a word differ at the beginning of a sentence, unless a blank stands before it.
        self._prefix = " " if self.is_luke else ""
        if self.is_luke:  # of its 500,000 entities only the one that stands for any is used
            model.base_model.get_entity_embeddings().requires_grad_(False)
            if hasattr(model, "entity_predictions"):
                model.entity_predictions.requires_grad_(False)

    @classmethod
    def load(cls, name: str, *, max_tokens: int, head: bool = True, options: Training | None = None) -> MentionEncoder:
        """A folder or a name on the hub. With `head`, for masked words, a model that has none gets a new one.

        `options`: with its first layers only, or with new weights, as they say.
        UserError if it cannot be loaded, or its tokenizer has no mask or gives no offsets.
        """
        try:
            with quiet_transformers():
                tokenizer = transformers.AutoTokenizer.from_pretrained(name)
                config = transformers.AutoConfig.from_pretrained(name)
                of: Any = LukeForMaskedLM if config.model_type == LUKE else transformers.AutoModelForMaskedLM
                model, report = of.from_pretrained(name, dtype=torch.float32, output_loading_info=True)
        except (OSError, ValueError) as error:
            raise UserError(f"--model {name}: {str(error).strip().splitlines()[0]}") from error
        if not tokenizer.is_fast or tokenizer.mask_token_id is None:
            lacks = "a mask token" if tokenizer.is_fast else "offsets of its sub-tokens"
            raise UserError(f"--model {name}: its tokenizer has no {lacks}: choose another model")
        if options is not None:
            change(model, options)
        base = f"{model.base_model_prefix}."
        if new := sorted(each for each in report["missing_keys"] if not each.startswith(base)):
            if not head:
                return cls(model.base_model, tokenizer, max_tokens=max_tokens)
            for each in new:
                if each.endswith("bias"):  # LUKE's is whatever was in memory
                    nn.init.zeros_(model.get_parameter(each))
            said = (
                f"{name}: has no head for masked words ({new[0]} is missing): a new one is learned, from random weights"
            )
            print(said, file=sys.stderr, flush=True)
        return cls(model, tokenizer, max_tokens=max_tokens)

    def tokens(self, mentions: Sequence[Mention]) -> list[Tokens]:
        """UserError if a mention has no sub-token."""
        found = []
        texts = [self._prefix + each.text for each in mentions]
        for mention, encoded in zip(mentions, self._backend.encode_batch(texts), strict=True):
            before = len(self._prefix)
            place = Placed(mention.text, before, mention.start_char + before, mention.end_char + before)
            kept, span = window(encoded.offsets, place, self._max_tokens)
            if not span:
                what = mention.text[mention.start_char : mention.end_char]
                raise UserError(f"the mention {what!r} of {mention.text[:100]!r}: has no sub-token: leave its row out")
            ids, word_ids = encoded.ids, encoded.word_ids
            start, end = span[0], span[-1] + 1
            # LUKE counts the blank before a mention as the mention's, where it is a sub-token of its own.
            while start > 1 and encoded.offsets[kept[start - 1]] == (encoded.offsets[kept[start]][0],) * 2:
                start -= 1
            words: dict[int, list[int]] = {}
            for n, each in enumerate(kept):
                if word_ids[each] is not None:
                    words.setdefault(word_ids[each], []).append(n)
            found.append(Tokens([ids[each] for each in kept], start, end, [*words.values()]))
        return found

    def forward(self, inputs: Sequence[Tokens]) -> Tensor:
        """[n, dimension]"""
        parts, rows = [], []
        base = self.model.base_model
        for group, ids, mask in self._padded([each.ids for each in inputs]):
            spans = [range(inputs[each].start, inputs[each].end) for each in group]
            if self.is_luke:
                places = torch.full((len(group), 1, max(map(len, spans))), -1)
                for row, span in enumerate(spans):
                    places[row, 0, : len(span)] = torch.tensor(span)
                entity = torch.full((len(group), 1), self._tokenizer.entity_mask_token_id)
                states = base(
                    input_ids=ids,
                    attention_mask=mask,
                    entity_ids=entity.to(ids.device),
                    entity_position_ids=places.to(ids.device),
                    entity_attention_mask=mask[:, :1],
                )
                parts.append(states.entity_last_hidden_state[:, 0].float())
            else:
                states = base(input_ids=ids, attention_mask=mask).last_hidden_state.float()
                parts.append(torch.stack([states[row, [*span]].mean(dim=0) for row, span in enumerate(spans)]))
            rows += group
        back = torch.empty(len(rows), dtype=torch.long)
        back[torch.tensor(rows)] = torch.arange(len(rows))
        return torch.cat(parts)[back.to(parts[0].device)]

    def masked_words_loss(self, inputs: Sequence[Tokens]) -> Tensor:
        """The mean loss of the hidden words of some sentences. What is hidden is drawn from torch's generator."""
        hidden = [with_masked_words(each, self.mask, self.vocabulary) for each in inputs]
        head = next(getattr(self.model, each) for each in HEADS if hasattr(self.model, each))
        total, number = None, 0
        for group, ids, mask in self._padded([each for each, _ in hidden]):
            rows = [row for row, each in enumerate(group) for _ in hidden[each][1]]
            places = [place for each in group for place in hidden[each][1]]
            right = [inputs[each].ids[place] for each in group for place in hidden[each][1]]
            states = self.model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state[rows, places]
            wrong = functional.cross_entropy(
                head(states).float(), torch.tensor(right, dtype=torch.long, device=ids.device), reduction="sum"
            )
            total, number = wrong if total is None else total + wrong, number + len(rows)
        assert total is not None
        return total / max(1, number)

    @torch.inference_mode()
    def encode(self, mentions: Sequence[Mention]) -> F32:
        """[n, dimension], without dropout"""
        was = self.training
        self.eval()
        chunks = (mentions[first : first + 2048] for first in range(0, len(mentions), 2048))
        found = [self(self.tokens(each)).cpu().numpy() for each in chunks]
        self.train(was)
        return np.concatenate([np.empty((0, self.dimension), np.float32), *found])

    def save(self, folder: Path) -> None:
        """As transformers loads it."""
        with quiet_transformers():
            self.model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)
        make_tokenizer_portable(folder)

    def _padded(self, rows: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Groups of rows of like length: which, their ids and their mask [n, tokens]."""
        device = next(self.model.parameters()).device
        return padded_batches(rows, pad=self._tokenizer.pad_token_id, device=device)
