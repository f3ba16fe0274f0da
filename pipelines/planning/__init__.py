"""`--plan`: what a run would make, how long it would take and what it needs, measured on a sample of the real input.

pieces, raw, datasets, tables         which parts of the input are measured
measuring                             the real stages on them, in a temporary folder; nothing goes into the output
estimates, keys, scale                from the sample to the whole, with the uncertainty
forecasts, mention_forecasts          the figures of each stage
plan, text, machine                   what that needs, and whether it is there
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pipelines.corpus import ChainDataset
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.planning.plan import foretell
from pipelines.planning.text import describe


def show(
    chain: Sequence[ChainDataset],
    todo: Sequence[DatasetBuild],
    *,
    runner: str,
    workers: int,
    max_reject_rate: float,
    run: str,
) -> None:
    """Measure and print: what `--plan` does."""
    if not todo:
        print("nothing to do: all is there already")
        return
    print("measuring a sample of the input, about a minute ...", file=sys.stderr)
    output = chain[-1].folder
    found = foretell(chain, todo, workers=workers)
    print(describe(found, output, todo, runner=runner, workers=workers, max_reject_rate=max_reject_rate, run=run))
