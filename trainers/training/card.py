"""The card of a model: README.md beside its weights, with the front matter of hub model cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.dataset import Dataset
from schemas.storage.folder import Folder
from trainers.training.evaluating import Scores, mean_of
from trainers.training.options import Training
from transforms.reports.figures import duration

SENTENCE_TRANSFORMERS = """\
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("{folder}")
    vectors = model.encode(["a phrase", "another one"])\
"""


def write_card(options: Training, results: Mapping[str, Any], *, about: str, usage: str = "") -> None:
    """Write the card: what the model is, how it is loaded, what it was made from, and how good it is."""
    lines = [*_front_matter(options, results), *_body(options, results, about, usage)]
    (options.output / "README.md").write_text("\n".join(lines) + "\n")


def _front_matter(options: Training, results: Mapping[str, Any]) -> Iterator[str]:
    yield "---"
    yield "language: en"
    yield "pipeline_tag: sentence-similarity"
    if (options.output / "modules.json").exists():
        yield "library_name: sentence-transformers"
    if options.model and not Path(options.model).exists():
        yield f"base_model: {options.model}"
    yield f"tags: [phrasemill, {results['recipe']}, phrases]"
    yield "---"
    yield ""


def _body(options: Training, results: Mapping[str, Any], about: str, usage: str) -> Iterator[str]:
    name = options.output.resolve().name
    yield from (f"# {name}", "", about, "")
    if not usage and (options.output / "modules.json").exists():
        usage = SENTENCE_TRANSFORMERS.format(folder=name)
    yield from ("## How to load it", "", usage or f"    phrasemill evaluate {name} --data DIR", "")
    yield from ("## How it was made", "", f"    {results['command']}", "")
    base = f"It starts from {options.model}" if options.model else "It starts from new weights"
    if options.model and options.random_weights:
        base = f"It has the shape and the tokenizer of {options.model}, and starts from new weights"
    ended = f"{results['steps']:,} steps of {options.batch_size:,} rows, {duration(results['seconds'])}"
    yield f"{base}. {ended}, {results['examples_a_second']:,.0f} examples/s."
    yield ""
    yield from _table(("data", "rows", "licences"), _data(options, results["data"]))
    yield from _table(
        ("option", "value"), [(each, str(value)) for each, value in results["settings"].items() if value is not None]
    )
    if results["losses"]:
        yield from ("## Losses", "")
        chosen = results["losses"][:: max(1, len(results["losses"]) // 5)]
        points = [*chosen, results["losses"][-1]] if chosen[-1] != results["losses"][-1] else chosen
        names = [*points[0][1]]
        rows = [(f"{step:,}", *(f"{losses[each]:.4f}" for each in names)) for step, losses in points]
        yield from _table(("step", *names), rows)
    if scores := results["scores"]:
        yield from _scores(*(scores[each] for each in (min(scores, key=int), max(scores, key=int))))


def _data(options: Training, sources: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for each in sources:
        place = next((given for given in options.data if each["place"].startswith(given)), each["place"])
        yield each["place"], f"{each['rows']:,}", licences(place)


def licences(place: str) -> str:
    """The licences that the manifest of a dataset has; a file does not say."""
    if place.endswith(".parquet") or not Folder(place).exists("manifest.json"):
        return "not known: a file"
    return ", ".join(sorted(Dataset.open(place).manifest.licences)) or "none given"


def _scores(before: Scores, after: Scores) -> Iterator[str]:
    yield from ("## Scores", "")
    rows = [
        (
            task,
            measure,
            f"{before[task][measure]['mean']:.1f}",
            f"{one['mean']:.1f}" + (f" ± {one['deviation']:.1f}" if one["deviation"] is not None else ""),
            f"{one['difference']:+.1f}" if "difference" in one else "",
            "{:+.1f} to {:+.1f}".format(*one["difference_interval"]) if "difference" in one else "",
        )
        for task, measures in after.items()
        for measure, one in measures.items()
    ]
    difference = mean_of(after) - mean_of(before)
    rows.append(("mean", "", f"{mean_of(before):.1f}", f"{mean_of(after):.1f}", f"{difference:+.1f}", ""))
    yield from _table(("task", "measure", "before", "after", "difference", "95 %"), rows)
    yield "±: standard deviation over the seeds of a task; 95 %: of the difference, when the items are drawn again."
    yield "The mean is of the first measure of each task."


def _table(heading: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield "|" + "---|" * len(heading)
    for row in rows:
        yield f"| {' | '.join(each.replace('|', chr(92) + '|') for each in row)} |"
    yield ""
