"""Rules for the declaration of every kind of dataset."""

from __future__ import annotations

import importlib.util
import pickle

import pytest

from schemas.kinds import FILTER_REASONS, KINDS, REJECT_REASONS
from schemas.reasons import WORKER_FAULTS

OURS = {record: kind for record, kind in KINDS.items() if kind.show.__module__.startswith("schemas.")}

kinds = pytest.mark.parametrize("kind", OURS.values(), ids=OURS)


@kinds
def test_every_column_says_what_it_holds(kind):
    assert all(column.metadata[b"description"] for column in kind.schema)


@kinds
def test_what_is_named_is_there(kind):
    assert kind.source is None or kind.source.record in KINDS
    assert importlib.util.find_spec(f"pipelines.{kind.command}")
    assert importlib.util.find_spec(kind.after.split()[0])
    assert {*(name for each in kind.measures for name in each.columns)} <= {*kind.schema.names}
    assert kind.order in ("source", "hash", "rank")


@kinds
def test_a_kind_is_itself_after_a_pickle(kind):
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_a_reason_of_two_kinds_has_one_meaning():
    for reasons, all_reasons in (("filters", FILTER_REASONS), ("rejects", REJECT_REASONS | WORKER_FAULTS)):
        for kind in KINDS.values():
            assert getattr(kind, reasons).items() <= all_reasons.items()
