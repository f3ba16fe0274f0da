"""The chains of datasets: raw text -> documents -> sentences -> phrases -> contexts, or entities -> typed phrases.

Each function describes how one dataset is built from the one before, or returns the input if it is that dataset.
Datasets between the input and the output are kept beside the output: `<output>-documents`, `<output>-sentences`,
`<output>-phrases`. They are reused as long as their fingerprints are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.engine.dataset_build import DatasetBuild, refuse_empty
from pipelines.engine.stage import Stage
from pipelines.options import TYPED_PHRASES
from pipelines.stages.contexts import Choose, Cut, Keep, Order
from pipelines.stages.count import AddUp, AddUpTypes, Count, CountTypes, Select, SelectTyped
from pipelines.stages.duplicates import Drop, FindDuplicateIds, FindDuplicates
from pipelines.stages.entities import FindEntities
from pipelines.stages.extract import Extract, SourceFile
from pipelines.stages.near_duplicates import Cluster, Compare, Match, Send, Sign
from pipelines.stages.parse import Parse
from schemas import kinds
from schemas.errors import UserError
from schemas.kind import Kind
from schemas.manifest import Input, Manifest, read_manifest
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.contexts.options import NegativeRules, Occurrences, WindowRules
from transforms.entities.options import EntityOptions
from transforms.entities.registry import finder_identity
from transforms.options import Draws
from transforms.parsing.options import GivenSentences, ParsingOptions
from transforms.parsing.registry import parser_identity
from transforms.phrases.entity_types import ordered_types
from transforms.phrases.options import PhraseRules, TypeRules, Vocabulary
from transforms.sources.inputs import FORMATS, RawFiles, file_sha256, resolve_inputs
from transforms.sources.options import DocumentOptions, NearRules, ReadOptions


class ChainDataset(NamedTuple):
    """A dataset of the chain: one that exists (`build` is None) or one to be built."""

    folder: Folder
    fingerprint: str
    build: DatasetBuild | None = None

    @property
    def as_input(self) -> Input:
        return Input("dataset", self.folder.name, self.folder.uri, self.fingerprint)


def built(build: DatasetBuild) -> ChainDataset:
    return ChainDataset(build.output, build.fingerprint, build)


class Given(NamedTuple):
    """The input: raw files, or one dataset of an earlier stage; both where a dataset is compared with files."""

    raw: RawFiles | None
    dataset: ChainDataset | None = None
    manifest: Manifest | None = None

    @property
    def size(self) -> int:
        """Bytes of the given dataset; 0 for raw files."""
        return sum(shard.bytes for shard in self.manifest.shards) if self.manifest else 0


def given(inputs: Sequence[str], *, input_format: str | None = None, formats: Mapping[str, Any] = FORMATS) -> Given:
    """Find what --input names; files are of one of these formats."""
    found = resolve_inputs(inputs, input_format=input_format, formats=formats)
    if isinstance(found, RawFiles):
        return Given(found)
    if len(found.folders) > 1:
        raise UserError("--input: takes one phrasemill dataset at most, got " + ", ".join(inputs))
    folder = Folder(inputs[0])
    manifest = read_manifest(folder)
    refuse_empty(folder, manifest)
    return Given(None, ChainDataset(folder, manifest.fingerprint), manifest)


def holds(source: Given, kind: Kind) -> bool:
    """Whether a dataset of this kind was given."""
    return source.manifest is not None and source.manifest.kind is kind


def documents(
    source: Given,
    options: Chosen,
    output: Folder,
    *,
    takes: str = "raw text, documents or sentences",
) -> ChainDataset:
    """Raw files -> documents; or the given documents dataset."""
    if source.raw is None:
        assert source.dataset is not None
        assert source.manifest is not None
        if not holds(source, kinds.documents.KIND):
            raise UserError(f"{source.dataset.folder}: holds {source.manifest.record} records; give {takes}")
        return source.dataset
    files = [SourceFile(each.filesystem, each.file, each.format.name) for each in source.raw.inputs]
    taken = options[DocumentOptions]
    formats = sorted({each.format for each in files})
    stage = Extract(
        formats=tuple((name, FORMATS[name].version) for name in formats),
        read=options[ReadOptions],
        shard_bytes=taken.shard_bytes,
        on_corrupt=taken.on_corrupt,
        max_documents=taken.max_documents,
        sample_rate=taken.sample_rate,
        sample_seed=taken.sample_seed,
        dedup=taken.dedup,
        files=tuple(files),
    )
    near: tuple[Stage, ...] = ()
    if taken.dedup.startswith("near"):
        rules = options[NearRules]
        sign = Sign(rules=rules, paragraphs=taken.dedup == "near-paragraphs")
        near = (sign, Match(), Send(rules=rules), Compare(rules=rules), Cluster())
    inputs = tuple(
        Input("file", each.file.name, each.address, file_sha256(each.filesystem, each.file.path), each.file.size)
        for each in source.raw.inputs
    )
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.documents.KIND,
            stages=(stage, FindDuplicateIds(), FindDuplicates(), *near, Drop()),
            inputs=inputs,
            options=stage.settings() | (near[0].settings() if near else {}),
            seed=taken.sample_seed if taken.sample_rate < 1 else None,
        )
    )


def sentences(source: Given, options: Chosen, output: Folder, documents_output: Folder) -> list[ChainDataset]:
    """Documents -> sentences; or the given sentences dataset, with the documents it was made from."""
    if holds(source, kinds.sentences.KIND):
        assert source.dataset is not None
        assert source.manifest is not None
        return [documents_of(source.dataset, source.manifest, options[GivenSentences].documents), source.dataset]
    before = documents(source, options, documents_output)
    parsing = options[ParsingOptions]
    stage = Parse(
        parser=parsing.parser,
        parser_options=parsing.output_options(),
        documents=before.folder.uri,
        runtime_options=parsing.runtime_options(),
    )
    build = DatasetBuild(
        output=output,
        kind=kinds.sentences.KIND,
        stages=(stage,),
        inputs=(before.as_input,),
        options=stage.settings(),
        models=(parser_identity(parsing.parser, **dict(parsing.settings()))._asdict(),),
    )
    return [before, built(build)]


def documents_of(dataset: ChainDataset, manifest: Manifest, elsewhere: str | None) -> ChainDataset:
    """The documents that given sentences were made from; contexts are cut from their text."""
    remedy = f"{dataset.folder}: give the documents dataset that it was made from with --documents"
    return _made_from(dataset, manifest, elsewhere, "documents", remedy)


def _made_from(
    dataset: ChainDataset, manifest: Manifest, elsewhere: str | None, what: str, remedy: str
) -> ChainDataset:
    """The dataset that a given one was made from, where its manifest says or elsewhere."""
    made_from = next((each for each in manifest.inputs if each.kind == "dataset"), None)
    if made_from is None:
        raise UserError(f"{dataset.folder}: its manifest names no {what}; write the dataset again with --overwrite")
    try:
        found = Folder(elsewhere) if elsewhere else dataset.folder.joined(made_from.path)
        fingerprint = read_manifest(found).fingerprint
    except UserError as error:
        raise UserError(f"{remedy} ({error})") from error
    if fingerprint != made_from.hash:
        raise UserError(f"{remedy}; {found} holds others (fingerprint {fingerprint[:16]})")
    return ChainDataset(found, fingerprint)


def entities(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Sentences -> the named entities of each."""
    chosen = options[EntityOptions]
    stage = FindEntities(
        entity_finder=chosen.entity_finder,
        entity_options=chosen.settings(),
        keep_uncapitalised=chosen.keep_uncapitalised,
        sentences=before.folder.uri,
    )
    identity = finder_identity(chosen.entity_finder, **dict(chosen.settings()))
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.entities.KIND,
            stages=(stage,),
            inputs=(before.as_input,),
            options=stage.settings() | {"entity_types": identity.types},
            models=(identity._asdict(),),
        )
    )


