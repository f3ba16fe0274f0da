"""The chain of datasets of hyperlink mentions: documents -> mentions -> aliases, pairs.

Like `pipelines/corpus.py`, which has what comes before. The mentions and aliases of a run lie beside its pairs:
`<output>-mentions`, `<output>-aliases`.
"""

from __future__ import annotations

import argparse
import posixpath

from pyarrow import fs

from pipelines.corpus import ChainDataset, Given, built, documents, holds
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.options import kinds_of_pairs
from pipelines.stages.aliases import CountSurfaces, PairAliases
from pipelines.stages.mentions import FindMentions, Follow, JoinTables, ReadTables, Resolve, SqlFile, Targets
from pipelines.stages.pairs import Fetch, Group, OrderPairs, Pair
from schemas import kinds
from schemas.errors import UserError
from schemas.manifest import Input
from schemas.storage.folder import Folder
from transforms.mentions.finding import MentionRules
from transforms.mentions.masking import MaskRules, identified
from transforms.mentions.pairs import PairRules
from transforms.sources.inputs import address_of, file_sha256, locate
from transforms.sources.sql_tables import open_table

LINKED_FORMATS = ("wikipedia-xml", "wikipedia-html")
"""Formats that have hyperlinks."""


def mentions(
    source: Given, options: argparse.Namespace, output: Folder, documents_output: Folder
) -> list[ChainDataset]:
    """Documents -> mentions, with the documents; or the mentions dataset that was given."""
    if source.dataset is not None and holds(source, kinds.mentions.KIND):
        if options.tables:
            raise UserError(f"--tables: the targets of {source.dataset.folder} are resolved already; leave it out")
        return [source.dataset]
    _require_links(source)
    before = documents(source, options, documents_output, takes="raw text, documents or mentions")
    dumps, inputs = _dumps(options.tables)
    texts = before.folder.uri
    find = FindMentions(rules=mention_rules(options), documents=texts)
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


def _dumps(tables: list[str]) -> tuple[tuple[SqlFile, ...], tuple[Input, ...]]:
    """The SQL dumps that --tables names, sorted by name."""
    found = []
    for given in tables:
        filesystem, path = locate(given)
        if filesystem.get_file_info(path).type != fs.FileType.File:
            raise UserError(f"--tables {given}: is no file; name each of page, redirect and page_props")
        found.append((given, SqlFile(filesystem, open_table(filesystem, path))))
    found.sort(key=lambda each: (each[1].table.name, each[0]))
    for wiki in {each.table.source for _, each in found}:
        have = {each.table.table for _, each in found if each.table.source == wiki}
        if "redirect" in have and "page" not in have:
            raise UserError(
                f"--tables: the redirect table of {wiki} names its pages by number; give its page table, too, or leave "
                "it out where the XML dump has the redirects"
            )
    inputs = [
        Input(
            "file",
            posixpath.basename(each.table.path),
            address_of(given, each.table.path),
            file_sha256(each.filesystem, each.table.path),
            each.filesystem.get_file_info(each.table.path).size,
        )
        for given, each in found
    ]
    return tuple(each for _, each in found), tuple(inputs)


def mention_rules(options: argparse.Namespace) -> MentionRules:
    return MentionRules(
        max_mention_words=options.max_mention_words,
        max_sentence_words=options.max_sentence_words,
        drop_numbers=not options.keep_numbers,
        drop_dates=not options.keep_dates,
        drop_lists=not options.keep_lists,
        drop_whole_sentences=not options.keep_whole_sentences,
        drop_disambiguation=not options.keep_disambiguation,
        drop_red_links=options.drop_red_links,
        own_titles=options.own_titles,
        repeated_anchors=options.repeated_anchors,
    )


def aliases(before: ChainDataset, options: argparse.Namespace, output: Folder) -> ChainDataset:
    """Mentions -> pairs of surfaces of one entity."""
    pair = PairAliases(aliases_per_entity=options.aliases_per_entity, min_count=options.min_alias_count)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.alias_pairs.KIND,
            stages=(CountSurfaces(mentions=before.folder.uri), pair),
            inputs=(before.as_input,),
            options=pair.settings(),
        )
    )


def pairs(before: ChainDataset, options: argparse.Namespace, output: Folder) -> ChainDataset:
    """Mentions -> pairs of mentions of one entity or of one surface."""
    rules = PairRules(
        kinds=kinds_of_pairs(options),
        mentions_per_key=options.mentions_per_key,
        partners=options.partners,
        all_pairs=options.all_pairs,
    )
    masks = _mask_rules(options)
    texts = before.folder.uri
    group = Group(rules=rules, validation_rate=options.validation_rate, seed=options.seed, mentions=texts)
    order = OrderPairs(masks=masks)
    return built(
        DatasetBuild(
            output=output,
            kind=kinds.mention_pairs.KIND if masks is None else kinds.mention_pairs.MASKED_KIND,
            stages=(group, Pair(rules=rules, seed=options.seed, mentions=texts), Fetch(mentions=texts), order),
            inputs=(before.as_input,),
            options=group.settings() | order.settings(),
            seed=options.seed,
        )
    )


def _mask_rules(options: argparse.Namespace) -> MaskRules | None:
    """How sentences are to be masked, None if at load time."""
    if options.tokenizer and options.masks != "subtokens":
        raise UserError("--tokenizer: is for --masks=subtokens; leave it out, or give that, too")
    if not options.masked:
        if options.masks != "one":
            raise UserError("--masks: says how --masked masks; give that, too")
        return None
    return identified(MaskRules(mask_token=options.mask_token, masks=options.masks, tokenizer=options.tokenizer or ""))
