"""The summary at the end of a run, for each record type."""

from __future__ import annotations

import pytest
from written import alias_pair, mention, write_dataset

from pipelines import summary
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.mentions import MENTIONS

WHALE = mention("The [white whale] sank it.", "Whale", "Q160")


@pytest.mark.parametrize(
    ("schema", "row", "name", "sample", "then"),
    [
        (
            MENTIONS,
            WHALE,
            "mentions",
            ["white whale → Whale (Q160) · qid · link (Title)", "    The [white whale] sank it."],
            "pipelines.mine_mentions --input",
        ),
        (
            ALIAS_PAIRS,
            alias_pair("whale", "whales", 1200, 3),
            "aliases",
            ["whale / whales: mentions 1,200 and 3, entity Whale"],
            "schemas.check",
        ),
    ],
)
def test_the_last_words_of_a_run(tmp_path, schema, row, name, sample, then):
    written = write_dataset(tmp_path / "x", schema, [[[row]]])
    lines = summary.text([written.folder], {}).splitlines()
    assert lines[1].split() == [name, "1", str(written.folder), "1", "shard,", lines[1].split()[-2], "kB"]
    assert lines[-2 - len(sample) : -2] == sample
    assert lines[-1].endswith(f" -m {then} {written.folder}")
