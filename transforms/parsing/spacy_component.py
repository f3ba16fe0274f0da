"""The parser `phrasemill` as a component of any spaCy pipeline. It needs no import: spaCy finds it by its name.

nlp = spacy.blank("en")
nlp.add_pipe("phrasemill_constituents")
doc = nlp("The old man saw a well-known whale.")
[(span.label_, span.text) for span in doc.spans["constituents"]]
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.util import minibatch

from transforms.parsing.phrasemill.network import Parse
from transforms.parsing.phrasemill_parser import PhrasemillParser
from transforms.parsing.sentence_ends import sentence_starts
from transforms.parsing.trees import Refusal

Places: TypeAlias = list[int]
"""The places in the Doc of the tokens of a sentence that are words."""

_BLANK_LINES = re.compile(r"\n\s*\n")


@Language.factory(
    "phrasemill_constituents",
    assigns=["doc.spans", "token.tag", "token.is_sent_start"],
    default_config={"model": "", "spans_key": "constituents", "max_tokens": 250, "threads": 1},
)
def make_constituents(
    nlp: Language, name: str, model: str, spans_key: str, max_tokens: int, threads: int
) -> ConstituentComponent:
    """The component. Its options are those of `PhrasemillParser`; a saved pipeline holds only them."""
    return ConstituentComponent(PhrasemillParser(model, max_tokens=max_tokens, threads=threads), spans_key)


class ConstituentComponent:
    """Writes each Doc's constituents to `doc.spans[spans_key]`, by start, longest first, of equal ones the outer first.

    Sentences and tags of the Doc are kept; missing ones are added. The parser does not see white space tokens, although
    a constituent may hold some. A sentence that the parser refuses has no constituents and is listed in the group's
    `attrs["refused"]` as [start token, end token, reason].
    """

    def __init__(self, parser: PhrasemillParser, spans_key: str = "constituents") -> None:
        self.parser = parser
        self.spans_key = spans_key

    def __call__(self, doc: Doc) -> Doc:
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 64) -> Iterator[Doc]:
        for docs in minibatch(stream, batch_size):
            sentences = [_sentences(doc) for doc in docs]
            words = [
                [doc[place].text for place in places]
                for doc, found in zip(docs, sentences, strict=True)
                for places in found
            ]
            parses = iter(self.parser.parse_words(words))
            for doc, found in zip(docs, sentences, strict=True):
                self._annotate(doc, [(places, next(parses)) for places in found])
                yield doc

    def _annotate(self, doc: Doc, parses: Iterable[tuple[Places, Parse | Refusal]]) -> None:
        has_tags = doc.has_annotation("TAG")
        spans: list[Span] = []
        refused: list[tuple[int, int, str]] = []
        for places, parse in parses:
            if isinstance(parse, Refusal):
                refused.append((places[0], places[-1] + 1, parse.reason))
                continue
            if not has_tags:
                for place, tag in zip(places, parse.tags, strict=True):
                    doc[place].tag_ = tag
            spans += [Span(doc, places[start], places[end - 1] + 1, label) for label, start, end in parse.constituents]
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, attrs={"refused": refused}, spans=spans)


def _sentences(doc: Doc) -> list[Places]:
    """The sentences that have a word; boundaries are set if the Doc has none."""
    if not doc.has_annotation("SENT_START"):
        _set_boundaries(doc)
    sentences = [[token.i for token in sentence if not token.is_space] for sentence in doc.sents]
    return [places for places in sentences if places]


def _set_boundaries(doc: Doc) -> None:
    """Set sentence boundaries by the parser's own rules. An empty line ends a sentence, a single line break does not.

    White space belongs to the sentence before it, at the beginning to the first one.
    """
    text = doc.text
    words = [token.i for token in doc if not token.is_space]
    first_characters = [doc[place].idx for place in words]
    starts = {0}
    begin = 0
    for end, next_begin in [*(match.span() for match in _BLANK_LINES.finditer(text)), (len(text), len(text))]:
        for start in sentence_starts(text[begin:end]):
            place = bisect_left(first_characters, begin + start)
            if 0 < place < len(words):
                starts.add(words[place])
        begin = next_begin
    for token in doc:
        token.is_sent_start = token.i in starts
