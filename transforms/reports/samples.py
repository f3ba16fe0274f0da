"""Sample rows as a report shows them: passages of text with something marked in them, or the cells of a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from schemas.manifest import Manifest
from schemas.records import PHRASE_LABELS

_CELL = 160
_PASSAGE = 360
_TOKENS = 70


class Piece(NamedTuple):
    """A piece of a passage. `kind`: "" plain, "mark", "mask", "link" (to `note`), "open" or "close" of a bracket."""

    kind: str
    text: str
    note: str = ""


class Passage(NamedTuple):
    """A text with marks: what it is of, where that can be read (empty if unknown), and remarks below it."""

    heading: str
    origin: str
    url: str
    pieces: list[Piece]
    remarks: list[tuple[str, str]]


class Table(NamedTuple):
    """Rows as a table of texts; `numbers` are the columns that hold numbers."""

    columns: list[str]
    numbers: frozenset[str]
    rows: list[list[str]]


def sample_rows(manifest: Manifest, rows: list[dict[str, Any]]) -> list[Passage] | Table:
    """The sample rows of a dataset. A record type without a passage of its own gives a table of its plain columns."""
    passage = PASSAGES.get(manifest.record)
    if passage is not None:
        return [passage(row, manifest.options) for row in rows]
    names = TABLES.get(manifest.record) or [each.name for each in manifest.schema if not pa.types.is_nested(each.type)]
    numbers = frozenset(name for name in names if pa.types.is_primitive(manifest.schema.field(name).type))
    return Table(list(names), numbers, [[_cell(row[name]) for name in names] for row in rows])


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {share:.0%}" for name, share in value.items() if share)
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else cut(value, _CELL)


def cut(text: str, most: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else text[:most].rstrip() + " …"


def web_address(url: str) -> str:
    """The address if it is one of the web: what a dump calls a URL may be a script."""
    return url if url.startswith(("https://", "http://")) and len(url) < 2000 else ""


def context(row: Mapping[str, Any], options: Mapping[str, Any]) -> Passage:
    """The context with the surface put back in the place of its mask, and marked; the other masks stay."""
    mask = options.get("mask_token", "[MASK]")
    text, start = row["context"], row["mask_start"]
    end = start + len(mask)
    before, after = text[max(start - _PASSAGE, 0) : start], text[end : end + _PASSAGE]
    pieces = [Piece("", "… ")] if start > _PASSAGE else []
    pieces += _masks(before, mask)
    pieces.append(Piece("mark", cut(row["surface"], _PASSAGE), mask))
    pieces += _masks(after, mask)
    if len(text) > end + _PASSAGE:
        pieces.append(Piece("", " …"))
    remarks = [("negative", cut(row["negative"], _CELL))] if row["negative"] else []
    what = f"{cut(row['phrase'], _CELL)} · {row['label']} · {row['frequency']:,}×"
    return Passage(what, cut(row["title"] or row["doc_id"], _CELL), web_address(row["url"]), pieces, remarks)


def _masks(text: str, mask: str) -> list[Piece]:
    parts = text.split(mask)
    pieces = [Piece("", parts[0])]
    for part in parts[1:]:
        pieces += [Piece("mask", mask), Piece("", part)]
    return [each for each in pieces if each.text]


def sentence(row: Mapping[str, Any], options: Mapping[str, Any]) -> Passage:
    """The sentence with its phrasal constituents in labelled brackets."""
    tokens = row["tokens"][:_TOKENS]
    opened: defaultdict[int, list[str]] = defaultdict(list)
    closed: Counter[int] = Counter()
    for each in row["constituents"]:
        if each["label"] in PHRASE_LABELS and each["start_token"] < len(tokens):
            opened[each["start_token"]].append(each["label"])
            closed[min(each["end_token"], len(tokens)) - 1] += 1
    pieces: list[Piece] = []
    place = row["start_char"]
    for number, token in enumerate(tokens):
        start, end = token["start_char"], token["end_char"]
        pieces.append(Piece("", row["text"][place - row["start_char"] : start - row["start_char"]]))
        pieces += [Piece("open", label) for label in opened[number]]
        pieces.append(Piece("", row["text"][start - row["start_char"] : end - row["start_char"]]))
        pieces += [Piece("close", "")] * closed[number]
        place = end
    if len(row["tokens"]) > len(tokens):
        pieces.append(Piece("", " …"))
    shown = [Piece(each.kind, cut(each.text, _PASSAGE), each.note) for each in pieces if each.text or each.kind]
    return Passage(cut(row["sentence_id"], _CELL), f"{len(row['tokens']):,} tokens", "", shown, [])


def document(row: Mapping[str, Any], options: Mapping[str, Any]) -> Passage:
    """The beginning of the document with its links."""
    text = row["text"][: 2 * _PASSAGE]
    pieces: list[Piece] = []
    place = 0
    for link in row["links"]:
        start, end = link["start_char"], link["end_char"]
        if start < place or end > len(text):
            continue
        pieces += [Piece("", text[place:start]), Piece("link", text[start:end], cut(link["target_title"], _CELL))]
        place = end
    pieces.append(Piece("", text[place:] + (" …" if len(row["text"]) > len(text) else "")))
    remarks = [
        ("length", f"{len(row['text']):,} characters, {len(row['links']):,} links"),
        ("licence", cut(row["licence"], _CELL)),
    ]
    heading = cut(row["title"] or row["doc_id"], _CELL)
    shown = [each for each in pieces if each.text]
    return Passage(heading, cut(row["doc_id"], _CELL), web_address(row["url"]), shown, remarks)


def mention(row: Mapping[str, Any], options: Mapping[str, Any]) -> Passage:
    """The sentence with the mention marked."""
    heading = f"{_entity(row)} · {row['resolution']} · {row['origin']}"
    origin = cut(row["title"] or row["doc_id"], _CELL)
    return Passage(heading, origin, web_address(row["url"]), _in_sentence(row), [])


def mention_pair(row: Mapping[str, Any], options: Mapping[str, Any]) -> Passage:
    """The two sentences with the mentions marked; what a masked pair trains on stands below."""
    sides = [{name: row[f"{name}_{side}"] for name in _OF_SIDES} for side in (1, 2)]
    entities = dict.fromkeys(map(_entity, sides))
    heading = f"{cut(row['key'], _CELL)} · {row['kind']} · {' / '.join(entities)}"
    origin = " · ".join(cut(each["sentence_id"], _CELL) for each in sides)
    pieces = [*_in_sentence(sides[0]), Piece("", "\n"), *_in_sentence(sides[1])]
    remarks = [("keeps its words", _UNMASKED.get(row["unmasked"], str(row["unmasked"])))]
    remarks += [(name, cut(row[name], _PASSAGE)) for name in ("anchor", "positive") if name in row]
    return Passage(heading, origin, "", pieces, remarks)


_OF_SIDES = ("entity_id", "target_title", "sentence_id", "mention", "text", "start_char", "end_char")
_UNMASKED = {0: "neither", 1: "the first", 2: "the second"}


def _entity(row: Mapping[str, Any]) -> str:
    title = cut(row["target_title"], _CELL)
    return f"{title} ({cut(row['entity_id'], _CELL)})" if row["entity_id"] else title


def _in_sentence(row: Mapping[str, Any]) -> list[Piece]:
    """The text around a mention, and it as a mark."""
    text, start, end = row["text"], row["start_char"], row["end_char"]
    before, after = text[max(start - _PASSAGE, 0) : start], text[end : end + _PASSAGE]
    pieces = [
        Piece("", ("… " if start > _PASSAGE else "") + before),
        Piece("mark", cut(row["mention"], _PASSAGE), _entity(row)),
        Piece("", after + (" …" if len(text) > end + _PASSAGE else "")),
    ]
    return [each for each in pieces if each.text]


PASSAGES: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Passage]] = {
    "Document": document,
    "Sentence": sentence,
    "Context": context,
    "Mention": mention,
    "MentionPair": mention_pair,
    "MaskedMentionPair": mention_pair,
}
"""Record types that are shown as text; each function takes a row and the options of the dataset."""

TABLES: dict[str, tuple[str, ...]] = {
    "Phrase": ("phrase", "label", "frequency", "document_frequency", "label_shares"),
    "AliasPair": ("alias_1", "alias_2", "count_1", "count_2", "target_title", "entity_id"),
}
"""The columns shown of the others; all plain ones of a record type that is not named."""
