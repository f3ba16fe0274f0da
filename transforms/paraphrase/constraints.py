"""The lexical constraint: the words that a paraphrase must not hold, and the tokens that would make them.

The words of a phrase that are no stop words are banned, in any case; by default also their other forms and the words
with their stems (`words.py`). While a paraphrase is drawn, `BannedTokens` says for each row which tokens may not come
next; `violations` checks the text again.

A word is banned only where it ends. "run" forbids " run", "r" + "un" and "runn" + "ing", but neither " runway" nor
" run" + "way". So each row has the letters of its last word, which may go on: a state. Of a token, three things count:
its letters up to the first end of a word, which complete the last word; the words that lie within it; and its letters
after the last end of a word, which may go on.

- A token that completes a banned word, or holds one, is forbidden; also the end of the text.
- A token after which a banned word is complete but may go on costs `unlikely` (natural logarithm): models hardly ever
  go on with a whole word. Otherwise a model that wants to say "run" would get as far as " run", and had then to go on
  with letters: "runx". The cost is the estimate of how likely it goes on; without it the choice of the next token
  would not be conditioned on the constraint. `math.inf` forbids such tokens.

Every text without a banned word can be made of its usual tokens, unless `unlikely` is infinite. No row is left without
a token.
"""

from __future__ import annotations

import codecs
import functools
import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from schemas.errors import UserError
from schemas.terms import NO_ENTITY
from transforms.arrays import I64
from transforms.paraphrase.options import KEPT
from transforms.paraphrase.words import STOPWORDS, content_words, plain_text, stem, word_forms, words
from transforms.phrases import lexicon

_NUMBER_TYPES = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
"""Entity types of OntoNotes that are no names."""

_LONGEST_APART = 3
"""How many words beside each other are read as one: "foot ball", "vis-a-vis"."""


def banned_words(phrase: str, *, inflections: bool, kept: Collection[str] = ()) -> tuple[str, ...]:
    """The words that no paraphrase of a phrase may hold, sorted; empty if it has stop words (or `kept` words) only.

    `inflections`: also their other forms, words with their stems, and what is written with a hyphen as one word.

    >>> banned_words("the king's news", inflections=False)
    ('king', 'news')
    >>> banned_words("the king's news", inflections=True)
    ('king', 'kinglier', 'kingliest', 'kingly', 'kings', 'news', 'newses')
    """
    kept = frozenset(kept)
    found = [each for each in dict.fromkeys(content_words(phrase)) if each not in kept]
    if not inflections:
        return tuple(sorted(found))
    joined = ("".join(words(token)) for token in phrase.split() if "-" in token[1:-1])
    family = word_forms().family
    return tuple(sorted(frozenset().union(*map(family, found), joined) - STOPWORDS - kept))


def kept_words(phrase: str, *, surface: str = "", entity_type: str = "", keep: Collection[str] = KEPT) -> list[str]:
    """The words of a phrase that are names or numbers.

    Names have a capital letter in `surface`, the form in which the phrase is mostly written. The first word may have it
    as that of a sentence or a title, unless the phrase is an entity by its type or another word has one, too. Numbers
    have a digit, or are number words.

    >>> kept_words("two old men of athens", surface="Two old men of Athens")
    ['two', 'athens']
    """
    found = []
    if "names" in keep:
        capital = [
            any(letter.isupper() for letter in token) and not set(words(token)) <= STOPWORDS
            for token in surface.split()
        ]
        named = entity_type not in ("", NO_ENTITY, *_NUMBER_TYPES)
        if capital and not named and sum(capital) < 2 and not _has_capital_inside(surface.split()[0]):
            capital[0] = False
        found += [
            word for token, is_name in zip(surface.split(), capital, strict=True) if is_name for word in words(token)
        ]
    if "numbers" in keep:
        found += [each for each in words(phrase) if each in lexicon.NUMBER_WORDS or any(map(str.isdigit, each))]
    wanted = frozenset(found)
    return [each for each in dict.fromkeys(content_words(phrase)) if each in wanted]


def _has_capital_inside(token: str) -> bool:
    return any(letter.isupper() for letter in token[1:])


def violations(text: str, banned: Collection[str], *, inflections: bool = False) -> list[str]:
    """The words of a text that are banned, in order.

    `inflections`: also words with the stem of a banned one, whatever form that is, and banned words that are written
    apart.

    >>> violations("The king's kingship, and King-ly", ["king", "kingly"])
    ['king', 'king']
    >>> violations("a foot-ball nationalizer", ["football", "national"], inflections=True)
    ['foot ball', 'nationalizer']
    """
    banned = frozenset(banned)
    found = words(text)
    if not inflections:
        return [each for each in found if each in banned]
    stems = {stem(each) for each in banned}
    wrong = []
    for place, word in enumerate(found):
        if word in banned or (word not in STOPWORDS and stem(word) in stems):
            wrong.append(word)
        for size in range(2, min(_LONGEST_APART, len(found) - place) + 1):
            several = found[place : place + size]
            if "".join(several) in banned:
                wrong.append(" ".join(several))
    return wrong


