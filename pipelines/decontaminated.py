"""A given dataset without the rows whose texts are in evaluation sets. Like `corpus.py`."""

from __future__ import annotations

from pipelines.corpus import ChainDataset, Given, built
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage
from pipelines.stages.decontaminate import Decontaminate, FindNegatives, evaluation_texts
from schemas import kinds
from schemas.errors import UserError
from schemas.kind import KINDS, Kind
from schemas.manifest import Input
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.decontamination.files import EVALUATION_FORMATS, EvaluationFile
from transforms.decontamination.options import Marking, OverlapRules
from transforms.sources.inputs import RawFiles, file_sha256


def dataset(source: Given, options: Chosen, output: Folder) -> ChainDataset:
    """The dataset without rows that hold evaluation texts. It is of the same kind, with the same options and seed."""
    assert source.raw is not None
    assert source.dataset is not None
    assert source.manifest is not None
    folder, manifest, kind = source.dataset.folder, source.manifest, source.manifest.kind
    if not kind.texts:
        raise UserError(f"{folder}: holds {kind.rows}, from which no row can be taken alone: {_remedy(kind)}")
    files, rules = evaluation_files(source.raw), options[OverlapRules]
    for file, texts in zip(files, evaluation_texts(files, rules).of_files(len(files)), strict=True):
        if not texts:
            raise UserError(
                f"--evaluation {file.address}: has no text of {rules.min_words:,} words or more (read as "
                f"{file.format}); leave it out, or choose another --min-words"
            )
    found = Decontaminate(
        rules=rules,
        evaluation_formats=tuple((each, EVALUATION_FORMATS[each].version) for each in sorted({*map(_format, files)})),
        mark=options[Marking].mark,
        ordered_again=kind is kinds.contexts.KIND,
        dataset=folder.uri,
        files=files,
    )
    stages: tuple[Stage, ...] = (found,)
    if found.ordered_again:
        stages += (FindNegatives(str(manifest.options["negatives"]), str(manifest.options["mask_token"])),)
    # What the rows point into stays what it was made from, too.
    before = (each._replace(path=folder.joined(each.path).uri) for each in manifest.inputs if each.kind == "dataset")
    return built(
        DatasetBuild(
            output=output,
            kind=kind,
            stages=stages,
            inputs=(*before, source.dataset.as_input, *(_as_input(each) for each in files)),
            options=manifest.options | found.settings(),
            seed=manifest.seed,
            models=tuple(manifest.models),
        )
    )


def evaluation_files(raw: RawFiles) -> tuple[EvaluationFile, ...]:
    return tuple(
        EvaluationFile(each.address, each.file.name, each.format.name, file_sha256(each.filesystem, each.file.path))
        for each in raw.inputs
    )


def _format(file: EvaluationFile) -> str:
    return file.format


def _as_input(file: EvaluationFile) -> Input:
    return Input("file", file.name, file.address, file.sha256)


def _remedy(kind: Kind) -> str:
    """What to decontaminate instead of a dataset of a kind whose rows depend on each other."""
    if kind.source is None:
        made = [
            each.rows for each in KINDS.values() if each.texts and each.source and kind.record in each.source.records
        ]
        return f"decontaminate what is made from it: {', '.join(sorted(made))}"
    before = " or ".join(KINDS[each].rows for each in kind.source.records)
    return f"decontaminate the {before} that it was made from, and make it again from those"
