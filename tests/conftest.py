"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The larger real data, outside the repository: $PHRASEMILL_TEST_DATA, by default ../shared/data."""
    folder = Path(os.environ.get("PHRASEMILL_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set PHRASEMILL_TEST_DATA")
    return folder
