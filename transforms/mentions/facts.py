"""What is known of pages, by title: side tables of documents and SQL dumps in one form.

The tables of a wiki's database identify a page by its number, so they are first joined on the page id. The side tables
have titles.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.mentions.redirects import TITLES
from transforms.mentions.titles import page_keys, title_keys
from transforms.sources.sql_tables import FACTS

KEYED_FACTS = pa.schema([("key_hi", pa.uint64()), ("key_lo", pa.uint64()), ("source", pa.string()), *FACTS])
"""FACTS of several wikis; the key is the hash of source and page id (`page_keys`)."""


def keyed(facts: pa.Table, source: str) -> pa.Table:
    """FACTS of one wiki with their keys (KEYED_FACTS)."""
    sources = pa.repeat(source, facts.num_rows)
    hi, lo = page_keys(sources, facts.column("page_id").combine_chunks())
    columns = [pa.array(hi), pa.array(lo), sources, *(facts.column(name) for name in FACTS.names)]
    return pa.table(columns, schema=KEYED_FACTS)


def facts_of_pages(pages: pa.Table) -> pa.Table:
    """The side table of pages as KEYED_FACTS. Pages whose id is not a number are left out: they are in no SQL table."""
    pages = pages.filter(pc.match_substring_regex(pages.column("page_id"), r"^\d{1,18}$"))
    page_id = pc.cast(pages.column("page_id"), pa.int64()).combine_chunks()
    source = pages.column("source").combine_chunks()
    n = pages.num_rows
    hi, lo = page_keys(source, page_id)
    columns = {
        "key_hi": pa.array(hi),
        "key_lo": pa.array(lo),
        "source": source,
        "page_id": page_id,
        "title": pages.column("title"),
        "entity": _numbers(pages),
        "disambiguation": pages.column("disambiguation"),
        "target_title": pa.repeat("", n),
        "section": pa.repeat("", n),
        "is_page": pa.repeat(True, n),
    }
    return pa.table([columns[name] for name in KEYED_FACTS.names], schema=KEYED_FACTS)


def join_facts(facts: pa.Table) -> tuple[pa.Table, int]:
    """The facts of each page in one row (TITLES), and the number of rows of pages without a title.

    `facts` are KEYED_FACTS with all rows of each page. Most pages without a title are in other namespaces.
    """
    order = [("key_hi", "ascending"), ("key_lo", "ascending"), ("title", "descending"), ("target_title", "descending")]
    facts = facts.sort_by(order).combine_chunks()
    n = facts.num_rows
    if not n:
        return titles(facts, facts.column("target_title"), facts.column("section")), 0
    hi, lo = (facts.column(name).to_numpy() for name in ("key_hi", "key_lo"))
    new = np.append(True, (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1]))
    starts = np.flatnonzero(new)
    # The title is the page's first one: titles are sorted, with empty ones last.
    group = np.cumsum(new) - 1
    written = pc.binary_join_element_wise(facts.column("target_title"), facts.column("section"), "#")
    target = _largest(written, group)
    entity = facts.column("entity").to_numpy()
    lowest = np.minimum.reduceat(np.where(entity > 0, entity, np.iinfo(np.int64).max), starts)
    flags = {
        name: np.logical_or.reduceat(facts.column(name).to_numpy(zero_copy_only=False), starts)
        for name in ("disambiguation", "is_page")
    }
    pages = facts.take(pa.array(starts))
    for name, values in {"entity": np.where(lowest == np.iinfo(np.int64).max, 0, lowest), **flags}.items():
        pages = pages.set_column(pages.column_names.index(name), name, pa.array(values))
    titled = pc.not_equal(pages.column("title"), "")
    untitled = int(np.diff(np.append(starts, n))[~titled.to_numpy(zero_copy_only=False)].sum())
    target = target.filter(titled.combine_chunks())
    page, section = (pc.replace_substring_regex(target, pattern, "") for pattern in ("#.*", "^[^#]*#"))
    return titles(pages.filter(titled), page, section), untitled


def _largest(values: pa.ChunkedArray, group: np.ndarray) -> pa.Array:
    """[groups] the last string of each group in order of bytes; groups are numbered in order."""
    table = (
        pa.table({"group": group, "value": values}).group_by("group", use_threads=False).aggregate([("value", "max")])
    )
    return table.sort_by("group").column("value_max").combine_chunks()


def titles(pages: pa.Table, target_title: pa.Array | pa.ChunkedArray, section: pa.Array | pa.ChunkedArray) -> pa.Table:
    """TITLES of pages (columns source, title, entity, disambiguation, is_page); `target_title` "" is no redirect."""
    source = pages.column("source").combine_chunks()
    hi, lo = title_keys(source, pages.column("title").combine_chunks())
    target = target_title.combine_chunks() if isinstance(target_title, pa.ChunkedArray) else target_title
    target_hi, target_lo = title_keys(source, target)
    columns = {
        "key_hi": pa.array(hi),
        "key_lo": pa.array(lo),
        "title": pages.column("title"),
        "target_title": target,
        "section": section,
        "target_hi": pa.array(target_hi),
        "target_lo": pa.array(target_lo),
        **{name: pages.column(name) for name in ("entity", "disambiguation", "is_page")},
    }
    return pa.table([columns[name] for name in TITLES.names], schema=TITLES)


def titles_of_pages(pages: pa.Table) -> pa.Table:
    """The side table of pages as TITLES."""
    n = pages.num_rows
    named = pa.table(
        {
            "source": pages.column("source"),
            "title": pages.column("title"),
            "entity": _numbers(pages),
            "disambiguation": pages.column("disambiguation"),
            "is_page": pa.repeat(True, n),
        }
    )
    return titles(named, pa.repeat("", n), pa.repeat("", n))


def titles_of_redirects(redirects: pa.Table) -> pa.Table:
    """The side table of redirects as TITLES."""
    n = redirects.num_rows
    named = pa.table(
        {
            "source": redirects.column("source"),
            "title": redirects.column("title"),
            "entity": pa.repeat(pa.scalar(0, pa.int64()), n),
            "disambiguation": pa.repeat(False, n),
            "is_page": pa.repeat(False, n),
        }
    )
    return titles(named, redirects.column("target_title"), redirects.column("section"))


def _numbers(pages: pa.Table) -> pa.Array:
    """The numbers of the Wikidata ids in the column `entity_id`: "Q42" is 42, "" is 0."""
    found = pc.struct_field(
        pc.extract_regex(pages.column("entity_id").combine_chunks(), r"^Q(?P<number>[1-9][0-9]{0,17})$"), "number"
    )
    return pc.fill_null(pc.cast(found, pa.int64()), 0)
