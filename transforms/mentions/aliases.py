"""The surfaces of an entity with their counts, and pairs of them: paraphrases written by people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.kinds.alias_pairs import ALIAS_PAIRS
from transforms.arrays import I64, places_in_runs, run_begins
from transforms.mentions.pairs import distinct, entity_keys, key_hashes, one_array

MENTION_COLUMNS = ("source", "entity_id", "target_title", "section", "mention")
"""The columns of a mentions shard that this module reads."""

SURFACES = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        ("entity_id", pa.string()),
        ("target_title", pa.string()),
        ("section", pa.string()),
        ("surface", pa.string()),
        ("count", pa.int64()),
    ]
)
"""A surface of an entity; the key is the hash of the entity key."""


def count_surfaces(mentions: pa.Table) -> pa.Table:
    """How often each entity has each surface (SURFACES), in a shard of mentions (MENTION_COLUMNS)."""
    keys, key = distinct(entity_keys(mentions))
    hi, lo = key_hashes("entity", keys.to_pylist())
    columns = [
        *(pa.array(each[key]) for each in (hi, lo)),
        *(mentions.column(name) for name in ("entity_id", "target_title", "section", "mention")),
        pa.array(np.ones(mentions.num_rows, dtype=np.int64)),
    ]
    return merge_surfaces([pa.table(columns, schema=SURFACES)])


def merge_surfaces(tables: Iterable[pa.Table]) -> pa.Table:
    """Counts of several tables (SURFACES) added up, in order of key and of the surface's UTF-8.

    An entity may have several titles, such as its pages in two wikis. Each surface keeps the first one by UTF-8.
    """
    every = pa.concat_tables([SURFACES.empty_table(), *tables]).combine_chunks()
    hi, lo = (every.column(name).to_numpy() for name in ("key_hi", "key_lo"))
    surface, title = (_ranks(every, name) for name in ("surface", "target_title"))
    order = np.lexsort((title, surface, lo, hi))
    starts = np.flatnonzero(run_begins(hi[order], lo[order], surface[order]))
    merged = every.take(pa.array(order[starts]))
    count = every.column("count").to_numpy()[order]
    total = np.add.reduceat(count, starts) if len(starts) else count
    return merged.set_column(SURFACES.get_field_index("count"), SURFACES.field("count"), pa.array(total))


def alias_pairs(surfaces: pa.Table, *, aliases_per_entity: int, min_count: int) -> tuple[pa.Table, Counter[str]]:
    """The pairs of each entity's most frequent surfaces (ALIAS_PAIRS), and how many are filtered, by reason.

    `surfaces` is a result of `merge_surfaces` with all surfaces of each entity. Of those with at least `min_count`
    mentions, the `aliases_per_entity` most frequent are taken, ties by UTF-8. Every two of them are a candidate; it is
    filtered if they differ only in case. Entities come in order of key, pairs in order of the first surface's
    frequency, then the second's.
    """
    hi, lo, count = (surfaces.column(name).to_numpy() for name in ("key_hi", "key_lo", "count"))
    order = np.lexsort((_ranks(surfaces, "surface"), -count, lo, hi))
    begins = run_begins(hi[order], lo[order])
    # The entity's title is the first by UTF-8 of all its surfaces, including the rare ones.
    title = _ranks(surfaces, "target_title")[order]
    named = order[np.lexsort((title, np.cumsum(begins)))]
    entity_title = one_array(surfaces, "target_title").take(pa.array(named[begins]))
    entity = np.cumsum(begins) - 1
    kept = (places_in_runs(begins) < aliases_per_entity) & (count[order] >= min_count)
    order, entity = order[kept], entity[kept]
    one, other = _pairs_in_runs(run_begins(entity))
    surface = one_array(surfaces, "surface").take(pa.array(order))
    texts, number = distinct(surface)
    _, folded = distinct(pa.array([each.casefold() for each in texts.to_pylist()], pa.string()))
    differ = folded[number[one]] != folded[number[other]]
    filtered = Counter({"case_only": int(np.count_nonzero(~differ))})
    one, other = one[differ], other[differ]
    columns = {
        "entity_id": one_array(surfaces, "entity_id").take(pa.array(order[one])),
        "target_title": entity_title.take(pa.array(entity[one])),
        "section": one_array(surfaces, "section").take(pa.array(order[one])),
        "alias_1": surface.take(pa.array(one)),
        "alias_2": surface.take(pa.array(other)),
        "count_1": pa.array(count[order[one]]),
        "count_2": pa.array(count[order[other]]),
    }
    return pa.table([columns[name] for name in ALIAS_PAIRS.names], schema=ALIAS_PAIRS), +filtered


def _pairs_in_runs(begins: np.ndarray) -> tuple[I64, I64]:
    """Every two rows of one run, the former first, in order of the former and then of the latter.

    In runs of 3 and 2 rows, 2 1 0 1 0 rows come after each row in its run.

    >>> _pairs_in_runs(np.array([True, False, False, True, False]))
    (array([0, 0, 1, 3]), array([1, 2, 2, 4]))
    """
    n = len(begins)
    place = places_in_runs(begins)
    run = np.cumsum(begins)
    last = np.append(np.flatnonzero(begins), n)[run] - 1 if n else place
    after = last - np.arange(n)
    one = np.repeat(np.arange(n), after)
    nth = np.arange(len(one)) - np.repeat(np.cumsum(after) - after, after)
    return one, one + 1 + nth


def _ranks(table: pa.Table, name: str) -> I64:
    """[n] the rank of each string among the distinct strings of its column, by UTF-8: "b", "a", "b" are 1 0 1."""
    strings, number = distinct(one_array(table, name))
    rank = np.empty(len(strings), dtype=np.int64)
    rank[pc.array_sort_indices(strings).to_numpy()] = np.arange(len(strings))
    return rank[number]
