"""The mining again, in plain Python, a row at a time: what the real stages are compared with.

Independent of the arrays, the hash of slices, the exchange and the shards; it shares with them only what is a table
of its own (`normalise_token`, `classes`, `function_classes`, the tags) and the record types.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import xxhash

from schemas.terms import PHRASE_LABELS
from transforms.contexts.options import WindowRules
from transforms.phrases import lexicon
from transforms.phrases.normalise import Class, classes, function_classes, normalise_token
from transforms.phrases.options import PhraseRules

Row = dict[str, Any]
LOOK_AHEAD = 100_000
M64 = 2**64 - 1


class Token(NamedTuple):
    start_char: int
    end_char: int
    word: str
    form: str
    tag: str

    def is_(self, wanted: int) -> bool:
        return bool(classes(self.form) & wanted)

    @property
    def is_function_word(self) -> bool:
        return self.is_(function_classes(self.tag))

    @property
    def letters(self) -> int:
        return sum(character.isalnum() for character in self.form)


class Occurrence(NamedTuple):
    phrase: str
    surface: str
    label: str
    doc_id: str
    sentence: int
    start: int
    end: int
    start_char: int
    end_char: int
    constituent: int  # its number in the sentence


class Found(NamedTuple):
    occurrences: list[Occurrence]
    read: int
    filtered: Counter[str]


def tokens_of(sentence: Row, *, lowercase: bool = True) -> list[Token]:
    base = sentence["start_char"]
    places = [(each["start_char"], each["end_char"]) for each in sentence["tokens"]]
    words = [sentence["text"][start - base : end - base] for start, end in places]
    return [
        Token(start, end, word, normalise_token(word, lowercase=lowercase), each["tag"])
        for (start, end), word, each in zip(places, words, sentence["tokens"], strict=True)
    ]


def join(tokens: Sequence[Token], name: str = "form") -> str:
    """The phrase (name: "form") or its surface ("word") that tokens make."""
    words: str = getattr(tokens[0], name)
    for before, token in itertools.pairwise(tokens):
        words += " " * (token.start_char > before.end_char) + getattr(token, name)
    return words


def find(sentences: Sequence[Row], rules: PhraseRules) -> Found:
    """The occurrences of phrases in sentences, in order of the text."""
    found: list[Occurrence] = []
    filtered: Counter[str] = Counter()
    read = 0
    for number, sentence in enumerate(sentences):
        tokens = tokens_of(sentence, lowercase=rules.lowercase)
        spans: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)  # label and number of constituents
        kept: list[tuple[int, tuple[int, int]]] = []  # constituents by number, and what is left of them
        constituents = sentence["constituents"]
        clauses = with_clauses(constituents) if rules.drop_clauses else set()
        for place, each in enumerate(constituents):
            if each["label"] in rules.labels:
                read += 1
                span = phrase_span(tokens, each["label"], each["start_token"], each["end_token"], rules)
                if not isinstance(span, str) and place in clauses:
                    span = "clause"
                if isinstance(span, str):
                    filtered[span] += 1
                else:
                    kept.append((place, span))
        left = one_of_each_chain(tokens, constituents, kept, rules.nested)
        filtered["nested"] += len(kept) - len(left)
        for place, span in left:
            spans[span].append((PHRASE_LABELS.index(constituents[place]["label"]), place))
        for (start, end), over in sorted(spans.items()):
            filtered["same_words"] += len(over) - 1
            label, place = min(over)
            found.append(
                Occurrence(
                    join(tokens[start:end]),
                    join(tokens[start:end], "word"),
                    PHRASE_LABELS[label],
                    sentence["doc_id"],
                    number,
                    start,
                    end,
                    tokens[start].start_char,
                    tokens[end - 1].end_char,
                    place,
                )
            )
    return Found(found, read, +filtered)


def phrase_span(tokens: Sequence[Token], label: str, start: int, end: int, rules: PhraseRules) -> tuple[int, int] | str:
    """The tokens of the phrase that a constituent makes, or why it makes none."""
    forms = [each.form for each in tokens]
    if any("\ufffd" in form for form in forms[start:end]):
        return "unknown_token"
    if all(each.is_(Class.PUNCTUATION) for each in tokens[start:end]):
        return "punctuation"
    if all(each.is_(Class.PUNCTUATION | Class.CLITIC) for each in tokens[start:end]):
        return "function_words"
    if rules.drop_auxiliaries and label == "VP" and led_by_auxiliary(tokens[start:end]):
        return "auxiliary"
    whole_start, whole_end = start, end
    outer = Class.PUNCTUATION if rules.strip_punctuation else 0
    while tokens[end - 1].is_(outer | (Class.POSSESSIVE if rules.strip_possessives else 0)):
        end -= 1
    while tokens[start].is_(outer | Class.CLITIC):
        start += 1
    if rules.strip_determiners:
        place = start
        while place < end and tokens[place].is_(outer | Class.CLITIC | Class.DETERMINER):
            place += 1
        if place < end:
            start = place
    if start > whole_start and forms[start - 1].lower() in lexicon.ARTICLES:
        after = tokens[start + 1].tag if start + 1 < end else ""
        is_small = label == "NP" and after in {"NN", "NNS", "NNP", "NNPS", "JJ", "JJS"}
        if forms[start].lower() == "few" or (forms[start].lower() == "little" and not is_small):
            start -= 1
    if rules.strip_punctuation:
        if end < whole_end and takes_back(forms[start:end], forms[end], ")]}"):
            end += 1
        if start > whole_start and takes_back(forms[start:end], forms[start - 1], "([{"):
            start -= 1
        if open_brackets(forms[start:end]) or "".join(forms[start:end]).count('"') % 2:
            return "unbalanced"
    return why_not(tokens[start:end], rules) or (start, end)


def why_not(words: Sequence[Token], rules: PhraseRules) -> str:
    """Why the words that are left are no phrase; empty if they are one."""

    def only(wanted: int, *, or_function_words: bool = True) -> bool:
        wanted |= Class.PUNCTUATION
        return all(each.is_(wanted) or (or_function_words and each.is_function_word) for each in words)

    def any_is(wanted: int) -> bool:
        return any(each.is_(wanted) for each in words)

    is_pronoun = only(Class.PRONOUN | Class.DETERMINER, or_function_words=False)
    is_number = only(Class.NUMBER, or_function_words=False)
    if rules.drop_pronouns and is_pronoun:
        return "pronoun"
    if rules.drop_numbers and is_number:
        return "number"
    if only(Class.NUMBER | Class.ORDINAL | Class.UNIT | Class.DATE):
        has_date = any(each.is_(Class.DATE) and not each.is_function_word for each in words)
        if rules.drop_dates and has_date and any_is(Class.NUMERAL | Class.ORDINAL):
            return "date"
        if rules.drop_measures and any_is(Class.UNIT) and any_is(Class.NUMERAL):
            return "measure"
    numbers = Class.NUMBER | Class.ORDINAL if rules.drop_numbers else 0
    if rules.drop_function_words and only(numbers) and not is_pronoun:
        return "function_words"
    if not any(each.letters for each in words):
        return "too_short"
    content = [
        each
        for each in words
        if not each.is_function_word and not each.is_(Class.PUNCTUATION | Class.NUMBER | Class.ORDINAL)
    ]
    if content and all(each.letters < rules.min_letters for each in content):
        return "too_short"
    return "too_long" if rules.max_tokens and len(words) > rules.max_tokens else ""


def led_by_auxiliary(words: Sequence[Token]) -> bool:
    """Whether an auxiliary, a modal or "to" leads a verb phrase."""
    left = [each for each in words if each.tag not in lexicon.ADVERB_TAGS and not each.is_(Class.PUNCTUATION)]
    if not left:
        return False
    first, second = left[0], left[1].tag if len(left) > 1 else ""
    form = first.form.lower()
    if form in lexicon.HAVE:
        return second in lexicon.AFTER_HAVE
    if form in lexicon.DO:
        return second in lexicon.AFTER_DO
    return first.tag in lexicon.MODAL_TAGS or (form in lexicon.AUXILIARIES and first.tag not in lexicon.NOUN_TAGS)


def parents(constituents: Sequence[Row]) -> list[int | None]:
    """The number of the constituent around each."""
    found: list[int | None] = []
    around: list[int] = []
    for number, each in enumerate(constituents):
        while around and constituents[around[-1]]["end_token"] <= each["start_token"]:
            around.pop()
        found.append(around[-1] if around else None)
        around.append(number)
    return found


def with_clauses(constituents: Sequence[Row]) -> set[int]:
    """The numbers of the constituents with a clause inside."""
    above = parents(constituents)
    found: set[int] = set()
    for number, each in enumerate(constituents):
        if each["label"] in {"S", "SBAR", "SINV", "SQ", "SBARQ"}:
            place = above[number]
            while place is not None:
                found.add(place)
                place = above[place]
    return found


def head_children(tokens: Sequence[Token], constituents: Sequence[Row]) -> dict[int, int]:
    """The constituent around each one that has the same head."""
    above = parents(constituents)
    found: dict[int, int] = {}
    for number, each in enumerate(constituents):
        label = each["label"]
        children = [child for child, parent in enumerate(above) if parent == number]
        same = [child for child in children if constituents[child]["label"] == label]
        if label not in PHRASE_LABELS or not same:
            continue
        own = set(range(each["start_token"], each["end_token"]))
        for child in children:
            own -= set(range(constituents[child]["start_token"], constituents[child]["end_token"]))
        if not any(can_be_head(tokens[place], label) or tokens[place].tag == "CC" for place in own):
            found[same[0]] = number
    return found


def can_be_head(token: Token, label: str) -> bool:
    if label == "VP" and (token.is_(Class.AUXILIARY) or token.tag in lexicon.MODAL_TAGS):
        return False
    return token.tag in lexicon.HEAD_TAGS[label]


def one_of_each_chain(
    tokens: Sequence[Token], constituents: Sequence[Row], kept: list[tuple[int, tuple[int, int]]], nested: str
) -> list[tuple[int, tuple[int, int]]]:
    """Of the constituents with the same head, the outermost, the base, or all."""
    if nested == "all":
        return kept
    above = head_children(tokens, constituents)
    chains: dict[int, list[tuple[int, tuple[int, int]]]] = defaultdict(list)
    for place, span in kept:
        top = place
        while top in above:
            top = above[top]
        chains[top].append((place, span))
    found = []
    for chain in chains.values():
        names = [each for each in chain if is_name(tokens[each[1][0] : each[1][1]])]
        found.append(chain[0] if nested == "outermost" else names[0] if names else chain[-1])
    return sorted(found)


def is_name(words: Sequence[Token]) -> bool:
    return all(each.tag in lexicon.NAME_TAGS or each.is_function_word or each.is_(Class.PUNCTUATION) for each in words)


def open_brackets(forms: Sequence[str]) -> int:
    """How many more brackets open than close."""
    text = "".join(forms)
    return sum(text.count(each) for each in "([{") - sum(text.count(each) for each in ")]}")


def takes_back(inside: Sequence[str], beside: str, brackets: str) -> bool:
    """Whether the token beside a phrase is the other half of a bracket or quote inside."""
    inner, outer = open_brackets(inside), open_brackets([beside])
    lone_quote = "".join(inside).count('"') % 2 == 1 and beside.count('"') == 1
    return lone_quote or (inner > 0 > outer if brackets == ")]}" else inner < 0 < outer)


def count(occurrences: Iterable[Occurrence]) -> list[Row]:
    """The rows of the phrases dataset, all of them, the most frequent first."""
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    surfaces: dict[str, Counter[str]] = defaultdict(Counter)
    documents: dict[str, set[str]] = defaultdict(set)
    for each in occurrences:
        surfaces[each.phrase][each.surface] += 1
        labels[each.phrase][each.label] += 1
        documents[each.phrase].add(each.doc_id)
    commonest = {
        phrase: max(counts, key=lambda surface: (counts[surface], -key_of(surface)[0]))
        for phrase, counts in surfaces.items()
    }
    found = [
        {
            "phrase": phrase,
            "surface": commonest[phrase],
            "surface_share": surfaces[phrase][commonest[phrase]] / surfaces[phrase].total(),
            "label": max(PHRASE_LABELS, key=lambda label: (counts[label], -PHRASE_LABELS.index(label))),
            "label_shares": {label: counts[label] / counts.total() for label in PHRASE_LABELS},
            "frequency": counts.total(),
            "document_frequency": len(documents[phrase]),
        }
        for phrase, counts in labels.items()
    ]
    return sorted(found, key=lambda row: (-row["frequency"], key_of(row["phrase"])))


# ---- Types


Span = tuple[int, int]


def core(tokens: Sequence[Token], span: Span) -> Span:
    """A span without determiners, punctuation and possessives at its ends, unless nothing else is there."""
    places = range(*span)
    first = [each for each in places if not tokens[each].is_(Class.PUNCTUATION | Class.CLITIC | Class.DETERMINER)]
    last = [each for each in places if not tokens[each].is_(Class.PUNCTUATION | Class.POSSESSIVE)]
    return (first[0], last[-1] + 1) if first and last and first[0] <= last[-1] else span


def directly_in(constituents: Sequence[Row], place: int) -> list[int]:
    """The tokens of a constituent that are in no smaller one."""
    inside = [each for number, each in enumerate(constituents) if number > place]
    return [
        token
        for token in range(*_span(constituents[place]))
        if not any(token in range(*_span(each)) for each in inside)
    ]


def _span(constituent: Row) -> Span:
    return constituent["start_token"], constituent["end_token"]


def object_of(tokens: Sequence[Token], constituents: Sequence[Row], place: int) -> int:
    """The object of a PP; of a coordination, or another constituent, itself."""
    above = parents(constituents)
    inside = [each for each, parent in enumerate(above) if parent == place]
    found = [each for each in inside if constituents[each]["label"] in {"NP", "PP"}]
    joined = any(tokens[each].tag == "CC" for each in directly_in(constituents, place))
    if constituents[place]["label"] != "PP" or joined or not found:
        return place
    return object_of(tokens, constituents, found[0])


def head_of(tokens: Sequence[Token], constituents: Sequence[Row], place: int) -> int | None:
    """The token that is the head of a constituent."""
    label = constituents[place]["label"]
    own = directly_in(constituents, place)
    if any(tokens[each].tag == "CC" for each in own):
        return None
    heads = [each for each in own if tokens[each].tag in lexicon.HEAD_TAGS.get(label, ())]
    if heads:
        return heads[-1]
    above = parents(constituents)
    same = [each for each, parent in enumerate(above) if parent == place and constituents[each]["label"] == label]
    return head_of(tokens, constituents, same[0]) if same else None


def entity_type(sentence: Row, entities: Sequence[Row], found: Occurrence, match: str) -> str:
    """The type that the entities of its sentence give an occurrence."""
    tokens, constituents = tokens_of(sentence), sentence["constituents"]
    types = {core(tokens, _span(each)): each["type"] for each in entities}
    whole = found.start, found.end
    object_ = object_of(tokens, constituents, found.constituent)
    for span in (whole, _span(constituents[object_])):
        if core(tokens, span) in types:
            return str(types[core(tokens, span)])
    inside = [span for span in sorted(types) if whole[0] <= span[0] and span[1] <= whole[1]]
    if match == "head":
        head = head_of(tokens, constituents, object_)
        inside = [span for span in inside if head is not None and head in range(*span)]
    if match == "exact" or not inside:
        return "OTHER"
    return str(types[max(inside, key=lambda span: (span[1] - span[0], -span[0]))])


def count_typed(occurrences: Sequence[Occurrence], types: Sequence[str], order: Sequence[str]) -> list[Row]:
    """The rows of typed phrases. `types`: the entity types of the occurrences; `order` breaks ties."""
    joint: dict[str, Counter[str]] = defaultdict(Counter)
    for each, type_ in zip(occurrences, types, strict=True):
        joint[each.phrase][f"{each.label}-{type_}"] += 1
    names = [f"{label}-{type_}" for label in PHRASE_LABELS for type_ in order]
    rows = count(occurrences)
    for row in rows:
        counts = joint[row["phrase"]]
        shares = sorted(counts, key=lambda name: (-counts[name], names.index(name)))
        row["type"] = next(name for name in shares if name.startswith(row["label"] + "-"))
        row["entity_type"] = row["type"].removeprefix(row["label"] + "-")
        row["type_shares"] = [{"type": name, "share": counts[name] / counts.total()} for name in shares]
    return rows


def key_of(text: str) -> tuple[int, int]:
    """The two halves of the 128 bits that decide ties."""
    return divmod(xxhash.xxh3_128_intdigest(text.encode()), 2**64)


# ---- Contexts


def mix(x: int) -> int:
    """splitmix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & M64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def low_hash(phrase: str) -> int:
    """The lower half of the hash of a phrase: a polynomial in an odd base modulo 2^64."""
    base = mix(2) | 1
    value = 0
    for byte in reversed(phrase.encode()):
        value = (value * base + mix(byte + 2000)) & M64
    return mix((value + len(phrase.encode())) & M64)


