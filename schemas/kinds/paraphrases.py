"""Paraphrases: phrases in other words, and phrases that differ in one word, in other words, too (Phrase-BERT)."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from schemas.checks import (
    Broken,
    Check,
    Ordered,
    Rows,
    Show,
    Unique,
    Violation,
    hashes,
    is_empty,
    nested,
    quoted,
    showing,
    where,
)
from schemas.columns import column, list_of, schema, term
from schemas.dataset import Dataset
from schemas.kind import Alike, Kind, Source
from schemas.manifest import Manifest
from schemas.measures import Measure, likeness, words
from schemas.shown import Row, Shown, cut

# ---- What a row must be. Written without the code that makes rows.


@lru_cache(1 << 12)
def _word(banned: str) -> re.Pattern[str]:
    """Finds a word: with no letter and no digit next to it."""
    return re.compile(rf"(?<![^\W_]){re.escape(_folded(banned))}(?![^\W_])")


def _folded(text: str) -> str:
    """A text without case and accents."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in parts if not unicodedata.combining(each))


def holding(text: str, banned: Sequence[str]) -> list[str]:
    """The banned words that a text holds, in any case.

    >>> holding("Runaway kings'", ["run", "king", "kings"])
    ['kings']
    """
    folded = _folded(text)
    return [each for each in banned if _word(each).search(folded)]


def replaced(phrase: str, corrupted: str) -> tuple[str, str] | None:
    """The part of each text between blanks in which they differ, if there is one only.

    >>> replaced("the old king", "the old ferry"), replaced("the old king", "a new king")
    (('king', 'ferry'), None)
    """
    one, other = phrase.split(" "), corrupted.split(" ")
    differ = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    return differ[0] if len(one) == len(other) and len(differ) == 1 else None


def is_one_word_off(table: pa.Table) -> Broken:
    phrases, corrupted = (table.column(name).to_pylist() for name in ("phrase", "corrupted"))
    return Broken(
        "corrupted does not differ from the phrase in one word",
        where([replaced(*pair) is None for pair in zip(phrases, corrupted, strict=True)]),
        lambda row: f"{quoted(phrases[row])}: {quoted(corrupted[row])}",
    )


SIDES = {"positive": ("phrase", "banned"), "negative": ("corrupted", "corrupted_banned")}
"""The two paraphrases of a row, each with the column that it paraphrases and that of the words that it may not hold."""

_SCORES = {
    "score": "the score that chose it among the candidates (--score)",
    "similarity": "the cosine of its embedding and that of what it paraphrases",
    "content_similarity": "the same of the words of content alone",
    "fluency": "natural log of its probability by itself, less that of what it paraphrases",
    "log_probability": "natural log of its probability under the generator, given what it paraphrases",
}


def _measured(name: str, meaning: str) -> pa.Field:
    return pa.field(name, pa.float32(), metadata={"description": f"{meaning}; null: not measured"})


SCORES = pa.struct(
    [_measured(f"{side}_{name}", f"{side}: {meaning}") for side in SIDES for name, meaning in _SCORES.items()]
    + [_measured("apart", "the cosine of the embeddings of phrase and negative; no filter reads it")]
)

PARAPHRASES = schema(
    "Paraphrase",
    column("phrase", pa.string(), "the phrase, p"),
    column("positive", pa.string(), "a paraphrase of the phrase without its words of content, p+"),
    column("corrupted", pa.string(), "the phrase with one word of content replaced by a random one"),
    column("negative", pa.string(), "a paraphrase of the corrupted phrase without its words of content, p-"),
    column("banned", list_of(pa.string()), "words that the positive may not hold"),
    column("corrupted_banned", list_of(pa.string()), "words that the negative may not hold"),
    column("scores", SCORES, "measures of both paraphrases"),
    term("generator", "the generator and its model"),
    column("checks", list_of(pa.string()), "what both paraphrases were checked for"),
)


def _score(table: pa.Table, name: str) -> np.ndarray:
    """[n] a score; NaN where it was not measured."""
    found = pc.struct_field(table.column("scores").combine_chunks(), name)
    return np.asarray(pc.fill_null(found, np.nan).to_numpy(zero_copy_only=False), np.float32)


