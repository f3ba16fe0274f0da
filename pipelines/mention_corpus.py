"""The chain of datasets of hyperlink mentions: documents -> mentions -> aliases, pairs.

Like `pipelines/corpus.py`, which builds the documents. The mentions and aliases of a run are written beside its pairs:
`<output>-mentions`, `<output>-aliases`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from pyarrow import fs

from pipelines.corpus import ChainDataset, Given, built, documents, holds
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.stages.aliases import CountSurfaces, PairAliases
from pipelines.stages.mentions import FindMentions, Follow, JoinTables, ReadTables, Resolve, SqlFile, Targets
from pipelines.stages.pairs import Fetch, Group, OrderPairs, Pair
from schemas import kinds
from schemas.errors import UserError
from schemas.manifest import Input
from schemas.options import Chosen
from schemas.storage.folder import Folder
from transforms.mentions.masking import identified
from transforms.mentions.options import (
    AliasRules,
    CopyRules,
    MaskRules,
    MentionRules,
    PairColumns,
    PairRules,
    Tables,
)
from transforms.options import Draws
from transforms.sources.inputs import address_of, file_sha256, locate
from transforms.sources.sql_tables import open_table

LINKED_FORMATS = ("wikipedia-xml", "wikipedia-html")
"""Formats that have hyperlinks."""


def mentions(source: Given, options: Chosen, output: Folder, documents_output: Folder) -> list[ChainDataset]:
    """Documents -> mentions, with the documents; or the given mentions dataset."""
    if source.dataset is not None and holds(source, kinds.mentions.KIND):
        if options[Tables].tables:
            raise UserError(f"--tables: the targets of {source.dataset.folder} are resolved already; leave it out")
        return [source.dataset]
    _require_links(source)
    before = documents(source, options, documents_output, takes="raw text, documents or mentions")
    dumps, inputs = _dumps(options[Tables].tables)
    texts = before.folder.uri
    find = FindMentions(rules=options[MentionRules], documents=texts)
    stages = (
        ReadTables(documents=texts, dumps=dumps),
        JoinTables(),
        Follow(),
        Targets(documents=texts),
        Resolve(documents=texts),
        find,
    )
    build = DatasetBuild(
        output=output,
        kind=kinds.mentions.KIND,
        stages=stages,
        inputs=(before.as_input, *inputs),
        options=find.settings(),
    )
    return [before, built(build)]


def _require_links(source: Given) -> None:
    """UserError if the input cannot have hyperlinks."""
    remedy = "mentions are mined from hyperlinks; give a Wikipedia dump (XML or HTML), or documents made from one"
    if source.raw is not None:
        if not any(each.format.name in LINKED_FORMATS for each in source.raw.inputs):
            formats = ", ".join(sorted({each.format.name for each in source.raw.inputs}))
            raise UserError(f"--input: has no hyperlinks, being {formats}; {remedy}")
    elif holds(source, kinds.documents.KIND):
        assert source.dataset is not None
        assert source.manifest is not None
        if not source.manifest.counter("links"):
            raise UserError(f"{source.dataset.folder}: its documents have no hyperlinks; {remedy}")


def _dumps(tables: Sequence[str]) -> tuple[tuple[SqlFile, ...], tuple[Input, ...]]:
    """The SQL dumps that --tables names, sorted by name."""
    found = []
    for given in tables:
        filesystem, path = locate(given)
        if filesystem.get_file_info(path).type != fs.FileType.File:
            raise UserError(f"--tables {given}: is not a file; name each of page, redirect and page_props")
        info = filesystem.get_file_info(path)
        found.append((given, SqlFile(filesystem, open_table(filesystem, path), info.size)))
    found.sort(key=lambda each: (each[1].table.name, each[0]))
    for wiki in {each.table.source for _, each in found}:
        have = {each.table.table for _, each in found if each.table.source == wiki}
        if "redirect" in have and "page" not in have:
            raise UserError(
                f"--tables: the redirect table of {wiki} names its pages by number; give its page table too, or leave "
                "it out if the XML dump has the redirects"
            )
    inputs = [
        Input(
            "file",
            posixpath.basename(each.table.path),
            address_of(given, each.table.path),
            file_sha256(each.filesystem, each.table.path),
            each.stored,
        )
        for given, each in found
    ]
    return tuple(each for _, each in found), tuple(inputs)


def aliases(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Mentions -> pairs of surfaces of one entity."""
    rules = options[AliasRules]
    pair = PairAliases(aliases_per_entity=rules.aliases_per_entity, min_count=rules.min_count)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.alias_pairs.KIND,
            stages=(CountSurfaces(mentions=before.folder.uri), pair),
            inputs=(before.as_input,),
            options=pair.settings(),
        )
    )


def pairs(before: ChainDataset, options: Chosen, output: Folder) -> ChainDataset:
    """Mentions -> pairs of mentions of one entity or of one surface."""
    rules, draws, masks = options[PairRules], options[Draws], _mask_rules(options)
    texts = before.folder.uri
    group = Group(rules=rules, validation_rate=draws.validation_rate, seed=draws.seed, mentions=texts)
    order = OrderPairs(copies=options[CopyRules], masks=masks)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.mention_pairs.KIND if masks is None else kinds.mention_pairs.MASKED_KIND,
            stages=(group, Pair(rules=rules, seed=draws.seed, mentions=texts), Fetch(mentions=texts), order),
            inputs=(before.as_input,),
            options=group.settings() | order.settings(),
            seed=draws.seed,
        )
    )


def _mask_rules(options: Chosen) -> MaskRules | None:
    """How sentences are masked; None if they are masked at load time."""
    rules = options[MaskRules]
    if rules.tokenizer and rules.masks != "subtokens":
        raise UserError("--tokenizer: is for --masks=subtokens; leave it out, or give that too")
    if not options[PairColumns].masked:
        if rules.masks != "one":
            raise UserError("--masks: says how --masked masks; give that too")
        return None
    return identified(rules)
