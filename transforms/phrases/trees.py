"""What the tokens of a shard of sentences are, and its constituents as trees, as flat arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.terms import PHRASE_LABELS
from transforms.arrays import I64, Bools, offsets_of, single
from transforms.phrases.lexicon import HEAD_TAGS, MODAL_TAGS
from transforms.phrases.normalise import Class, classes, function_classes
from transforms.phrases.tokens import Tokens

NP, VP, PP = (PHRASE_LABELS.index(label) for label in ("NP", "VP", "PP"))
_CLAUSES = ("S", "SBAR", "SINV", "SQ", "SBARQ")


class Words:
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


class Tree:
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

    def chains(self, words: Words) -> I64:
        """[n] the outermost constituent with the same head as each.

        A constituent has the head of its first child with its own label, unless a head of its own is beside its
        children (HEAD_TAGS), or a conjunction.
        """
        n = len(self.start)
        parent = self._parent
        # For each label, how many tokens before a place can be its head or are a conjunction.
        heads = np.zeros((len(PHRASE_LABELS) + 1, len(words.function) + 1), dtype=np.int32)
        auxiliary = words.are(Class.AUXILIARY) | words.tagged(MODAL_TAGS)
        for row, name in enumerate(PHRASE_LABELS):
            head = words.tagged(HEAD_TAGS[name] | _CONJUNCTIONS)
            np.cumsum(head & ~auxiliary if name == "VP" else head, out=heads[row, 1:])
        label = np.where(self.label < len(PHRASE_LABELS), self.label, -1)  # the last row is empty
        own = heads[label, self.end] - heads[label, self.start]
        child = np.flatnonzero(parent >= 0)
        above = parent[child]
        inside = heads[label[above], self.end[child]] - heads[label[above], self.start[child]]
        own = own - np.bincount(above, inside, minlength=n).astype(np.int64)
        linked = child[(label[child] == label[above]) & (own[above] == 0)]
        up = np.full(n, -1)
        above, first = np.unique(parent[linked], return_index=True)
        up[linked[first]] = above
        return _last_of_chains(up)

    @functools.cached_property
    def _parent(self) -> I64:
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

    def heads(self, words: Words) -> I64:
        """[n] the token that is the head of each constituent, -1 where there is none, as in a coordination.

        It is the last word directly in the constituent that can be the head of its label (HEAD_TAGS), or the head of
        the first child with its label. A number is no head: "one of the windows" has none.
        """
        around, token = self._words_in_constituents(words)
        can_be_head = np.zeros((len(PHRASE_LABELS) + 1, len(words.function)), dtype=bool)
        for row, name in enumerate(PHRASE_LABELS):
            can_be_head[row] = words.tagged(HEAD_TAGS[name])
        label = np.where(self.label < len(PHRASE_LABELS), self.label, -1)  # the last row is empty
        head = np.full(len(self.start), -1)
        kept = can_be_head[label[around], token]
        np.maximum.at(head, around[kept], token[kept])
        head[joined := self._joined(words)] = -1
        child = np.flatnonzero(self._parent >= 0)
        like = _first(self._parent, child[self.label[child] == self.label[self._parent[child]]])
        return head[_last_of_chains(np.where((head >= 0) | joined, -1, like))]

    def objects(self, words: Words) -> I64:
        """[n] of a PP the first NP in it, or in the first PP in it; of a coordination or another label itself."""
        inside = np.flatnonzero((self._parent >= 0) & np.isin(self.label, (NP, PP)))
        first = _first(self._parent, inside[self.label[self._parent[inside]] == PP])
        return _last_of_chains(np.where(self._joined(words), -1, first))

    def _joined(self, words: Words) -> Bools:
        """[n] which constituents have a conjunction directly in them."""
        around, token = self._words_in_constituents(words)
        joined = np.zeros(len(self.start), dtype=bool)
        joined[around[words.tagged(_CONJUNCTIONS)[token]]] = True
        return joined

    def _words_in_constituents(self, words: Words) -> tuple[I64, I64]:
        """The tokens that are in a constituent, and the innermost one around each.

        That is the last one that begins at the token or before it, or the first around that which ends after it.
        """
        around = np.searchsorted(self.start, np.arange(len(words.function)), side="right") - 1
        left = np.flatnonzero(around >= 0)
        while len(left := left[self.end[around[left]] <= left]):
            around[left] = self._parent[around[left]]
            left = left[around[left] >= 0]
        token = np.flatnonzero(around >= 0)
        return around[token], token


_CONJUNCTIONS = frozenset(("CC",))


def _first(parent: I64, children: I64) -> I64:
    """[n] the first of these children of each constituent, -1 where there is none."""
    found = np.full(len(parent), -1)
    above, first = np.unique(parent[children], return_index=True)
    found[above] = children[first]
    return found


def _last_of_chains(next_: I64) -> I64:
    """[n] where one comes from each place by going to the next one of it, until there is none (-1)."""
    last = np.where(next_ < 0, np.arange(len(next_)), next_)
    while not np.array_equal(further := last[last], last):
        last = further
    return last
