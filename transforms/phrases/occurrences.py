"""Occurrences of phrases in a shard of sentences, found for all its constituents at once with NumPy.

It is fast because of one array: the normalised text of the shard, each token in its normalised form, with one space
where the text has white space. A phrase is a slice of it, and a polynomial hash over prefix sums gives the hash of
any slice in a few operations. So a string is made for each distinct phrase only, not for each occurrence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.terms import PHRASE_LABELS
from transforms.arrays import (
    I64,
    U8,
    U64,
    Bools,
    character_starts,
    next_not,
    offsets_of,
    previous_not,
    run_begins,
    single,
    slice_hashes,
    slice_strings,
    string_bytes,
)
from transforms.phrases.lexicon import (
    ADJECTIVE_TAGS,
    ADVERB_TAGS,
    AFTER_DO,
    AFTER_HAVE,
    HEAD_TAGS,
    MODAL_TAGS,
    NAME_TAGS,
    NOUN_TAGS,
)
from transforms.phrases.normalise import Class, classes, function_classes, normalise_token
from transforms.phrases.options import PhraseRules

SENTENCE_COLUMNS = (
    "doc_id",
    "start_char",
    "text",
    "tokens.list.element.start_char",
    "tokens.list.element.end_char",
    "tokens.list.element.tag",
    "constituents",
)
"""The columns of a sentences shard that this module reads."""


class Tokens(NamedTuple):
    """The tokens of a shard of sentences as flat arrays, n tokens in s sentences.

    `buffer` is the normalised text in UTF-8; token t is `buffer[byte_start[t]:byte_end[t]]`.
    """

    buffer: U8
    byte_start: I64  # [n]
    byte_end: I64  # [n]
    start_char: I64  # [n] in the document's text
    end_char: I64  # [n]
    first: I64  # [s + 1] the first token of each sentence
    document: I64  # [s] number of the sentence's document, in order of the shard
    doc_ids: pa.StringArray  # [documents]
    form: I64  # [n] number of the token in `words`
    words: list[str]  # the different tokens as the text has them
    forms: list[str]  # their normalised forms

    def of_forms(self, value: Callable[[str], int]) -> npt.NDArray[np.int32]:
        """[n] a value of each token's normalised form."""
        return np.fromiter(map(value, self.forms), np.int32, len(self.forms))[self.form]


class Occurrences(NamedTuple):
    """The k occurrences of phrases in a shard, in order of the text."""

    start: I64  # [k] first token, counted in the shard
    end: I64  # [k] token after the last
    sentence: I64  # [k] number of the sentence
    label: npt.NDArray[np.int8]  # [k] place in PHRASE_LABELS
    hash_hi: U64  # [k] hash of the phrase's bytes (see `slice_hashes`)
    hash_lo: U64  # [k]
    read: int  # constituents of the wanted labels
    filtered: dict[str, int]  # how many of them are no occurrence, by reason


def read_tokens(sentences: pa.Table, *, lowercase: bool) -> Tokens:
    """Flatten a shard of sentences (the columns SENTENCE_COLUMNS) and normalise its tokens."""
    sentences = sentences.combine_chunks()
    doc = pc.dictionary_encode(single(sentences, "doc_id"))
    tokens = single(sentences, "tokens")
    first = offsets_of(tokens)
    flat = tokens.flatten()
    start_char = flat.field("start_char").to_numpy().astype(np.int64)
    end_char = flat.field("end_char").to_numpy().astype(np.int64)
    raw = _slices(single(sentences, "text"), single(sentences, "start_char"), first, start_char, end_char)
    encoded = raw.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    forms = [normalise_token(word, lowercase=lowercase) for word in words]
    form = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    spaced = np.ones(len(form), dtype=bool)
    spaced[1:] = start_char[1:] > end_char[:-1]
    spaced[first[:-1][np.diff(first) > 0]] = True
    pieces = pa.array([*forms, *(" " + each for each in forms)], pa.string())
    joined = pieces.take(pa.array(form + spaced * len(forms)))
    buffer, edges = string_bytes(joined)
    return Tokens(
        buffer=buffer,
        byte_start=edges[:-1] + spaced,
        byte_end=edges[1:],
        start_char=start_char,
        end_char=end_char,
        first=first,
        document=doc.indices.to_numpy().astype(np.int64),
        doc_ids=doc.dictionary,
        form=form,
        words=words,
        forms=forms,
    )


