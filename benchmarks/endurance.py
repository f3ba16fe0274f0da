"""The memory of a long run over time: the main job on varied copies of a real dump.

    python -m benchmarks.endurance enwiki-fragment.xml.bz2 --megabytes 300 --folder /tmp/long --plot memory.svg

In each copy a quarter of the longer words are replaced by others from the dump, so new phrases keep coming. Memory is
the sum over all processes of the run, each second; the stages are as reported by the run itself. Other options are
those of mine_contexts.
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


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("dump", type=Path, help="a small dump in XML, plain or .bz2")
    parser.add_argument("--megabytes", type=int, default=300, metavar="N", help="the size of the input (300)")
    parser.add_argument("--folder", type=Path, required=True, help="the folder for input and output")
    parser.add_argument("--plot", type=Path, help="write a plot of memory over time there")
    chosen, rest = parser.parse_known_args()
    dump = harness.xml_of(chosen.dump)
    copies = max(round(chosen.megabytes * 1e6 / len(dump.encode())), 1)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    made, output = chosen.folder / "copies.xml", chosen.folder / "contexts"
    with made.open("w", encoding="utf-8") as file:
        file.writelines(harness.varied(dump, copies))
    print(f"{made}: {copies} copies, {made.stat().st_size / 1e6:,.0f} MB", flush=True)
    with harness.Meter(interval=1, note=lambda: stage(output)) as meter:
        harness.run("-m", "pipelines.mine_contexts", "--input", str(made), "--output", str(output), *rest)
    own = meter.moments[0].memory  # this program's
    moments = [each._replace(memory=each.memory - own) for each in meter.moments]
    for name in dict.fromkeys(each.note for each in moments):
        memory = [each.memory for each in moments if each.note == name]
        shown = ", ".join(f"{each / 1e9:.2f}" for each in thirds(memory))
        print(f"{name or 'start'}: about {len(memory)} s, mean GB in its thirds: {shown}")
    print(f"{meter.seconds:,.0f} s, at most {meter.added / 1e9:.2f} GB")
    harness.write(chosen.json, moments)
    if chosen.plot:
        plot(moments, chosen.plot, f"mine_contexts on {made.stat().st_size / 1e6:,.0f} MB of wikitext")


if __name__ == "__main__":
    main()
