"""All mentions of an entity, as tables and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from literal import dataset

from pipelines.mentions import main
from schemas.dataset import Dataset
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.mentions import MENTIONS
from transforms.mentions.view import mentions_of

ROWS = [
    ("Q84", "London", "in [London] now"),
    ("Q84", "London", "the [capital] fell"),
    ("", "New York City", "to [New York] by ship"),
    ("Q220", "Rome", "[Rome] burns"),
    ("Q84", "London", "[London] again"),
]


@pytest.fixture
def mentions(tmp_path: Path) -> Path:
    """Two shards."""
    rows = []
    for number, (entity_id, title, marked) in enumerate(ROWS):
        start, end = marked.index("["), marked.index("]") - 1
        text = marked.replace("[", "").replace("]", "")
        row = dict.fromkeys(MENTIONS.names, "")
        rows.append(
            {
                **row,
                "entity_id": entity_id,
                "target_title": title,
                "mention": text[start:end],
                "text": text,
                "start_char": start,
                "end_char": end,
                "title": f"Page {number}",
            }
        )
    dataset(tmp_path / "m", [pa.Table.from_pylist(part, schema=MENTIONS) for part in (rows[:2], rows[2:])])
    return tmp_path / "m"


@pytest.mark.parametrize(
    ("entity", "pages"),
    [
        ("Q84", [["Page 0", "Page 1"], ["Page 4"]]),
        ("London", [["Page 0", "Page 1"], ["Page 4"]]),
        ("New York City", [["Page 2"]]),
        ("Q8", []),
        ("Paris", []),
    ],
)
def test_mentions_of(mentions, entity, pages):
    tables = list(mentions_of(Dataset.open(str(mentions)), entity))
    assert [table.column("title").to_pylist() for table in tables] == pages
    assert all(table.column_names == MENTIONS.names for table in tables)


@pytest.mark.parametrize("entity", ["Q84", "London", "london", "London#History", "/wiki/London"])
def test_on_the_command_line(mentions, capsys, entity):
    assert main([str(mentions), entity, "--limit=2"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Page 0: in [London] now",
        "Page 1: the [capital] fell",
        "",
        "3 mentions, 2 of them shown; as London (2), capital (1)",
    ]


def test_for_machines(mentions, capsys):
    assert main([str(mentions), "Q84", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["title"] for row in rows] == ["Page 0", "Page 1", "Page 4"]


def test_what_is_not_there(mentions, tmp_path, capsys):
    assert main([str(mentions), "Q1"]) == 1
    assert "Q1: no mention" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), "Q1"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    dataset(tmp_path / "aliases", [ALIAS_PAIRS.empty_table()])
    assert main([str(tmp_path / "aliases"), "Q1"]) == 2
    assert "holds AliasPair records; give a mentions dataset" in capsys.readouterr().err
