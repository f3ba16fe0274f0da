"""The sample that the project ships: real Wikipedia articles and public-domain chapters (see README.md)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

WIKIPEDIA = "enwiki-sample.xml.bz2"
BOOKS = "books-sample.tar.gz"


def sample_inputs() -> list[Path]:
    """The raw inputs of a run without --input: a multistream Wikipedia dump and an archive of texts."""
    folder = Path(str(files(__name__)))
    return [folder / WIKIPEDIA, folder / BOOKS]
