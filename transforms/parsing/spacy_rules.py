"""From a dependency parse to constituents: the Penn Treebank's phrases as a grammar of heads.

A phrase grows outwards from its head word: first the smallest phrase around it, then that phrase with its
postmodifiers, then their coordination. Dependencies are spaCy's English ones (ClearNLP's), tags are Penn's. The
bracketing follows GUM, on whose training part the rules were tuned: a relative pronoun is an NP only as a subject, and
"well - known" is an ADJP.

    (NP (NP the end) (PP of (NP the day)))      (VP will (VP have (VP been (VP done (ADVP well)))))
    (NP bread and butter)                       (NP (NP the bread) and (NP the butter))
    (NP (NP the king 's) men)                   (ADJP too old (PP for (NP that)))
"""

from __future__ import annotations

from collections.abc import Sequence

from transforms.parsing.interface import Constituent


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


UNARY_ORDER = ("VP", "PP", "NP", "ADVP", "ADJP")
"""Labels over the same words, the outermost first (the order of most unary chains in GUM)."""

NOUNS = _set("NN NNS NNP NNPS PRP CD EX FW $ SYM ADD AFX GW XX LS NFP")
VERBS = _set("VB VBD VBG VBN VBP VBZ MD")
ADJECTIVES = _set("JJ JJR JJS")
ADVERBS = _set("RB RBR RBS")
PREPOSITIONS = _set("IN TO")
COMMON = _set("NN NNS")
COMPOUNDED = COMMON | ADJECTIVES | ADVERBS | _set("CD")  # the beginnings of "large - scale", "two - day"
KINDS = {
    tag: label
    for label, tags in (("NP", NOUNS), ("VP", VERBS), ("ADJP", ADJECTIVES), ("ADVP", ADVERBS), ("PP", PREPOSITIONS))
    for tag in tags
}

SUBJECTS = _set("nsubj nsubjpass expl csubj csubjpass")
PREDICATES = _set("attr acomp")
AUXILIARIES = _set("aux auxpass")
COORDINATION = _set("cc conj")
PREMODIFIERS = _set("amod compound nummod quantmod det nmod predet")
NO_PHRASE = PREMODIFIERS | AUXILIARIES | _set("punct meta intj cc preconj case prep")

NOUN_BY_ROLE = {tag: _set("nsubj nsubjpass dobj pobj appos") for tag in ADJECTIVES | _set("DT PDT VBG RB")}
NOUN_BY_ROLE |= {tag: _set("nsubj nsubjpass") for tag in ("WP", "WDT")}
BEFORE_NOUN = PREMODIFIERS | _set("poss case advmod neg preconj npadvmod meta intj cc conj punct")
CLOSELY_AFTER_NOUN = _set("nummod compound nmod")  # "Chapter 7"
BEFORE_ADJECTIVE = _set("advmod npadvmod quantmod neg nummod amod compound punct")
MODIFIED_BY_ADVERB = _set("ADJP ADVP NP")
NO_ADVERB_PHRASE = PREMODIFIERS | _set("neg cc preconj")
PREPOSITION = _set("prep agent")
PREPOSITION_WITH_OBJECT = _set("dative conj ROOT nmod advcl pcomp advmod")
OBJECT_OF_PREPOSITION = _set("pobj pcomp")

LOOSE = _set(", . : '' `` -LRB- -RRB- HYPH")  # no phrase begins or ends with them, except with a pair
STOPS = _set(". :")
OPENS = {"-RRB-": "-LRB-", "''": "``"}


def constituents(heads: Sequence[int], deps: Sequence[str], tags: Sequence[str]) -> list[Constituent]:
    """The phrases of a sentence of n tokens, none crossing another, in the order of a `ParsedSentence`.

    `heads[i]` in 0..n-1 is the token that token i depends on; i itself for a root.
    """
    return _Sentence(heads, deps, tags).constituents()


