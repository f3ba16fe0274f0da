"""Runs that are killed or stopped at seeded moments give the same bytes: a few cases of `benchmarks/kills.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# `python -m` would find the benchmarks; pytest does not, because they are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from benchmarks import kills

pytestmark = pytest.mark.heavy


def test_killed_runs_and_killed_workers_end_with_the_same_shards(tmp_path: Path, capsys):
    arguments = ["--moments", "4", "--seed", "1", "--folder", str(tmp_path)]
    assert kills.main([*arguments, "--max-documents", "20", "--shard-bytes", "60000"]) == 0
    assert "4 of 4 ended with the same shards and nothing left over" in capsys.readouterr().out


def test_runs_end_soon_by_signals_and_go_on(tmp_path: Path, capsys):
    only = ["--only", "contexts", "--only", "mentions, 2 workers"]
    assert kills.main(["--signals", "8", "--seed", "1", "--folder", str(tmp_path), *only]) == 0
    assert "8 of 8 ended in time, with their status and nothing left" in capsys.readouterr().out
