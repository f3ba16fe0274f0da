"""The interface of paraphrase generators: phrases with banned words in, candidates out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class Request(NamedTuple):
    """A phrase to be paraphrased. `seed`: 64 bits of its identity, which replace random numbers."""

    text: str
    banned: tuple[str, ...]
    seed: int


class Candidate(NamedTuple):
    """A paraphrase that was drawn.

    `log_probability` is the sum of the natural logarithms of its `tokens` (the end included) under the model, without
    temperature, nucleus or constraint. It is rounded to `DECIMALS`, as last bits differ between machines. Not
    `finished`: cut at the limit of length.
    """

    text: str
    log_probability: float
    tokens: int
    finished: bool = True


class Likelihood(NamedTuple):
    """How likely a text is under a model: the sum of the natural logarithms of its tokens, and their number."""

    log_probability: float
    tokens: int


DECIMALS = 3
"""Of log probabilities."""


class GeneratorIdentity(NamedTuple):
    """What decides a generator's output besides its options and the requests; part of fingerprints and manifests."""

    generator: str
    version: int  # of our own code for it, raised by hand
    model: str
    model_sha256: str
    settings: dict[str, str]  # a hash of the prompt, where it is one
    libraries: dict[str, str]


class Generator(Protocol):
    """A loaded generator, loaded once in a process.

    A candidate depends on the request (text, banned, seed), the number of its draw and the identity, and on nothing
    else: not on other requests of the call, their order, or how many draws there are. docs/generators.md says where
    floating point limits that.
    """

    identity: GeneratorIdentity
    device: str

    def generate(
        self,
        requests: Sequence[Request],
        *,
        draws: int,
        first_draw: int = 0,
        note: Callable[[int], None] = lambda done: None,
    ) -> list[list[Candidate]]:
        """For each request its candidates of the draws `first_draw` to `first_draw + draws`, in order.

        A second attempt asks for further draws. `note` is called with the number of requests that are done.
        """
        ...

    def pair_likelihoods(self, pairs: Sequence[tuple[str, str]]) -> list[Likelihood]:
        """How likely the second text of each pair is as a paraphrase of the first."""
        ...

    def log_likelihoods(self, texts: Sequence[str]) -> list[Likelihood]:
        """How likely each text is by itself, for its fluency. UserError if the model has no such measure."""
        ...
