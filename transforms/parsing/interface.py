"""The interface of constituency parsers: texts or tokenised sentences in, sentences with constituents out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias


class Constituent(NamedTuple):
    """A labelled span of tokens; the end is exclusive."""

    label: str
    start_token: int
    end_token: int


class ParsedSentence(NamedTuple):
    """A sentence of a text. Characters are code points of that text; no token is whitespace.

    Each constituent occurs once, in order of start, longest first, the outermost of a unary chain first. Labels
    are bare (no function tags); part-of-speech tags are not constituents.
    """

    start_char: int
    end_char: int
    token_starts: list[int]
    token_ends: list[int]
    tags: list[str]
    constituents: list[Constituent]


class RefusedSentence(NamedTuple):
    """A sentence that the parser did not take: by its length in tokens, or for an error of the model."""

    start_char: int
    end_char: int
    reason: str  # "too_many_tokens", "too_many_subwords" or "parser_error"
    exception: str = ""


Sentence: TypeAlias = ParsedSentence | RefusedSentence


class ParserIdentity(NamedTuple):
    """What decides a parser's output: goes into fingerprints and manifests."""

    parser: str
    version: int  # of our own code for it, bumped by hand
    model: str
    model_version: str
    model_sha256: str
    libraries: dict[str, str]


class Parser(Protocol):
    """A loaded parser. Loaded once a process; a call is a batch that may cross documents.

    The output of a call is a function of its input and the identity alone.
    """

    identity: ParserIdentity

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        """Split each text (one paragraph, no line break in it) into sentences and parse them, in order."""
        ...

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        """Parse sentences of given tokens (a refused one has offsets 0); for evaluation against a treebank."""
        ...
