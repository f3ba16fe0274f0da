"""The network: the vectors of a phrase's words through a GRU; its last state is the phrase's vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import xxhash
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from schemas.errors import UserError
from trainers.pgru.files import WEIGHTS, WORDS, Config, read_config, write_config
from transforms.word_vectors import WordVectors

LENGTH = 5.0
"""The root mean square length to which the vectors of words are brought, all by one factor.

So a rate has the same effect whatever the vectors are; spaCy's have lengths of about 45. Measured at the rate 0.3, two
epochs of 7,567 pairs of PPDB: of 10 phrases 67 % are right with a length of 1, 93 % with 5 and with 15.
"""


class PhraseGRU(nn.Module):
    """Phrases are lists of rows of `vectors`. A phrase without a word has the vector 0.

    The two GRUs of the paper share their weights, so there is one.
    """

    def __init__(self, words: WordVectors, config: Config, *, train_vectors: bool = False) -> None:
        super().__init__()
        self.words, self.config = words.rows, config
        self._trained = train_vectors
        vectors = torch.from_numpy(np.array(words.matrix, np.float32))
        if train_vectors:
            self.vectors = nn.Parameter(vectors)
        else:
            # Not in checkpoints, where its hash stands for it.
            self.register_buffer("vectors", vectors, persistent=False)
        digest = xxhash.xxh3_128(np.ascontiguousarray(words.matrix).tobytes())
        digest.update("\n".join(f"{word}\t{row}" for word, row in words.rows.items()).encode("utf-8", "replace"))
        self.register_buffer("words_digest", torch.tensor([*digest.digest()], dtype=torch.uint8))
        self.gru = nn.GRU(vectors.shape[1], config.units, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)

    @classmethod
    def new(cls, words: WordVectors, *, units: int, dropout: float, train_vectors: bool = False) -> PhraseGRU:
        """With random weights, from torch's generator."""
        rows = {word: row for word, row in words.rows.items() if word.split() == [word]}  # others are no words of texts
        used = words.matrix[np.unique(np.fromiter(rows.values(), np.int64, len(rows)))]
        size = float(np.sqrt((used.astype(np.float64) ** 2).sum(axis=1).mean())) if len(used) else 0.0
        if not size:
            raise UserError("has no vectors of words that are not 0")
        config = Config(units, dropout, LENGTH / size)
        matrix = (words.matrix * np.float32(config.scale)).astype(np.float32)
        return cls(WordVectors(rows, matrix), config, train_vectors=train_vectors)

    @property
    def dimension(self) -> int:
        return self.config.units

    def forward(self, phrases: Sequence[Sequence[int]]) -> Tensor:
        """[n, units]"""
        lengths = np.array([len(each) for each in phrases], np.int64)
        there = np.flatnonzero(lengths)
        device = self.vectors.device
        found = torch.zeros(len(phrases), self.config.units, device=device)
        if not len(there):
            return found
        # Longest first, as the GRU takes them: after each word fewer go on, and padding is not computed.
        order = there[np.argsort(-lengths[there], kind="stable")]
        sizes = lengths[order]
        padded = np.zeros((len(order), sizes[0]), np.int64)
        padded[np.arange(sizes[0]) < sizes[:, None]] = [row for each in order for row in phrases[each]]
        inputs = self.dropout(self.vectors[torch.from_numpy(padded).to(device)])
        packed = pack_padded_sequence(inputs, torch.from_numpy(sizes), batch_first=True)
        return found.index_copy(0, torch.from_numpy(order).to(device), self.gru(packed)[1][0].float())

    def save(self, folder: Path) -> None:
        rows = torch.tensor([*self.words.values()], dtype=torch.int32)
        weights = {f"gru.{name}": value for name, value in self.gru.state_dict().items()}
        tensors = {"vectors": self.vectors.detach(), "word_rows": rows, **weights}
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, str(folder / WEIGHTS))
        (folder / WORDS).write_bytes("".join(f"{word}\n" for word in self.words).encode("utf-8", "surrogatepass"))
        write_config(folder, self.config)

    @classmethod
    def load(cls, folder: Path, *, train_vectors: bool = False) -> PhraseGRU:
        """UserError if a file is missing or damaged."""
        config = read_config(folder)
        if config is None:
            raise UserError(f"{folder}: is no model of trainers.train pgru")
        try:
            tensors = load_file(str(folder / WEIGHTS))
            words = (folder / WORDS).read_bytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
            rows = tensors.pop("word_rows").tolist()
            known = WordVectors(dict(zip(words, rows, strict=True)), tensors.pop("vectors").numpy())
            found = cls(known, config, train_vectors=train_vectors)
            found.gru.load_state_dict({name.removeprefix("gru."): value for name, value in tensors.items()})
        except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as error:
            said = " ".join(str(error).split())[:200]
            raise UserError(f"{folder}: cannot be read ({said}); train the model again") from error
        return found
