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
    """A sentence of a text. Characters are code points of that text; no token is white space.

    Each constituent occurs once, in order of start, longest first, the outermost of a unary chain first. Labels have no
    function tags; part-of-speech tags are not constituents.
    """

    start_char: int
    end_char: int
    token_starts: list[int]
    token_ends: list[int]
    tags: list[str]
    constituents: list[Constituent]


class RefusedSentence(NamedTuple):
    """A sentence without a parse, because of its length or an error of the model."""

    start_char: int
    end_char: int
    reason: str  # "too_many_tokens", "too_many_subwords" or "parser_error"
    exception: str = ""


Sentence: TypeAlias = ParsedSentence | RefusedSentence


class ParserIdentity(NamedTuple):
    """What decides a parser's output; part of fingerprints and manifests."""

    parser: str
    version: int  # of our own code for it, raised by hand
    model: str
    model_version: str
    model_sha256: str
    libraries: dict[str, str]


class Parser(Protocol):
    """A loaded parser, loaded once in a process. A call takes texts of one or several documents.

    The output of a call depends only on its input and the identity.
    """

    identity: ParserIdentity

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        """Split each text (one paragraph, no line break in it) into sentences and parse them, in order."""
        ...

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        """Parse sentences of given tokens (a refused one has offsets 0); for evaluation against a treebank."""
        ...
