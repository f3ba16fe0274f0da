"""The chain of hard negatives: phrases -> neighbours and embeddings -> hard negatives.

Each function describes how one dataset is built from those before. Those between the input and the output are kept
beside the output: `<output>-neighbours`, `<output>-embeddings`.
"""

from __future__ import annotations

import os

from pipelines.corpus import ChainDataset, Given, built
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.stages.embed import Embed, Join
from schemas import kinds
from schemas.errors import UserError
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.encoders.files import encoder_identity
from transforms.encoders.options import EncoderOptions


def given_phrases(source: Given) -> ChainDataset:
    """The given dataset of phrases. UserError if it is none."""
    of = kinds.embeddings.KIND.source
    assert of is not None
    if source.dataset is None or source.manifest is None:
        raise UserError("--input: has no phrases, being raw text; give a dataset of phrases")
    if source.manifest.record not in of.records:
        raise UserError(f"{source.dataset.folder}: holds {source.manifest.record} records; give a dataset of phrases")
    return source.dataset


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
