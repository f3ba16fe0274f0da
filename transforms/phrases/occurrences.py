"""Occurrences of phrases in a shard of sentences, found for all its constituents at once with NumPy.

It is fast because of one array: the normalised text of the shard, each token in its normalised form, with one space
where the text has white space. A phrase is a slice of it, and a polynomial hash over prefix sums gives the hash of
any slice in a few operations. So a string is made for each distinct phrase only, not for each occurrence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.terms import PHRASE_LABELS
from transforms.arrays import I64, U64, Bools, next_not, previous_not, run_begins, slice_hashes
from transforms.phrases.lexicon import (
    ADJECTIVE_TAGS,
    ADVERB_TAGS,
    AFTER_DO,
    AFTER_HAVE,
    MODAL_TAGS,
    NAME_TAGS,
    NOUN_TAGS,
)
from transforms.phrases.normalise import Class
from transforms.phrases.options import PhraseRules
from transforms.phrases.tokens import Tokens
from transforms.phrases.trees import NP, VP, Tree, Words


class Occurrences(NamedTuple):
    """The k occurrences of phrases in a shard, in order of the text."""

    start: I64  # [k] first token, counted in the shard
    end: I64  # [k] token after the last
    sentence: I64  # [k] number of the sentence
    label: npt.NDArray[np.int8]  # [k] place in PHRASE_LABELS
    hash_hi: U64  # [k] hash of the phrase's bytes (see `slice_hashes`)
    hash_lo: U64  # [k]
    constituent: I64  # [k] number of the constituent in the shard
    read: int  # constituents of the wanted labels
    filtered: dict[str, int]  # how many of them are no occurrence, by reason


def find_occurrences(sentences: pa.Table, tokens: Tokens, rules: PhraseRules) -> Occurrences:
    """All occurrences of phrases among the constituents of a shard, by the steps of `transforms/phrases/normalise.py`.

    Each step is done for all constituents at once. Take the NP [0, 5) of the tokens ( the old man ) . as an example.
    The next token that is neither punctuation nor a determiner is 2 2 2 3 6 6 (`next_not`), the previous one that is
    not punctuation -1 1 2 3 3 3 (`previous_not`). The phrase begins at next_not[0] = 2 and ends at previous_not[4] + 1
    = 4: "old man".
    """
    sentences = sentences.combine_chunks()
    words = Words(sentences, tokens)
    tree = Tree(sentences, tokens)
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
        empty = found.only(count if rules.drop_numbers else words.function | words.are(Class.PUNCTUATION))
        # Lone pronouns that are still here are wanted.
        if not rules.drop_pronouns:
            empty &= ~found.only(pronoun)
        found.keep(~empty, "function_words")
    short = found.only(count | (words.letters < rules.min_letters)) & ~found.only(count)
    if not rules.drop_numbers:
        short |= found.only(words.letters == 0)  # "$"
    found.keep(~short, "too_short")
    if rules.max_tokens:
        found.keep(found.end - found.start <= rules.max_tokens, "too_long")
    if rules.drop_clauses:
        found.keep(~tree.holds_clause()[found.row], "clause")
    if rules.nested != "all":
        found.keep_one_of_chain(tree.chains(words), words, outermost=rules.nested == "outermost")
    found.keep_one_label()
    hi, lo = slice_hashes(tokens.buffer, tokens.byte_start[found.start], tokens.byte_end[found.end - 1])
    return Occurrences(
        found.start, found.end, tree.sentence[found.row], found.label, hi, lo, found.row, found.read, found.filtered
    )


class _Candidates:
    """The constituents of the wanted labels that may still become occurrences, as the arrays of `Occurrences`."""

    def __init__(self, tree: Tree, rules: PhraseRules) -> None:
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

    def led_by_auxiliary(self, words: Words) -> Bools:
        """Which candidates are verb phrases led by an auxiliary, a modal or "to"; adverbs may stand before it.

        "have" and "do" are auxiliaries where the next word, past adverbs, is the verb of the phrase.
        """
        led = self.label == VP
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

    def trim(self, words: Words, rules: PhraseRules) -> None:
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
        small = (self.label == NP) & _at(noun, self.start + 1, self.end)
        few, little = words.are(Class.FEW)[self.start], words.are(Class.LITTLE)[self.start]
        self.start = self.start - (article & (few | (little & ~small)))

    def keep_one_of_chain(self, chain: I64, words: Words, *, outermost: bool) -> None:
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

    def __init__(self, words: Words, tokens: Tokens) -> None:
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