def find_occurrences(sentences: pa.Table, tokens: Tokens, rules: PhraseRules) -> Occurrences:
    """All occurrences of phrases among the constituents of a shard, by the steps of `transforms/phrases/normalise.py`.

    Each step is done for all constituents at once. Take the NP [0, 5) of the tokens ( the old man ) . as an example.
    The next token that is neither punctuation nor a determiner is 2 2 2 3 6 6 (`next_not`), the previous one that is
    not punctuation -1 1 2 3 3 3 (`previous_not`). The phrase begins at next_not[0] = 2 and ends at previous_not[4] + 1
    = 4: "old man".
    """
    sentences = sentences.combine_chunks()
    words = _Words(sentences, tokens)
    tree = _Tree(sentences, tokens)
    found = _Candidates(tree, rules)
    found.keep(found.without(words.are(Class.UNKNOWN)), "unknown_token")
    # Constituents of punctuation only, or of the end of a word, are left out whatever the options are.
    found.keep(~found.only(words.are(Class.PUNCTUATION)), "punctuation")
    found.keep(~found.only(words.are(Class.PUNCTUATION | Class.CLITIC)), "function_words")
    if rules.drop_auxiliaries:
        found.keep(~found.led_by_auxiliary(words), "auxiliary")
    whole_start, whole_end = found.start, found.end
    found.trim(words, rules)
    if rules.strip_punctuation:
        pairs = _Pairs(words, tokens)
        found.start, found.end = pairs.mend(found.start, found.end, whole_start, whole_end)
        found.keep(pairs.complete(found.start, found.end), "unbalanced")
    pronoun = words.are(Class.PRONOUN | Class.DETERMINER | Class.PUNCTUATION)
    if rules.drop_pronouns:
        found.keep(~found.only(pronoun), "pronoun")
    if rules.drop_numbers:
        found.keep(~found.only(words.are(Class.PUNCTUATION | Class.NUMBER)), "number")
    count = words.function | words.are(Class.PUNCTUATION | Class.NUMBER | Class.ORDINAL)
    quantity = count | words.are(Class.UNIT | Class.DATE)
    if rules.drop_dates:
        date = words.are(Class.DATE) & ~words.function
        bare = found.only(quantity) & ~found.without(words.are(Class.NUMERAL | Class.ORDINAL))
        found.keep(~bare | found.without(date), "date")
    if rules.drop_measures:
        bare = found.only(quantity) & ~found.without(words.are(Class.NUMERAL))
        found.keep(~bare | found.without(words.are(Class.UNIT)), "measure")
    if rules.drop_function_words:
        empty = found.only(count)
        # Lone pronouns and numbers that are still here are wanted.
        if not rules.drop_pronouns:
            empty &= ~found.only(pronoun)
        if not rules.drop_numbers:
            empty &= ~found.only(words.are(Class.PUNCTUATION | Class.NUMBER))
        found.keep(~empty, "function_words")
    short = found.only(count | (words.letters < rules.min_letters)) & ~found.only(count)
    found.keep(~short, "too_short")
    found.keep(found.end - found.start <= rules.max_tokens, "too_long")
    if rules.drop_clauses:
        found.keep(~tree.holds_clause()[found.row], "clause")
    if rules.nested != "all":
        found.keep_one_of_chain(tree.chains(words), words, outermost=rules.nested == "outermost")
    found.keep_one_label()
    hi, lo = slice_hashes(tokens.buffer, tokens.byte_start[found.start], tokens.byte_end[found.end - 1])
    return Occurrences(
        found.start, found.end, tree.sentence[found.row], found.label, hi, lo, found.read, found.filtered
    )


