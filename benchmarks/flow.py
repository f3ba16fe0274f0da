"""What moves between the steps of the main job, in bytes a token of the corpus.

    python -m benchmarks.flow --input enwiki-fragment.xml.bz2 --input books --plot flow.svg

The job runs step by step, without Beam, in worker processes of this machine; each file that a step writes is measured
before the dataset is finished. Three ways lead from step to step: datasets, files of `_work` that later steps read
(the exchanges), and Beam's shuffles, which carry numbers of units and counts of them. READS says who reads what. Other
options are those of mine_contexts.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pipelines import corpus, options, runners
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import SIDE_TABLES, WORK, File, Stage, Work, close_stage, open_stage
from pipelines.engine.worker_pool import LIMITS, Workers, usable_cores
from pipelines.mine_contexts import COMMAND
from pipelines.stages.contexts import CUT, KEPT
from schemas.errors import UserError
from schemas.manifest import SPLITS
from schemas.storage import Folder, parquet_file
from transforms.contexts.choosing import CHOSEN
from transforms.phrases.counting import COUNTS
from transforms.phrases.occurrences import SENTENCE_COLUMNS
from transforms.sources.duplicates import KEYS
from transforms.sources.sample import sample_inputs

INPUT = "input"
WRITERS = {"documents": ("extract", "drop"), "sentences": ("parse",), "phrases": ("select",), "contexts": ("order",)}
"""The datasets of the chain, each with the stages that write what is published of it."""
CAPPED = ("select", "phrases", "keep", "cut", "order")
"""What leaves these follows --max-phrases and --contexts-per-phrase: in a larger corpus it is fewer bytes a token."""


class Read(NamedTuple):
    """What a stage reads: files of some roles of an earlier stage, or of a dataset.

    `columns` as they are asked for, None for all. `replaced`: only the files that the stage writes anew. Each
    byte of them counts once; `note` says where more or less is read, or what bounds it.
    """

    stage: str
    source: str
    what: str
    roles: tuple[str, ...] = ("train",)
    columns: tuple[str, ...] | None = None
    replaced: bool = False
    note: str = ""


_TEXT = ("doc_id", "licence", "text")
_OWNER = ("doc_id", "source", "title", "url", "licence", "text")

READS = (
    Read("find_duplicate_ids", "extract", "keys", ("keys",), tuple(KEYS.names)),
    Read("find_duplicates", "extract", "keys", ("keys",), tuple(KEYS.names)),
    Read("find_duplicates", "find_duplicate_ids", "drops", ("drops",), note="all of it by every unit"),
    Read("drop", "find_duplicate_ids", "drops", ("drops",)),
    Read("drop", "find_duplicates", "drops", ("drops",)),
    Read("drop", "extract", "shards with a duplicate", replaced=True),
    Read("parse", "documents", "text", columns=_TEXT),
    Read("count", "sentences", "text, spans", columns=SENTENCE_COLUMNS),
    Read("add_up", "count", "counts", ("counts",), tuple(COUNTS.names)),
    Read("select", "add_up", "totals", ("totals",), note="at most --max-phrases rows a range; stops when it has them"),
    Read("choose", "sentences", "text, spans", columns=SENTENCE_COLUMNS),
    Read("choose", "phrases", "phrases", columns=("phrase",), note="by every worker process"),
    Read(
        "keep",
        "choose",
        "places",
        ("chosen",),
        tuple(CHOSEN.names),
        note="at most --contexts-per-phrase rows a phrase and unit",
    ),
    Read(
        "keep",
        "phrases",
        "phrases",
        columns=("phrase", "label", "frequency"),
        note="a shard by each unit whose range of phrases meets it",
    ),
    Read("cut", "keep", "places, phrases", ("kept",), tuple(KEPT.names)),
    Read("cut", "sentences", "text, spans", columns=SENTENCE_COLUMNS, note="only shards with a chosen occurrence"),
    Read("cut", "documents", "text", columns=_OWNER, note="only shards with a chosen occurrence"),
    Read(
        "order",
        "cut",
        "contexts",
        ("cut-train", "cut-validation"),
        tuple(CUT.names),
        note="keys and contexts of the next ranges where a row finds no negative in its own",
    ),
)


class Written(NamedTuple):
    """A file that a stage of a dataset wrote; `chunks` are the bytes of its columns, by Parquet path."""

    dataset: str
    stage: str
    file: File
    chunks: Mapping[str, int]


class Edge(NamedTuple):
    """What `target` takes of what `source` wrote, each byte once; rows are those of the files."""

    source: str
    target: str
    what: str
    rows: int
    bytes: int
    note: str = ""


class Shuffle(NamedTuple):
    """What a stage writes into one of its two shuffles, encoded; `windows` are the bytes that window and time add."""

    stage: str
    name: str
    elements: int
    bytes: int
    windows: int


class Moment(NamedTuple):
    """Bytes of all datasets of the chain with their `_work`, when a step or a dataset was done."""

    after: str
    bytes: int


class Measured(NamedTuple):
    """A whole run. `records`: bytes of plans and completion records, all stages together."""

    tokens: int
    edges: list[Edge]
    shuffles: list[Shuffle]
    moments: list[Moment]
    records: int


def bytes_read(size: int, chunks: Mapping[str, int], columns: Sequence[str] | None) -> int:
    """The bytes of a file of which some columns are read: all of it but the other columns' chunks."""
    if columns is None:
        return size
    return size - sum(bytes for path, bytes in chunks.items() if not any(_holds(name, path) for name in columns))


