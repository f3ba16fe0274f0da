from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import UserError


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What takes seconds to import, when a test here runs and not when all are collected."""
    pytest.importorskip("torch")
    global RECIPE, read_recipe
    from trainers.parser.recipe import RECIPE, read_recipe


def test_the_shipped_recipe() -> None:
    recipe = read_recipe(RECIPE)
    assert recipe.labels == ("NP", "VP", "PP", "ADJP", "ADVP", "S", "SBAR")
    assert [each.name for each in recipe.treebanks] == ["gum", "craft"]
    assert (recipe.student.layers, recipe.student.schedule.seed) == (3, 0)
    for network in (recipe.teacher, recipe.student):
        assert sum(network.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("longest = 100", "", "soft_labels: 'longest' is missing"),
        ("longest = 100", "longest = 1\nshortest = 3", "soft_labels: no setting 'shortest'; there are words, longest"),
        ("longest = 100", "longest = '100'", "soft_labels: longest: expected int, not '100'"),
        ("craft = 0.25", "craft = 'much'", "teacher: shares craft: expected float, not 'much'"),
        ('name = "gum"', "name = 1", "treebanks 1: name: expected str, not 1"),
        ("[teacher.schedule]", "[teacher.timetable]", "teacher: no setting 'timetable'"),
        ("[teacher.schedule]", "[teacher", "cannot be read as a recipe: "),
    ],
)
def test_errors_name_the_file_and_the_setting(old: str, new: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = RECIPE.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError) as raised:
        read_recipe(path)
    assert str(raised.value).startswith(f"{path}: {error}")
