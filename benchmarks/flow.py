"""What moves between the stages of the main job, in bytes for each token of the corpus.

    python -m benchmarks.flow --input enwiki-fragment.xml.bz2 --input books --graph flow.mmd

The job runs stage by stage in this process; each file that a stage writes is measured before the dataset is finished.
Data moves between stages in three ways: in datasets, in files of `_work` that later stages read (the exchanges), and in
Beam's shuffles, which carry unit numbers and counts. READS lists what each stage reads. Other options are those of
mine_contexts. `--graph` writes the graph of docs/clusters.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from pipelines import corpus
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import WORK, File
from pipelines.mine_contexts import COMMAND
from pipelines.options import InputOptions
from pipelines.stages.contexts import CUT, KEPT
from schemas.kinds import SIDES
from schemas.manifest import SPLITS
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file
from transforms.contexts.choosing import CHOSEN
from transforms.phrases.counting import COUNTS
from transforms.phrases.occurrences import SENTENCE_COLUMNS
from transforms.sources.duplicates import KEYS
from transforms.sources.sample import sample_inputs

INPUT = "input"
WRITERS = {"documents": ("extract", "drop"), "sentences": ("parse",), "phrases": ("select",), "contexts": ("order",)}
"""The datasets of the chain, each with the stages that write what is published of it."""


class Read(NamedTuple):
    """What a stage reads: files of some roles of an earlier stage, or of a dataset.

    `columns`: those that are read, None for all. `replaced`: only the files that the stage writes again. Each byte
    counts once.
    """

    stage: str
    source: str
    what: str
    roles: tuple[str, ...] = ("train",)
    columns: tuple[str, ...] | None = None
    replaced: bool = False


_TEXT = ("doc_id", "licence", "text")
_OWNER = ("doc_id", "source", "title", "url", "licence", "text")

READS = (
    Read("find_duplicate_ids", "extract", "keys", ("keys",), tuple(KEYS.names)),
    Read("find_duplicates", "extract", "keys", ("keys",), tuple(KEYS.names)),
    Read("find_duplicates", "find_duplicate_ids", "drops", ("drops",)),  # all of it by every unit
    Read("drop", "find_duplicate_ids", "drops", ("drops",)),
    Read("drop", "find_duplicates", "drops", ("drops",)),
    Read("drop", "extract", "shards with a duplicate", replaced=True),
    Read("parse", "documents", "text", columns=_TEXT),
    Read("count", "sentences", "text, spans", columns=SENTENCE_COLUMNS),
    Read("add_up", "count", "counts", ("counts",), tuple(COUNTS.names)),
    # At most --max-phrases rows of the totals of a range; stops when it has them.
    Read("select", "add_up", "totals", ("totals", "frequencies")),
    Read("choose", "sentences", "text, spans", columns=SENTENCE_COLUMNS),
    Read("choose", "phrases", "phrases", columns=("phrase",)),  # by every worker process
    # At most --contexts-per-phrase rows for each phrase and unit; a unit also reads the shards of phrases in its range.
    Read("keep", "choose", "places", ("chosen",), tuple(CHOSEN.names)),
    Read("keep", "phrases", "phrases", columns=("phrase", "label", "frequency")),
    Read("cut", "keep", "places, phrases", ("kept",), tuple(KEPT.names)),
    Read("cut", "sentences", "text, spans", columns=SENTENCE_COLUMNS),  # only shards with a chosen occurrence
    Read("cut", "documents", "text", columns=_OWNER),  # the same
    # Also keys and contexts of the next ranges, for rows without a negative in their own range.
    Read("order", "cut", "contexts", ("cut-train", "cut-validation"), tuple(CUT.names)),
)


class Written(NamedTuple):
    """A file that a stage of a dataset wrote; `chunks` are the bytes of its columns, by Parquet path."""

    dataset: str
    stage: str
    file: File
    chunks: Mapping[str, int]

    def bytes_read(self, columns: Sequence[str] | None) -> int:
        """The file's bytes without the chunks of columns that are not read."""
        if columns is None:
            return self.file.bytes
        read = tuple(f"{name}." for name in columns)
        return self.file.bytes - sum(n for path, n in self.chunks.items() if not f"{path}.".startswith(read))


class Edge(NamedTuple):
    """What `target` reads of what `source` wrote; each byte counts once, rows are those of the files."""

    source: str
    target: str
    what: str
    rows: int
    bytes: int


def edges_of(written: Sequence[Written]) -> list[Edge]:
    """The edges: from stage to dataset for published files, from stage or dataset to stage for files that are read."""
    replaced = {each.file.supersedes: each.stage for each in written if each.file.supersedes}
    published = [each for each in written if each.file.role in (*SPLITS, *SIDES) and each.file.path not in replaced]
    found = [
        _edge(Read(dataset, stage, "published"), [each for each in published if each.stage == stage])
        for dataset, stages in WRITERS.items()
        for stage in stages
    ]
    for read in READS:
        if read.source in WRITERS:
            files = [each for each in published if each.dataset == read.source and each.file.role in read.roles]
        else:
            files = [each for each in written if each.stage == read.source and each.file.role in read.roles]
        if read.replaced:
            files = [each for each in files if replaced.get(each.file.path) == read.stage]
        found.append(_edge(read, files))
    return found


