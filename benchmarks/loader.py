"""The loader (trainers/data.py) beside Hugging Face datasets (streaming) and mosaicml-streaming.

    python -m benchmarks.loader --rows 200000 1000000 5000000 --install --json loader.json

Each loader gives the same rows in batches of the same size, shuffled by windows (buffers, blocks) of the same size, as
Python lists of ids and texts; ours also as Arrow tables. Each pass has its own process:

whole       an epoch from its beginning; at 90 % the state is written
resumed     the rest of the epoch, from that state. Of the rows of the first 90 % and of those that come now, some may
            be lost or repeated; "as before": they come in the order of the whole pass

ours and Hugging Face read the same Parquet files, mosaicml-streaming MDS shards of the same rows. `open` is until the
loader is made, `first` until the first batch has come, both without imports. CPU seconds are those of all threads and
processes; the memory is the peaks of a pass's processes, added up. With --workers the whole epoch is also read by
torch's DataLoader with that many processes.

Without --data the rows are made of the words of the shipped sample. The peers do not fit into our environment: with
--install uv makes one of their own in the cache folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import harness
from benchmarks.loader_pass import COLUMNS, Given
from schemas.errors import UserError
from schemas.process import leave_out_pandas
from transforms.sources.sample import sample_inputs

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phrasemill" / "loader-peers"
PEERS = {"huggingface": "datasets==5.0.1", "mosaic": "mosaicml-streaming==0.13.0"}
FILES = 16
MARK = 0.9


# ---- Rows


def sample_texts() -> tuple[list[str], list[str]]:
    """Phrases and contexts from the shipped dump: three words, and lines of at most 300 characters."""
    lines = [
        line[:300]
        for document in harness.documents(Path(sample_inputs()[0]))
        for line in document.text.split("\n")
        if len(line.split()) > 8
    ]
    return [" ".join(line.split()[3:6]) for line in lines], lines


def texts_of(data: Path) -> tuple[Any, Any]:
    """The columns phrase and context of Parquet files; of a dataset of contexts, for example."""
    files = sorted({*data.rglob("*.parquet"), *data.rglob("*.pq")})
    if not files:
        raise UserError(f"{data}: has no Parquet files")
    table = pa.concat_tables(pq.read_table(each, columns=COLUMNS[1:]) for each in files)
    return table.column("phrase").combine_chunks(), table.column("context").combine_chunks()


def write_rows(folder: Path, rows: int, phrases: Any, contexts: Any) -> None:
    """`rows` rows with the texts drawn from the given ones, numbered, in files as our datasets have."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    phrases, contexts = pa.array(phrases, pa.string()), pa.array(contexts, pa.string())
    for number in range(FILES):
        start, stop = rows * number // FILES, rows * (number + 1) // FILES
        drawn = pa.array(random.integers(0, len(phrases), stop - start))
        table = pa.table([pa.array(np.arange(start, stop)), phrases.take(drawn), contexts.take(drawn)], COLUMNS)
        pq.write_table(table, folder / f"part-{number:05d}.parquet", row_group_size=1 << 16, compression="zstd")


# ---- The peers