def phrases(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Sentences -> the most frequent phrases."""
    vocabulary = options[Vocabulary]
    count = Count(rules=options[PhraseRules], sentences=before.folder.uri)
    add_up = AddUp(max_phrases=vocabulary.most, min_frequency=vocabulary.least)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.phrases.KIND,
            stages=(count, add_up, Select(max_phrases=vocabulary.most)),
            inputs=(before.as_input,),
            options=count.settings() | add_up.settings(),
        )
    )


def typed_phrases(sentences: ChainDataset, entities: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Sentences + their entities -> the most frequent phrases with their types."""
    vocabulary = options[Vocabulary]
    said = entities.build.options if entities.build else read_manifest(entities.folder).options
    types = ordered_types(said["entity_types"])
    count = CountTypes(
        rules=options[PhraseRules],
        types=options[TypeRules],
        entity_types=types,
        sentences=sentences.folder.uri,
        entities=entities.folder.uri,
    )
    add_up = AddUpTypes(max_phrases=vocabulary.most, min_frequency=vocabulary.least)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.typed_phrases.KIND,
            stages=(count, add_up, SelectTyped(max_phrases=vocabulary.most, entity_types=types)),
            inputs=(sentences.as_input, entities.as_input),
            options=count.settings() | add_up.settings(),
        )
    )


