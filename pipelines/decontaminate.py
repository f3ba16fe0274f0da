"""A dataset -> the same without the rows whose texts are in evaluation sets.

    python -m pipelines.decontaminate --input out/phrases --evaluation eval/turney.txt --output out/clean-phrases

docs/decontamination.md says what counts as such a text. With --mark all rows stay, and the overlaps are listed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.cli import Command, main
from pipelines.options import DatasetInput
from schemas.options import Chosen
from transforms.decontamination.options import Marking, OverlapRules

if TYPE_CHECKING:
    from pipelines.corpus import ChainDataset, Given
    from schemas.storage.folder import Folder


def build(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    from pipelines import decontaminated

    return [decontaminated.dataset(source, options, output)]


COMMAND = Command(
    module="decontaminate",
    description="A dataset without the rows whose texts are in evaluation sets.",
    output="out/decontaminated",
    takes="a dataset of phrases, sentences, contexts, pairs, ..., and files of evaluation sets",
    reading=(DatasetInput,),
    options=(OverlapRules, Marking),
    build=build,
)

if __name__ == "__main__":
    sys.exit(main(COMMAND))