def install(environment: Path) -> None:
    """The peers, and the Arrow that ours has, in an environment of their own."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        raise UserError("--install needs uv: pip install uv")
    needed = [*PEERS.values(), f"pyarrow=={version('pyarrow')}"]
    if find_spec("torch"):
        needed.append(f"torch=={version('torch')}")
    for command in (["venv", "--python", sys.executable, "--allow-existing", str(environment)], ["pip", "install"]):
        more = ["--python", str(environment / "bin/python"), *needed] if command[0] == "pip" else []
        subprocess.run([uv, *command, "--quiet", *more], check=True)


def installed(environment: Path) -> list[str]:
    """The peers that an environment has."""
    packages = {"huggingface": "datasets", "mosaic": "streaming"}
    return [each for each in PEERS if [*environment.glob(f"lib/python*/site-packages/{packages[each]}/__init__.py")]]


# ---- Passes


def pass_of(python: str, given: Given) -> dict[str, Any]:
    folder = str(Path(given.state).parent)
    environment = {**os.environ, "HF_DATASETS_OFFLINE": "1", "HF_DATASETS_CACHE": folder, "TMPDIR": folder}
    ended = subprocess.run(
        [python, "-W", "ignore", "-m", "benchmarks.loader_pass", json.dumps(given._asdict())],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{given.loader}: exit status {ended.returncode}\n{ended.stderr[-4000:]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def measured(python: str, given: Given) -> dict[str, Any]:
    """A whole pass and the rest from its state; of a pass with workers only the whole."""

    def ids_of() -> Any:
        return np.fromfile(given.ids, np.int64)

    whole = pass_of(python, given)
    ids, found = ids_of(), {"whole": whole}
    if not given.workers:
        resumed = pass_of(python, given._replace(resumed=True, mark=0))
        rest = ids_of()
        times = np.bincount(np.concatenate([ids[: given.mark], rest]), minlength=len(ids))
        found["resumed"] = {
            **resumed,
            "lost": int((times == 0).sum()),
            "repeated": int((times - 1).clip(0).sum()),
            "as_before": bool(np.array_equal(rest, ids[given.mark :])),
        }
    found["whole"]["exact"] = bool(np.array_equal(np.sort(ids), np.arange(whole["rows"])))
    return found


def passes(arguments: argparse.Namespace, folder: Path, rows: int) -> Iterator[tuple[str, str, Given]]:
    """The name of each pass, its Python and what it is told."""
    mark = int(rows * MARK) // arguments.batch_size * arguments.batch_size
    given = Given(
        loader="ours",
        parquet=str(folder / "rows"),
        mds=str(folder / "mds"),
        state=str(folder / "state.json"),
        ids=str(folder / "ids"),
        batch_size=arguments.batch_size,
        window=arguments.window,
        workers=0,
        arrow=False,
        mark=mark,
        resumed=False,
    )
    yield "ours", sys.executable, given
    yield "ours, Arrow", sys.executable, given._replace(arrow=True)
    if arguments.workers and find_spec("torch"):
        yield f"ours, {arguments.workers} workers", sys.executable, given._replace(workers=arguments.workers, mark=0)
    python = str(arguments.peers / "bin/python")
    for peer in installed(arguments.peers):
        if rows > getattr(arguments, f"{peer}_rows"):
            continue
        given = given._replace(loader=peer)
        if peer == "mosaic":
            pass_of(python, given._replace(loader="write_mds"))
        yield peer, python, given
        if arguments.workers:
            yield f"{peer}, {arguments.workers} workers", python, given._replace(workers=arguments.workers, mark=0)


def main(argv: list[str] | None = None) -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="Parquet files with the columns phrase and context")
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000], metavar="N")
    parser.add_argument("--batch-size", type=int, default=256, metavar="N")
    parser.add_argument("--window", type=int, default=1 << 14, metavar="ROWS", help="of the shuffle (default: 16,384)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="also with so many of torch's DataLoader")
    parser.add_argument("--huggingface-rows", type=int, default=200_000, metavar="N", help="the most for datasets")
    parser.add_argument(
        "--mosaic-rows", type=int, default=1_000_000, metavar="N", help="the most for mosaicml-streaming"
    )
    parser.add_argument("--peers", type=Path, default=CACHE, metavar="FOLDER", help=f"their environment ({CACHE})")
    parser.add_argument("--install", action="store_true", help="make that environment, with uv")
    arguments = parser.parse_args(argv)
    leave_out_pandas()
    if arguments.install:
        install(arguments.peers)
    for missing in sorted(PEERS.keys() - {*installed(arguments.peers)}):
        print(f"{missing}: skipped: not in {arguments.peers}; --install installs it there")
    texts = texts_of(arguments.data) if arguments.data else sample_texts()
    figures: dict[int, dict[str, Any]] = {}
    for rows in arguments.rows:
        figures[rows] = {}
        with tempfile.TemporaryDirectory() as name:
            write_rows(Path(name) / "rows", rows, *texts)
            for loader, python, given in passes(arguments, Path(name), rows):
                figures[rows][loader] = measured(python, given)
        show(rows, figures[rows])
    harness.write(arguments.json, figures)
    return 0 if all(exact(name, each) for found in figures.values() for name, each in found.items()) else 1


def exact(name: str, found: dict[str, Any]) -> bool:
    """Whether ours lost or repeated no row; of the peers that is a figure."""
    resumed = found.get("resumed", {"lost": 0, "repeated": 0, "as_before": True})
    lost = resumed["lost"] or resumed["repeated"] or not resumed["as_before"] or not found["whole"]["exact"]
    return not (name.startswith("ours") and lost)


def show(rows: int, figures: dict[str, Any]) -> None:
    table = []
    for name, found in figures.items():
        whole, resumed = found["whole"], found.get("resumed")
        row: list[object] = [name, round(whole["rows"] / whole["seconds"]), round(whole["rows"] / whole["cpu_seconds"])]
        row += [whole["open_seconds"], whole["first_seconds"]]
        if resumed:
            row += [resumed["first_seconds"], resumed["first_cpu_seconds"], resumed["lost"], resumed["repeated"]]
            row.append("yes" if resumed["as_before"] else "no")
        else:
            row += [""] * 5
        table.append([*row, whole["peak_memory_bytes"] >> 20])
    headings = ["loader", "rows/s", "rows/CPU s", "open s", "first s", "resumed: first s", "CPU s", "lost", "repeated"]
    harness.show(f"{rows:,} rows", [*headings, "as before", "MiB"], table)


if __name__ == "__main__":
    leave_out_pandas()
    sys.exit(main())
