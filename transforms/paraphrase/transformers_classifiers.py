"""Classifiers of texts and of pairs of texts, as Parrot's filters are: adequacy of a pair, fluency of a text.

Parrot scores one text at a time, and gives its adequacy classifier the phrase with the prompt of the generator before
it ("paraphrase: "). Here texts go in batches, and the phrase is as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

from schemas.errors import UserError
from transforms.hub import locate_model
from transforms.libraries import quiet_transformers
from transforms.parsing.trees import batches_by_length

F32 = npt.NDArray[np.float32]

BATCH_TOKENS = {"cpu": 512, "cuda": 1 << 15}
MAX_CELLS = 1 << 24
MAX_TOKENS = 128
"""Longer ones are cut, as Parrot does."""


class Classifier:
    """A sequence classifier of two labels: a folder, or a name on the hub. The second label is the good one.

    UserError if there is no such model, or it has not two labels.
    """

    def __init__(self, name: str, *, flag: str) -> None:
        torch.set_num_threads(1)
        try:
            folder = locate_model(name)
            with quiet_transformers():
                self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
                model, loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
                    folder, output_loading_info=True
                )
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(f"{flag} {name}: {str(error).strip().splitlines()[0]}") from error
        if model.config.num_labels != 2 or loaded["missing_keys"]:
            raise UserError(f"{flag} {name}: is no classifier with two labels; give one, such as Parrot's")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model = model.to(self.device).eval()
        self._max_tokens = min(MAX_TOKENS, self._tokenizer.model_max_length)
        self._tokenizer.model_max_length = sys.maxsize

    def probabilities(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        note: Callable[[int], None] = lambda done: None,
    ) -> F32:
        """[n] the probability of the good label for each text, or each text with its second one."""
        found = np.empty(len(texts), np.float32)
        if not texts:
            return found
        inputs = self._tokenizer(
            list(texts), list(pairs) if pairs is not None else None, truncation=True, max_length=self._max_tokens
        )
        lengths = [len(each) for each in inputs["input_ids"]]
        for batch in batches_by_length(lengths, max_padded=BATCH_TOKENS[self.device], max_cells=MAX_CELLS):
            padded = self._tokenizer.pad(
                {name: [values[row] for row in batch] for name, values in inputs.items()}, return_tensors="pt"
            )
            with torch.inference_mode():
                logits = self._model(**padded.to(self.device)).logits.float()
            found[batch] = logits.softmax(dim=1)[:, 1].cpu().numpy()
            note(len(batch))
        return found
