"""The chains of datasets of pairs: files -> pairs -> the sets that the papers make of them. Like `corpus.py`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from pipelines.corpus import ChainDataset, Given, built, holds
from pipelines.engine.dataset_build import DatasetBuild, refuse_empty
from pipelines.engine.stage import Stage
from pipelines.stages.extract import SourceFile
from pipelines.stages.extract_pairs import MergePairs, ReadPairs
from pipelines.stages.mine_pairs import Substitute, TakePairs
from pipelines.stages.pair_sets import (
    CutLabelled,
    DrawContrasts,
    DrawNegatives,
    GatherPhrases,
    MatchWords,
    OrderContrasts,
    ReadLabelled,
    SendPairs,
    SendWords,
    SortLabelled,
)
from schemas import kinds
from schemas.errors import UserError
from schemas.kind import KINDS
from schemas.manifest import Input, read_manifest
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.augmentation.wordnet import find_wordnet, identify
from transforms.options import Seed
from transforms.pairs.formats import PAIR_FORMATS
from transforms.pairs.options import ContrastRules, LabelRules, PairRules, SplitShares
from transforms.paraphrase.masked_words import masked_identity
from transforms.paraphrase.options import SubstitutionRules
from transforms.parsing.identities import sha256_of, sha256_of_folder
from transforms.parsing.spacy_files import find_spacy
from transforms.sources.inputs import RawFiles, file_sha256
from transforms.sources.options import Damage


def source_files(raw: RawFiles) -> tuple[tuple[SourceFile, ...], tuple[tuple[str, int], ...], tuple[Input, ...]]:
    """The files of a stage, their formats with the versions of the readers, and the files for the fingerprint."""
    files = tuple(SourceFile(each.filesystem, each.file, each.format.name) for each in raw.inputs)
    inputs = tuple(
        Input("file", each.file.name, each.address, file_sha256(each.filesystem, each.file.path), each.file.size)
        for each in raw.inputs
    )
    formats = tuple((name, PAIR_FORMATS[name].version) for name in sorted({each.format for each in files}))
    return files, formats, inputs


def phrase_pairs(source: Given, options: Chosen, output: Folder) -> ChainDataset:
    """Files -> pairs; or the given pairs."""
    if source.raw is None:
        assert source.dataset is not None
        assert source.manifest is not None
        if not holds(source, kinds.phrase_pairs.KIND):
            raise UserError(f"{source.dataset.folder}: holds {source.manifest.kind.rows}; give pairs or files of pairs")
        return source.dataset
    files, formats, inputs = source_files(source.raw)
    rules = options[PairRules].resolved
    vocabulary = rules.vocabulary or ""
    if vocabulary and not Path(vocabulary).is_file():
        raise UserError(f"--vocabulary {vocabulary}: is not a file; give a file of words or vectors")
    read = ReadPairs(
        formats=formats,
        rules=replace(rules, vocabulary=None),
        vocabulary_sha256=sha256_of(Path(vocabulary)) if vocabulary else "",
        on_corrupt=options[Damage].on_corrupt,
        files=files,
        vocabulary=vocabulary,
    )
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.phrase_pairs.KIND,
            stages=(read, MergePairs(rules.one_direction)),
            inputs=inputs,
            options=read.settings(),
        )
    )


def mined_pairs(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Phrases (and other pairs) -> pairs by substitution."""
    rules = options[SubstitutionRules]
    thesaurus, phrases = rules.thesaurus or "", before.folder.uri
    if thesaurus and not Path(thesaurus).is_file():
        raise UserError(f"--thesaurus {thesaurus}: is not a file; give Moby's words.txt, or none")
    others = _alike(rules.pairs)
    pairs = others.folder.uri if others else ""
    # Workers may have another working directory; a name on the hub stays one.
    model = os.path.abspath(rules.masked_lm) if os.path.isdir(rules.masked_lm) else rules.masked_lm
    substitute = Substitute(
        max_words=rules.max_words,
        pairs_per_phrase=rules.pairs_per_phrase,
        min_score=rules.min_score,
        min_share_of_best=rules.min_share_of_best,
        precision=rules.masked_lm_precision,
        thesaurus_sha256=sha256_of(Path(thesaurus)) if thesaurus else "",
        phrases=phrases,
        masked_lm=model,
        thesaurus=os.path.abspath(thesaurus) if thesaurus else "",
        pairs=pairs,
    )
    maps: list[Stage] = [substitute]
    if others:
        origin = read_manifest(others.folder).kind.rows
        taken = TakePairs(rules.max_words, rules.pairs_per_phrase, origin=origin, phrases=phrases, pairs=pairs)
        maps.append(taken)
    wordnet_version, wordnet_sha256 = identify(find_wordnet())
    tagger = find_spacy()
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.phrase_pairs.KIND,
            stages=(*maps, MergePairs(one_direction=False, maps=tuple(each.name for each in maps))),
            inputs=(before.as_input, *([others.as_input] if others else [])),
            options=substitute.settings(),
            models=(
                masked_identity(model)._asdict(),
                {"lexicon": "wordnet", "version": wordnet_version, "sha256": wordnet_sha256},
                {"tagger": tagger.name, "version": tagger.version, "sha256": sha256_of_folder(tagger.folder)},
            ),
        )
    )


