"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import properties  # noqa: F401 (the number of examples)
import pytest

from schemas.errors import UserError
from schemas.process import leave_out_pandas, limit_threads, refuse_telemetry
from transforms.augmentation.wordnet import FetchError, WordNet, fetch, find_wordnet, wordnet

refuse_telemetry()  # before a test imports what reports its use
limit_threads()  # as in workers: the threads of two processes would wait for each other's cores
leave_out_pandas()

ROOT = Path(__file__).resolve().parent.parent

# Every file that a stage or a plan writes is flushed to its disk; in memory that takes no time.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    os.environ.setdefault("TMPDIR", str(_MEMORY))


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The larger real data, outside the repository: $PHRASEMILL_TEST_DATA, by default ../shared/data."""
    folder = Path(os.environ.get("PHRASEMILL_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set PHRASEMILL_TEST_DATA")
    return folder


@pytest.fixture(scope="session")
def database() -> WordNet:
    """WordNet, where it is installed; else fetched into the user's cache folder."""
    try:
        find_wordnet()
    except UserError:
        try:
            fetch()
        except FetchError as error:
            pytest.skip(f"needs WordNet: {error}")
    return wordnet()


@pytest.fixture(scope="session")
def tiny_paraphraser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a causal language model that our trainer made: it knows `paraphrasers.PAIRS` by heart."""
    from paraphrasers import train_tiny

    return train_tiny(tmp_path_factory.mktemp("paraphraser"))
