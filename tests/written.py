"""Datasets of literal rows, made by a real build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.stage import Stage, Work, close_stage, location, open_stage
from pipelines.engine.task_writer import TaskWriter, do_unit
from schemas.columns import record_name
from schemas.kinds import KINDS
from schemas.kinds.alias_pairs import ALIAS_PAIRS
from schemas.kinds.contexts import CONTEXTS
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS, MENTION_PAIRS, PAIRED_FIELDS
from schemas.kinds.mentions import MENTIONS
from schemas.kinds.phrases import PHRASES
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import Input, Manifest, read_manifest
from schemas.storage.folder import Folder

Row = dict[str, Any]


class Shard(NamedTuple):
    index: int


@dataclass(frozen=True)
class Write(Stage):
    """Unit: a shard, given as the rows of its row groups. The first one brings the rejects and the filtered, too."""

    name: ClassVar[str] = "write"
    counts: ClassVar[str] = "rows"
    Unit: ClassVar[type] = Shard

    label: str
    schema: pa.Schema = field(metadata={"location": True})
    shards: Sequence[Sequence[Sequence[Row]]] = location(default=())
    rejects: Sequence[Row] = location(default=())
    filtered: Mapping[str, int] = location(default_factory=dict)
    licences: Mapping[str, int] = location(default_factory=dict)
    split: str = "train"

    def plan(self, work: Work) -> list[Shard]:
        return [Shard(index) for index in range(len(self.shards))]

    def process(self, unit: Shard, write: TaskWriter) -> None:
        with write.file(self.split, self.schema) as group:
            for rows in self.shards[unit.index]:
                group(pa.Table.from_pylist(list(rows), schema=self.schema))
                write.ledger.read += len(rows)
                write.ledger.written += len(rows)
        if unit.index == 0:
            for reject in self.rejects:
                write.reject(**reject)
            write.ledger.filtered.update(self.filtered)
            write.ledger.read += len(self.rejects) + sum(self.filtered.values())
            write.counters.update({f"licence:{name}": number for name, number in self.licences.items()})


@dataclass(frozen=True)
class Written:
    """A finished dataset."""

    folder: Folder
    manifest: Manifest
    path: Path = field(default_factory=Path)


def write_dataset(
    path: Path,
    schema: pa.Schema,
    shards: Sequence[Sequence[Sequence[Row]]],
    *,
    rejects: Sequence[Row] = (),
    filtered: Mapping[str, int] | None = None,
    licences: Mapping[str, int] | None = None,
    made_from: Written | None = None,
    options: Mapping[str, Any] | None = None,
    split: str = "train",
) -> Written:
    """A dataset with these rows: shards of row groups."""
    stage = Write(str(path), schema, shards, rejects, filtered or {}, licences or {}, split)
    if made_from:
        source = Input("dataset", made_from.folder.name, str(made_from.path), made_from.manifest.fingerprint)
    else:
        source = Input("file", "raw.txt", "/raw/raw.txt", "0" * 64, 12_345)
    build = DatasetBuild(Folder(str(path)), KINDS[record_name(schema)], (stage,), (source,), options or {})
    build.begin(resume=False)
    for unit in open_stage(build.work, stage):
        do_unit(build.work, stage, unit)
    close_stage(build.work, stage)
    build.finish()
    return Written(build.output, read_manifest(build.output), path)


def document(number: int, *, text: str = "A text.", title: str = "Title", links: Sequence[Row] = ()) -> Row:
    return {
        "doc_id": f"wiki:{number}",
        "source": "wiki",
        "title": title,
        "url": f"https://example.org/{number}",
        "licence": "CC BY-SA 4.0",
        "text": text,
        "language": "en",
        "links": list(links),
    }


def phrase(name: str, frequency: int, *, label: str = "NP") -> Row:
    shares = {each: float(each == label) for each in ("NP", "VP", "PP", "ADJP", "ADVP")}
    return {
        "phrase": name,
        "surface": name.capitalize(),
        "surface_share": 0.75,
        "label": label,
        "label_shares": shares,
        "frequency": frequency,
        "document_frequency": 1,
    }


def context(name: str, text: str, *, frequency: int = 1, **more: Any) -> Row:
    """A context; `text` has the mask once."""
    row = {
        "phrase": name,
        "label": "NP",
        "frequency": frequency,
        "surface": name,
        "context": text,
        "mask_start": text.index("[MASK]"),
        "negative": "another [MASK] here",
        "doc_id": "wiki:1",
        "sentence_id": "wiki:1#0",
        "start_char": 4,
        "end_char": 4 + len(name),
        "source": "wiki",
        "title": "Title",
        "url": "https://example.org/1",
        "licence": "CC BY-SA 4.0",
    }
    return row | more


def sentence(words: str, constituents: Sequence[tuple[str, int, int]], *, start: int = 0) -> Row:
    """A sentence of words one blank apart."""
    tokens, place = [], start
    for word in words.split(" "):
        tokens.append({"start_char": place, "end_char": place + len(word), "tag": "NN"})
        place += len(word) + 1
    return {
        "sentence_id": f"wiki:1#{start}",
        "doc_id": "wiki:1",
        "start_char": start,
        "text": words,
        "tokens": tokens,
        "constituents": [
            {"label": label, "start_token": first, "end_token": last} for label, first, last in constituents
        ],
    }


def mention(marked: str, title: str = "", entity_id: str = "", **more: Any) -> Row:
    """A mention; `marked` is the sentence with the mention in brackets. Its page is called as it is by default."""
    start, end = marked.index("["), marked.index("]") - 1
    text = marked.replace("[", "").replace("]", "")
    row = {
        "entity_id": entity_id,
        "target_title": title or text[start:end],
        "section": "",
        "mention": text[start:end],
        "sentence_id": "wiki:1#0",
        "text": text,
        "start_char": start,
        "end_char": end,
        "resolution": "qid" if entity_id else "title",
        "origin": "link",
        "doc_id": "wiki:1",
        "source": "wiki",
        "title": "Title",
        "url": "https://example.org/1",
        "licence": "CC BY-SA 4.0",
    }
    return row | more


def mention_pair(one: Row, other: Row, *, kind: str = "entity", **more: Any) -> Row:
    """A pair of two mentions."""
    key = one["mention"] if kind == "surface" else one["entity_id"] or one["target_title"]
    row = {"kind": kind, "key": key, "unmasked": 0}
    for side, each in ((1, one), (2, other)):
        row |= {f"{name}_{side}": each[name] for name in (field.name for field in PAIRED_FIELDS)}
    return row | more


def alias_pair(one: str, other: str, *counts: int, title: str = "Whale") -> Row:
    names = {"entity_id": "", "target_title": title, "section": "", "alias_1": one, "alias_2": other}
    return names | {"count_1": counts[0], "count_2": counts[1]}


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;\u2028\u202e{{ 7 * 7 }}\x00<!--"
"""What a corpus may hold to get out of its place in a page or on a terminal."""

REJECT = {"reason": "bad_xml", "source": HOSTILE, "position": HOSTILE, "excerpt": HOSTILE, "exception": HOSTILE}


def hostile(folder: Path) -> list[Written]:
    """Datasets of each record type that hold hostile strings wherever a corpus can put them."""
    text = f"{HOSTILE} [MASK] {HOSTILE}"
    link = {"start_char": 0, "end_char": 5, "target_title": HOSTILE, "entity_id": HOSTILE, "section": HOSTILE}
    strings = dict.fromkeys(("source", "title", "url", "licence", "doc_id"), HOSTILE)
    other = dict.fromkeys(("source", "title", "url", "licence", "doc_id"), "other")
    documents = [document(1, links=[link]) | strings | {"text": HOSTILE}, document(2) | other]
    contexts = [context(HOSTILE, text, negative=HOSTILE) | strings, context("b", "[MASK]", label=HOSTILE) | other]
    words = sentence(HOSTILE, [("NP", 0, 1), (HOSTILE, 0, 1)])
    phrases = [phrase(HOSTILE, 2), phrase("b", 1) | {"label": HOSTILE}]
    common = {"rejects": [REJECT], "licences": {HOSTILE: 1}, "options": {HOSTILE: HOSTILE, "mask_token": "[MASK]"}}
    said = {"entity_id": HOSTILE, "target_title": HOSTILE, "mention": HOSTILE, "text": HOSTILE, "sentence_id": HOSTILE}
    mentions = [mention("[a] b", resolution=HOSTILE, origin=HOSTILE) | said | strings, mention("[a] b") | other]
    pairs = [mention_pair(mentions[0], mentions[1], kind=HOSTILE), mention_pair(mentions[1], mentions[0])]
    masked = [each | {"anchor": HOSTILE, "positive": HOSTILE} for each in pairs]
    aliases = [alias_pair(HOSTILE, HOSTILE, 2, 1, title=HOSTILE), alias_pair("a", "b", 1, 1)]
    return [
        write_dataset(folder / "mentions", MENTIONS, [[mentions]], **common),
        write_dataset(folder / "pairs", MENTION_PAIRS, [[pairs]], **common),
        write_dataset(folder / "masked", MASKED_MENTION_PAIRS, [[masked]], **common),
        write_dataset(folder / "aliases", ALIAS_PAIRS, [[aliases]], **common),
        write_dataset(folder / "documents", DOCUMENTS, [[documents]], **common),
        write_dataset(folder / "contexts", CONTEXTS, [[contexts]], **common),
        write_dataset(folder / "sentences", SENTENCES, [[[words]]], **common),
        write_dataset(folder / "phrases", PHRASES, [[phrases]], **common),
    ]
