"""How operations are chosen: their shares, and what happens where one changes nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from transforms.arrays import mix64
from transforms.augmentation.drawing import draw, operations_of
from transforms.augmentation.interface import Augmenter, pick
from transforms.augmentation.options import shares_of
from transforms.augmentation.paraphrases import CANDIDATES, FromPairs, candidates, merged
from transforms.augmentation.registry import CODE

BUILT_IN = ("swap_characters", "drop_character", "insert_character", "keyboard", "swap_tokens")


class Fixed(Augmenter):
    """Adds a text to phrases that contain another."""

    def __init__(self, added: str, needs: str = "") -> None:
        self._added, self._needs = added, needs

    def augment(self, phrases, seeds):
        texts = [text + self._added if self._needs in text else None for text in phrases.to_pylist()]
        return pa.array(texts, pa.string())


def shares(scheme: str, *names: str) -> dict[str, float]:
    return {each.name: round(each.share, 4) for each in operations_of(names, shares_of(scheme))}


@pytest.mark.parametrize(
    ("scheme", "names", "expected"),
    [
        (
            "paper",
            (*BUILT_IN, "paraphrase"),
            {**dict.fromkeys(BUILT_IN[:4], 0.0833), "swap_tokens": 0.3333, "paraphrase": 0.3333},
        ),
        ("paper", BUILT_IN, {**dict.fromkeys(BUILT_IN[:4], 0.125), "swap_tokens": 0.5}),
        ("paper", ("keyboard",), {"keyboard": 1.0}),
        (
            "code",
            ("keyboard", "drop_character", "swap_tokens", "paraphrase"),  # no synonyms: .30 less
            dict.fromkeys(("keyboard", "drop_character", "swap_tokens", "unchanged"), 0.0714) | {"paraphrase": 0.7143},
        ),
        ("character=1,keyboard=3", BUILT_IN[1:], {**dict.fromkeys(BUILT_IN[1:3], 0.125), "keyboard": 0.75}),
        ("token=.5,unchanged=.5", BUILT_IN, {"swap_tokens": 0.5, "unchanged": 0.5}),
    ],
)  # fmt: skip
def test_shares(scheme, names, expected):
    assert shares(scheme, *names) == expected


def test_the_shares_of_the_code_are_whole():
    assert sum(CODE.values()) == pytest.approx(1)


def drawn(texts, scheme, augmenters, first=0):
    operations = operations_of(list(augmenters), shares_of(scheme))
    seeds = mix64(np.arange(first, first + len(texts), dtype=np.uint64))
    found = draw(pa.array(texts, pa.string()), seeds, operations, augmenters)
    names = [operations[each].name if each >= 0 else None for each in found.operation]
    failed = dict(zip([each.name for each in operations], found.failed.tolist(), strict=True))
    return list(zip(names, found.augmented.to_pylist(), strict=True)), failed


def test_operations_come_about_by_their_shares():
    augmenters = {"keyboard": Fixed("k"), "swap_tokens": Fixed("t"), "paraphrase": Fixed("p")}
    found, _ = drawn(["a phrase"] * 5000, "code", augmenters)
    expected = {"keyboard": 0.10, "swap_tokens": 0.05, "paraphrase": 0.50, "unchanged": 0.05}
    counts = Counter(name for name, _ in found)
    for name, share in expected.items():
        assert counts[name] / 5000 == pytest.approx(share / 0.70, abs=0.03)
    made = {"keyboard": "a phrasek", "swap_tokens": "a phraset", "paraphrase": "a phrasep", "unchanged": "a phrase"}
    assert all(text == made[name] for name, text in found)


def test_a_draw_that_changes_nothing_goes_to_the_others():
    augmenters = {"keyboard": Fixed("k", needs="b"), "swap_tokens": Fixed("", needs=""), "paraphrase": Fixed("p", "c")}
    texts = ["a", "b", "c", "bc"] * 500
    found, failed = drawn(texts, "paper", augmenters)
    kinds = {text: Counter(name for one, (name, _) in zip(texts, found, strict=True) if one == text) for text in texts}
    assert kinds["a"] == {None: 500}
    assert kinds["b"] == {"keyboard": 500}
    assert kinds["c"] == {"paraphrase": 500}
    assert {*kinds["bc"]} == {"keyboard", "paraphrase"}
    assert failed["swap_tokens"] > 500


def test_a_phrase_is_left_unchanged_by_the_first_choice_alone():
    augmenters = {"swap_tokens": Fixed("", needs="")}
    found, _ = drawn(["a"] * 2000, "swap_tokens=.8,unchanged=.2", augmenters)
    counts = Counter(name for name, _ in found)
    assert counts["unchanged"] / 2000 == pytest.approx(0.2, abs=0.03)
    assert counts[None] == 2000 - counts["unchanged"]


def test_case_alone_is_no_change():
    class Upper(Augmenter):
        def augment(self, phrases, seeds):
            return pa.array([text.upper() for text in phrases.to_pylist()], pa.string())

    found, failed = drawn(["Éa", "1"], "paper", {"keyboard": Upper()})
    assert (found, failed) == ([(None, None)] * 2, {"keyboard": 2})


def test_numbers_are_picked_evenly_and_choices_are_independent():
    seeds = mix64(np.arange(60_000, dtype=np.uint64))
    six, ten = (pick(seeds, choice, np.full(len(seeds), among)) for choice, among in ((0, 6), (1, 10)))
    both = np.bincount(six * 10 + ten, minlength=60)
    assert both.min() > 1000 - 5 * 1000**0.5
    assert both.max() < 1000 + 5 * 1000**0.5
    assert pick(seeds, 0, np.zeros(len(seeds), np.int64)).max() == 0


def table_of(*rows: tuple[str, str, int]) -> pa.Table:
    one, other, weight = zip(*rows, strict=True) if rows else ((), (), ())
    return candidates(pa.array(one, pa.string()), pa.array(other, pa.string()), pa.array(weight, pa.int64()))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("of  b", "C", 2)], [("c", "of b", 2), ("of b", "C", 2)]),
        ([("The Sea", "an ocean", 2)], [("ocean", "Sea", 2), ("sea", "ocean", 2)]),
        ([("the sea", "Sea", 2), ("", "x", 1), ("the", "a", 1)], [("a", "the", 1), ("the", "a", 1)]),
        ([("x", "Y", 1), ("x", "y", 2), ("y", "x", 4)], [("x", "y", 7), ("y", "x", 7)]),
        ([("a.b.", "it\u2019s", 1)], [("a.b.", "it's", 1), ("it's", "a.b.", 1)]),
        ([], []),
    ],
)
def test_candidates(pairs, expected):
    assert [tuple(row.values()) for row in merged(table_of(*pairs)).to_pylist()] == expected


def test_paraphrases_are_drawn_by_weight():
    pairs = table_of(("x", "one", 1), ("x", "two", 2), ("x", "five", 5), ("y", "z", 3))
    augmenter = FromPairs(candidates=merged(pairs))
    seeds = mix64(np.arange(8000, dtype=np.uint64))
    counts = Counter(augmenter.augment(pa.array(["x"] * 8000), seeds).to_pylist())
    assert {**counts} == {name: pytest.approx(n, abs=200) for name, n in (("one", 1000), ("two", 2000), ("five", 5000))}
    assert augmenter.augment(pa.array(["y", "w", "Y"]), seeds[:3]).to_pylist() == ["z", None, "z"]
    none = FromPairs(candidates=CANDIDATES.empty_table())
    assert none.augment(pa.array(["x"]), seeds[:1]).to_pylist() == [None]