def _holds(column: str, path: str) -> bool:
    return path == column or path.startswith(f"{column}.")


def edges_of(written: Sequence[Written], reads: Iterable[Read] = READS) -> list[Edge]:
    """Stage to dataset for what is published, stage to stage and dataset to stage for what is read."""
    replaced = {each.file.supersedes: each.stage for each in written if each.file.supersedes}
    published = [
        each for each in written if each.file.role in (*SPLITS, *SIDE_TABLES) and each.file.path not in replaced
    ]
    found = []
    for dataset, stages in WRITERS.items():
        for stage in stages:
            found.append(_edge(Read(dataset, stage, "published"), [each for each in published if each.stage == stage]))
    for read in reads:
        if read.source in WRITERS:
            files = [each for each in published if each.dataset == read.source and each.file.role in read.roles]
        else:
            files = [each for each in written if each.stage == read.source and each.file.role in read.roles]
        if read.replaced:
            files = [each for each in files if replaced.get(each.file.path) == read.stage]
        found.append(_edge(read, files))
    return found


def _edge(read: Read, files: Sequence[Written]) -> Edge:
    size = sum(bytes_read(each.file.bytes, each.chunks, read.columns) for each in files)
    return Edge(read.source, read.stage, read.what, sum(each.file.rows for each in files), size, read.note)


def shuffles_of(stage: str, units: int) -> list[Shuffle]:
    """Both shuffles of a stage, as `pipelines.graph.RunStage` fills them.

    Into Spread goes an element a unit and one for the barrier, into Gather one a bundle: here a bundle holds one unit,
    which is the most that can be.
    """
    spread = [("", 0), *((str(unit), 0) for unit in range(units))]
    gather = [("", 0), *[("", 1)] * units]
    return [_shuffle(stage, "Spread", spread), _shuffle(stage, "Gather", gather)]


def _shuffle(stage: str, name: str, elements: Sequence[tuple[str, int]]) -> Shuffle:
    from apache_beam.coders import registry
    from apache_beam.coders.coders import GlobalWindowCoder, WindowedValueCoder
    from apache_beam.transforms.window import GlobalWindows
    from apache_beam.typehints.native_type_compatibility import convert_to_beam_type

    coder = registry.get_coder(convert_to_beam_type(tuple[str, int]))
    windowed = WindowedValueCoder(coder, GlobalWindowCoder())
    size = sum(len(coder.encode(each)) for each in elements)
    whole = sum(len(windowed.encode(GlobalWindows.windowed_value(each))) for each in elements)
    return Shuffle(stage, name, len(elements), size, whole - size)


# ---- The run


