"""Augmentations: phrases with misspelt, reordered or reworded forms of them, for contrastive training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.characters import Trait, clusters, tokens, traits
from schemas.checks import Broken, Check, Ordered, Rows, Show, Unique, is_empty, quoted, where
from schemas.columns import column, schema, term
from schemas.json_values import checked
from schemas.keys import draw_key, match_keys
from schemas.kind import Kind
from schemas.manifest import Manifest
from schemas.measures import likeness, value, words
from schemas.shown import Row, Shown, plain_row
from schemas.terms import KEYBOARD

AUGMENTATIONS = schema(
    "Augmentation",
    column("phrase", pa.string(), "the phrase"),
    column("draw", pa.int32(), "the number of the draw, from 0; with the phrase and the seed it decides the row"),
    column("augmented", pa.string(), "the phrase after the operation"),
    term("granularity", "what was changed: character, token, phrase; unchanged where nothing was"),
    term("operation", "how it was changed (docs/augmentation.md)"),
)


class Operation(NamedTuple):
    """An operation of a dataset, and the share of first attempts that choose it."""

    name: str
    granularity: str
    share: float


# ---- Whether a row is what its operation says. Written without the code that makes rows.


def _swapped(one: Sequence[str], other: Sequence[str]) -> tuple[int, int] | None:
    """The two places whose items, which differ, were swapped; None unless that is all that was done."""
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    if len(one) != len(other) or len(places) != 2:
        return None
    first, second = places
    return (first, second) if (one[first], one[second]) == (other[second], other[first]) else None


def _left_out(one: Sequence[str], other: Sequence[str]) -> str | None:
    """The item of the first that the other lacks; None unless that is the only difference."""
    if len(one) != len(other) + 1:
        return None
    place = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))
    return one[place] if one[place + 1 :] == other[place:] else None


def _is_letter(cluster: str) -> bool:
    return bool(traits(cluster[0]) & Trait.LETTER)


def _is_swap(phrase: str, augmented: str) -> bool:
    one = clusters(phrase)
    places = _swapped(one, clusters(augmented))
    return places is not None and places[1] == places[0] + 1 and all(_is_letter(one[place]) for place in places)


def _is_drop(phrase: str, augmented: str) -> bool:
    letter = _left_out(clusters(phrase), clusters(augmented))
    return letter is not None and _is_letter(letter)


def _is_keyboard(phrase: str, augmented: str) -> bool:
    one, other = clusters(phrase), clusters(augmented)
    differ = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    if len(one) != len(other) or len(differ) != 1:
        return False
    typed, wrong = differ[0]
    places = _PLACES.get(typed.lower()), _PLACES.get(wrong.lower())
    if places[0] is None or places[1] is None or typed.isupper() != wrong.isupper():
        return False
    return abs(places[0] - places[1]) < 1.31


_PLACES = {key: complex(x + shift, y) for y, (shift, row) in enumerate(KEYBOARD) for x, key in enumerate(row)}


def _is_token_swap(adjacent: bool) -> Callable[[str, str], bool]:
    def is_swap(phrase: str, augmented: str) -> bool:
        places = _swapped(tokens(phrase), tokens(augmented))  # tokens have even places
        return (
            places is not None
            and not places[0] % 2
            and not places[1] % 2
            and (not adjacent or places[1] == places[0] + 2)
        )

    return is_swap


def verified(options: Mapping[str, Any]) -> dict[str, Callable[[str, str], bool]]:
    """What the phrase and the augmented phrase of a row must be to each other, by operation."""
    return {
        "swap_characters": _is_swap,
        "drop_character": _is_drop,
        "insert_character": lambda phrase, augmented: _is_drop(augmented, phrase),
        "keyboard": _is_keyboard,
        "swap_tokens": _is_token_swap(options.get("swap") != "any"),
        "unchanged": lambda phrase, augmented: phrase == augmented,
    }


def _rules(table: pa.Table, operations: Sequence[Operation], options: Mapping[str, Any]) -> Iterator[Broken]:
    phrase, augmented, operation = (table.column(name) for name in ("phrase", "augmented", "operation"))
    draw = table.column("draw").to_numpy()
    show = _show_row(table)
    yield is_empty(table, "phrase", show)
    yield is_empty(table, "augmented", show)
    untidy = pc.not_equal(augmented, pc.utf8_trim_whitespace(augmented))
    yield Broken("the augmented phrase begins or ends with a blank", where(untidy), show)
    draws = int(options["draws"])
    yield Broken(f"the draw is not from 0 to {draws - 1:,}", where((draw < 0) | (draw >= draws)), show)
    known = {each.name: each.granularity for each in operations}
    named = pa.array(list(known), pa.string())
    place = pc.index_in(operation, named)
    yield Broken(f"operation is not one of {', '.join(known)}", where(pc.is_null(place)), show)
    own = pa.array([*known.values()], pa.string()).take(place.combine_chunks())
    yield Broken(
        "the granularity is not that of the operation", where(pc.not_equal(own, table.column("granularity"))), show
    )
    same = pc.equal(pc.utf8_lower(phrase), pc.utf8_lower(augmented))
    changed = pc.not_equal(operation, "unchanged")
    yield Broken("nothing was changed but case", where(pc.and_(same, changed)), show)
    for name, fits in verified(options).items():
        rows = where(pc.equal(operation, name))
        texts = (each.take(pa.array(rows)).to_pylist() for each in (phrase, augmented))
        wrong = [not fits(one, other) for one, other in zip(*texts, strict=True)]
        yield Broken(f"the augmented phrase is not what one {name} makes of the phrase", rows[where(wrong)], show)


def _show_row(table: pa.Table) -> Show:
    def show(row: int) -> str:
        found = {name: table.column(name)[row].as_py() for name in table.column_names}
        return (
            f"{quoted(found['phrase'])} became {quoted(found['augmented'])} "
            f"({found['granularity']}, {found['operation']}, draw {found['draw']})"
        )

    return show


def range_of(phrases: pa.Array | pa.ChunkedArray, ranges: int) -> list[int]:
    """The shard of each phrase, of so many: by the hash of its `match_keys`, so that its rows are in one shard."""
    digests = map(xxhash.xxh3_128_intdigest, match_keys(phrases).cast(pa.binary()).to_pylist())
    return [digest * ranges >> 128 for digest in digests]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    operations = checked(list[Operation], manifest.options["operations"], "options.operations")
    seed, shards = manifest.seed or 0, len(manifest.shards)

    def keys(table: pa.Table) -> list[tuple[int, bytes]]:
        phrases, draws = (table.column(name).to_pylist() for name in ("phrase", "draw"))
        places = [draw_key(phrase, draw, seed=seed) for phrase, draw in zip(phrases, draws, strict=True)]
        return list(zip(range_of(table.column("phrase"), shards), places, strict=True))

    def draws_of(table: pa.Table) -> list[pa.Array]:
        return [pc.binary_join_element_wise(table.column("phrase"), table.column("draw").cast(pa.string()), "\0")]

    return (
        Unique("the phrase has this draw twice", "phrase", "draw", of=draws_of),
        Rows(lambda table: _rules(table, operations, manifest.options)),
        Ordered("the row is not after the one before it, by the hashes of phrase and draw", keys, _show_row),
    )


def _notes(manifest: Manifest) -> Iterator[str]:
    granularity = {each[0]: each[1] for each in manifest.options.get("operations", [])}
    counts = {name: manifest.counter(f"operation:{name}") for name in granularity}
    made = sum(counts.values())
    if made:
        yield "operations: " + ", ".join(f"{name} {count / made:.1%}" for name, count in counts.items())
    if repeated := manifest.counter("repeated"):
        yield f"augmentations: {repeated:,} are equal to an earlier one of their phrase"
    if none := manifest.counter("nothing:paraphrase"):
        yield f"augmentations: {none:,} draws of a paraphrase for a phrase without one went to other operations"
    if made and "phrase" not in granularity.values():
        yield (
            "augmentations: no paraphrases were given, so their share is spread over the other operations; give a "
            "dataset of aliases with --paraphrases"
        )


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    return plain_row(row, ("phrase", "augmented", "operation", "draw"))


KIND = Kind(
    schema=AUGMENTATIONS,
    rows="augmentations",
    about="Phrases with misspelt, reordered or reworded forms of them.",
    command="augment",
    show=show,
    checks=_checks,
    options={"operations": list[Operation], "draws": int},
    notes=_notes,
    measures=(
        value("Operation", "augmentations", "operation"),
        value("Granularity", "augmentations", "granularity"),
        likeness("How the augmented phrase differs", "augmentations", "phrase", "augmented"),
        words("Length of an augmented phrase", "augmented"),
    ),
    tasks=("sentence-similarity",),
    texts=("phrase", "augmented"),
    filters={"nothing_to_change": "a draw in which no operation has anything to change"},
)