def _rules(table: pa.Table, options: Mapping[str, Any]) -> Iterator[Broken]:
    for name in ("phrase", "positive", "corrupted", "negative"):
        yield is_empty(table, name, showing(table.column("phrase")))
    yield is_one_word_off(table)
    least, most = (np.float32(options[name]) for name in ("min_similarity", "max_similarity"))
    for side, (of, banned) in SIDES.items():
        texts, sources, lists = (table.column(name).to_pylist() for name in (side, of, banned))
        held = [holding(*pair) for pair in zip(texts, lists, strict=True)]
        yield Broken(f"the {side} holds a banned word", where([*map(bool, held)]), _show(table, side, held))
        same = [_folded(text) == _folded(source) for text, source in zip(texts, sources, strict=True)]
        yield Broken(f"the {side} is what it paraphrases", where(same), _show(table, side, texts))
        similarity = _score(table, f"{side}_similarity")
        outside = (similarity < least) | (similarity > most)
        rule = f"the similarity of the {side} is not from {least:g} to {most:g}"
        yield Broken(rule, where(outside), _show(table, side, similarity))
    for name in ("positive_similarity", "negative_similarity", "apart"):
        value = _score(table, name)
        yield Broken(f"{name} is not from -1 to 1", where(np.abs(value) > 1), _show(table, "negative", value))


def _show(table: pa.Table, side: str, more: Any) -> Show:
    def show(row: int) -> str:
        own, text = (quoted(table.column(name)[row].as_py()) for name in (SIDES[side][0], side))
        return f"{own}: {text}, {quoted(more[row])}"

    return show


def keys(table: pa.Table) -> list[bytes]:
    return [xxhash.xxh3_128_digest(each) for each in table.column("phrase").cast(pa.binary()).to_pylist()]


def _checks(manifest: Manifest) -> tuple[Check, ...]:
    return (
        Unique("the phrase is not unique", "phrase"),
        Rows(lambda table: _rules(table, manifest.options)),
        Ordered(
            "the phrase is not after the one before it, by hash", keys, lambda table: showing(table.column("phrase"))
        ),
    )


def _identities(table: pa.Table, side: str, column: str) -> tuple[np.ndarray, pa.Array]:
    """[m], [m] the row of each text of a column of texts or of lists of candidates, and a hash of what its row says."""
    own = [table.column(name).to_pylist() for name in ("phrase", "corrupted", SIDES[side][1])]
    texts = table.column(column).combine_chunks()
    owner = np.arange(len(texts))
    if pa.types.is_list(texts.type):
        owner, _, (texts,) = nested(texts, ["text"])
    rows = ["\0".join([one, other, *banned]) for one, other, banned in zip(*own, strict=True)]
    return owner, hashes(
        pa.array([f"{rows[row]}\0\0{text}" for row, text in zip(owner, texts.to_pylist(), strict=True)])
    )


def _check_source(dataset: Dataset, candidates: Dataset) -> Iterator[Violation]:
    """Both paraphrases of a row are among the candidates of its phrase. It compares hashes."""
    for side in SIDES:
        columns = ["phrase", "corrupted", SIDES[side][1]]
        tables = candidates.tables(columns=[*columns, f"{side}s"])
        known = np.unique(np.concatenate([_identities(table, side, f"{side}s")[1] for table in tables]))
        for shard in dataset.shards():
            for group in dataset.row_groups(shard, columns=[*columns, side]):
                wrong = np.flatnonzero(~np.isin(_identities(group.table, side, side)[1], known))
                if len(wrong):
                    text = quoted(group.table.column(side)[int(wrong[0])].as_py())
                    rule = f"the {side} is not among the candidates of such a row"
                    yield Violation(shard, rule, group.first_row + wrong, text)


def _notes(manifest: Manifest) -> Iterator[str]:
    if not manifest.has("choose_paraphrases"):
        return
    ledger = manifest.ledger("choose_paraphrases")
    yield f"paraphrases: of {manifest.rows:,} of {ledger.read:,} phrases, {manifest.rows / max(ledger.read, 1):.0%}"
    for side in SIDES:
        found = Counter({each: manifest.counter(f"{side}:{each}") for each in REASONS})
        read = manifest.counter(f"{side}:candidates")
        if read:
            said = ", ".join(f"{name} {n / read:.0%}" for name, n in found.most_common(5) if n)
            yield f"{side}s: of {read:,} candidates, {said or 'none is filtered'}"
    nearer, measured = (manifest.counter(name) for name in ("nearer", "measured"))
    if measured:
        yield f"the positive is nearer to the phrase than the negative in {nearer / measured:.1%} of the rows"