def measure(builds: Sequence[DatasetBuild], raw_bytes: int, do: Callable[[Work, Stage, list[int]], None]) -> Measured:
    """Build the four datasets of the main job, from input of `raw_bytes`; `do` does units of an open stage."""
    written: list[Written] = []
    shuffles: list[Shuffle] = []
    moments: list[Moment] = []
    tokens = records = 0
    for dataset, build in zip(WRITERS, builds, strict=True):
        build.check(resume=False, overwrite=False, reuse=False)
        build.begin(resume=False)
        for stage in build.stages:
            do(build.work, stage, open_stage(build.work, stage))
            completions = close_stage(build.work, stage)
            for each in completions:
                written += [Written(dataset, stage.name, file, _chunks(build.output, file.path)) for file in each.files]
                tokens += each.counters["tokens"] if stage.name == "count" else 0
            shuffles += shuffles_of(stage.name, len(completions))
            moments.append(Moment(stage.name, _stored(builds)))
            sizes = build.output.sizes(f"{WORK}/{stage.name}", recursive=True)
            records += sum(size for name, size in sizes.items() if "/files/" not in name)
        build.finish()
        moments.append(Moment(f"{dataset} finished", _stored(builds)))
    edges = [Edge(INPUT, "extract", "raw files", 0, raw_bytes), *edges_of(written)]
    return Measured(tokens, edges, shuffles, moments, records)


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


def _stored(builds: Sequence[DatasetBuild]) -> int:
    return sum(sum(build.output.sizes("", recursive=True).values()) for build in builds)


def prepare(arguments: Sequence[str], folder: Path) -> tuple[list[DatasetBuild], int, int]:
    """What mine_contexts would build with these arguments: its datasets, the bytes of its input, its workers."""
    parser = options.command(COMMAND.module, COMMAND.description, output=str(folder / "contexts"))
    options.add_input(parser, takes=COMMAND.takes)
    for add in COMMAND.groups:
        add(parser)
    chosen, _ = options.parse(parser, arguments)
    source = corpus.given(chosen.input or [str(path) for path in sample_inputs()], input_format=chosen.input_format)
    if source.raw is None:
        raise UserError("--input: the flow is measured from raw text on; give no dataset")
    builds = corpus.to_build(COMMAND.build(source, chosen, Folder(chosen.output)))
    return builds, sum(each.file.size for each in source.raw.inputs), chosen.workers or usable_cores()


def run(arguments: Sequence[str], folder: Path) -> Measured:
    """Measure a run of mine_contexts with these arguments, in worker processes."""
    builds, raw_bytes, number = prepare(arguments, folder)
    workers = Workers(number, limits=LIMITS, report=lambda fault: print(fault, file=sys.stderr))

    def do(work: Work, stage: Stage, units: list[int]) -> None:
        for _ in workers.run(work, stage, units):
            pass

    try:
        return measure(builds, raw_bytes, do)
    finally:
        workers.stop()


def table(measured: Measured) -> str:
    """What was measured, for a reader: each edge, the shuffles and what lies on storage."""
    tokens = measured.tokens
    lines = [f"{tokens:,} tokens; MB a million tokens are bytes a token", ""]
    lines.append(f"{'edge':42}{'what':26}{'rows':>11}{'MB':>9}{'B/token':>9}{'B/row':>9}")
    for edge in measured.edges:
        a_row = edge.bytes / edge.rows if edge.rows else 0
        sizes = f"{edge.rows:11,}{_mb(edge.bytes)}{edge.bytes / tokens:9.3f}{a_row:9.1f}"
        lines.append(f"{f'{edge.source} -> {edge.target}':42}{edge.what:26}{sizes}")
    lines += ["", f"fewer a token in a larger corpus: what leaves {', '.join(CAPPED)}", "notes:"]
    lines += [f"  {edge.source} -> {edge.target}: {edge.note}" for edge in measured.edges if edge.note]
    total = sum(each.bytes for each in measured.shuffles)
    windows = sum(each.windows for each in measured.shuffles)
    elements = sum(each.elements for each in measured.shuffles)
    lines += ["", f"{'shuffle':42}{'elements':>10}{'bytes':>9}{'with window and time':>24}"]
    lines += [
        f"{f'{each.stage}: {each.name}':42}{each.elements:>10,}{each.bytes:>9,}{each.bytes + each.windows:>24,}"
        for each in measured.shuffles
    ]
    lines.append(f"{'all':42}{elements:>10,}{total:>9,}{total + windows:>24,}")
    lines.append("Gather with one unit a bundle, which is the most that can be")
    lines.append(f"all shuffles: {total / tokens:.6f} B/token, {(total + windows) / tokens:.6f} with window and time")
    lines.append(
        f"plans and completion records: {measured.records / 1e6:.3f} MB, {measured.records / tokens:.3f} B/token"
    )
    lines += ["", f"{'on storage after':42}{'MB':>9}{'B/token':>9}"]
    lines += [f"{each.after:42}{_mb(each.bytes)}{each.bytes / tokens:9.1f}" for each in measured.moments]
    peak = max(measured.moments, key=lambda each: each.bytes)
    lines.append(f"at most {peak.bytes / 1e6:.1f} MB, after {peak.after}")
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1e6:9.3f}"