def _alike(place: str | None) -> ChainDataset | None:
    """The dataset that --pairs names. UserError if its rows are no pairs of texts that mean the same."""
    if place is None:
        return None
    folder = Folder(place)
    manifest = read_manifest(folder)
    refuse_empty(folder, manifest)
    if manifest.kind.alike is None:
        known = ", ".join(kind.rows for kind in KINDS.values() if kind.alike is not None)
        raise UserError(f"--pairs {folder}: holds {manifest.kind.rows}; give a dataset of {known}")
    return ChainDataset(folder, manifest.fingerprint)


def labelled_pairs(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    """Pairs -> labelled pairs, as --set says; for paws_short labelled files -> labelled pairs."""
    rules, seed, shares = options[LabelRules], options[Seed].seed, options[SplitShares].shares
    if rules.recipe == "paws_short":
        if source.raw is None:
            raise UserError("--set paws_short: is made from files of labelled pairs, not from a dataset; give those")
        files, formats, inputs = source_files(source.raw)
        made: tuple[Stage, ...] = (
            ReadLabelled(
                formats=formats,
                on_corrupt=options[Damage].on_corrupt,
                files=files,
                max_tokens=rules.max_tokens,
                seed=seed,
            ),
        )
        before: list[ChainDataset] = []
    else:
        before = [phrase_pairs(source, options, output.beside("-pairs"))]
        pairs = before[0].folder.uri
        inputs = (before[0].as_input,)
        if rules.recipe == "ppdb":
            made = (SendPairs(draws=1, pairs=pairs), GatherPhrases(), DrawNegatives(draws=1, seed=seed, pairs=pairs))
        else:
            if rules.rows is not None:
                raise UserError("--rows: is not for ppdb_filtered, where as many rows of each label share each word")
            most = rules.phrases_per_word
            made = (
                SendWords(words=rules.words, phrases_per_word=most, seed=seed, pairs=pairs),
                MatchWords(phrases_per_word=most, seed=seed, pairs=pairs),
            )
    rows = PAWS_SHORT if rules.rows is None and rules.recipe == "paws_short" else rules.rows
    stages = (*made, SortLabelled(), CutLabelled(rows=rows, splits=shares, seed=seed))
    settings = {name: value for stage in stages for name, value in stage.settings().items()}
    return [
        *before,
        built(
            DatasetBuild(
                output=output,
                kind=kinds.labelled_pairs.KIND,
                stages=stages,
                inputs=inputs,
                options=settings | {"set": rules.recipe},
                seed=seed,
            )
        ),
    ]


PAWS_SHORT = 1_300
"""Rows of PAWS-short (Phrase-BERT, section 4.1)."""


def contrast_pairs(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    """Pairs -> pairs with contrast phrases."""
    seed, k = options[Seed].seed, options[ContrastRules].contrasts
    before = phrase_pairs(source, options, output.beside("-pairs"))
    pairs = before.folder.uri
    order = OrderContrasts(splits=options[SplitShares].shares, seed=seed)
    return [
        before,
        built(
            DatasetBuild(
                output=output,
                kind=kinds.contrast_pairs.KIND,
                stages=(
                    SendPairs(draws=k, pairs=pairs),
                    GatherPhrases(),
                    DrawContrasts(draws=k, seed=seed, pairs=pairs),
                    order,
                ),
                inputs=(before.as_input,),
                options=order.settings() | {"contrasts": k},
                seed=seed,
            )
        ),
    ]
