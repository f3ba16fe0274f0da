"""What a corpus teaches: a table of trainings with other data or options, over seeds, beside the base.

    python -m benchmarks.teaching pearl.toml --evaluation eval --output out/teaching --seeds 1,2,3 --json teaching.json

The file names the trainings, and what is common to them; a value can use those before it:

    base = "intfloat/e5-small-v2"
    train = "pearl --data out/pearl/clean-pairs --steps 100 --model {base}"
    evaluate = "--tasks turney,bird,umls"
    evaluate_base = "--raw"                    # further options for the base

    [variants]
    "pairs" = "{train}"
    "pairs and aliases" = "{train} --data out/pearl/clean-aliases"

Each variant is trained with each seed (`python -m trainers.train`) and evaluated, on one core. A row of the table is
the mean over the seeds of the tasks' first measures, ± their standard deviation, and the mean of the tasks beside the
base's. A training or task that is finished in --output is not run again. Minutes are those of the training alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import harness

Scores = dict[str, float]
"""The first measure of each task, in percent."""


def run(module: str, *arguments: str, log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        command, one_core = [sys.executable, "-m", module, *arguments], {**os.environ, "OMP_NUM_THREADS": "1"}
        ended = subprocess.run(command, stdout=file, stderr=file, env=one_core, check=False)
    if ended.returncode:
        raise SystemExit(f"{module} failed, see {log}: {shlex.join(arguments)}")


def scores(folder: Path) -> Scores:
    tasks = json.loads((folder / "results.json").read_text("utf-8"))["tasks"]
    return {name: next(iter(said["measures"].values()))["mean"] for name, said in tasks.items()}


def trained(arguments: str, seed: int, folder: Path) -> dict[str, Any]:
    """What training.json says of a training, which is run unless it is finished."""
    flags = [*shlex.split(arguments), "--output", str(folder / "model"), "--seed", str(seed), "--threads", "1"]
    run("trainers.train", *flags, log=folder / "train.log")
    said: dict[str, Any] = json.loads((folder / "model" / "training.json").read_text("utf-8"))
    return said


def evaluated(model: str, options: str, given: argparse.Namespace, folder: Path) -> Scores:
    flags = ["--data", str(given.evaluation), "--output", str(folder), *shlex.split(options)]
    run("trainers.evaluate", model, *flags, log=folder.parent / "evaluate.log")
    return scores(folder)


def spread(values: Sequence[float]) -> str:
    """The mean, ± the standard deviation if there are several.

    >>> spread([70.0, 71.0])
    '70.5 ± 0.7'
    """
    mean = f"{statistics.fmean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def table(base: Scores, found: Mapping[str, Sequence[Scores]], minutes: Mapping[str, float]) -> str:
    """Markdown, a row a variant."""
    mean = statistics.fmean(base.values())
    rows = [["", *base, "mean", "gain", "minutes"], ["---"] * (len(base) + 4)]
    rows.append(["base", *(f"{each:.1f}" for each in base.values()), f"{mean:.1f}", "", ""])
    for name, runs in found.items():
        means = [statistics.fmean(each[task] for task in base) for each in runs]
        cells = [spread([each[task] for each in runs]) for task in base]
        gain = spread([each - mean for each in means])
        rows.append([name, *cells, spread(means), gain, f"{minutes[name]:.1f}"])
    return "\n".join(f"| {' | '.join(each)} |" for each in rows)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("plan", type=Path, help="the trainings, a TOML file")
    parser.add_argument("--evaluation", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seeds", default="1,2,3", metavar="N,...", help="of the trainings")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings at a time, a core each")
    given = parser.parse_args()
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    plan = tomllib.loads(given.plan.read_text("utf-8"))
    values: dict[str, str] = {}
    for name, value in plan.items():
        if isinstance(value, str):
            values[name] = value.format(**values)
    variants = {name: each.format(**values) for name, each in plan["variants"].items()}
    seeds = [int(each) for each in given.seeds.split(",")]

    def one(variant: tuple[str, str], seed: int) -> tuple[Scores, float]:
        name, arguments = variant
        folder = given.output / name.replace(" ", "-") / str(seed)
        said = trained(arguments, seed, folder)
        found = evaluated(str(folder / "model"), plan["evaluate"], given, folder / "evaluation")
        print(f"{name}, seed {seed}: {statistics.fmean(found.values()):.1f}", flush=True)
        return found, said["seconds"] / 60

    of_base = f"{plan['evaluate']} {plan.get('evaluate_base', '')}"
    base = evaluated(plan["base"], of_base, given, given.output / "base" / "evaluation")
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = {
            (name, seed): pool.submit(one, (name, arguments), seed)
            for seed in seeds
            for name, arguments in variants.items()
        }
        found = {name: [runs[name, seed].result() for seed in seeds] for name in variants}
    by_name = {name: [each for each, _ in pairs] for name, pairs in found.items()}
    print(table(base, by_name, {name: statistics.fmean(time for _, time in pairs) for name, pairs in found.items()}))
    harness.write(given.json, {"base": base, "variants": by_name})


if __name__ == "__main__":
    main()