def to_json(measured: Measured) -> dict[str, Any]:
    lists = {"edges": measured.edges, "shuffles": measured.shuffles, "moments": measured.moments}
    return measured._asdict() | {name: [each._asdict() for each in values] for name, values in lists.items()}


def from_json(found: Mapping[str, Any]) -> Measured:
    return Measured(
        found["tokens"],
        [Edge(**each) for each in found["edges"]],
        [Shuffle(**each) for each in found["shuffles"]],
        [Moment(**each) for each in found["moments"]],
        found["records"],
    )


# ---- The picture, in pixels from its lower left corner

_SIZE = (900, 704)
_LOWEST = 30
_GROWS, _CAPPED, _NOTHING, _INK = "#33658a", "#b5763c", "#bcc2c8", "#20262c"
_HEIGHT = {"stage": 40, "dataset": 34}
_BOXES = {  # left, right, bottom
    INPUT: (22, 112, 622),
    "extract": (200, 312, 622),
    "find_duplicate_ids": (402, 536, 622),
    "find_duplicates": (600, 714, 622),
    "drop": (788, 878, 622),
    "documents": (22, 878, 544),
    "parse": (200, 312, 456),
    "sentences": (22, 660, 378),
    "count": (112, 214, 290),
    "add_up": (304, 394, 290),
    "select": (484, 574, 290),
    "phrases": (112, 574, 212),
    "choose": (112, 214, 124),
    "keep": (304, 394, 124),
    "cut": (604, 704, 124),
    "order": (788, 878, 124),
    "contexts": (604, 878, 46),
}


class _Way(NamedTuple):
    """The corners of an arrow, and where its label stands: its horizontal alignment says on which side of the place."""

    points: tuple[tuple[float, float], ...]
    label: tuple[float, float, str]


_WAYS = {
    (INPUT, "extract"): _Way(((112, 642), (200, 642)), (153, 649, "above")),
    ("extract", "find_duplicate_ids"): _Way(((312, 642), (402, 642)), (354, 649, "above")),
    ("extract", "find_duplicates"): _Way(((272, 662), (272, 686), (657, 686), (657, 662)), (354, 689, "above")),
    ("find_duplicate_ids", "find_duplicates"): _Way(((536, 642), (600, 642)), (565, 649, "above")),
    ("find_duplicates", "drop"): _Way(((714, 642), (788, 642)), (748, 649, "above")),
    ("find_duplicate_ids", "drop"): _Way(((469, 622), (469, 600), (812, 600), (812, 622)), (640, 603, "above")),
    ("extract", "drop"): _Way(((236, 662), (236, 718), (833, 718), (833, 662)), (738, 692, "above")),
    ("extract", "documents"): _Way(((256, 622), (256, 578)), (266, 602, "left")),
    ("drop", "documents"): _Way(((854, 622), (854, 578)), (846, 602, "right")),
    ("documents", "parse"): _Way(((256, 544), (256, 496)), (266, 521, "left")),
    ("parse", "sentences"): _Way(((256, 456), (256, 412)), (266, 436, "left")),
    ("sentences", "count"): _Way(((163, 378), (163, 330)), (173, 355, "left")),
    ("count", "add_up"): _Way(((214, 310), (304, 310)), (256, 317, "above")),
    ("add_up", "select"): _Way(((394, 310), (484, 310)), (436, 317, "above")),
    ("select", "phrases"): _Way(((529, 290), (529, 246)), (519, 270, "right")),
    ("phrases", "choose"): _Way(((163, 212), (163, 164)), (173, 189, "left")),
    ("phrases", "keep"): _Way(((349, 212), (349, 164)), (359, 189, "left")),
    ("sentences", "choose"): _Way(((46, 378), (46, 144), (112, 144)), (56, 268, "left")),
    ("choose", "keep"): _Way(((214, 144), (304, 144)), (256, 151, "above")),
    ("keep", "cut"): _Way(((394, 144), (604, 144)), (496, 151, "above")),
    ("sentences", "cut"): _Way(((632, 378), (632, 164)), (622, 268, "right")),
    ("documents", "cut"): _Way(((680, 544), (680, 164)), (690, 268, "left")),
    ("cut", "order"): _Way(((704, 144), (788, 144)), (741, 155, "above")),
    ("order", "contexts"): _Way(((833, 124), (833, 80)), (815, 103, "right")),
}