class _Sentence:
    def __init__(self, heads: Sequence[int], deps: Sequence[str], tags: Sequence[str]) -> None:
        n = len(heads)
        self.heads, self.deps, self.tags = heads, deps, tags
        self.kinds = [KINDS.get(tag, "") for tag in tags]
        self.before = before = [[] for _ in range(n)]  # type: list[list[int]]
        self.after = after = [[] for _ in range(n)]  # type: list[list[int]]
        self.start = start = list(range(n))
        self.end = end = list(range(1, n + 1))
        for token, head in enumerate(heads):
            if token < head:
                before[head].append(token)
                start[head] = min(start[head], start[token])
            elif token > head:
                after[head].append(token)
        for token in range(n - 1, -1, -1):
            if token > heads[token]:
                end[heads[token]] = max(end[heads[token]], end[token])
        self.partner = _partners(tags)
        self.spans: set[tuple[int, int, int]] = set()  # start, -end, place of the label in UNARY_ORDER

    def constituents(self) -> list[Constituent]:
        for token, (tag, kind, role) in enumerate(zip(self.tags, self.kinds, self.deps, strict=True)):
            if role in PREMODIFIERS and token < self.heads[token]:
                self.premodifier(token)
            elif role in PREPOSITION or (kind == "PP" and role in PREPOSITION_WITH_OBJECT):
                self.prepositional_phrase(token)
            elif kind == "VP" and role not in NO_PHRASE:
                self.verb_phrase(token)
            elif (kind == "NP" and role not in NO_PHRASE) or role in NOUN_BY_ROLE.get(tag, ()):
                self.noun_phrase(token)
            elif kind == "ADJP":
                self.adjective_phrase(token)
            elif kind == "ADVP":
                self.adverb_phrase(token)
        return self.uncrossed()

    # Phrases

    def noun_phrase(self, noun: int) -> None:
        """(NP base), (NP (NP base) postmodifiers), (NP a, b and c), (NP (NP the a), (NP the b) and (NP the c))."""
        if self.deps[noun] == "conj" and self.kinds[self.heads[noun]] == "NP":
            return  # a part of the coordination of its head
        if self.is_part_of_a_word(noun) or self.is_number_of_a_note(noun):
            return
        others = self.conjuncts(noun)
        members = [(member, *self.noun_parts(member)) for member in (noun, *others)]
        _, start, base_end, end = members[0]
        _, _, last_base_end, last_end = members[-1]
        if others and all(self.is_bare(other) for other in others) and all(b == e for _, _, b, e in members[:-1]):
            self.add("NP", start, last_base_end)
            self.add("NP", start, last_end)
        elif others:
            for member, member_start, member_base_end, member_end in members:
                if self.kinds[member] == "NP":
                    self.add("NP", member_start, member_base_end)
                    self.add("NP", member_start, member_end)
            self.add("NP", start, self.end[noun])
        elif self.is_whole_sentence(noun):
            if end > base_end:
                self.add("NP", start, base_end)
            self.add("NP", start, len(self.tags), trim=False)  # with its full stop
        else:
            self.add("NP", start, base_end)
            self.add("NP", start, end)

    def verb_phrase(self, verb: int) -> None:
        """(VP will (VP have (VP done ...))), (VP (VP came), (VP saw) and (VP won))."""
        deps, before, after = self.deps, self.before, self.after
        auxiliaries: list[int] = []
        for token in before[verb]:
            if deps[token] in SUBJECTS:
                auxiliaries.clear()  # "did" of "did he go" begins no phrase
            elif deps[token] in AUXILIARIES:
                auxiliaries.append(token)
        start = auxiliaries[0] if auxiliaries else verb
        end = self.own_end(verb)
        subject = next((token for token in after[verb] if deps[token] in SUBJECTS), None)
        if subject is not None and not auxiliaries:
            if any(deps[token] in PREDICATES for token in after[verb]):
                return  # "is he old"
            end = self.start[subject]  # "said he"
        others: list[int] = []
        if deps[verb] != "conj":
            for other in self.conjuncts(verb):
                if self.kinds[other] != "VP" or any(deps[token] in SUBJECTS for token in before[other]):
                    break  # clauses are coordinated from here on
                others.append(other)
        self.add("VP", verb, end)
        if others:
            whole_end = self.own_end(others[-1])
            if any(deps[token] in AUXILIARIES for token in before[others[0]]):
                self.add("VP", start, whole_end)  # (VP (VP has come) and (VP will stay))
            else:
                self.add("VP", verb, whole_end)  # (VP has (VP (VP come) and (VP gone)))
                end = whole_end
        for auxiliary in auxiliaries:
            self.add("VP", auxiliary, end)

    def prepositional_phrase(self, preposition: int) -> None:
        """(PP of ...), (PP (ADVP just) after ...), (PP (PP by ...) and (PP for ...))."""
        role, others = self.deps[preposition], self.conjuncts(preposition)
        if not any(self.deps[token] in OBJECT_OF_PREPOSITION for token in self.after[preposition]) and (
            role not in PREPOSITION or self.kinds[preposition] != "PP"
        ):
            return
        self.add("PP", self.start[preposition], self.own_end(preposition))
        if others and role != "conj":
            self.add("PP", self.start[preposition], self.own_end(others[-1]))

    def premodifier(self, token: int) -> None:
        """(ADJP very old), (ADJP old and tired), (ADJP well - known), (ADJP large - scale) before a noun."""
        tag = self.tags[token]
        if tag in ADJECTIVES or tag == "VBN" or tag == "VBG":
            others = [other for other in self.conjuncts(token) if other < self.heads[token]]
            if others or not self.is_bare(token):
                self.add("ADJP", self.start[token], self.end[others[-1]] if others else token + 1)
        elif token >= 2 and self.tags[token - 1] == "HYPH" and tag in COMMON and self.tags[token - 2] in COMPOUNDED:
            self.add("ADJP", token - 2, token + 1)

    def adjective_phrase(self, adjective: int) -> None:
        """(ADJP old), (ADJP very old (PP for ...)), (ADJP old and tired); not a conjunct or postmodifier alone."""
        role, others = self.deps[adjective], self.conjuncts(adjective)
        start, end = self.leftmost(adjective, BEFORE_ADJECTIVE), self.own_end(adjective)
        if role == "conj" or role in PREMODIFIERS:
            if end - start > 1:
                self.add("ADJP", start, end)
            return
        if not others or not all(self.is_bare(other) for other in others):
            self.add("ADJP", start, end)
        if others:
            self.add("ADJP", start, self.own_end(others[-1]))

    def adverb_phrase(self, adverb: int) -> None:
        """(ADVP well), (ADVP very well), (ADVP up and down); not "very" of "very old"."""
        role, head, others = self.deps[adverb], self.heads[adverb], self.conjuncts(adverb)
        if role in NO_ADVERB_PHRASE:
            return
        start, end = self.start[adverb], self.own_end(adverb)
        if end - start == 1 and not others:
            is_clause = any(self.deps[token] in SUBJECTS for token in self.before[head])
            modifies_word = self.kinds[head] in MODIFIED_BY_ADVERB or self.deps[head] in PREMODIFIERS
            if role == "conj" or (adverb < head and modifies_word and not is_clause):
                return
        if not others or not all(self.is_bare(other) for other in others):
            self.add("ADVP", start, end)
        if others and role != "conj":
            self.add("ADVP", start, self.own_end(others[-1]))

    # Parts of phrases

    def noun_parts(self, noun: int) -> tuple[int, int, int]:
        """The start and end of the smallest noun phrase, and its end with its postmodifiers."""
        base_end = end = noun + 1
        for token in self.after[noun]:
            role = self.deps[token]
            if role in COORDINATION:
                break
            if role == "case":
                base_end = end = token + 1
            elif role in CLOSELY_AFTER_NOUN and end == base_end and self.kinds[token] == "NP":
                base_end = end = self.end[token]
            elif role != "punct":
                end = self.end[token]
        return self.leftmost(noun, BEFORE_NOUN), base_end, end

    def leftmost(self, head: int, roles: frozenset[str]) -> int:
        """The start of the unbroken row of dependents with these roles before a head."""
        start = head
        for token in reversed(self.before[head]):
            if self.deps[token] not in roles or self.tags[token] in STOPS:
                break
            start = self.start[token]
        return start

    def own_end(self, head: int) -> int:
        """The end of a head's phrase, without what is coordinated with it or follows a full stop, such as a note."""
        for token in self.after[head]:
            if self.deps[token] in COORDINATION or self.tags[token] == ".":
                return self.start[token]
        return self.end[head]

    def conjuncts(self, head: int) -> list[int]:
        """The conjuncts of a head, in order; each depends on the one before it, or all on the first."""
        found = [token for token in self.after[head] if self.deps[token] == "conj"]
        for each in found:  # the list grows
            found += [token for token in self.after[each] if self.deps[token] == "conj"]
        return sorted(found)

    def is_bare(self, head: int) -> bool:
        return all(self.deps[token] == "punct" for token in self.before[head])

    def is_part_of_a_word(self, noun: int) -> bool:
        """Whether a noun is a part of a word, as "hand" in "hand - made"."""
        return self.deps[noun] == "npadvmod" and self.tags[noun + 1 : noun + 2] == ["HYPH"]

    def is_number_of_a_note(self, noun: int) -> bool:
        """Whether a noun is the number of a note, as in "[ 12 ]"."""
        return self.tags[noun] == "CD" and self.tags[max(noun - 1, 0) : noun + 2] == ["-LRB-", "CD", "-RRB-"]

    def is_whole_sentence(self, head: int) -> bool:
        return self.start[head] == 0 and self.end[head] == len(self.tags) and self.heads[head] == head

    # Spans

    def add(self, label: str, start: int, end: int, *, trim: bool = True) -> None:
        """Keep a span, without loose punctuation at its ends and brackets or quotation marks around it."""
        tags, partner = self.tags, self.partner
        if start >= end:  # in a non-projective tree
            return
        if trim:
            while end - 1 > start and tags[end - 1] in LOOSE and not start <= partner[end - 1] < end:
                end -= 1
            while end < len(tags) and start <= partner[end] < end:
                end += 1
            while start < end - 1 and tags[start] in LOOSE and not start < partner[start] < end:
                start += 1
            if end - start > 2 and partner[start] == end - 1:
                start, end = start + 1, end - 1
        self.spans.add((start, -end, UNARY_ORDER.index(label)))

    def uncrossed(self) -> list[Constituent]:
        """The spans in order; of two that cross, which happens in a non-projective tree, the later is dropped."""
        kept: list[Constituent] = []
        ends: list[int] = []  # of the spans that are open
        for start, negative_end, label in sorted(self.spans):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or -negative_end <= ends[-1]:
                ends.append(-negative_end)
                kept.append(Constituent(UNARY_ORDER[label], start, -negative_end))
        return kept


def _partners(tags: Sequence[str]) -> list[int]:
    """For each bracket and quotation mark the place of its partner; -1 for all other tokens."""
    partner = [-1] * len(tags)
    opened: list[int] = []
    for token, tag in enumerate(tags):
        if tag == "-LRB-" or tag == "``":
            opened.append(token)
        elif tag in OPENS:
            place = next((k for k in range(len(opened) - 1, -1, -1) if tags[opened[k]] == OPENS[tag]), None)
            if place is not None:
                partner[token], partner[opened[place]] = opened[place], token
                del opened[place:]
    return partner
