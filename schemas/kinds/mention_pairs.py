"""Pairs of mentions of one entity or one surface (UCTopic), as they are or with their masked sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.checks import (
    Broken,
    Check,
    Counters,
    InSplit,
    Rows,
    Show,
    Unique,
    Violation,
    are_rows_of,
    is_not_one_of,
    quoted,
    rows_of,
    where,
)
from schemas.columns import column, schema, term
from schemas.dataset import Dataset
from schemas.kind import Kind, Problem, Source, equal
from schemas.kinds.mentions import MENTION_FIELDS, MentionColumns, entity, in_sentence
from schemas.manifest import Manifest
from schemas.measures import likeness, rows_by_rank, value, words
from schemas.shown import NEW_LINE, PASSAGE, Row, Shown, cut
from schemas.terms import PAIR_KINDS

PAIRED_FIELDS = tuple(each for each in MENTION_FIELDS if each.name not in ("resolution", "origin"))
"""What a pair keeps of each of its two mentions. The rest can be found by sentence_id."""

_PAIRED = [each.name for each in PAIRED_FIELDS]


def _of_side(field: pa.Field, side: int) -> pa.Field:
    """The field of a mention as a field of one of the two sides of a pair."""
    which = {1: b", of the first", 2: b", of the second"}[side]
    metadata = {**field.metadata, b"description": field.metadata[b"description"] + which}
    return field.with_name(f"{field.name}_{side}").with_metadata(metadata)


MENTION_PAIRS = schema(
    "MentionPair",
    term("kind", "entity: two mentions of one entity; surface: of two entities that share the surface"),
    column(
        "key",
        pa.string(),
        "what the two share: the entity's Wikidata id, else its title, with #section, or the surface",
    ),
    *(_of_side(each, side) for side in (1, 2) for each in PAIRED_FIELDS),
    column("unmasked", pa.uint8(), "which of the two keeps its words in training: 0 neither, 1 or 2 (by hash)"),
)

MASKED_MENTION_PAIRS = schema(
    "MaskedMentionPair",
    *MENTION_PAIRS,
    column("anchor", pa.string(), "the first sentence, its mention masked unless `unmasked` is 1"),
    column("positive", pa.string(), "the second sentence, its mention masked unless `unmasked` is 2"),
)


def _rules(table: pa.Table) -> Iterator[Broken]:
    one, other = MentionColumns(table, "_1"), MentionColumns(table, "_2")

    def show(row: int) -> str:
        return f"{one.show(row)}, {other.show(row)}"

    yield from one.broken()
    yield from other.broken()
    yield from _shared(table, show)
    same = where(pc.equal(table.column("text_1"), table.column("text_2")))
    yield Broken("both mentions are in sentences of the same words", same, show)
    unmasked = table.column("unmasked")
    wrong = where(pc.greater(unmasked, 2))
    yield Broken("unmasked is not 0, 1 or 2", wrong, lambda row: f"{show(row)}: {unmasked[row].as_py()}")


def _shared(table: pa.Table, show: Show) -> Iterator[Broken]:
    """Rules about what the two mentions share."""
    kind, key = table.column("kind"), table.column("key")
    yield is_not_one_of(table, "kind", PAIR_KINDS, show)
    first, second = _entities(table, sections=True)
    is_entity, is_surface = (pc.equal(kind, each) for each in PAIR_KINDS)
    same = pc.equal(first, second)

    def entities(row: int) -> str:
        names = (quoted(each[row].as_py().replace("\0", " ")) for each in (first, second))
        return f"{show(row)}: {', '.join(names)}"

    def keys(row: int) -> str:
        return f"{show(row)}: {quoted(key[row].as_py())}"

    yield Broken("a pair of kind entity is of two entities", where(pc.and_not(is_entity, same)), entities)
    yield Broken("a pair of kind surface is of one entity", where(pc.and_(is_surface, same)), entities)
    entity_id, title, section = (table.column(f"{name}_1") for name in ("entity_id", "target_title", "section"))
    name = _with_section(pc.if_else(pc.equal(entity_id, ""), title, entity_id), section)
    yield Broken(
        "the key of a pair of kind entity is not its Wikidata id, or title where that is unknown, and section",
        where(pc.and_(is_entity, pc.not_equal(key, name))),
        keys,
    )
    is_key = pc.and_(*(pc.equal(table.column(f"mention_{side}"), key) for side in (1, 2)))
    rule = "the key of a pair of kind surface is not the mention of both"
    yield Broken(rule, where(pc.and_not(is_surface, is_key)), keys)


_PLACE = ("sentence_id", "start_char")
_ENTITY = ("entity_id", "target_title", "sentence_id")


def _of_both(names: Sequence[str]) -> list[str]:
    return [f"{name}_{side}" for side in (1, 2) for name in names]


def _pair(table: pa.Table) -> list[pa.Array]:
    """[n] the two mentions of each pair as one text, the same whichever comes first."""
    one, other = (
        pc.binary_join_element_wise(*(table.column(f"{name}_{side}").cast(pa.string()) for name in _PLACE), "\0")
        for side in (1, 2)
    )
    swapped = pc.greater(one, other)
    return [pc.binary_join_element_wise(pc.if_else(swapped, other, one), pc.if_else(swapped, one, other), "\0")]


def _with_section(name: pa.Array, section: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(section, ""), name, pc.binary_join_element_wise(name, section, "#"))


def _entities(table: pa.Table, *, sections: bool = False) -> list[pa.Array]:
    """[n], [n] the pages of the two mentions of each pair: the Wikidata id, or "<source>\\0<title>"; or their entities,
    with the section, too.

    The source is the beginning of the sentence_id, up to its first colon.
    """
    found = []
    for side in (1, 2):
        entity_id, title, sentence_id = (table.column(f"{name}_{side}") for name in _ENTITY)
        source = pc.list_element(pc.split_pattern(sentence_id, ":", max_splits=1), 0)
        named = pc.binary_join_element_wise(source, title, "\0")
        page = pc.if_else(pc.equal(entity_id, ""), named, entity_id)
        found.append(_with_section(page, table.column(f"section_{side}")) if sections else page)
    return found


def _owners(table: pa.Table) -> list[list[str | None]]:
    """[2][n] the entities that decide the split of each pair.

    None if no Wikidata id is known and the sentence_id has several colons: then the source of the title is unclear.
    """
    found = []
    for side, entities in enumerate(_entities(table), start=1):
        ids = table.column(f"sentence_id_{side}").to_pylist()
        names = zip(entities.to_pylist(), ids, strict=True)
        found.append([None if "\0" in name and each.count(":") > 1 else name for name, each in names])
    return found


class _Masks(Check):
    """`anchor` and `positive` are the two sentences, masked unless `unmasked` says otherwise."""

    def __init__(self, manifest: Manifest) -> None:
        self._mask, self._one = str(manifest.options["mask_token"]), manifest.options["masks"] == "one"

    def rows(self, group: Any, split: str) -> Iterator[Broken]:
        unmasked = group.table.column("unmasked").to_numpy()
        for number, name in ((1, "anchor"), (2, "positive")):
            side = MentionColumns(group.table, f"_{number}")
            yield self._broken(name, group.table.column(name).to_pylist(), side, unmasked == number)

    def _broken(self, name: str, found: Sequence[str], side: MentionColumns, keeps_words: Any) -> Broken:
        wrong = []
        for row, each in enumerate(found):
            text, start, end = side.texts[row], side.start[row], side.end[row]
            if not (self._is_kept(each, text) if keeps_words[row] else self._is_masked_at(each, text, start, end)):
                wrong.append(row)

        def show(row: int) -> str:
            what = "as it is" if keeps_words[row] else f"with {quoted(self._mask)} for the mention"
            return f"{quoted(found[row])}, not {quoted(side.texts[row])} {what}"

        return Broken(f"{name} is not the sentence, masked as unmasked says", rows_of(wrong), show)

    def _is_masked_at(self, found: str, text: str, start: int, end: int) -> bool:
        """Whether `found` is `text` with a mask, or several in a row, instead of [start, end)."""
        after = len(found) - (len(text) - end)
        masks = found[start:after]
        n = masks.count(self._mask)
        return (
            (n == 1 or (n > 1 and not self._one))
            and masks in (self._mask * n, " ".join([self._mask] * n))
            and self._is_kept(found[:start], text[:start])
            and self._is_kept(found[after:], text[end:])
        )

    def _is_kept(self, found: str, text: str) -> bool:
        """Whether `found` is `text`, except that spaces replace characters of the mask token if `text` contains it."""
        if self._mask not in text:
            return found == text
        return (
            self._mask not in found
            and len(found) == len(text)
            and all(one in (other, " ") for one, other in zip(found, text, strict=True))
        )


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    apart = Unique("the entity is in another split, too", *_of_both(_ENTITY), by="split", of=_entities)
    return (
        Unique("the two mentions are a pair already", *_of_both(_PLACE), of=_pair),
        *([apart] if len(manifest.splits) > 1 else []),
        Rows(_rules),
        InSplit("the entity belongs to the other split, by its hash", _owners, manifest),
        Counters("kind", PAIR_KINDS, "{}_pairs", manifest),
    )


def _check_source(dataset: Dataset, mentions: Dataset) -> Iterator[Violation]:
    for side, which in (("_1", "first"), ("_2", "second")):
        yield from are_rows_of(_PAIRED, f"the {which} of the two is no row of {{}}", side)(dataset, mentions)


def _sums(manifest: Manifest) -> Iterator[Problem]:
    yield from equal(manifest.rows, manifest.last_written, "rows, and pairs that the last stage wrote")
    if manifest.has("pair"):
        chosen = manifest.ledger("pair").written
        yield from equal(chosen, manifest.ledger("order_pairs").read, "pairs that were chosen, and those put in order")
        validation = sum(shard.rows for shard in manifest.splits.get("validation", []))
        written = manifest.counter("validation")
        yield from equal(validation, written, "rows of validation, and pairs that the last stage wrote for it")


_UNMASKED = {0: "neither", 1: "the first", 2: "the second"}


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    """The two sentences with the mentions marked; `anchor` and `positive` of a masked pair are remarks."""
    sides = [{name: row[f"{name}_{side}"] for name in _PAIRED} for side in (1, 2)]
    entities = " / ".join(dict.fromkeys(map(entity, sides)))
    heading = " · ".join([cut(row["key"]), row["kind"], *([entities] if entities != row["key"] else [])])
    origin = " · ".join(cut(each["sentence_id"]) for each in sides)
    pieces = (*in_sentence(sides[0]), NEW_LINE, *in_sentence(sides[1]))
    remarks = [("keeps its words", _UNMASKED.get(row["unmasked"], str(row["unmasked"])))]
    remarks += [(name, cut(row[name], PASSAGE)) for name in ("anchor", "positive") if name in row]
    return Shown(heading, origin, "", pieces, tuple(remarks))


KIND = Kind(
    schema=MENTION_PAIRS,
    rows="pairs",
    about="Pairs of mentions in sentences, of one entity or of one surface, in random order.",
    command="mine_mentions",
    show=show,
    source=Source("Mention", "both sides", _check_source),
    checks=_checks,
    options={"validation_rate": float},
    sums=_sums,
    measures=(
        value("Kind", "pairs", "kind"),
        likeness("How the surfaces of one entity differ", "pairs", "mention_1", "mention_2", only=("kind", "entity")),
        words("Length of a mention", "mention_1", "mention_2"),
        words("Length of a sentence", "text_1", "text_2"),
        rows_by_rank("Pairs of a key against its rank", "pairs", "kind", "key"),
        value("Which of the two keeps its words", "pairs", "unmasked"),
    ),
    tasks=("sentence-similarity", "feature-extraction"),
    texts=("mention_1", "mention_2", "text_1", "text_2"),
    licence="The licences of a record are those of its two documents, which are found by `sentence_id_1` and "
    "`sentence_id_2` in the mentions dataset that this one was made from.",
    filters={
        "same_sentence": "a pair of mentions in one sentence, or in two of the same words",
        "same_entity": "a pair by surface of two mentions of one entity: it is a pair by entity",
        "near_copy": "a pair of sentences that share nearly all words (--near-copies)",
        "crosses_splits": "a pair by surface whose entities belong to different splits (--validation-rate)",
    },
)

MASKED_KIND = replace(
    KIND,
    schema=MASKED_MENTION_PAIRS,
    about="Pairs of mentions masked in their sentences, of one entity or surface, in random order.",
    checks=lambda manifest: (*_checks(manifest), _Masks(manifest)),
    options={"validation_rate": float, "mask_token": str, "masks": str},
    tasks=("sentence-similarity", "feature-extraction", "fill-mask"),
)
