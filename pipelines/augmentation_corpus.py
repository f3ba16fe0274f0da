"""The chain of datasets of augmentations: phrases -> augmentations. Like `pipelines/corpus.py`."""

from __future__ import annotations

from dataclasses import asdict

from pipelines.corpus import ChainDataset, built
from pipelines.engine.dataset_build import DatasetBuild, refuse_empty
from pipelines.engine.stage import Stage
from pipelines.stages.augment import Augment, SendPairs, SendPhrases
from schemas import kinds
from schemas.errors import UserError
from schemas.kind import KINDS
from schemas.manifest import read_manifest
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.augmentation.drawing import operations_of
from transforms.augmentation.options import AugmenterOptions, DrawRules, shares_of
from transforms.augmentation.registry import ALWAYS, FROM_PAIRS, augmenter_identity, place_options, taken
from transforms.options import Seed


def augmentations(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Phrases -> augmentations of each."""
    rules, own, seed = options[DrawRules], asdict(options[AugmenterOptions]), options[Seed].seed
    pairs = _pairs(rules.paraphrases)
    names = [*(ALWAYS if rules.operations is None else rules.operations), *(FROM_PAIRS if pairs else ())]
    try:
        operations = operations_of(names, shares_of(rules.scheme))
    except ValueError as error:
        raise UserError(f"--scheme {rules.scheme}: {error}; give one, or --paraphrases for those of phrases") from None
    wanted = {name: value for each in operations for name, value in taken(each.name, own).items()}
    places = place_options([each.name for each in operations])
    identities = (augmenter_identity(each.name, own) for each in operations)
    phrases = before.folder.uri
    augment = Augment(
        draws=rules.draws,
        seed=seed,
        operations=tuple(operations),
        options=tuple(sorted((name, value) for name, value in wanted.items() if name not in places)),
        phrases=phrases,
        places=tuple(sorted((name, value) for name, value in wanted.items() if name in places)),
    )
    of_pairs = pairs.folder.uri if pairs else ""
    send: list[Stage] = [SendPhrases(draws=rules.draws, phrases=phrases, pairs=of_pairs)]
    if pairs:
        send.append(SendPairs(draws=rules.draws, pairs=of_pairs, phrases=phrases))
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.augmentations.KIND,
            stages=(*send, augment),
            inputs=(before.as_input, *([pairs.as_input] if pairs else [])),
            options=augment.settings() | {"scheme": rules.scheme},
            seed=seed,
            models=tuple(each for each in identities if each is not None),
        )
    )


def _pairs(place: str | None) -> ChainDataset | None:
    """The dataset that --paraphrases names. UserError if its rows are no pairs of texts that mean the same."""
    if place is None:
        return None
    folder = Folder(place)
    manifest = read_manifest(folder)
    refuse_empty(folder, manifest)
    if manifest.kind.alike is None:
        known = ", ".join(kind.rows for kind in KINDS.values() if kind.alike is not None)
        raise UserError(f"--paraphrases {folder}: holds {manifest.kind.rows}; give a dataset of {known}")
    return ChainDataset(folder, manifest.fingerprint)