# ---- Tokens


class State(NamedTuple):
    """Where a row is: the letters of its last word if that may go on, and the bytes of a character begun."""

    word: str = ""
    begun: bytes = b""


class _Token(NamedTuple):
    """A token: what it adds to the text, and its letters (a blank for what ends a word); `left`: bytes begun."""

    content: bytes
    letters: tuple[str, ...]
    left: bytes


class _Ban:
    """The banned words of a row, and the tokens that are forbidden, and that are unlikely, after some letters."""

    def __init__(self, banned: tuple[str, ...], within: I64, last: I64) -> None:
        self.words = frozenset(banned)
        self.rests: dict[str, list[str]] = {}
        """By each beginning of banned words what is missing."""
        for each in banned:
            for size in range(len(each) + 1):
                self.rests.setdefault(each[:size], []).append(each[size:])
        self.otherwise = within, last
        self.after: dict[str, tuple[I64, I64]] = {}  # filled when needed


_NONE: I64 = np.empty(0, np.int64)
_CACHED = 1 << 12


class BannedTokens:
    """Which tokens of a vocabulary may not come next, for rows that have banned words each.

    The tokens are read once; `banned_tokens` has them cached for the process. `ends`: the ids that end a text, else the
    tokenizer's.
    """

    def __init__(self, tokenizer: Any, *, ends: Collection[int] | None = None, unlikely: float = math.inf) -> None:
        contents = token_contents(tokenizer)
        self._unlikely = unlikely
        self.ends = frozenset(_ends(tokenizer) if ends is None else ends)
        self._tokens = [None if each is None else _token(each) for each in contents]
        self.size = len(contents)
        self.never: I64 = np.array(
            [each for each, token in enumerate(self._tokens) if token is None and each not in self.ends], np.int64
        )
        """Special tokens other than the ends, and numbers without a token."""
        completing: dict[str, list[int]] = {"": sorted(self.ends)}
        within: dict[str, list[int]] = {}
        going_on: dict[str, list[int]] = {}
        last: dict[str, list[int]] = {}
        self._bytes_first: list[int] = []  # tokens that begin with the rest of a character
        for number, token in enumerate(self._tokens):
            if token is None:
                continue
            if token.content[:1] and 0x80 <= token.content[0] < 0xC0:
                self._bytes_first.append(number)
            letters = token.letters
            if token.left and not _may_be_letter(token.left):
                letters = (*letters, "")  # what is begun ends the word
            if len(letters) == 1:
                going_on.setdefault(letters[0], []).append(number)
                continue
            completing.setdefault(letters[0], []).append(number)
            for each in filter(None, letters[1:-1]):
                within.setdefault(each, []).append(number)
            if letters[-1]:
                last.setdefault(letters[-1], []).append(number)
        self._completing, self._within, self._going_on, self._last = map(_arrays, (completing, within, going_on, last))
        if not any(each for each in going_on):
            self._unlikely = math.inf  # tokens are whole words
        rest = frozenset(self._bytes_first)
        self._not_bytes_first: I64 = np.array(
            [each for each, token in enumerate(self._tokens) if token and each not in rest] + sorted(self.ends),
            np.int64,
        )
        self._ban = functools.lru_cache(_CACHED)(self._make_ban)

    def rows(self, banned: Iterable[Iterable[str]]) -> BannedRows:
        """Rows at their beginning, with the banned words of each."""
        return BannedRows(self, [self._ban(tuple(each)) for each in banned])

    def processor(self, banned: Sequence[Iterable[str]], *, start: int) -> LogitsProcessor:
        """The constraint as transformers' `generate` takes it; the texts begin at the token number `start`.

        Several rows for each list of banned words lie side by side: beams, or num_return_sequences.
        """
        return LogitsProcessor(self, [self._ban(tuple(each)) for each in banned], start)

    def advance(self, state: State, number: int) -> State:
        """The state after a token."""
        token = self._tokens[number] if number < self.size else None
        if token is None:
            return State()
        if state.begun:
            return _walk(state, token.content)[1]
        word = state.word + token.letters[0] if len(token.letters) == 1 else token.letters[-1]
        return State(word, token.left)

    def forbidden(self, ban: _Ban, state: State) -> tuple[I64, I64]:
        """The tokens that are forbidden next, and those that are unlikely; some may be in both."""
        if not state.begun:
            return self._after(ban, state.word)
        # What other tokens follow, the begun character becomes U+FFFD, which ends the word.
        if state.word in ban.words:
            hard, soft = [self._not_bytes_first], []
        else:
            hard, soft = ([np.setdiff1d(each, self._bytes_first)] for each in self._after(ban, ""))
        numbers: tuple[list[int], list[int]] = ([], [])
        for number in self._bytes_first:
            token = self._tokens[number]
            assert token
            complete, after = _walk(state, token.content)
            ends = after.word in ban.words
            if not ban.words.isdisjoint(complete) or (ends and after.begun and not _may_be_letter(after.begun)):
                numbers[0].append(number)
            elif ends:
                numbers[1].append(number)
        return _joined([*hard, np.array(numbers[0], np.int64)]), _joined([*soft, np.array(numbers[1], np.int64)])

    def restrict(self, logits: Any, bans: Sequence[_Ban], states: Sequence[State], *, last: bool) -> Any:
        """Change the logits [rows, vocabulary] of the next tokens in place: an array of numpy or a tensor of torch."""
        found = [self.forbidden(*each) for each in zip(bans, states, strict=True)]
        logits[:, self.size :] = -math.inf
        if len(self.never):
            logits[:, _index(logits, self.never)] = -math.inf
        _at(logits, [hard for hard, _ in found], lambda values: -math.inf)
        cost = math.inf if last else self._unlikely
        _at(logits, [soft for _, soft in found], lambda values: values - cost)
        return logits

    def _make_ban(self, banned: tuple[str, ...]) -> _Ban:
        within, last = ([found[each] for each in banned if each in found] for found in (self._within, self._last))
        return _Ban(banned, _joined(within), _joined(last))

    def _after(self, ban: _Ban, letters: str) -> tuple[I64, I64]:
        """The tokens that are forbidden after the letters of a word, and those that are unlikely; some in both."""
        if letters not in ban.rests:
            return ban.otherwise
        if letters not in ban.after:
            within, last = ban.otherwise
            rests = ban.rests[letters]
            hard = [within, *(self._completing[rest] for rest in rests if rest in self._completing)]
            soft = [last, *(self._going_on[rest] for rest in rests if rest and rest in self._going_on)]
            ban.after[letters] = _joined(hard), _joined(soft)
        return ban.after[letters]


