"""What a run says at its end: counts through the stages, rates, where things are, what comes next, sample rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pipelines.cli import python
from schemas.manifest import Manifest, read_manifest
from schemas.records import RESOLUTIONS
from schemas.storage.folder import Folder
from schemas.storage.parquet import parquet_file

_PLURALS = {
    "Document": "documents",
    "Sentence": "sentences",
    "Phrase": "phrases",
    "Context": "contexts",
    "Mention": "mentions",
    "MentionPair": "pairs",
    "MaskedMentionPair": "pairs",
    "AliasPair": "aliases",
}

_NEXT = {
    "Document": "pipelines.parse_sentences --input",
    "Sentence": "pipelines.count_phrases --input",
    "Phrase": "schemas.check",
    "Context": "schemas.check",
    "Mention": "pipelines.mine_mentions --input",
    "MentionPair": "schemas.check",
    "MaskedMentionPair": "schemas.check",
    "AliasPair": "schemas.check",
}


def text(datasets: Sequence[Folder], rates: Mapping[str, float]) -> str:
    """The summary of a chain of datasets, the last of them the output; `rates` are tokens/s by stage."""
    manifests = [(folder, read_manifest(folder)) for folder in datasets]
    lines = [""]
    width = max(len(str(folder)) for folder in datasets)
    for folder, manifest in manifests:
        lines.append(f"{_PLURALS[manifest.record]:<10} {manifest.rows:>12,}  {folder!s:<{width}}  {_shards(manifest)}")
    for heading, kind in (("filtered", "filtered"), ("rejected", "rejected")):
        reasons = _reasons([manifest for _, manifest in manifests], kind)
        lines.append(f"{heading}: {reasons or 'nothing'}")
    lines += [line for _, manifest in manifests if (line := _targets(manifest))]
    if rates:
        lines.append("tokens/s: " + ", ".join(f"{stage} {rate:,.0f}" for stage, rate in rates.items()))
    output, last = manifests[-1]
    lines += ["", *_samples(output, last), "", f"next: {python()} -m {_NEXT[last.record]} {output}"]
    return "\n".join(lines)


def _shards(manifest: Manifest) -> str:
    size = sum(shard.bytes for shard in manifest.shards)
    return f"{_plural(len(manifest.shards), 'shard')}, {size / 1e6:,.1f} MB"


def _plural(number: object, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _reasons(manifests: Sequence[Manifest], kind: str) -> str:
    """Counts by stage and reason, as "constituents: 12,000 pronoun, 300 number; ..."."""
    parts = []
    for manifest in manifests:
        for stage in manifest.stages:
            counts: Counter[str] = getattr(stage.ledger, kind) if stage.ledger else Counter()
            if counts:
                named = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in counts.most_common())
                parts.append(f"{stage.ledger.counts}: {named}" if stage.ledger else named)
        if paragraphs := manifest.counter("duplicate_paragraphs") if kind == "filtered" else 0:
            parts.append(f"paragraphs: {paragraphs:,} duplicate paragraph")
    return "; ".join(parts)


def _targets(manifest: Manifest) -> str:
    """What became of the titles that mentions link to; empty for other records."""
    if manifest.record != "Mention" or not manifest.rows:
        return ""
    found = {name: manifest.counter(f"resolution:{name}") for name in RESOLUTIONS}
    line = "targets: " + ", ".join(f"{n:,} {name}" for name, n in found.items())
    if found["NIL"] > manifest.rows / 2:
        line += "; few of the pages linked to are known: give the whole dump, or its page table (docs/mentions.md)"
    elif not found["qid"]:
        line += "; for Wikidata ids give the wiki's page_props table with --tables (docs/mentions.md)"
    return line


def _samples(folder: Folder, manifest: Manifest, number: int = 3) -> list[str]:
    """A few rows of the output; the first of a shuffled dataset are a random sample."""
    shard = next((each for each in manifest.shards if each.rows), None)
    if shard is None:
        return ["(no rows)"]
    with parquet_file(folder, shard.path) as reader:
        rows = next(reader.iter_batches(batch_size=number)).to_pylist()
    return [line for row in rows for line in _sample(manifest.record, row)]


def _sample(record: str, row: Mapping[str, object]) -> list[str]:
    if record == "Context":
        context, mask = str(row["context"]), int(str(row["mask_start"]))
        return [
            f"{row['phrase']} ({row['label']}, {row['frequency']}x, {row['title']})",
            f"    {_around(context, mask)}",
        ]
    if record == "Phrase":
        return [
            f"{row['phrase']} ({row['label']}, {row['frequency']}x in {_plural(row['document_frequency'], 'document')})"
        ]
    if record == "Mention":
        return [f"{row['mention']} -> {_entity(row, '')} ({row['resolution']})", f"    {_with_mention(row, '')}"]
    if record in ("MentionPair", "MaskedMentionPair"):
        entities = dict.fromkeys(_entity(row, side) for side in ("_1", "_2"))
        sentences = [f"    {_with_mention(row, side)}" for side in ("_1", "_2")]
        return [f"{row['key']} ({row['kind']}): {' / '.join(entities)}", *sentences]
    if record == "AliasPair":
        surfaces = (f"{row[f'alias_{side}']} ({row[f'count_{side}']:,}x)" for side in (1, 2))
        return [f"{_entity(row, '')}: {', '.join(surfaces)}"]
    name = row["sentence_id"] if record == "Sentence" else row["title"]
    return [f"{name}: {_around(str(row['text']), 0)}"]


def _entity(row: Mapping[str, object], side: str) -> str:
    title, entity_id = row[f"target_title{side}"], row[f"entity_id{side}"]
    return f"{title} ({entity_id})" if entity_id else str(title)


def _with_mention(row: Mapping[str, object], side: str) -> str:
    """The sentence with the mention in brackets."""
    text, start, end = str(row[f"text{side}"]), int(str(row[f"start_char{side}"])), int(str(row[f"end_char{side}"]))
    return _around(f"{text[:start]}[{text[start:end]}]{text[end:]}", start)


def _around(text: str, place: int, reach: int = 100) -> str:
    """A line's worth of the text around a place."""
    start, end = max(place - reach, 0), min(place + reach, len(text))
    shown = text[start:end].replace("\n", " ")
    return f"{'...' if start else ''}{shown}{'...' if end < len(text) else ''}"
