"""The declaration of a kind of dataset, from which writing, checking and showing datasets follow.

`schemas/kinds/` has one file for each kind, which declares a `Kind`, and their registry.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from schemas.columns import record_name
from schemas.measures import Measure
from schemas.shown import Row, Shown

if TYPE_CHECKING:
    from schemas.checks import Broken, Check, Violation
    from schemas.dataset import Dataset
    from schemas.manifest import Manifest


Problem = tuple[str, str]
"""What is wrong in a manifest: the side table that it is about ("" for the manifest itself), and the error."""


def equal(one: int, other: int, what: str) -> Iterator[Problem]:
    """A problem unless two numbers of a manifest are equal; `what` names both."""
    if one != other:
        yield "", f"{what}: {one:,} is not {other:,}"


class Side(NamedTuple):
    """A side table, published beside the shards. `broken` yields the rows that break a rule."""

    schema: pa.Schema
    broken: Callable[[pa.Table], Iterator[Broken]] | None = None


class Source(NamedTuple):
    """The dataset whose rows or texts the rows of a kind point into.

    `check` takes both datasets and yields the rows that do not agree with it. `mirrors`: shard i is made from shard i
    of the source. `also`: other kinds that the dataset may be of.
    """

    record: str
    agrees: str  # what agrees with the source: "offsets" in "offsets agree with ..."
    check: Callable[[Dataset, Dataset], Iterator[Violation]]
    mirrors: bool = False
    also: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[str, ...]:
        return (self.record, *self.also)


class Alike(NamedTuple):
    """The columns of two texts that mean the same; `weight`: the number of times that this was seen, if it is known."""

    one: str
    other: str
    weight: str = ""


KINDS: dict[str, Kind] = {}
"""The kinds that were declared, by record; those of phrasemill are declared when `schemas.kinds` is imported."""


def rows_written(manifest: Manifest) -> Iterator[Problem]:
    """The number of rows is what the last stage wrote."""
    return equal(manifest.rows, manifest.last_written, "rows, and what the last stage wrote")


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of dataset.

    schema    columns with their meaning and unit; its name is that of the record
    rows      what its rows are called: "contexts"
    about     a sentence that says what the dataset is
    command   the module of `pipelines/` that makes it
    after     the command to run next, without the path: "pipelines.count_phrases --input"
    order     "source": in the order of the input; "hash": random, a prefix is a sample; "rank": the most frequent first
    show      makes a row readable
    source    the dataset that rows point into
    checks    rules for the rows, for `schemas.check`; `options` are the options in the manifest that they read,
              with their types
    sums      what is wrong with a manifest's numbers, such as counters that do not add up
    notes     lines for the end of a run, from the counters: for example, an option that would give a better result
    filters   reasons for which stages of this kind filter something by a rule, with their meaning
    rejects   reasons for which they reject something for a fault
    sides     side tables, by name
    measures  distributions in the report
    views     some of the columns, in order, by name: a configuration of that name for `datasets`. "triplets": an
              anchor, a positive and a negative, from which trainers learn
    tasks     what it is used for, in the terms of dataset hubs
    alike     where each row has two texts that mean the same: the columns
    texts     columns with texts that models are trained on ("column.field" for lists of structs): rows whose texts are
              in evaluation sets can be taken out. None where the other rows would not be what they were without them
    unmasked  a table with these columns as they were before something in them was masked
    parsed    True if it comes from a parser of English, False if it was found in texts of any language
    may_be_empty  True if a run goes on without its rows: no other dataset is made from it
    licence   where the licence of a row is found; by default in its column `licence` or in its document
    """

    schema: pa.Schema
    rows: str
    about: str
    command: str
    show: Callable[[Row, Mapping[str, Any]], Shown]
    after: str = "schemas.check"
    order: str = "hash"
    source: Source | None = None
    checks: Callable[[Manifest], Sequence[Check]] = lambda manifest: ()
    options: Mapping[str, type] = field(default_factory=dict)
    sums: Callable[[Manifest], Iterator[Problem]] = rows_written
    notes: Callable[[Manifest], Iterator[str]] = lambda manifest: iter(())
    filters: Mapping[str, str] = field(default_factory=dict)
    rejects: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[str, Side] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    alike: Alike | None = None
    texts: tuple[str, ...] = ()
    unmasked: Callable[[pa.Table, Mapping[str, Any]], pa.Table] = lambda table, options: table
    parsed: bool = False
    may_be_empty: bool = False
    licence: str = ""

    def __post_init__(self) -> None:
        KINDS[self.record] = self

    @property
    def record(self) -> str:
        return record_name(self.schema)

    def __reduce__(self) -> tuple[Callable[[str, str], Kind], tuple[str, str]]:
        """Pickle by record name and by the module that declares the kind."""
        return _declared, (self.show.__module__, self.record)


def _declared(module: str, record: str) -> Kind:
    importlib.import_module(module)
    return KINDS[record]


def kind_of(record: str) -> Kind | None:
    """The kind of this record; None if there is none."""
    importlib.import_module("schemas.kinds")  # declares them; at the top of the module the import would be circular
    return KINDS.get(record)