class BannedRows:
    """Rows that are generated together, each with its banned words and its state."""

    def __init__(self, tokens: BannedTokens, bans: list[_Ban]) -> None:
        self._tokens, self._bans = tokens, bans
        self._states = [State()] * len(bans)

    def restrict(self, logits: Any, *, last: bool = False) -> Any:
        """Change the logits [rows, vocabulary] of the next tokens in place; `last`: no token can follow these."""
        return self._tokens.restrict(logits, self._bans, self._states, last=last)

    def advance(self, tokens: Iterable[int]) -> None:
        """Go on by a token a row."""
        self._states = [self._tokens.advance(*each) for each in zip(self._states, tokens, strict=True)]

    def select(self, rows: Iterable[int]) -> None:
        """Go on with these rows only, in this order."""
        chosen = list(rows)
        self._bans = [self._bans[each] for each in chosen]
        self._states = [self._states[each] for each in chosen]


class LogitsProcessor:
    """The constraint as one of transformers' logits processors; it has no state between the steps."""

    def __init__(self, tokens: BannedTokens, bans: list[_Ban], start: int) -> None:
        self._tokens, self._bans, self._start = tokens, bans, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores [rows, vocabulary] after the tokens [rows, length]."""
        rows = input_ids[:, self._start :].tolist()
        each = len(rows) // len(self._bans)
        states = [functools.reduce(self._tokens.advance, row, State()) for row in rows]
        return self._tokens.restrict(
            scores.clone(), [self._bans[number // each] for number in range(len(rows))], states, last=False
        )


def _arrays(numbers: dict[str, list[int]]) -> dict[str, I64]:
    return {key: np.array(each, np.int64) for key, each in numbers.items()}


def _joined(numbers: Sequence[I64]) -> I64:
    if len(numbers) == 1:
        return numbers[0]
    return np.concatenate(numbers) if numbers else _NONE


def _at(logits: Any, numbers: list[I64], change: Callable[[Any], Any]) -> None:
    """Change the logits of some tokens of each row."""
    columns = _joined(numbers)
    if len(columns):
        place = (
            _index(logits, np.repeat(np.arange(len(numbers)), [len(each) for each in numbers])),
            _index(logits, columns),
        )
        logits[place] = change(logits[place])


def _index(logits: Any, numbers: I64) -> Any:
    if isinstance(logits, np.ndarray):
        return numbers
    import torch

    return torch.from_numpy(numbers).to(logits.device)


def _token(content: bytes) -> _Token:
    text, left = _decode(content)
    return _Token(content, tuple(plain_text(text).split(" ")), left)


def _walk(state: State, content: bytes) -> tuple[list[str], State]:
    """The words that a token completes, and the state after it."""
    text, left = _decode(state.begun + content)
    first, *more = plain_text(text).split(" ")
    letters = [state.word + first, *more]
    return letters[:-1], State(letters[-1], left)


def _decode(content: bytes) -> tuple[str, bytes]:
    """A text, and the bytes at its end that begin a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content)
    return text, decoder.getstate()[0]


