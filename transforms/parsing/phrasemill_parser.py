"""Our own parser behind the parser interface; it can also be used on its own.

parser = PhrasemillParser()
for sentence in parser.parse_texts(["The old man saw a well-known whale. It swam."])[0]:
    sentence.constituents                                     # [Constituent("S", 0, 10), Constituent("NP", 0, 3), ...]
parser.parse_words([["A", "black", "cat", "slept"]])[0].tags  # ["DT", "JJ", "NN", "VBD"]
print(parser.trees("The old man saw a whale.")[0])            # (ROOT (S (NP (DT The) (JJ old) (NN man)) ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from transforms.activity import noting
from transforms.parsing import identities
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.phrasemill.network import Network, Parse
from transforms.parsing.sentences import Tokenizer, Tokens
from transforms.parsing.trees import Refusal, each_or_alone, tree_of

if TYPE_CHECKING:
    import nltk

TOKENISED = 0.06
"""About how much of a call is done when its texts are tokenised."""
GROUP_WORDS = 100_000
"""About how many words are batched together: few enough for memory, enough for many sentences of equal length."""


class PhrasemillParser:
    """The parser that comes with phrasemill: MiniLM's lowest layers and span scores, on ONNX Runtime.

    `model` is the path of an ONNX file written by `trainers.train parser`, by default the shipped one. A sentence of
    more than `max_tokens` tokens (at most 510) is refused. `threads` batches run at a time. Labels are NP, VP, PP,
    ADJP, ADVP, S and SBAR, tags are the Penn Treebank's, both as used in GUM.

    The result for a sentence depends only on its words, not on the other sentences of a call or on `threads`. A parser
    takes one call at a time. It can be pickled, and then loads its file again. Raises UserError for a file that is not
    such a network, and for options out of range.
    """

    def __init__(self, model: str = "", *, max_tokens: int = 250, threads: int = 1) -> None:
        self.identity = identities.phrasemill(model, max_tokens=max_tokens, threads=threads)
        self._options: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "threads": threads}
        self._max_tokens = max_tokens
        self._network = Network(model or None, threads=threads)
        self._tokenizer = Tokenizer()

    def __getstate__(self) -> dict[str, Any]:
        return self._options

    def __setstate__(self, options: dict[str, Any]) -> None:
        self.__init__(**options)  # type: ignore[misc]

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        """Split each text (one paragraph; line breaks count as spaces) into sentences and parse them, in order."""
        if isinstance(texts, str):
            raise TypeError("parse_texts takes a list of texts, not one text")
        found: list[list[Tokens]] = []
        note = noting(sum(map(len, texts)), end=TOKENISED)
        for text in texts:
            found += self._tokenizer.sentences([text])
            note(len(text), 0)
        parses = iter(self.parse_words([each.words for sentences in found for each in sentences], begin=TOKENISED))
        return [[_placed(each, next(parses)) for each in sentences] for sentences in found]

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        return [
            RefusedSentence(0, 0, *parse) if isinstance(parse, Refusal) else parse.constituents
            for parse in self.parse_words(sentences)
        ]

    def parse_words(self, sentences: Sequence[Sequence[str]], *, begin: float = 0.0) -> list[Parse | Refusal]:
        """The tags and constituents of sentences of given words, or why there are none.

        `begin`: how much of a call that shows its progress (`transforms/activity.py`) is done before.
        """
        if any(isinstance(each, str) for each in (sentences, *sentences)):
            raise TypeError("parse_words takes a list of sentences, each a list of words")
        found: list[Parse | Refusal] = [Refusal("too_many_tokens")] * len(sentences)
        note = noting(sum(map(len, sentences)), begin=begin)

        def parse(group: list[int]) -> list[Parse]:
            return self._network.parse([sentences[number] for number in group], note=note)

        for group in _groups(sentences, self._max_tokens):
            for number, result in each_or_alone(parse, group):
                found[number] = result
        return found

    def trees(self, text: str) -> list[nltk.Tree | None]:
        """The tree of each sentence of a text; None for a refused one."""
        found = self._tokenizer.sentences([text])[0]
        parses = self.parse_words([each.words for each in found])
        return [
            None if isinstance(parse, Refusal) else tree_of(each.words, parse.tags, parse.constituents)
            for each, parse in zip(found, parses, strict=True)
        ]


def _groups(sentences: Sequence[Sequence[str]], max_tokens: int) -> Iterator[list[int]]:
    """The numbers of the sentences that are not too long, in order, in groups of about `GROUP_WORDS` words."""
    group: list[int] = []
    words = 0
    for number, sentence in enumerate(sentences):
        if len(sentence) > max_tokens:
            continue
        group.append(number)
        words += len(sentence)
        if words >= GROUP_WORDS:
            yield group
            group, words = [], 0
    if group:
        yield group


def _placed(tokens: Tokens, parse: Parse | Refusal) -> Sentence:
    start, end = tokens.starts[0], tokens.ends[-1]
    if isinstance(parse, Refusal):
        return RefusedSentence(start, end, *parse)
    return ParsedSentence(start, end, tokens.starts, tokens.ends, parse.tags, parse.constituents)
