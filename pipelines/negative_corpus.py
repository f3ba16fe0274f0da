"""The chain of hard negatives: phrases -> neighbours and embeddings -> hard negatives.

Each function describes how one dataset is built from those before. Those between the input and the output are kept
beside the output: `<output>-neighbours`, `<output>-embeddings`.
"""

from __future__ import annotations

import os

from pipelines.corpus import ChainDataset, built
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.stages.embed import Embed, Join
from pipelines.stages.negatives import FilterNegatives, MeasureCosine, OrderNegatives
from pipelines.stages.neighbours import FindNeighbours
from schemas import kinds
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.encoders.files import encoder_identity
from transforms.encoders.options import EncoderOptions
from transforms.negatives.neighbours import require_compiler
from transforms.negatives.options import HardNegativeRules, NeighbourRules


def neighbours(phrases: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Phrases -> the phrases that are most similar to each by edits."""
    require_compiler()
    stage = FindNeighbours(rules=options[NeighbourRules], phrases=phrases.folder.uri)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.neighbours.KIND,
            stages=(stage,),
            inputs=(phrases.as_input,),
            options=stage.settings(),
        )
    )


def embeddings(phrases: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Phrases -> the vector of each."""
    chosen = options[EncoderOptions]
    # Workers may have another working directory; a name on the hub stays one.
    place = os.path.abspath(chosen.encoder) if os.path.isdir(chosen.encoder) else chosen.encoder
    stage = Embed(
        prefix=chosen.encoder_prefix,
        precision=chosen.encoder_precision,
        encoder=place,
        phrases=phrases.folder.uri,
    )
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.embeddings.KIND,
            stages=(stage, Join(phrases=phrases.folder.uri)),
            inputs=(phrases.as_input,),
            options=stage.settings(),
            models=(encoder_identity(place)._asdict(),),
        )
    )


def hard_negatives(
    phrases: ChainDataset, neighbours: ChainDataset, embeddings: ChainDataset, options: Chosen, output: Folder
) -> ChainDataset:
    """Neighbours of phrases + the vectors of all -> those neighbours that mean something else."""
    rules, vectors = options[HardNegativeRules], embeddings.folder.uri
    measure = (MeasureCosine(embeddings=vectors),) if rules.cosine == "centred" else ()
    stage = FilterNegatives(rules=rules, neighbours=neighbours.folder.uri, embeddings=vectors)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.hard_negatives.KIND,
            stages=(*measure, stage, OrderNegatives()),
            inputs=(phrases.as_input, neighbours.as_input, embeddings.as_input),
            options=stage.settings(),
        )
    )
