"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path

import properties  # noqa: F401 (the number of examples)
import pytest

from pipelines.stages.models import import_spacy
from schemas.errors import UserError
from schemas.process import leave_out_pandas, limit_threads, refuse_telemetry
from transforms.augmentation.wordnet import FetchError, WordNet, fetch, find_wordnet, wordnet

refuse_telemetry()  # before a test imports what reports its use
limit_threads()  # as in workers: the threads of two processes would wait for each other's cores
leave_out_pandas()
import_spacy()  # without torch

ROOT = Path(__file__).resolve().parent.parent

# Every file that a stage or a plan writes is flushed to its disk; in memory that takes no time.
_MEMORY = Path("/dev/shm")
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    os.environ.setdefault("TMPDIR", str(_MEMORY))


# What loads PyTorch or compiles the loops of numba: 20 s in each process. `make test` gives its first process the first
# half of the tests, and these come first, so only one of the two does it.
LOADING = (
    "augmentation/test_nlpaug.py",
    "encoders",
    "entities/test_transformers_finder.py",
    "mentions/test_masking.py",
    "negatives/test_neighbours.py",
    "paraphrase",
    "parsing/test_benepar_parser.py",
    "parsing/test_identities.py",
    "parsing/test_stanza_parser.py",
    "pipelines/test_mine_negatives.py",
    "pipelines/test_mine_pairs.py",
    "pipelines/test_paraphrase.py",
    "schemas/test_check_neighbours.py",
    "test_examples.py",
    "trainers",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the order but for those of LOADING."""
    first = [ROOT / "tests" / each for each in LOADING]
    items.sort(key=lambda item: not {item.path, *item.path.parents}.intersection(first))


LARGE = {"apache_beam", "moto", "nltk", "numba", "sklearn", "torch", "transformers"}


def pytest_collection_finish() -> None:
    """Refuses what every process would import to collect the tests."""
    if loaded := ", ".join(sorted(LARGE & set(sys.modules))):
        raise pytest.UsageError(f"{loaded}: a test module imports it: import it inside the tests that use it")
    gc.freeze()  # what is there now stays; a collection of garbage would go through it each time


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