def priority(each: Occurrence, *, seed: int) -> int:
    """What decides which occurrences of a phrase are chosen: the lowest."""
    document = xxhash.xxh3_64_intdigest(each.doc_id.encode(), seed=seed)
    return mix(mix(document ^ mix(each.start_char)) ^ low_hash(each.phrase))


def row_key(each: Occurrence, *, seed: int) -> tuple[int, int]:
    key = xxhash.xxh3_128_intdigest(f"{each.doc_id}\0{each.start_char}\0{each.phrase}".encode(), seed=seed)
    return key >> 64, key & M64


def choose(occurrences: Iterable[Occurrence], wanted: Iterable[str], *, most: int, seed: int) -> list[Occurrence]:
    """The `most` occurrences of lowest priority of each phrase wanted."""
    of_phrase: dict[str, list[Occurrence]] = {phrase: [] for phrase in wanted}
    for each in occurrences:
        if each.phrase in of_phrase:
            of_phrase[each.phrase].append(each)
    return [
        each
        for candidates in of_phrase.values()
        for each in sorted(candidates, key=lambda each: priority(each, seed=seed))[:most]
    ]


class Window(NamedTuple):
    """A window: the tokens of its run, and which of them are in it, and which are the phrase."""

    run: list[Token]
    first: int
    last: int
    start: int
    end: int


