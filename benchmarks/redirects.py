"""Redirects of a large wiki followed to their ends: seconds and peak memory.

    python -m benchmarks.redirects --rows 20000000 --json redirects.json

The titles are synthetic, with 13 redirects for 7 articles. One redirect in a thousand leads to another one, and a few
hundred are in loops. The rows come in tables of half a million, which are not kept. The results of `follow` for a
sample are compared with how the titles were made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import harness
from transforms.arrays import mix64
from transforms.mentions.redirects import TITLES, follow, lookup
from transforms.mentions.titles import title_keys

I64 = npt.NDArray[np.int64]

SOURCE = "enwiki"
ROWS_A_TABLE = 500_000
DOUBLE = 1_000  # one in this number of redirects leads to the redirect after it
LOOPED = 400  # redirects in loops, of two each
SAMPLE = 1_000_000
WORDS = pa.array("A The Of River John Saint Football station 1984 Battle Street Island (film) album County".split())


class Wiki:
    """Titles 0 to `pages` are articles, those after them redirects."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.pages = rows * 7 // 20
        self.seconds = self.cpu_seconds = 0.0  # spent on making tables

    def target(self, numbers: I64) -> I64:
        """The targets of titles; those of articles are the articles themselves."""
        redirect = numbers - self.pages
        article = (mix64(numbers.astype(np.uint64)) % np.uint64(self.pages)).astype(np.int64)
        double = (redirect % DOUBLE == 0) & (numbers + 1 < self.rows)
        target = np.where(double, numbers + 1, article)
        target = np.where(redirect < LOOPED, self.pages + (redirect ^ 1), target)
        return np.where(redirect < 0, numbers, target)

    def meant(self, numbers: I64) -> I64:
        """The article at the end of the redirects; -1 in loops."""
        end = self.target(self.target(numbers))
        return np.where((numbers >= self.pages) & (numbers < self.pages + LOOPED), -1, end)

    def tables(self) -> Iterator[pa.Table]:
        for first in range(0, self.rows, ROWS_A_TABLE):
            began, cpu = time.perf_counter(), time.process_time()
            numbers = np.arange(first, min(first + ROWS_A_TABLE, self.rows))
            table = self._table(numbers)
            self.seconds += time.perf_counter() - began
            self.cpu_seconds += time.process_time() - cpu
            yield table

    def _table(self, numbers: I64) -> pa.Table:
        target = self.target(numbers)
        is_page = target == numbers
        titles = titles_of(numbers)
        targets = pc.if_else(pa.array(is_page), "", titles_of(target))
        columns = {
            **dict(zip(("key_hi", "key_lo"), title_keys(SOURCE, titles), strict=True)),
            **dict(zip(("target_hi", "target_lo"), title_keys(SOURCE, targets), strict=True)),
            "title": titles,
            "entity": np.where(is_page, numbers + 1, 0),
            "disambiguation": numbers % 50 == 0,
            "is_page": is_page,
            "target_title": targets,
            "section": pa.repeat("", len(numbers)),
        }
        return pa.table({name: columns[name] for name in TITLES.names}, schema=TITLES)


def titles_of(numbers: I64) -> pa.Array:
    """The titles, about as long as those of English Wikipedia: 20 bytes."""
    chance = mix64(numbers.astype(np.uint64))
    words = [WORDS.take(pa.array((chance >> np.uint64(at)) % np.uint64(len(WORDS)))) for at in (0, 20)]
    return pc.binary_join_element_wise(*words, pc.cast(pa.array(numbers), pa.string()), " ")


def measure(rows: int) -> dict[str, float]:
    wiki = Wiki(rows)
    with harness.Meter(interval=0.05) as meter:
        meanings, counts = follow(wiki.tables())
    result = {
        "rows": rows,
        "seconds": round(meter.seconds - wiki.seconds, 1),
        "cpu_seconds": round(meter.cpu_seconds - wiki.cpu_seconds, 1),
        "seconds_to_make_the_rows": round(wiki.seconds, 1),
        "peak_mib": round(meter.added / 2**20),
        "peak_bytes_a_row": round(meter.added / rows),
        "result_mib": round(meanings.nbytes / 2**20),
        **counts,
    }
    assert counts["redirects_in_loops"] == min(LOOPED, rows - wiki.pages), counts
    sample = (mix64(np.arange(min(SAMPLE, rows), dtype=np.uint64)) % np.uint64(rows)).astype(np.int64)
    keys = title_keys(SOURCE, titles_of(sample))
    began = time.perf_counter()
    place = lookup(meanings, *keys)
    result["lookups_per_second"] = round(len(sample) / (time.perf_counter() - began))
    entity = meanings.column("entity").to_numpy()[place]
    if not np.array_equal(entity, wiki.meant(sample) + 1):
        sys.exit("redirects lead to other pages than they should")
    return result


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="titles; default: %(default)s")
    arguments = parser.parse_args()
    result = measure(arguments.rows)
    harness.show("redirects", ("", ""), [(name.replace("_", " "), value) for name, value in result.items()])
    harness.write(arguments.json, result)


if __name__ == "__main__":
    main()