def with_entities(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    """Documents -> sentences -> their entities, beside `output`; or given entities with the sentences they are in."""
    if holds(source, kinds.entities.KIND):
        assert source.dataset is not None
        assert source.manifest is not None
        remedy = f"{source.dataset.folder}: give the sentences dataset that it was made from with --input instead"
        return [_made_from(source.dataset, source.manifest, None, "sentences", remedy), source.dataset]
    chain = sentences(source, options, output.beside("-sentences"), output.beside("-documents"))
    return [*chain, entities(chain[-1], options, output.beside("-entities"))]


def any_phrases(source: Given, options: Chosen, output: Folder) -> list[ChainDataset]:
    """The given phrases, typed or not; or those of `mine_phrases` with its defaults, kept as `<output>-phrases`."""
    if holds(source, kinds.phrases.KIND) or holds(source, kinds.typed_phrases.KIND):
        assert source.dataset is not None
        return [source.dataset]
    options = options.with_(*TYPED_PHRASES)
    chain = with_entities(source, options, output)
    parsed, found = chain[-2:]
    return [*chain, typed_phrases(parsed, found, options, output.beside("-phrases"))]


def contexts(
    documents: ChainDataset, sentences: ChainDataset, phrases: ChainDataset, options: Chosen, output: Folder
) -> ChainDataset:
    """Phrases + sentences + documents -> masked contexts in triplets."""
    texts, parsed, vocabulary = (each.folder.uri for each in (documents, sentences, phrases))
    rules, draws, most = options[PhraseRules], options[Draws], options[Occurrences].contexts_per_phrase
    choose = Choose(rules=rules, contexts_per_phrase=most, seed=draws.seed, sentences=parsed, phrases=vocabulary)
    keep = Keep(contexts_per_phrase=most, sentences=parsed, phrases=vocabulary)
    cut = Cut(
        window=options[WindowRules],
        rules=rules,
        validation_rate=draws.validation_rate,
        seed=draws.seed,
        sentences=parsed,
        documents=texts,
    )
    order = Order(negatives=options[NegativeRules].negatives, mask_token=cut.window.mask_token)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.contexts.KIND,
            stages=(choose, keep, cut, order),
            inputs=(documents.as_input, sentences.as_input, phrases.as_input),
            options=choose.settings() | cut.settings() | order.settings(),
            seed=draws.seed,
        )
    )


def size_of_files(chain: Sequence[ChainDataset]) -> int:
    """Bytes of the files that the datasets to be built are made from."""
    return sum(each.bytes for build in to_build(chain) for each in build.inputs if each.kind == "file")


def to_build(chain: Sequence[ChainDataset]) -> list[DatasetBuild]:
    return [each.build for each in chain if each.build is not None]