def windows(
    documents: Sequence[Row],
    sentences: Sequence[Row],
    chosen: Iterable[Occurrence],
    *,
    rules: WindowRules,
    seed: int,
    lowercase: bool = True,
) -> dict[Occurrence, Window]:
    """The windows around occurrences."""
    texts = {row["doc_id"]: row["text"] for row in documents}
    runs: list[list[Token]] = []
    place: list[tuple[int, int]] = []  # of each sentence: its run, and its first token in it
    for number, sentence in enumerate(sentences):
        tokens = tokens_of(sentence, lowercase=lowercase)
        before = sentences[number - 1] if number else None
        if (
            before is None
            or before["doc_id"] != sentence["doc_id"]
            or texts[sentence["doc_id"]][runs[-1][-1].end_char : tokens[0].start_char].strip()
        ):
            runs.append([])
        place.append((len(runs) - 1, len(runs[-1])))
        runs[-1] += tokens
    found = {}
    for each in chosen:
        number, offset = place[each.sentence]
        run, start, end = runs[number], each.start + offset, each.end + offset
        room = max(rules.window - (end - start), 0)
        chance = row_key(each, seed=seed)[1] >> 1
        before_phrase = room // 2 if rules.placement == "centre" else chance % (room + 1)
        first = max(start - before_phrase, 0)
        last = min(first + rules.window, len(run))
        first = max(min(first, last - rules.window), 0)
        found[each] = Window(run, min(first, start), max(last, end), start, end)
    return found