class _Words:
    """What the n tokens are, by their forms and tags."""

    def __init__(self, sentences: pa.Table, tokens: Tokens) -> None:
        tag = single(sentences, "tokens").flatten().field("tag").dictionary_encode()
        self._names: list[str] = tag.dictionary.to_pylist()
        self._tag = tag.indices.to_numpy(zero_copy_only=False)
        self._classes = tokens.of_forms(classes)
        self.letters = self._classes // Class.LETTERS
        self.function = (self._classes & self.of_tags(function_classes)) != 0

    def are(self, classes: int) -> Bools:
        """[n] which tokens are of one of these classes."""
        return (self._classes & classes) != 0

    def tagged(self, tags: frozenset[str]) -> Bools:
        """[n] which tokens have one of these tags."""
        return self.of_tags(lambda tag: tag in tags) != 0

    def of_tags(self, value: Callable[[str], int]) -> npt.NDArray[np.int32]:
        """[n] a value of each token's tag."""
        return np.array([value(name) for name in self._names], np.int32)[self._tag]


class _Tree:
    """The n constituents of a shard as trees, each after those around it."""

    def __init__(self, sentences: pa.Table, tokens: Tokens) -> None:
        constituents = single(sentences, "constituents")
        self.sentence = np.repeat(np.arange(len(constituents)), np.diff(offsets_of(constituents)))
        flat = constituents.flatten()
        first = tokens.first[self.sentence]
        names = pa.array((*PHRASE_LABELS, *_CLAUSES))
        self.label = pc.index_in(flat.field("label"), names).fill_null(-1).to_numpy().astype(np.int8)
        self.start = flat.field("start_token").to_numpy().astype(np.int64) + first
        self.end = flat.field("end_token").to_numpy().astype(np.int64) + first

    def holds_clause(self) -> Bools:
        """[n] which constituents have a clause inside. What is in a constituent comes next, until it ends."""
        clauses = np.concatenate(([0], np.cumsum(self.label >= len(PHRASE_LABELS))))
        after = np.searchsorted(self.start, self.end)
        return clauses[after] > clauses[1:]

    def chains(self, words: _Words) -> I64:
        """[n] the outermost constituent with the same head as each.

        A constituent has the head of its first child with its own label, unless a head of its own is beside its
        children (HEAD_TAGS), or a conjunction.
        """
        n = len(self.start)
        parent = self._parents()
        # For each label, how many tokens before a place can be its head or are a conjunction.
        heads = np.zeros((len(PHRASE_LABELS) + 1, len(words.function) + 1), dtype=np.int32)
        auxiliary = words.are(Class.AUXILIARY) | words.tagged(MODAL_TAGS)
        for row, name in enumerate(PHRASE_LABELS):
            head = words.tagged(HEAD_TAGS[name] | {"CC"})
            np.cumsum(head & ~auxiliary if name == "VP" else head, out=heads[row, 1:])
        label = np.where(self.label < len(PHRASE_LABELS), self.label, -1)  # the last row is empty
        own = heads[label, self.end] - heads[label, self.start]
        child = np.flatnonzero(parent >= 0)
        above = parent[child]
        inside = heads[label[above], self.end[child]] - heads[label[above], self.start[child]]
        own = own - np.bincount(above, inside, minlength=n).astype(np.int64)
        linked = child[(label[child] == label[above]) & (own[above] == 0)]
        top = np.arange(n)
        above, first = np.unique(parent[linked], return_index=True)
        top[linked[first]] = above
        while not np.array_equal(higher := top[top], top):
            top = higher
        return top

    def _parents(self) -> I64:
        """[n] the constituent around each, -1 where there is none: the last one before it that is one less deep."""
        n = len(self.start)
        place = np.arange(n)
        # As many are around one as began before it and have not ended.
        ended = np.cumsum(np.bincount(self.end, minlength=int(self.end.max(initial=0)) + 1))
        depth = place - ended[self.start]
        order = np.argsort(depth.astype(np.int16), kind="stable")
        keys = depth[order] * (n + 1) + order
        parent = np.full(n, -1)
        before = np.searchsorted(keys, keys - (n + 1)) - 1
        parent[order] = np.where(depth[order] > 0, order[before], -1)
        return parent


