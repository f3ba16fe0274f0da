"""Fixtures of the augmentations."""

from __future__ import annotations

import pytest

from schemas.errors import UserError
from transforms.augmentation.wordnet import FetchError, WordNet, fetch, find_wordnet, wordnet


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
