"""schemas.check on paraphrases and their candidates: sound ones, and ones that are broken."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from breaking import Row, edit, field, ledger, rewrite
from paraphrased import PAPER, chosen, given

from schemas.check import main
from schemas.kinds.paraphrases import holding, replaced


def at(phrase: str, **values: Any):
    """Changes the row of a phrase."""
    return rewrite(lambda rows: next(row for row in rows if row["phrase"] == phrase).update(values))


def scored(**values: Any):
    return rewrite(lambda rows: rows[0]["scores"].update(values))


def drawn(number: int, **values: Any):
    return rewrite(lambda rows: rows[0]["positives"][number].update(values))


def swap(rows: list[Row]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


CASES = {
    "banned": ("chosen", at("the old king", positive="the aged KING"), "the positive holds a banned word: .*KING"),
    "banned negative": ("chosen", at("a big house", negative="a quay"), "the negative holds a banned word"),
    "same": ("chosen", at("the old king", negative="the old Ferry", corrupted_banned=[]), "is what it paraphrases"),
    "two words": ("chosen", at("a big house", corrupted="a small quay"), "corrupted does not differ .* in one word"),
    "no word": ("chosen", at("a big house", corrupted="a big house"), "corrupted does not differ .* in one word"),
    "empty": ("chosen", at("a big house", positive=""), "the positive is empty"),
    "low": ("chosen", scored(negative_similarity=-1.5), "the similarity of the negative is not from -1 to 1"),
    "apart": ("chosen", scored(apart=2.0), "apart is not from -1 to 1"),
    "threshold": (
        "chosen",
        lambda folder: (scored(positive_similarity=0.5)(folder), edit(options(min_similarity=0.7))(folder)),
        "the similarity of the positive is not from 0.7 to 1",
    ),
    "order": ("chosen", rewrite(swap), "the phrase is not after the one before it, by hash"),
    "twice": ("chosen", rewrite(lambda rows: rows.append(rows[-1])), "the phrase is not unique"),
    "not drawn": ("chosen", at("a big house", positive="a villa"), "the positive is not among the candidates"),
    "other words": ("chosen", at("a big house", banned=[]), "the positive is not among the candidates"),
    "ledger": ("chosen", edit(ledger("choose_paraphrases", read=27)), "the ledger of phrases does not add up"),
    "drawn banned": ("given", drawn(0, text="Kings of a king"), "one of the positives holds a banned word"),
    "blank": ("given", drawn(0, text="ruler "), "one of the positives begins or ends with a blank"),
    "draws": ("given", drawn(1, draw=0), "the draws of positives are not in order"),
    "corrupted": ("given", rewrite(field(0, corrupted="a new ferry")), "corrupted does not differ"),
}


def options(**values: Any):
    return lambda data: data["options"].update(values)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    chosen(folder, given(folder / "given"), *PAPER)
    return folder


def test_sound_datasets(sound, capsys):
    assert main([str(sound / "chosen"), str(sound / "given")]) == 0
    assert "candidates agree with " in capsys.readouterr().out


@pytest.mark.parametrize("case", CASES)
def test_damage_is_found(sound, tmp_path, capsys, case):
    which, damage, finding = CASES[case]
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / which)
    assert main([str(tmp_path / which)]) == 1
    assert re.search(finding, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "banned", "found"),
    [
        ("a runway", ["run"], []),
        ("to Run-away", ["run"], ["run"]),
        ("the King's men", ["king", "kings"], ["king"]),
        ("CAFÉ society", ["cafe"], ["cafe"]),
        ("two_kings", ["kings"], ["kings"]),
        ("3rd of 30", ["3", "30"], ["30"]),
        ("", ["king"], []),
        ("king", [], []),
    ],
)
def test_words_that_a_text_holds(text, banned, found):
    assert holding(text, banned) == found


@pytest.mark.parametrize(
    ("phrase", "corrupted", "found"),
    [
        ("the old king", "the old ferry", ("king", "ferry")),
        ("king", "ferry", ("king", "ferry")),
        ("the old king", "the old old king", None),
        ("the old king", "the old king", None),
        ("the old king", "a old ferry", None),
    ],
)
def test_the_word_that_was_replaced(phrase, corrupted, found):
    assert replaced(phrase, corrupted) == found
