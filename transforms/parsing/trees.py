"""Code shared by parsers with large models: batches by length, trees to constituents, errors to refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.tokens import TokenisedSentence
from transforms.parsing.treebank import ROOTS, bare_label

if TYPE_CHECKING:
    import nltk

T = TypeVar("T")


class Refusal(NamedTuple):
    """Why a sentence has no parse: a `RefusedSentence` without its offsets."""

    reason: str
    exception: str = ""


Parse: TypeAlias = list[Constituent] | Refusal


def error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def batches_by_length(lengths: Sequence[int], *, max_padded: int, max_cells: int) -> Iterator[list[int]]:
    """Indices of items in batches of similar length, longest first, so that a lack of memory shows at once.

    A batch of b items padded to n has b * n <= max_padded and b * n * n <= max_cells, because a chart or attention is
    quadratic in n. An item over these limits is a batch of its own. Ties keep the input's order.

    >>> list(batches_by_length([2, 5, 3, 2], max_padded=6, max_cells=100))
    [[1], [2, 0], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    while order:
        longest = max(1, lengths[order[0]])
        size = max(1, min(max_padded // longest, max_cells // longest**2))
        yield order[:size]
        order = order[size:]


def each_or_alone(parse: Callable[[list[int]], Iterable[T]], batch: list[int]) -> Iterator[tuple[int, T | Refusal]]:
    """The results of `parse` for a batch. If it raises, each item is parsed alone, and those that raise are refused."""
    try:
        results: list[T | Refusal] = list(parse(batch))
        if len(results) != len(batch):
            raise ValueError(f"{len(results)} parses for {len(batch)} sentences")
    except Exception as error:
        if len(batch) > 1:
            for index in batch:
                yield from each_or_alone(parse, [index])
            return
        results = [Refusal("parser_error", error_text(error))]
    yield from zip(batch, results, strict=True)


def constituents_of(tree: T, *, label: Callable[[T], str], children: Callable[[T], Sequence[T]]) -> list[Constituent]:
    """The constituents of any library's tree, in the order of a `ParsedSentence`.

    A node without children is a word, a node with only words below it a part of speech.
    """
    spans: list[Constituent] = []  # from the root down and left to right: by start, longest first
    words = 0
    stack: list[tuple[T, int | None]] = [(tree, None)]  # a node to enter, or with its place in `spans` one to leave
    while stack:
        node, place = stack.pop()
        if place is not None:
            spans[place] = spans[place]._replace(end_token=words)
        elif not (below := children(node)):
            words += 1
        else:
            if any(children(child) for child in below):
                stack.append((node, len(spans)))
                spans.append(Constituent(bare_label(label(node)), words, words))
            stack.extend((child, None) for child in reversed(below))
    return list(dict.fromkeys(span for span in spans if span.label not in ROOTS))


def tree_of(words: Sequence[str], tags: Sequence[str], constituents: Iterable[Constituent]) -> nltk.Tree:
    """The tree of a sentence under a node ROOT; its leaves are the words, under their tags.

    `constituents` are in the order of a `ParsedSentence` and do not cross; of equal spans the first is the outermost.
    """
    from nltk import Tree  # takes a second to import, and workers do not need it

    root = Tree("ROOT", [])
    path = [(root, len(words))]  # from the root down, each with its end
    spans = iter([*constituents, None])
    span = next(spans)
    for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
        while path[-1][1] <= place:
            path.pop()
        while span and span.start_token == place:
            node = Tree(span.label, [])
            path[-1][0].append(node)
            path.append((node, span.end_token))
            span = next(spans)
        path[-1][0].append(Tree(tag, [word]))
    return root


def parsed_texts(
    texts: Iterable[list[TokenisedSentence | RefusedSentence]],
    parse: Callable[[Sequence[TokenisedSentence]], Sequence[Parse]],
) -> list[list[Sentence]]:
    """Parse the sentences of all texts in one call, so that batches cross texts, and return them text by text."""
    texts = list(texts)
    tokenised = [each for text in texts for each in text if isinstance(each, TokenisedSentence)]
    parses = iter(parse(tokenised))
    return [
        [placed(each, next(parses)) if isinstance(each, TokenisedSentence) else each for each in text] for text in texts
    ]


def placed(sentence: TokenisedSentence, parse: Parse) -> Sentence:
    start, end = sentence.token_starts[0], sentence.token_ends[-1]
    if isinstance(parse, Refusal):
        return RefusedSentence(start, end, *parse)
    return ParsedSentence(start, end, sentence.token_starts, sentence.token_ends, sentence.tags, parse)


def unplaced(parse: Parse) -> list[Constituent] | RefusedSentence:
    return RefusedSentence(0, 0, *parse) if isinstance(parse, Refusal) else parse