def _edge(read: Read, files: Sequence[Written]) -> Edge:
    size = sum(each.bytes_read(read.columns) for each in files)
    return Edge(read.source, read.stage, read.what, sum(each.file.rows for each in files), size)


def shuffled(units: int) -> tuple[int, int]:
    """The bytes in Beam's two shuffles of a stage, without and with the window and time of each element.

    The first shuffle has an element for each unit and one for the barrier, the second one for each bundle. Here a
    bundle has one unit, which gives the most elements.
    """
    from apache_beam.coders import registry
    from apache_beam.coders.coders import GlobalWindowCoder, WindowedValueCoder
    from apache_beam.transforms.window import GlobalWindows
    from apache_beam.typehints.native_type_compatibility import convert_to_beam_type

    coder = registry.get_coder(convert_to_beam_type(tuple[str, int]))
    windowed = WindowedValueCoder(coder, GlobalWindowCoder())
    elements = [("", 0), *((str(unit), 0) for unit in range(units)), ("", 0), *[("", 1)] * units]
    return (
        sum(len(coder.encode(each)) for each in elements),
        sum(len(windowed.encode(GlobalWindows.windowed_value(each))) for each in elements),
    )


class Measured(NamedTuple):
    """What was measured. `stored`: bytes of all datasets with their `_work`, after each stage or dataset."""

    tokens: int
    edges: list[Edge]
    shuffles: int
    shuffles_with_windows: int
    stored: dict[str, int]
    records: int  # bytes of plans and completion records


def measure(builds: Sequence[DatasetBuild], raw_bytes: int) -> Measured:
    """Build the four datasets of the main job from an input of `raw_bytes`, and measure."""
    written: list[Written] = []
    stored: dict[str, int] = {}
    tokens = records = shuffles = windowed = 0
    for dataset, build in zip(WRITERS, builds, strict=True):
        for name, completions in harness.build_here(build):
            for each in completions:
                written += [Written(dataset, name, file, _chunks(build.output, file.path)) for file in each.files]
                tokens += each.counters["tokens"] if name == "count" else 0
            without, with_windows = shuffled(len(completions))
            shuffles, windowed = shuffles + without, windowed + with_windows
            stored[name] = _stored(builds)
            sizes = build.output.sizes(f"{WORK}/{name}", recursive=True)
            records += sum(size for path, size in sizes.items() if "/files/" not in path)
        stored[f"{dataset} finished"] = _stored(builds)
    edges = [Edge(INPUT, "extract", "raw files", 0, raw_bytes), *edges_of(written)]
    return Measured(tokens, edges, shuffles, windowed, stored, records)


def _chunks(folder: Folder, path: str) -> dict[str, int]:
    """The bytes of each column of a Parquet file, by its path."""
    with parquet_file(folder, path) as reader:
        metadata = reader.metadata
    found: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            found[chunk.path_in_schema] = found.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
    return found


def _stored(builds: Iterable[DatasetBuild]) -> int:
    return sum(sum(build.output.sizes("", recursive=True).values()) for build in builds)


def show(measured: Measured) -> None:
    tokens = measured.tokens
    rows = []
    for each in measured.edges:
        a_token, a_row = f"{each.bytes / tokens:.3f}", each.bytes / max(each.rows, 1)
        edge = f"{each.source} -> {each.target}"
        rows.append((edge, each.what, each.rows, each.bytes / 1e6, a_token, a_row))
    harness.show(f"{tokens:,} tokens", ("edge", "what", "rows", "MB", "B/token", "B/row"), rows)
    without, with_windows = (each / tokens for each in (measured.shuffles, measured.shuffles_with_windows))
    print(f"all of Beam's shuffles: {without:.6f} B/token, {with_windows:.6f} with window and time")
    print(f"plans and completion records: {measured.records / tokens:.3f} B/token")
    last = max(measured.stored, key=lambda name: measured.stored[name])
    print(f"on storage at most {measured.stored[last] / 1e6:.1f} MB, after {last}")


def graph(measured: Measured) -> str:
    """The graph in Mermaid: cylinders are datasets, dotted arrows carried nothing, figures are bytes for each token."""
    lines = ["flowchart TD", f"    {INPUT}[/raw text/]", *(f"    {each}[({each})]" for each in WRITERS)]
    for each in measured.edges:
        what = "" if each.what == "published" else f"{each.what}<br>"
        arrow = f'-->|"{what}{each.bytes / measured.tokens:.2g} B"|' if each.bytes else "-.->"
        lines.append(f"    {each.source} {arrow} {each.target}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--graph", type=Path, metavar="FILE", help="write the graph of stages there, as Mermaid")
    chosen, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        options, _ = COMMAND.parse(rest)
        inputs = options[InputOptions].input or [str(path) for path in sample_inputs()]
        source = corpus.given(inputs, input_format=None)
        if source.raw is None:
            parser.error("--input: the flow is measured from raw text; do not give a dataset")
        builds = corpus.to_build(COMMAND.build(source, options, Folder(f"{folder}/contexts")))
        measured = measure(builds, sum(each.file.size for each in source.raw.inputs))
    show(measured)
    harness.write(chosen.json, measured._asdict())
    if chosen.graph:
        chosen.graph.write_text(graph(measured))


if __name__ == "__main__":
    main()
