"""The memory of a long run over time: the main job on a real dump, and on varied copies of it.

    python -m benchmarks.endurance enwiki-fragment.xml.bz2 --copies 10 --input books/ --folder /tmp/long

In each copy but the first a quarter of the longer words are replaced by others from the dump, so new phrases keep
coming. Memory is the sum over all processes of the run, four times a second; the stages are as reported by the run
itself. Other options are those of mine_contexts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.harness import Moment


def stage(output: Path) -> str:
    """The current stage of a run."""
    try:
        stages = json.loads((output / "_work/run.json").read_text())["stages"]
    except (OSError, ValueError):
        return ""
    return stages[-1]["name"] if stages else ""


def thirds(memory: Sequence[int]) -> list[float]:
    """Mean memory in the thirds of a stage."""
    cuts = [len(memory) * third // 3 for third in range(4)]
    return [sum(memory[start:end]) / max(end - start, 1) for start, end in itertools.pairwise(cuts)]


def plot(moments: Sequence[Moment], path: Path, title: str) -> None:
    """Memory against time, with the stages that took long enough to be visible."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
    axes.plot([each.seconds / 60 for each in moments], [each.memory / 1e9 for each in moments], linewidth=0.8)
    axes.set(title=title, xlabel="minutes", ylabel="GB, all processes", ylim=0)
    for number, (name, run) in enumerate(itertools.groupby(moments, lambda each: each.note)):
        minutes = [each.seconds / 60 for each in run]
        if number % 2:
            axes.axvspan(minutes[0], minutes[-1], alpha=0.08, linewidth=0)
        if minutes[-1] - minutes[0] > moments[-1].seconds / 60 * 0.03:
            middle = (minutes[0] + minutes[-1]) / 2
            axes.text(middle, axes.get_ylim()[1] * 0.95, name, ha="center", va="top", size=8)
    figure.savefig(path)


def measure(dump: str, copies: int, folder: Path, rest: Sequence[str]) -> list[Moment]:
    """The memory of a run of the job on copies of a dump."""
    folder.mkdir(parents=True, exist_ok=True)
    made, output = folder / f"copies-{copies}.xml", folder / f"contexts-{copies}"
    with made.open("w", encoding="utf-8") as file:
        file.writelines(harness.varied(dump, copies))
    print(f"{made}: {copies} copies, {made.stat().st_size / 1e6:,.0f} MB", flush=True)
    with harness.Meter(note=lambda: stage(output)) as meter:
        harness.run("-m", "pipelines.mine_contexts", "--input", str(made), "--output", str(output), *rest)
    own = meter.moments[0].memory  # this program's
    moments = [each._replace(memory=each.memory - own) for each in meter.moments]
    print(f"{meter.seconds:,.0f} s, at most {meter.added / 1e6:,.0f} MB", flush=True)
    return moments


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("dump", type=Path, help="a small dump in XML, plain or .bz2")
    parser.add_argument("--copies", type=int, default=10, metavar="N", help="how many copies of it (10)")
    parser.add_argument("--folder", type=Path, required=True, help="the folder for input and output")
    parser.add_argument("--plot", type=Path, help="write a plot of memory over time there")
    chosen, rest = parser.parse_known_args()
    dump = harness.xml_of(chosen.dump)
    small, large = (measure(dump, copies, chosen.folder, rest) for copies in (1, chosen.copies))
    print("stage: MB at most on one copy, on all; mean MB in the thirds of its time on all")
    for name in dict.fromkeys(each.note for each in large):
        one, all_of = ([each.memory for each in moments if each.note == name] for moments in (small, large))
        shown = ", ".join(f"{each / 1e6:,.0f}" for each in thirds(all_of))
        print(f"{name or 'start and end'}: {max(one, default=0) / 1e6:,.0f}, {max(all_of) / 1e6:,.0f}; {shown}")
    harness.write(chosen.json, {"small": small, "large": large})
    if chosen.plot:
        plot(large, chosen.plot, f"mine_contexts on {chosen.copies} copies of {chosen.dump.name}")


if __name__ == "__main__":
    main()
