"""Lexical diversity of neighbours or paraphrases: the three measures of Phrase-BERT.

    python -m transforms.pairs.diversity out/neighbours

The paper asks for the top 10 neighbours of queries, in a vocabulary of words and phrases, and measures the share of
new tokens, the LCS precision and the Levenshtein distance. Neither it nor its code defines them; here

    new tokens     the tokens of a neighbour that are none of the query's, per cent of the neighbour's tokens
    LCS precision  the longest common subsequence of query and neighbour, per cent of the neighbour's length
    Levenshtein    insertions, deletions and replacements of one item that make the neighbour of the query

Tokens are parted by white space; the other two count characters (code points), or tokens with `tokens=True`. Case does
not count (`str.casefold`). Each is the mean over the neighbours of a query, and then over the queries that have any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from schemas.dataset import Dataset
from schemas.errors import UserError

TOP = 10
"""Neighbours of a query that count."""


def new_tokens(query: str, neighbour: str) -> float:
    """Per cent of the neighbour's tokens that are none of the query's; 0 for a neighbour without tokens.

    >>> new_tokens("the white whale", "the great white shark")
    50.0
    """
    known, found = {*query.casefold().split()}, neighbour.casefold().split()
    return 100 * sum(each not in known for each in found) / max(len(found), 1)


def lcs_precision(query: str, neighbour: str, *, tokens: bool = False) -> float:
    """The longest common subsequence, per cent of the neighbour's length; 0 for one without length.

    >>> lcs_precision("the white whale", "the great white shark", tokens=True)
    50.0
    """
    one, other = _items(query, tokens), _items(neighbour, tokens)
    return 100 * common_length(one, other) / max(len(other), 1)


def levenshtein(query: str, neighbour: str, *, tokens: bool = False) -> int:
    """The fewest insertions, deletions and replacements.

    >>> levenshtein("the white whale", "the great white shark", tokens=True)
    2
    """
    return edit_distance(_items(query, tokens), _items(neighbour, tokens))


def _items(text: str, tokens: bool) -> Sequence[str]:
    return text.casefold().split() if tokens else text.casefold()


class Diversity(NamedTuple):
    """The means over queries."""

    new_tokens: float
    lcs_precision: float
    levenshtein: float
    queries: int


def diversity(lists: Iterable[tuple[str, Sequence[str]]], *, top: int = TOP, tokens: bool = False) -> Diversity:
    """The measures of queries with their neighbours, the nearest first, of which the first `top` count."""
    sums, queries = np.zeros(3), 0
    for query, neighbours in lists:
        found = [
            (
                new_tokens(query, each),
                lcs_precision(query, each, tokens=tokens),
                levenshtein(query, each, tokens=tokens),
            )
            for each in neighbours[:top]
        ]
        if found:
            queries += 1
            sums += np.mean(found, axis=0)
    new, lcs, distance = (sums / max(queries, 1)).tolist()
    return Diversity(new, lcs, distance, queries)


def lists_of(dataset: Dataset) -> Iterator[tuple[str, list[str]]]:
    """Texts with others that are like them: of phrases with neighbours, or of rows of two texts that mean the same.

    UserError for a dataset of another kind.
    """
    kind = dataset.manifest.kind
    if kind.alike is not None:
        for table in dataset.tables(columns=kind.alike[:2]):
            texts = (table.column(name).to_pylist() for name in kind.alike[:2])
            yield from ((one, [other]) for one, other in zip(*texts, strict=True))
    elif {"phrase", "neighbours"} <= {*kind.schema.names}:
        for table in dataset.tables(columns=["phrase", "neighbours"]):
            lists = ([each["phrase"] for each in one] for one in table.column("neighbours").to_pylist())
            yield from zip(table.column("phrase").to_pylist(), lists, strict=True)
    else:
        raise UserError(f"{dataset.folder}: holds {kind.rows}; give neighbours, or pairs of texts that mean the same")


# ---- Bit-parallel, for sequences of any length: a bit stands for a place of the first


def _places(one: Sequence[Hashable]) -> dict[Hashable, int]:
    found: dict[Hashable, int] = {}
    for place, item in enumerate(one):
        found[item] = found.get(item, 0) | 1 << place
    return found


def common_length(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence (Hyyrö 2004)."""
    places, full = _places(one), (1 << len(one)) - 1
    row = full
    for item in other:
        here = row & places.get(item, 0)
        row = (row + here | row - here) & full
    return len(one) - row.bit_count()


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The Levenshtein distance (Myers 1999)."""
    if not one:
        return len(other)
    places, full, last = _places(one), (1 << len(one)) - 1, 1 << len(one) - 1
    up, down, distance = full, 0, len(one)
    for item in other:
        equal = places.get(item, 0)
        vertical = equal | down
        horizontal = ((equal & up) + up ^ up) | equal
        more, less = down | ~(horizontal | up) & full, up & horizontal
        distance += bool(more & last) - bool(less & last)
        more, less = (more << 1 | 1) & full, less << 1 & full
        up, down = less | ~(vertical | more) & full, more & vertical
    return distance


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The lexical diversity of neighbours or paraphrases.")
    parser.add_argument("dataset", help="neighbours, or pairs of texts that mean the same")
    parser.add_argument("--tokens", action="store_true", help="LCS and Levenshtein of tokens, not characters")
    chosen = parser.parse_args(arguments)
    try:
        found = diversity(lists_of(Dataset.open(chosen.dataset)), tokens=chosen.tokens)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{found.queries:,} queries: {found.new_tokens:.1f} % new tokens, LCS precision {found.lcs_precision:.1f} %, "
        f"Levenshtein distance {found.levenshtein:.1f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