_CLAUSES = ("S", "SBAR", "SINV", "SQ", "SBARQ")
_NP, _VP = PHRASE_LABELS.index("NP"), PHRASE_LABELS.index("VP")


class _Candidates:
    """The constituents of the wanted labels that may still become occurrences, as the arrays of `Occurrences`."""

    def __init__(self, tree: _Tree, rules: PhraseRules) -> None:
        self.row = np.flatnonzero(np.isin(tree.label, [PHRASE_LABELS.index(each) for each in rules.labels]))
        self.label, self.start, self.end = tree.label[self.row], tree.start[self.row], tree.end[self.row]
        self.read = len(self.row)
        self.filtered: dict[str, int] = {}

    def without(self, flags: Bools) -> Bools:
        """Which candidates have no token with the flag."""
        before = np.zeros(len(flags) + 1, dtype=np.int32)
        np.cumsum(flags, out=before[1:])
        return before[self.start] == before[self.end]

    def only(self, flags: Bools) -> Bools:
        """Which candidates have only tokens with the flag."""
        return self.without(~flags)

    def keep(self, kept: Bools, reason: str) -> None:
        """Keep these candidates; the others are filtered for a reason."""
        dropped = len(kept) - int(np.count_nonzero(kept))
        if dropped:
            self.filtered[reason] = self.filtered.get(reason, 0) + dropped
            self._take(kept)

    def led_by_auxiliary(self, words: _Words) -> Bools:
        """Which candidates are verb phrases led by an auxiliary, a modal or "to"; adverbs may stand before it.

        "have" and "do" are auxiliaries where the next word, past adverbs, is the verb of the phrase.
        """
        led = self.label == _VP
        n = len(words.function)
        past_adverbs = np.append(next_not(words.are(Class.PUNCTUATION) | words.tagged(ADVERB_TAGS)), (n, n))
        first, end = past_adverbs[self.start[led]], self.end[led]
        second = past_adverbs[first + 1]
        auxiliary = words.tagged(MODAL_TAGS) | (words.are(Class.AUXILIARY) & ~words.tagged(NOUN_TAGS))
        have, do = words.are(Class.HAVE), words.are(Class.DO)
        found = _at(auxiliary & ~have & ~do, first, end)
        for verb, tags in ((have, AFTER_HAVE), (do, AFTER_DO)):
            found |= _at(verb, first, end) & _at(words.tagged(tags), second, end)
        led[led] = found
        return led

    def trim(self, words: _Words, rules: PhraseRules) -> None:
        """Remove tokens from both ends."""
        outer = words.are(Class.PUNCTUATION * rules.strip_punctuation)
        trailing = outer | words.are(Class.POSSESSIVE * rules.strip_possessives)
        leading = outer | words.are(Class.CLITIC)
        determiner = words.are(Class.DETERMINER * rules.strip_determiners)
        whole = self.start
        self.end = previous_not(trailing)[self.end - 1] + 1
        start = next_not(leading | determiner)[whole]
        # A determiner alone stands for a noun: "this".
        self.start = np.where(start < self.end, start, next_not(leading)[whole])
        # "a few" and "a little" are the opposite of "few" and "little"; but "a little girl" is a little girl.
        article = (self.start > whole) & words.are(Class.ARTICLE)[self.start - 1]
        noun = words.tagged(NOUN_TAGS | ADJECTIVE_TAGS - {"JJR"})
        small = (self.label == _NP) & _at(noun, self.start + 1, self.end)
        few, little = words.are(Class.FEW)[self.start], words.are(Class.LITTLE)[self.start]
        self.start = self.start - (article & (few | (little & ~small)))

    def keep_one_of_chain(self, chain: I64, words: _Words, *, outermost: bool) -> None:
        """Keep one of the candidates with the same head: the outermost, or the base (the innermost, or a whole name).

        Of the rows 4 6 7 of a chain of 10 constituents, the values are -4 -6 -7 where the outermost is wanted, and
        otherwise 4 6 7, but 16 14 13 if all three are names: the highest value stays.
        """
        n = len(chain)
        name = self.only(words.function | words.are(Class.PUNCTUATION) | words.tagged(NAME_TAGS))
        value = -self.row if outermost else np.where(name, 2 * n - self.row, self.row)
        best = np.full(n, -n)
        np.maximum.at(best, chain[self.row], value)
        self.keep(best[chain[self.row]] == value, "nested")

    def keep_one_label(self) -> None:
        """Keep the first label of candidates over the same words, and put them in order of the text."""
        words = (self.start << 16) + self.end - self.start
        order = np.argsort(words * len(PHRASE_LABELS) + self.label, kind="stable")
        self._take(order)
        self.keep(run_begins(words[order]), "same_words")

    def _take(self, rows: I64 | Bools) -> None:
        self.row, self.label = self.row[rows], self.label[rows]
        self.start, self.end = self.start[rows], self.end[rows]