def mask(text: str, window: Window, *, rules: WindowRules) -> tuple[str, int]:
    """The context and where its own mask stands."""
    run, first, last, start, end = window
    phrase = join(run[start:end])
    masked = [(start, end)]
    place = first
    while rules.mask_others and place < last:
        behind = end_of(phrase, run, place, last)
        if behind and (behind <= start or place >= end):
            masked.append((place, behind))
            place = behind
        else:
            place += 1
    context, here, mask_start = "", run[first].start_char, 0
    for head, tail in sorted(masked):
        context += known(text[here : run[head].start_char], rules)
        if head == start:
            mask_start = len(context)
        context += rules.mask_token
        here = run[tail - 1].end_char
    return context + known(text[here : run[last - 1].end_char], rules), mask_start


def unknown_words(window: Window) -> int:
    return sum(each.form.count("\ufffd") for each in window.run[window.first : window.last])


def end_of(phrase: str, run: Sequence[Token], place: int, last: int) -> int:
    """The token after the last of the phrase where it begins at `place`, 0 where it does not."""
    for behind in range(place + 1, last + 1):
        words = join(run[place:behind])
        if words == phrase:
            return behind
        if not phrase.startswith(words):
            break
    return 0


def known(text: str, rules: WindowRules) -> str:
    """Line breaks as one blank, unknown words as the token."""
    return text.replace("\n\n", "\n").replace("\n", " ").replace("\ufffd", rules.unknown_token)


