"""The loops of `neighbours.py`, compiled by numba when they are first called. The only module that imports it.

A bag, the characters of a text without their order, is a word of 64 bits (`Bins`): of the bits of a bin as many are set
as the text has characters of it, up to all. So bag a has at least popcount(a & ~b) characters more than bag b.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

_loop: Any = njit(nogil=True, error_model="numpy")
_inner: Any = njit(nogil=True, error_model="numpy")

ONE = np.uint64(1)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def _typed_popcount(context, word):
    def generate(context, builder, signature, values):
        return builder.ctpop(values[0])

    return types.int64(types.uint64), generate


_popcount: Any = intrinsic(_typed_popcount)
"""How many bits of a word are set, in one instruction of the processor."""


@_loop
def taken(characters, edges, order):
    """Texts in another order: their characters and edges."""
    own, own_edges = np.empty_like(characters), np.zeros(len(order) + 1, np.int64)
    for text in range(len(order)):
        start, end = edges[order[text]], edges[order[text] + 1]
        own_edges[text + 1] = own_edges[text] + end - start
        own[own_edges[text] : own_edges[text + 1]] = characters[start:end]
    return own, own_edges


@_inner
def _added(bag, character, seen, bin_of, bits, first_bit):
    """The bag with one character more; `seen` counts the characters of each bin."""
    own = bin_of[character]
    if seen[own] < bits[own]:
        bag |= ONE << np.uint64(first_bit[own] + seen[own])
    seen[own] += 1
    return bag


@_loop
def bags(characters, start, end, bin_of, bits, first_bit):
    """[n] the bags of the texts characters[start:end]."""
    found = np.zeros(len(start), np.uint64)
    seen = np.zeros(len(bits), np.int64)
    for text in range(len(start)):
        seen[:] = 0
        for place in range(start[text], end[text]):
            found[text] = _added(found[text], characters[place], seen, bin_of, bits, first_bit)
    return found


@_loop
def sizes(bags):
    """[n] how many bits of each bag are set."""
    found = np.zeros(len(bags), np.int64)
    for n_th in range(len(bags)):
        found[n_th] = _popcount(bags[n_th])
    return found


@_loop
def bags_to_each(characters, edges, bin_of, bits, first_bit):
    """The bags before and from each place of n texts, and their ends: two arrays [characters + n].

    At `edges[text] + text + place` stand the bags of characters [0, place) of the text, and of the others.
    """
    before = np.zeros(edges[-1] + len(edges) - 1, np.uint64)
    after = np.zeros(len(before), np.uint64)
    seen = np.zeros(len(bits), np.int64)
    for text in range(len(edges) - 1):
        start, end = edges[text], edges[text + 1]
        seen[:] = 0
        for place in range(start, end):
            before[place + text + 1] = _added(before[place + text], characters[place], seen, bin_of, bits, first_bit)
        seen[:] = 0
        for place in range(end - 1, start - 1, -1):
            after[place + text] = _added(after[place + text + 1], characters[place], seen, bin_of, bits, first_bit)
    return before, after


@_inner
def _least_common(both, bound, above):
    """The least length of a common subsequence for a similarity of `bound`, or `above` it; `both`: the two lengths."""
    if both == 0:
        return 1
    least = np.int64(bound * both / 2)
    while least > 0 and (2 * (least - 1) / both > bound or (not above and 2 * (least - 1) / both == bound)):
        least -= 1
    while 2 * least / both < bound or (above and 2 * least / both == bound):
        least += 1
    return least


@_inner
def _by_bags(bag, bags, far, flags, found):
    """Put into `found` the columns whose bags differ from the row's in at most `far` bits; returns how many.

    No branch, so that it is done with several columns at a time: almost all of the pairs of phrases end here.
    """
    for column in range(len(bags)):
        flags[column] = _popcount(bag ^ bags[column]) <= far
    n = np.uint64(0)  # unsigned: a negative index would count from the end, which takes time to find out
    for column in range(len(bags)):
        found[n] = column
        n += np.uint64(flags[column])
    return np.int64(n)


@_inner
def _by_halves(found, n, first, second, before, after, lowest, highest, spare):
    """Keep those of `found` whose halves leave at most `spare` of their characters without a partner; returns how many.

    Where a common subsequence passes from a column's first half to its second, the row is cut at a place from `lowest`
    to `highest`. For the cuts in [low, high], the halves find their partners before `high` and from `low` on. Four such
    intervals are looked at.
    """
    width = highest - lowest
    a, b, c, d = (lowest + width * 1 // 4, lowest + width * 2 // 4, lowest + width * 3 // 4, highest)
    left_1, left_2, left_3, left_4 = ~before[a], ~before[b], ~before[c], ~before[d]
    right_1, right_2, right_3, right_4 = ~after[lowest], ~after[a], ~after[b], ~after[c]
    kept = np.uint64(0)
    for n_th in range(n):
        column = found[n_th]
        left, right = first[column], second[column]
        one = _popcount(left & left_1) + _popcount(right & right_1)
        two = _popcount(left & left_2) + _popcount(right & right_2)
        three = _popcount(left & left_3) + _popcount(right & right_3)
        four = _popcount(left & left_4) + _popcount(right & right_4)
        found[kept] = column
        kept += np.uint64(min(min(one, two), min(three, four)) <= spare)
    return np.int64(kept)


@_inner
def _common_short(found, n, length, characters, edges, masks, m, common):
    """The lengths of the longest common subsequences of a row of at most 64 characters and n columns of one length.

    `masks` has for each character its places in the row as bits. Hyyrö 2004, "Bit-parallel LCS-length computation
    revisited": four columns at a time, because each step waits for the one before.
    """
    own = ALL if m == 64 else (ONE << np.uint64(m)) - ONE
    for n_th in range(n, n + 3):
        found[n_th] = found[n - 1]
    for n_th in range(0, n, 4):
        a, b, c, d = edges[found[n_th]], edges[found[n_th + 1]], edges[found[n_th + 2]], edges[found[n_th + 3]]
        of_a, of_b = characters[a : a + length], characters[b : b + length]
        of_c, of_d = characters[c : c + length], characters[d : d + length]
        v = w = x = y = ALL
        for place in range(length):
            in_v, in_w = v & masks[of_a[place]], w & masks[of_b[place]]
            in_x, in_y = x & masks[of_c[place]], y & masks[of_d[place]]
            v, w = (v + in_v) | (v - in_v), (w + in_w) | (w - in_w)
            x, y = (x + in_x) | (x - in_x), (y + in_y) | (y - in_y)
        common[n_th], common[n_th + 1] = _popcount(~v & own), _popcount(~w & own)
        common[n_th + 2], common[n_th + 3] = _popcount(~x & own), _popcount(~y & own)


@_inner
def _masks_long(row, slots, masks):
    """For each character of a row its places as bits, in several words: `masks[slots[character], word]`.

    Slot 0 is for characters that the row does not have.
    """
    last = 0
    for place in range(len(row)):
        character = row[place]
        if slots[character] == 0:
            last += 1
            slots[character] = last
            masks[last] = 0
        masks[slots[character], place >> 6] |= ONE << np.uint64(place & 63)


@_inner
def _common_long(found, n, length, characters, edges, slots, masks, m, common):
    """The same for a row of any length."""
    words = (m + 63) // 64
    state = np.empty(words, np.uint64)
    for n_th in range(n):
        state[:] = ALL
        column = characters[edges[found[n_th]] : edges[found[n_th]] + length]
        for place in range(length):
            slot = slots[column[place]]
            if slot == 0:
                continue
            carry = np.uint64(0)
            for word in range(words):
                before = state[word]
                both = before & masks[slot, word]
                added = before + both
                carried = added + carry
                carry = np.uint64(added < before) | np.uint64(carried < added)
                state[word] = carried | (before - both)
        common[n_th] = 0
        for word in range(words):
            own = ALL if m - 64 * word >= 64 else (ONE << np.uint64(m - 64 * word)) - ONE
            common[n_th] += _popcount(~state[word] & own)


@_inner
def _is_better(similarity, hi, lo, best, at):
    """Whether a neighbour comes before that at a place of `best`: more similar, or of lower hash."""
    if similarity != best.similarity[at]:
        return similarity > best.similarity[at]
    return hi < best.key_hi[at] or (hi == best.key_hi[at] and lo < best.key_lo[at])


@_inner
def _offer(row, similarity, place, hi, lo, best):
    """Add a neighbour to those of a row, or put it in the place of the worst, if it is better."""
    most = best.similarity.shape[1]
    if best.found[row] < most:
        at = best.found[row]
        best.found[row] += 1
    else:
        at = best.worst[row]
        if not _is_better(similarity, hi, lo, best, (row, at)):
            return
    best.similarity[row, at], best.place[row, at] = similarity, place
    best.key_hi[row, at], best.key_lo[row, at] = hi, lo
    if best.found[row] == most:
        worst = 0
        for other in range(1, most):
            there = (row, other)
            if _is_better(best.similarity[row, worst], best.key_hi[row, worst], best.key_lo[row, worst], best, there):
                worst = other
        best.worst[row] = worst


@_loop
def search(rows, order, columns, blocks, min_similarity, best, masks, slots):
    """Offer all columns to the rows `order`; the fields are those of `neighbours.py`, `blocks` the order of the blocks.

    A column is passed over only if its length, its bag or its halves' bags show that it is too far for the row: not
    above `min_similarity`, or, when the row has all its neighbours, below the worst of them. `masks` and `slots` are
    zeros for all characters, and are again at the end.
    """
    most = best.similarity.shape[1]
    size = columns.block_size
    flags, found, common = np.empty(size, np.bool_), np.empty(size + 3, np.int64), np.empty(size + 3, np.int64)
    longest = 0
    for row in order:
        longest = max(longest, rows.edges[row + 1] - rows.edges[row])
    long_masks = np.zeros((longest + 1, (longest + 63) // 64), np.uint64)
    for block in blocks:
        for row in order:
            row_start, m = rows.edges[row], rows.edges[row + 1] - rows.edges[row]
            characters, bag = rows.characters[row_start : row_start + m], rows.bag[row]
            before = rows.before[row_start + row : row_start + row + m + 1]
            after = rows.after[row_start + row : row_start + row + m + 1]
            has_masks = False
            for run in range(columns.blocks[block], columns.blocks[block + 1]):
                start, end, length, beyond = columns.runs[run]
                full = best.found[row] == most
                bound = best.similarity[row, best.worst[row]] if full else min_similarity
                least = _least_common(m + length, bound, not full)
                if least > min(m, length):
                    continue
                # Characters for which the bins have no bit left differ by this at least.
                far = m + length - 2 * least - abs(m - _popcount(bag) - beyond)
                n = _by_bags(bag, columns.bag[start:end], far, flags, found)
                if n == 0:
                    continue
                half = length // 2
                first, second = columns.first_half[start:end], columns.second_half[start:end]
                lowest, highest = max(0, least - (length - half)), min(m, m - (least - half))
                n = _by_halves(found, n, first, second, before, after, lowest, highest, length - least)
                if n == 0:
                    continue
                if not has_masks:
                    has_masks = True
                    if m <= 64:
                        for place in range(m):
                            masks[characters[place]] |= ONE << np.uint64(place)
                    else:
                        _masks_long(characters, slots, long_masks)
                edges = columns.edges[start:end]
                if m <= 64:
                    _common_short(found, n, length, columns.characters, edges, masks, m, common)
                else:
                    _common_long(found, n, length, columns.characters, edges, slots, long_masks, m, common)
                for n_th in range(n):
                    column = start + found[n_th]
                    if common[n_th] >= least and columns.place[column] != rows.place[row]:
                        similarity = 2 * common[n_th] / (m + length)
                        hi, lo = columns.key_hi[column], columns.key_lo[column]
                        _offer(row, similarity, columns.place[column], hi, lo, best)
            if has_masks:
                for place in range(m):
                    masks[characters[place]] = 0
                    slots[characters[place]] = 0
