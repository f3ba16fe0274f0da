"""The nearest of many names, exactly, in bounded memory."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from trainers.evaluation.model import F32
from trainers.evaluation.vectors import F64, products

I64 = npt.NDArray[np.int64]

QUERIES = 1 << 10
NAMES = 1 << 14
"""Queries and names whose products are in memory at once: 64 MiB."""

FAISS_FROM = 1 << 16
"""Names from which faiss, if it is installed, looks for the candidates."""

SPARE = 16
"""Candidates that faiss gives beyond those that are asked for."""


def nearest(queries: F32, names: F32, top: int, *, faiss: bool | None = None) -> I64:
    """[n, top] for each query the indices of the names with the largest dot products, the largest first.

    Of equal products that of the lower index comes first. The result is that of all products in double precision:
    those in single precision, which differ a little with the size of the blocks, only choose candidates, with all that
    their rounding could have moved. There are `top` columns, or as many as there are names.

    `faiss`: whether its flat index chooses the candidates; None: where it is installed and there are many names.
    """
    top = min(top, len(names))
    found = np.tile(np.arange(top), (len(queries), 1))
    some = np.flatnonzero(queries.any(axis=1))  # all products of a vector of zeros are equal
    if top == 0 or not len(some):
        return found
    if faiss is None:
        faiss = len(names) >= FAISS_FROM and find_spec("faiss") is not None
    doubt = _rounding(queries, names)
    if faiss:
        some = _by_faiss(queries, names, some, doubt, found)
    for start in range(0, len(some), QUERIES):
        rows = some[start : start + QUERIES]
        found[rows] = _by_blocks(queries[rows], names, top, doubt[rows])
    return found


def _rounding(queries: F32, names: F32) -> F64:
    """[n] how far a product in single precision may be from the true one, in whatever order it is summed."""
    longest = max(np.sqrt(products(part, part)).max() for part in _parts(names))
    dimension = names.shape[1]
    return np.asarray((dimension + 2) * 2.0**-24 * 1.01 * longest * np.sqrt(products(queries, queries)))


def _parts(names: F32) -> list[F32]:
    return [names[start : start + NAMES] for start in range(0, len(names), NAMES)]


def _by_blocks(queries: F32, names: F32, top: int, doubt: F64) -> I64:
    """`nearest`, of the products of all queries with a part of the names at a time."""
    found, scores = np.full((len(queries), top), -1), np.full((len(queries), top), -np.inf)
    for number, part in enumerate(_parts(names)):
        rough = queries @ part.T
        hopeful = rough >= (scores[:, -1] - doubt)[:, None]
        for row in np.flatnonzero(hopeful.any(axis=1)):
            columns = np.flatnonzero(hopeful[row])
            if len(columns) > top:
                values = rough[row, columns]
                columns = columns[values >= np.partition(values, -top)[-top] - 2 * doubt[row]]
            exact = np.concatenate([scores[row], products(queries[row], part[columns])])
            places = np.concatenate([found[row], number * NAMES + columns])
            order = np.lexsort((places, -exact))[:top]
            found[row], scores[row] = places[order], exact[order]
    return found


def _by_faiss(queries: F32, names: F32, some: I64, doubt: F64, found: I64) -> I64:
    """Fills the rows `some` of `found`, and gives those that it leaves: more names are as near than it looked at."""
    import faiss

    top, left = found.shape[1], []
    index = faiss.IndexFlatIP(names.shape[1])
    index.add(np.ascontiguousarray(names))
    looked_at = min(top + SPARE, len(names))
    for start in range(0, len(some), QUERIES):
        rows = some[start : start + QUERIES]
        rough, places = index.search(np.ascontiguousarray(queries[rows]), looked_at)
        for row, values, candidates in zip(rows, rough, places, strict=True):
            if looked_at < len(names) and values[-1] >= values[top - 1] - 2 * doubt[row]:
                left.append(row)
                continue
            exact = products(queries[row], names[candidates])
            found[row] = candidates[np.lexsort((candidates, -exact))[:top]]
    return np.array(left, np.int64)
