"""Exact duplicates of documents and of paragraphs, and documents that share an id."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from transforms.arrays import run_begins
from transforms.sources.items import Document, Link

ID, TEXT, PARAGRAPH = 0, 1, 2
"""What a key is the hash of: a document's id, its whole text, or one of its paragraphs."""

MIN_PARAGRAPH = 60
"""Shorter paragraphs, in characters, are never duplicates: headings, list items and dialogue repeat legitimately."""

PARAGRAPH_BITS = 24
"""An item, a document or one of its paragraphs, is a number: items are in the order of the input.

The document's number is in the high bits; the low ones are 0 for the document, the paragraph's number + 1 for a
paragraph.
"""

KEYS = pa.schema(
    [
        ("key_hi", pa.uint64()),
        ("key_lo", pa.uint64()),
        ("kind", pa.int8()),
        ("item", pa.int64()),
        ("text_hash", pa.uint64()),
        ("doc_id", pa.string()),
    ]
)
"""A key with its item. `text_hash` is of the keys of ids alone, `doc_id` of the others."""

DROPS = pa.schema(
    [
        ("item", pa.int64()),
        ("first", pa.int64()),
        ("reason", pa.string()),
        ("repeats", pa.string()),
        ("jaccard", pa.float64()),
    ]
)
"""What to leave out, the item that it repeats, and the id of that one's document (empty: the id is the same)."""


def paragraphs_of(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs that may be duplicates, with their numbers."""
    for number, paragraph in enumerate(text.split("\n")[: (1 << PARAGRAPH_BITS) - 1]):
        if len(paragraph) >= MIN_PARAGRAPH:
            yield number, paragraph


def item_of(document: int, paragraph: int = -1) -> int:
    """
    >>> item_of(3), item_of(3, 0), item_of(4)
    (50331648, 50331649, 67108864)
    """
    return (document << PARAGRAPH_BITS) + paragraph + 1


class KeyRows:
    """Collects the keys of documents, column by column."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._columns: list[list[Any]] = [[] for _ in KEYS]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, document: Document, number: int) -> None:
        text = document.text.encode()
        self._add(ID, document.doc_id.encode(), item_of(number), xxhash.xxh3_64_intdigest(text), "")
        if self._mode in ("documents", "near"):
            self._add(TEXT, text, item_of(number), 0, document.doc_id)
        elif self._mode != "off":
            for paragraph, line in paragraphs_of(document.text):
                self._add(PARAGRAPH, line.encode(), item_of(number, paragraph), 0, document.doc_id)

    def _add(self, kind: int, data: bytes, item: int, text_hash: int, doc_id: str) -> None:
        key = xxhash.xxh3_128_intdigest(data, seed=kind)
        values = (key >> 64, key & (2**64 - 1), kind, item, text_hash, doc_id)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def table(self) -> pa.Table:
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(self._columns, KEYS, strict=True)], schema=KEYS
        )


def find_drops(keys: pa.Table) -> pa.Table:
    """What to leave out (DROPS): all rows of each key but the first. `keys` are sorted by key, kind and then by item.

    With the keys 3 3 3 8, rows 1 and 2 are dropped. `first`, the first row of each row's key, is 0 0 0 3: if the key is
    of an id and the text of row 1 is another than that of row 0, the reason of row 1 is "duplicate_id".
    """
    hi, lo, kind, item = (keys.column(name).to_numpy() for name in ("key_hi", "key_lo", "kind", "item"))
    repeated = ~run_begins(hi, lo, kind)
    text = keys.column("text_hash").to_numpy()
    first = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(hi))))
    other_text = (kind == ID) & (text != text[first]) if len(hi) else repeated
    names = ("duplicate_document", "duplicate_document", "duplicate_paragraph", "duplicate_id")
    columns = {
        "item": item,
        "first": item[first],
        "reason": pa.array(names).take(pa.array(np.where(other_text, 3, kind))),
        "repeats": keys.column("doc_id").take(pa.array(first)),
        "jaccard": np.ones(len(hi)),
    }
    return pa.table(columns, schema=DROPS).filter(pa.array(repeated))


def without_paragraphs(text: str, links: Collection[Link], dropped: Collection[int]) -> tuple[str, list[Link]]:
    """The text without some of its lines (by number), and the remaining links at their new offsets.

    >>> without_paragraphs("one\\ntwo\\nthree", [Link(8, 13, "Three")], {1})
    ('one\\nthree', [Link(start_char=4, end_char=9, target_title='Three', entity_id='', section='')])
    """
    kept: list[str] = []
    moved: list[Link] = []
    waiting = deque(sorted(links))
    start = shift = 0
    for number, line in enumerate(text.split("\n")):
        end = start + len(line)
        empty_twice = not line and (not kept or not kept[-1])
        stays = number not in dropped and not empty_twice
        while waiting and waiting[0].start_char <= end:
            link = waiting.popleft()
            if stays and link.end_char <= end:
                moved.append(link._replace(start_char=link.start_char - shift, end_char=link.end_char - shift))
        if stays:
            kept.append(line)
        else:
            shift += len(line) + 1
        start = end + 1
    while kept and not kept[-1]:
        kept.pop()
    return "\n".join(kept), moved