def contexts(
    documents: Sequence[Row],
    sentences: Sequence[Row],
    phrases: Sequence[Row],
    *,
    phrase_rules: PhraseRules = PhraseRules(),  # noqa: B008
    window_rules: WindowRules = WindowRules(),  # noqa: B008
    most: int = 1,
    seed: int = 0,
    validation_rate: float = 0.0,
    negatives: str = "random",
) -> tuple[list[Row], list[Row]]:
    """The rows of the contexts dataset: training and validation split, in order."""
    by_id = {row["doc_id"]: row for row in documents}
    by_phrase = {row["phrase"]: row for row in phrases}
    chosen = choose(find(sentences, phrase_rules).occurrences, by_phrase, most=most, seed=seed)
    lowercase = phrase_rules.lowercase
    around = windows(documents, sentences, chosen, rules=window_rules, seed=seed, lowercase=lowercase)
    splits: tuple[list[Occurrence], list[Occurrence]] = [], []
    for each in chosen:
        digest = xxhash.xxh3_64_intdigest(f"split\0{each.doc_id}".encode(), seed=seed)
        splits[digest < validation_rate * 2**64].append(each)
    found: list[list[Row]] = []
    for split in splits:
        rows = []
        for each in sorted(split, key=lambda each: row_key(each, seed=seed)):
            document = by_id[each.doc_id]
            if unknown_words(around[each]) > window_rules.max_unknown_words:
                continue
            context, mask_start = mask(document["text"], around[each], rules=window_rules)
            rows.append(
                {
                    "phrase": each.phrase,
                    "label": by_phrase[each.phrase]["label"],
                    "frequency": by_phrase[each.phrase]["frequency"],
                    "surface": document["text"][each.start_char : each.end_char],
                    "context": context,
                    "mask_start": mask_start,
                    "doc_id": each.doc_id,
                    "sentence_id": sentences[each.sentence]["sentence_id"],
                    "start_char": each.start_char,
                    "end_char": each.end_char,
                    **{name: document[name] for name in ("source", "title", "url", "licence")},
                }
            )
        for place, row in enumerate(rows):
            row["negative"] = negative(row, rows[place + 1 :] + rows[:place], negatives, window_rules.mask_token)
        found.append(rows)
    return found[0], found[1]


