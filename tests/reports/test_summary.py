"""What a run says at its end, of each record type."""

from __future__ import annotations

import pytest
from written import alias_pair, mention, mention_pair, write_dataset

from pipelines import summary
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS, MENTION_PAIRS
from schemas.kinds.mentions import MENTIONS

ONE = mention("The [white whale] sank it.", "Whale", "Q160")
OTHER = mention("A [whale] breathes.", "Whale (band)")


@pytest.mark.parametrize(
    ("schema", "row", "name", "sample", "then"),
    [
        (
            MENTIONS,
            ONE,
            "mentions",
            ["white whale -> Whale (Q160) (qid)", "    The [white whale] sank it."],
            "pipelines.mine_mentions --input",
        ),
        (
            MENTION_PAIRS,
            mention_pair(ONE, ONE),
            "pairs",
            ["Q160 (entity): Whale (Q160)", *["    The [white whale] sank it."] * 2],
            "schemas.check",
        ),
        (
            MASKED_MENTION_PAIRS,
            mention_pair(OTHER, ONE, kind="surface", anchor="", positive=""),
            "pairs",
            [
                "whale (surface): Whale (band) / Whale (Q160)",
                "    A [whale] breathes.",
                "    The [white whale] sank it.",
            ],
            "schemas.check",
        ),
        (
            ALIAS_PAIRS,
            alias_pair("whale", "whales", 1200, 3),
            "aliases",
            ["Whale: whale (1,200x), whales (3x)"],
            "schemas.check",
        ),
    ],
)
def test_the_last_words_of_a_run(tmp_path, schema, row, name, sample, then):
    written = write_dataset(tmp_path / "x", schema, [[[row]]])
    lines = summary.text([written.folder], {}).splitlines()
    assert lines[1].split() == [name, "1", str(written.folder), "1", "shard,", lines[1].split()[-2], "MB"]
    assert lines[-2 - len(sample) : -2] == sample
    assert lines[-1].endswith(f" -m {then} {written.folder}")