def amount(bytes_a_token: float) -> str:
    """A figure as the picture shows it: one decimal, or the first digit that is not 0."""
    decimals = 1 if not 0 < bytes_a_token < 0.05 else -math.floor(math.log10(bytes_a_token))
    return f"{bytes_a_token:.{decimals}f} B/token"


def plot(measured: Measured, path: Path) -> None:
    """The stage graph, from above downwards; bars are datasets, arrows the wider the more goes along them."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    settings = {"svg.hashsalt": "flow", "font.family": "DejaVu Sans", "font.size": 7.5, "text.color": _INK}
    with matplotlib.rc_context(settings):
        figure = plt.figure(figsize=(_SIZE[0] / 96, _SIZE[1] / 96), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, _SIZE[0]), ylim=(_LOWEST, _LOWEST + _SIZE[1]))
        axes.axis("off")
        for edge in measured.edges:
            _draw_edge(axes, edge, measured.tokens)
        for name in _BOXES:
            _draw_box(axes, name, measured)
        _draw_shuffles(axes, measured)
        _draw_legend(axes, measured)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=96)
        plt.close(figure)


def _draw_edge(axes: Any, edge: Edge, tokens: int) -> None:
    way = _WAYS[edge.source, edge.target]
    colour = _NOTHING if not edge.bytes else _CAPPED if edge.source in CAPPED else _GROWS
    width = 1 + 1.1 * (edge.bytes / tokens) ** 0.5
    _draw_arrow(axes, way.points, colour, width)
    x, y, side = way.label
    label = f"{edge.what}\n{amount(edge.bytes / tokens)}" if edge.bytes else ""
    if side == "above":
        axes.text(x, y, label, ha="center", va="bottom", linespacing=1.15)
    else:
        axes.text(x, y, label, ha=side, va="center", linespacing=1.15)


def _draw_arrow(
    axes: Any, points: Sequence[tuple[float, float]], colour: str, width: float, dashed: bool = False
) -> None:
    """A line with corners and a head; `width` in pixels."""
    (from_x, from_y), (x, y) = points[-2:]
    length = max(abs(x - from_x), abs(y - from_y))
    along = ((x - from_x) / length, (y - from_y) / length)
    head, half = 7 + 0.6 * width, 3.2 + 0.75 * width
    base = (x - head * along[0], y - head * along[1])
    line = [*points[:-1], base]
    axes.plot(
        *zip(*line, strict=True),
        color=colour,
        linewidth=width * 0.75,  # points
        linestyle=(0, (3, 2)) if dashed else "-",
        solid_capstyle="butt",
        solid_joinstyle="miter",
    )
    across = (-along[1] * half, along[0] * half)
    corners = [(x, y), (base[0] + across[0], base[1] + across[1]), (base[0] - across[0], base[1] - across[1])]
    axes.fill(*zip(*corners, strict=True), color=colour, linewidth=0)


def _draw_box(axes: Any, name: str, measured: Measured) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    left, right, bottom = _BOXES[name]
    if name not in WRITERS and name != INPUT:
        shape = "round,pad=0,rounding_size=5"
        height = _HEIGHT["stage"]
        axes.add_patch(
            FancyBboxPatch(
                (left, bottom), right - left, height, boxstyle=shape, facecolor="white", edgecolor=_INK, linewidth=0.9
            )
        )
        axes.text((left + right) / 2, bottom + height / 2 - 1, name, ha="center", va="center", size=8.5)
        return
    height = _HEIGHT["dataset"] if name in WRITERS else _HEIGHT["stage"]
    axes.add_patch(Rectangle((left, bottom), right - left, height, facecolor="#e9edf1", edgecolor="none"))
    middle = bottom + height / 2 - 1
    if name == INPUT:
        axes.text((left + right) / 2, middle, "raw text", ha="center", va="center", size=8.5)
        return
    size = sum(edge.bytes for edge in measured.edges if edge.target == name)
    text = f"{size / 1e6:.1f} MB, {amount(size / measured.tokens)}"
    axes.text(left + 12, middle, name, ha="left", va="center", size=9.5, weight="bold")
    axes.text(right - 12, middle, text, ha="right", va="center")


def _draw_shuffles(axes: Any, measured: Measured) -> None:
    """One stage as Beam sees it, and what goes through the shuffles of all."""
    from matplotlib.patches import Rectangle

    left, bottom, top, width = 362, 422, 536, 288
    axes.add_patch(Rectangle((left, bottom), width, top - bottom, facecolor="white", edgecolor=_NOTHING, linewidth=0.8))
    axes.text(left + 12, top - 10, "Beam's shuffles: two in each stage", va="top", size=8, weight="bold")
    for x, name in ((30, "plan"), (144, "units"), (258, "close")):
        axes.text(left + x, 501, name, ha="center", va="center", size=8)
    for x, name in ((49, "Spread"), (165, "Gather")):
        _draw_arrow(axes, ((left + x, 500), (left + x + 73, 500)), _INK, 1, dashed=True)
        size = sum(each.bytes for each in measured.shuffles if each.name == name)
        label = f"{name}\n{amount(size / measured.tokens)}"
        axes.text(left + x + 34, 494, label, ha="center", va="top", linespacing=1.15)
    records = f"Plans and records of units, on storage: {amount(measured.records / measured.tokens)}"
    extra = sum(each.windows for each in measured.shuffles) // sum(each.elements for each in measured.shuffles)
    share = f"all stages together,\nwithout {extra} B an element for window and time."
    text = f"Only numbers of units and counts; {share}\n{records}"
    axes.text(left + 12, bottom + 6, text, va="bottom", linespacing=1.25, size=7.2)


def _draw_legend(axes: Any, measured: Measured) -> None:
    capped = max((edge for edge in measured.edges if edge.source in CAPPED), key=lambda edge: edge.bytes)
    peak = max(measured.moments, key=lambda each: each.bytes)
    bounds = "bounded by --max-phrases\nand --contexts-per-phrase:"
    few = f"{bounds}\nhere {capped.rows:,} contexts;\nin a larger corpus it is\nless a token"
    entries = [(_GROWS, "grows with the corpus"), (_CAPPED, few), (_NOTHING, "duplicates: none here")]
    y = 528.0
    for colour, text in entries:
        if colour == _NOTHING and all(edge.bytes for edge in measured.edges):
            continue
        axes.plot((708, 728), (y - 7, y - 7), color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.text(736, y, text, va="top", linespacing=1.25)
        y -= 13 * (text.count("\n") + 1) + 7
    share = amount(peak.bytes / measured.tokens)
    most = f"at most {peak.bytes / 1e6:.0f} MB, {share},"
    note = f"{measured.tokens:,} tokens; on storage\n{most}\nat the end of {peak.after}"
    axes.text(708, y - 6, note, va="top", linespacing=1.25)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plot", type=Path, help="a picture of the stage graph, .svg or .png")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--folder", type=Path, help="for the datasets, kept (default: a temporary one)")
    parser.add_argument("--from-json", type=Path, help="take the figures from there, and run nothing")
    chosen, rest = parser.parse_known_args(arguments)
    runners.silence()
    if chosen.from_json:
        measured = from_json(json.loads(chosen.from_json.read_text()))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            try:
                measured = run(rest, chosen.folder or Path(temporary))
            except UserError as error:
                parser.error(str(error))
    print(table(measured))
    if chosen.json:
        chosen.json.write_text(json.dumps(to_json(measured), indent=1) + "\n")
    if chosen.plot:
        plot(measured, chosen.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
