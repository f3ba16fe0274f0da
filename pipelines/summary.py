"""What a run prints at its end: the datasets, what was left out, rates, sample rows, the next command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from schemas.commands import typed
from schemas.dataset import Dataset
from schemas.storage.folder import Folder
from transforms.reports.figures import plain, plural, size, text_of

SAMPLES = 3


def text(folders: Sequence[Folder], rates: Mapping[str, float]) -> str:
    """The summary of a chain of datasets, the last of them the output; `rates` are tokens/s by stage."""
    datasets = [Dataset.open(folder.uri) for folder in folders]
    output = datasets[-1]
    kind = output.manifest.kind
    lines = ["", *_counts(datasets)]
    for reasons in ("filtered", "rejected"):
        lines.append(f"{reasons}: {'; '.join(_reasons(datasets, reasons)) or 'nothing'}")
    lines += [note for each in datasets for note in each.manifest.notes]
    if rates:
        lines.append("tokens/s: " + ", ".join(f"{stage} {rate:,.0f}" for stage, rate in rates.items()))
    rows = [kind.show(row, output.manifest.options) for row in output.head(SAMPLES)]
    lines += ["", *([line for row in rows for line in row.lines()] or ["(no rows)"])]
    return "\n".join([*lines, "", f"next: {typed(*kind.after.split(), output.folder)}"])


def _counts(datasets: Sequence[Dataset]) -> Sequence[str]:
    table = Table.grid(padding=(0, 2))
    for name in ("kind", "rows", "folder", "size"):
        table.add_column(name, justify="right" if name == "rows" else "left")
    for each in datasets:
        manifest = each.manifest
        shards = f"{plural(len(manifest.shards), 'shard')}, {size(sum(shard.bytes for shard in manifest.shards))}"
        table.add_row(manifest.kind.rows, f"{manifest.rows:,}", str(each.folder), shards)
    return text_of(table)


def _reasons(datasets: Sequence[Dataset], reasons: str) -> Iterator[str]:
    """Counts by stage and reason, as "constituents: 12,000 pronoun, 300 number"."""
    for manifest in (each.manifest for each in datasets):
        for ledger in (stage.ledger for stage in manifest.stages if stage.ledger):
            counts: Counter[str] = getattr(ledger, reasons)
            if counts:
                yield f"{ledger.counts}: " + ", ".join(f"{n:,} {plain(name)}" for name, n in counts.most_common())