def negative(row: Row, circle: Sequence[Row], negatives: str, mask_token: str) -> str:
    """The context of the first row that may be the negative, with as few conditions given up as possible."""
    conditions = ["document", *(name for name in ("source", "label") if name in negatives)]

    def fulfils(other: Row, condition: str) -> bool:
        return other["doc_id"] != row["doc_id"] if condition == "document" else other[condition] == row[condition]

    for kept in range(len(conditions), -1, -1):
        for other in circle[:LOOK_AHEAD]:
            may_be = other["phrase"] != row["phrase"] and all(fulfils(other, each) for each in conditions[:kept])
            if may_be and not words_in(other["context"].replace(mask_token, "\0"), row["phrase"]):
                return other["context"]
    return ""


def words_in(text: str, phrase: str) -> bool:
    """Whether the words of the phrase are in the text, in any case, and not as a part of longer words."""
    text, phrase = (normalise_token(each, lowercase=False).casefold() for each in (text, phrase))
    text, phrase = (unicodedata.normalize("NFC", each) for each in (text, phrase))
    place = text.find(phrase)
    while place >= 0:
        edges = text[place - 1 : place] + phrase[0], phrase[-1] + text[place + len(phrase) :][:1]
        if not any(len(edge) == 2 and all(each.isalnum() or each == "_" for each in edge) for edge in edges):
            return True
        place = text.find(phrase, place + 1)
    return False