@functools.lru_cache(1 << 12)
def _may_be_letter(begun: bytes) -> bool:
    """Whether a character that begins with these bytes can be a part of a word."""
    size = 2 if begun[0] < 0xE0 else 3 if begun[0] < 0xF0 else 4
    least = begun + b"\x80" * (size - len(begun))
    most = begun + b"\xbf" * (size - len(begun))
    first, end = (_code_point(each) for each in (least, most))
    found = (chr(each) for each in range(first, min(end, 0x10FFFF) + 1) if not 0xD800 <= each < 0xE000)
    return any(" " not in plain_text(each) for each in found)


def _code_point(character: bytes) -> int:
    number = character[0] & (0x7F >> len(character))
    for each in character[1:]:
        number = number << 6 | each & 0x3F
    return number


# ---- Vocabularies


def token_contents(tokenizer: Any) -> list[bytes | None]:
    """What each token adds to a text; None for special tokens and for numbers without a token.

    `tokenizer`: a fast one of transformers, or one of the library tokenizers: byte-level BPE (GPT-2, SmolLM2),
    WordPiece (BERT), SentencePiece (T5, Llama), BPE with a mark of a word's end, or whole words.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "get_added_tokens_decoder"):
        raise UserError(
            f"constraint: {type(tokenizer).__name__} is no fast tokenizer: load it with AutoTokenizer and the package "
            "tokenizers, or convert it (transformers' convert_slow_tokenizer)"
        )
    vocabulary = backend.get_vocab(with_added_tokens=True)
    added = backend.get_added_tokens_decoder()
    special = {number for number, token in added.items() if token.special} | set(
        getattr(tokenizer, "all_special_ids", ())
    )
    content = _content_of(json.loads(backend.to_str())["decoder"])
    found: list[bytes | None] = [None] * (max(vocabulary.values(), default=-1) + 1)
    for text, number in vocabulary.items():
        if number not in special:
            found[number] = text.encode() if number in added else content(text)
    return found


def _ends(tokenizer: Any) -> list[int]:
    end = getattr(tokenizer, "eos_token_id", None)
    return [] if end is None else [end]


def _content_of(decoder: dict[str, Any] | None) -> Callable[[str], bytes]:
    """How a token's text in the vocabulary becomes what it adds to a text, as the tokenizer's decoder does it."""
    steps = _steps(decoder)
    kinds = [each["type"] for each in steps]
    if not steps:
        return lambda token: b" " + token.encode()  # whole words
    if "ByteLevel" in kinds:
        return _byte_level
    if "WordPiece" in kinds:
        prefix = steps[kinds.index("WordPiece")]["prefix"]
        return lambda token: token[len(prefix) :].encode() if token.startswith(prefix) else b" " + token.encode()
    if "BPEDecoder" in kinds:
        suffix = steps[kinds.index("BPEDecoder")]["suffix"]
        return lambda token: token.replace(suffix, " ").encode()
    blank = next((each["replacement"] for each in steps if each["type"] == "Metaspace"), None)
    for each in steps:
        if each["type"] == "Replace" and each["content"] == " ":
            blank = each["pattern"].get("String")
    if blank is None:
        raise UserError(
            f"constraint: what tokens add to a text is not known with the decoder {', '.join(kinds)}: use a tokenizer "
            "with byte-level BPE, WordPiece or SentencePiece"
        )
    fallback = "ByteFallback" in kinds

    def with_blanks(token: str) -> bytes:
        if fallback and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace(blank, " ").encode()

    return with_blanks


def _steps(decoder: dict[str, Any] | None) -> list[dict[str, Any]]:
    if decoder is None:
        return []
    if decoder["type"] == "Sequence":
        return [step for each in decoder["decoders"] for step in _steps(each)]
    return [decoder]


def _byte_level(token: str) -> bytes:
    table = _byte_characters()
    if all(each in table for each in token):
        return bytes(table[each] for each in token)
    return token.encode()


@functools.cache
def _byte_characters() -> dict[str, int]:
    """The bytes of byte-level BPE by the characters that stand for them: printable ones for themselves."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [each for each in range(0x100) if each not in shown]
    return {chr(each): each for each in shown} | {chr(0x100 + place): each for place, each in enumerate(hidden)}