def show(row: Row, options: Mapping[str, Any]) -> Shown:
    names = ("positive", "corrupted", "negative")
    return Shown(cut(row["phrase"]), "phrase", remarks=tuple((name, cut(row[name])) for name in names))


def _distribution(title: str, unit: str, name: str) -> Measure:
    def values(table: pa.Table) -> pa.Array:
        found = _score(table, name)
        return pa.array(found[~np.isnan(found)])

    return Measure(title, unit, ("scores",), values)


def _length_ratio(table: pa.Table) -> pa.Array:
    own, other = (pc.utf8_length(table.column(name)).to_numpy() for name in ("phrase", "positive"))
    return pa.array(other / np.maximum(own, 1))


REASONS = {
    "no_draw": "every draw holds a banned word or comes to no end (--attempts)",
    "empty": "it has no word",
    "duplicate": "it has the words of an earlier one",
    "no_content": "it has too few words of content (--min-content)",
    "punctuation": "it has a mark that what it paraphrases lacks (--allow-punctuation)",
    "near_copy": "its words are too much alike in letters (--max-edit-similarity)",
    "length": "it is too long or too short (--max-length-ratio)",
    "unknown_word": "it has a word that is not known (--min-known-words)",
    "number": "it has other numbers (--allow-other-numbers)",
    "name": "it lacks a name (--allow-other-names)",
    "denial": "one of both denies what the other says (--contrasts)",
    "contrast": "it has a word of contrary meaning, or one beside that of the phrase (--contrasts)",
    "repeated": "of a negative, it has only words of the phrase and its positive (--contrasts)",
    "other_form": "it has another part of speech, number, tense or degree, or the wrong article (--allow-other-forms)",
    "near_word": "one of its words is too much alike another word in letters (--max-word-similarity)",
    "rare_word": "it has a rare word (--min-commonness)",
    "drift": "its embedding is too far from that of what it paraphrases (--min-similarity)",
    "content_drift": "the embedding of its words of content is too far (--min-content-similarity)",
    "copy": "its embedding is too near to that of what it paraphrases (--max-similarity)",
    "not_fluent": "it is much less likely than what it paraphrases (--max-loss)",
    "not_adequate": "a classifier says that it means something else (--min-adequacy)",
    "ill_formed": "a classifier says that it is no good English (--min-fluency)",
    "low_score": "its score is too low (--min-score)",
}
"""Why a candidate is refused; of a phrase without one that is left, why the one is that passed most filters."""

KIND = Kind(
    schema=PARAPHRASES,
    rows="paraphrases",
    about="Phrases with a paraphrase of other words, and one of the phrase with a word replaced.",
    command="paraphrase",
    show=show,
    source=Source("ParaphraseCandidates", "candidates", _check_source),
    checks=_checks,
    options={"min_similarity": float, "max_similarity": float},
    notes=_notes,
    measures=(
        words("Length of a phrase", "phrase"),
        words("Length of a positive", "positive"),
        Measure("Length of the positive", "times the phrase's characters", ("phrase", "positive"), _length_ratio),
        _distribution("Similarity of phrase and positive", "cosine", "positive_similarity"),
        _distribution("Similarity of corrupted phrase and negative", "cosine", "negative_similarity"),
        _distribution("Similarity of phrase and negative", "cosine", "apart"),
        _distribution("Score of the positive", "score", "positive_score"),
        likeness("How the positive differs", "rows", "phrase", "positive"),
    ),
    views={"triplets": ("phrase", "positive", "negative")},
    tasks=("sentence-similarity", "text2text-generation"),
    alike=Alike("phrase", "positive"),
    texts=("phrase", "positive", "corrupted", "negative"),
    parsed=True,
    filters={
        f"{side}_{reason}": f"a phrase without a {side} that is left; of the best one, {meaning}"
        for side in SIDES
        for reason, meaning in REASONS.items()
    },
)
