"""The chain of paraphrases: phrases -> candidates of a generator -> paraphrases. Like `pipelines/corpus.py`.

The candidates are kept beside the output, `<output>-candidates`: filters and choice may change without drawing again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from pipelines import corpus
from pipelines.corpus import ChainDataset, Given, built, holds
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.stages.generate_paraphrases import Generate, JoinCandidates
from pipelines.stages.paraphrase import ChooseParaphrases, OrderParaphrases
from schemas import kinds
from schemas.kinds import paraphrase_candidates
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.augmentation.wordnet import find_wordnet, identify
from transforms.encoders.files import encoder_identity
from transforms.encoders.options import EncoderOptions
from transforms.options import Seed
from transforms.paraphrase.generators.identities import generator_identity
from transforms.paraphrase.options import ConstraintRules, DrawingRules, GeneratorOptions, ParaphraseFilters
from transforms.paraphrase.scoring import classifier_identities, needs


def any_candidates(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    """The given candidates; or those of `generate_paraphrases`, kept as `<output>-candidates`."""
    if holds(source, paraphrase_candidates.KIND):
        assert source.dataset is not None
        return [source.dataset]
    chain = corpus.any_phrases(source, options, output)
    return [*chain, candidates(chain[-1], options, output.beside("-candidates"))]


def candidates(phrases: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Phrases -> what a generator draws for each, and for its corrupted form."""
    chosen, seed = options[GeneratorOptions], options[Seed].seed
    chosen = replace(chosen, generator_model=_absolute(chosen.generator_model))
    stage = Generate(
        drawing=options[DrawingRules],
        constraint=options[ConstraintRules],
        generator=chosen,
        seed=seed,
        phrases=phrases.folder.uri,
    )
    return built(
        DatasetBuild(
            output=output,
            kind=paraphrase_candidates.KIND,
            stages=(stage, JoinCandidates(phrases=phrases.folder.uri)),
            inputs=(phrases.as_input,),
            options=stage.settings(),
            seed=seed,
            models=(generator_identity(chosen)._asdict(),),
        )
    )


def paraphrases(candidates: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Candidates -> the best paraphrase of each phrase, and of its corrupted form."""
    rules, chosen = options[ParaphraseFilters], options[EncoderOptions]
    wanted = needs(rules)
    models: list[dict[str, Any]] = []
    place = _absolute(chosen.encoder) or ""
    if "encoder" in wanted:
        models.append(encoder_identity(place)._asdict())
    if "wordnet" in wanted:
        version, sha256 = identify(find_wordnet("give --contrasts=affixes"))
        models.append({"lexicon": "wordnet", "version": version, "sha256": sha256})
    models += classifier_identities(rules)
    stage = ChooseParaphrases(
        rules=rules,
        prefix=chosen.encoder_prefix if "encoder" in wanted else "",
        precision=chosen.encoder_precision if "encoder" in wanted else "",
        candidates=candidates.folder.uri,
        encoder=place if "encoder" in wanted else "",
    )
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.paraphrases.KIND,
            stages=(stage, OrderParaphrases(candidates=candidates.folder.uri)),
            inputs=(candidates.as_input,),
            options=stage.settings(),
            models=tuple(models),
        )
    )


def _absolute(place: str | None) -> str | None:
    """Workers may have another working directory; a name on the hub stays one."""
    return os.path.abspath(place) if place and os.path.isdir(place) else place