def _at(flags: Bools, place: I64, end: I64) -> Bools:
    """Whether the flags are set at places, where these are before an end."""
    found = np.zeros(len(place), dtype=bool)
    inside = place < end
    found[inside] = flags[place[inside]]
    return found


class _Pairs:
    """Brackets and double quotes, which a phrase may hold in pairs only."""

    def __init__(self, words: _Words, tokens: Tokens) -> None:
        # Few tokens have one: only those are looked at.
        place = np.flatnonzero(words.are(Class.PAIRED))
        paired, form = np.unique(tokens.form[place], return_inverse=True)
        forms = [tokens.forms[number] for number in paired.tolist()]
        depth = [sum((each in "([{") - (each in ")]}") for each in form) for form in forms]
        quotes = [form.count('"') for form in forms]
        # One more entry, for the token after the last.
        self._depth, self._quotes = np.zeros((2, len(tokens.form) + 1), dtype=np.int64)
        self._depth[place], self._quotes[place] = (np.array(each, np.int64)[form] for each in (depth, quotes))
        self._depths, self._all_quotes = (np.cumsum(each) - each for each in (self._depth, self._quotes))

    def _open(self, start: I64, end: I64) -> tuple[I64, Bools]:
        """How many more brackets open than close in each span, and whether it has an odd number of quotes."""
        depth = self._depths[end] - self._depths[start]
        return depth, (self._all_quotes[end] - self._all_quotes[start]) % 2 == 1

    def complete(self, start: I64, end: I64) -> Bools:
        depth, odd = self._open(start, end)
        return (depth == 0) & ~odd

    def mend(self, start: I64, end: I64, first: I64, last: I64) -> tuple[I64, I64]:
        """Add the bracket or quote next to a span, within [first, last), whose other half is inside.

        "acid (h2so4" becomes "acid (h2so4)": one more bracket opens than closes, and the next token closes one.
        """
        depth, odd = self._open(start, end)
        closes = (end < last) & (((depth > 0) & (self._depth[end] < 0)) | (odd & (self._quotes[end] == 1)))
        end = end + closes
        depth, odd = self._open(start, end)
        before = np.maximum(start - 1, 0)
        opens = ((depth < 0) & (self._depth[before] > 0)) | (odd & (self._quotes[before] == 1))
        return start - ((start > first) & opens), end


def _slices(text: pa.Array, text_start: pa.Array, first: I64, start_char: I64, end_char: I64) -> pa.StringArray:
    """The tokens as strings; their offsets are characters of the document."""
    data, edges = string_bytes(text)
    begins = character_starts(data)
    # From characters of the document to characters of all sentences of the shard, one after the other.
    character = np.searchsorted(begins, edges[:-1])
    shift = np.repeat(character - text_start.to_numpy().astype(np.int64), np.diff(first))
    return slice_strings(data, begins[start_char + shift], begins[end_char + shift])
