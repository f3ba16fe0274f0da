"""The made table of redirects means what it was made to mean."""

from __future__ import annotations

from benchmarks.redirects import LOOPED, measure


def test_a_small_wiki():
    result = measure(60_000)
    assert result["titles"] == 60_000
    assert result["pages"] == 21_000
    assert result["redirects"] == 39_000
    assert result["redirects_of_redirects"] == 38  # of 39, the first is in a circle
    assert result["redirects_in_loops"] == LOOPED
    assert result["redirects_too_long"] == result["redirects_to_red_links"] == 0
