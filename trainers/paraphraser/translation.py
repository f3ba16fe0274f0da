"""Paraphrases by translation there and back, as ParaNMT-50M has them, but of constituents within their sentence.

The sentence is translated into the other language. The way back is given the sentence's own words up to the
constituent, may not use the constituent's words of content, and counts only if the sentence's words after it still
follow: so the other language says what is meant, and the words around say what fits. (Wieting and Gimpel 2018
translated whole sentences; Mallinson, Sennrich and Lapata 2017 weighted pivots.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from tokenizers import Encoding

from trainers.paraphraser.marian import END, Cells, Marian, Source
from transforms.paraphrase.constraints import banned_words
from transforms.paraphrase.words import STOPWORDS, stem, words

BEAM, EXTRA, AFTER, BEST = 6, 3, 5, 5
"""Hypotheses at a time; tokens that a paraphrase may have more; tokens after it that are looked at; candidates."""
_LEAST, _LEAST_WITH_NEXT = -16.0, -14.0
_NEVER = -1e9
_START = "\u2581"
_PLAIN = re.compile(r"[a-zA-Z\u2581'\u2019,.;:0-9\u2013\u2014-]+")


class Span(NamedTuple):
    """A constituent: the number of its sentence, and where it is in the sentence's text."""

    sentence: int
    start: int
    end: int


class Found(NamedTuple):
    """A candidate: how much likelier it is than the constituent, and the words after it than after the constituent
    (natural logarithms).
    """

    text: str
    gain: float
    after: float


class _Row(NamedTuple):
    """A span that can be asked for: its tokens are from `first` to `end` in the sentence; `after`: those after it."""

    number: int
    span: Span
    first: int
    end: int
    after: list[int]


class _Hypothesis(NamedTuple):
    tokens: list[int]
    score: float
    with_next: float
    cells: Cells


class RoundTrip:
    """Both directions. Candidates have tokens that are in `texts` twice: those of the other language are not."""

    def __init__(self, there: Marian, back: Marian, texts: Sequence[str]) -> None:
        self._there, self._back = there, back
        seen = Counter(i for each in _encoded(back, texts) for i in each.ids)
        pieces = {number: back.tokenizer.id_to_token(number) for number in seen}
        usual = [number for number, count in seen.items() if count > 1 and _PLAIN.fullmatch(pieces[number])]
        self._tokens = torch.tensor([END, *sorted(set(usual) - {END})])
        self._pieces = ["", *(pieces[number] for number in self._tokens.tolist()[1:])]
        self._number = {token: number for number, token in enumerate(self._tokens.tolist())}
        self._matrix, self._bias = back.output(self._tokens)
        self._within = torch.tensor([piece[:1].isalnum() for piece in self._pieces])

    @torch.inference_mode()
    def candidates(self, sentences: Sequence[str], spans: Sequence[Span]) -> list[list[Found]]:
        """For each span its candidates, the best first."""
        source = self._back.encode(translated(self._there, sentences))
        encoded = _encoded(self._back, sentences)
        ids, history, likelihood = self._read(encoded, source)
        rows = [row for number, span in enumerate(spans) if (row := self._row(number, span, encoded[span.sentence]))]
        found: list[list[Found]] = [[] for _ in spans]
        if rows:
            hypotheses = self._search(rows, sentences, ids, history, source)
            after = self._after(rows, hypotheses, source)
            for row, own, values in zip(rows, hypotheses, after, strict=True):
                of_span = float(likelihood[row.span.sentence, row.first : row.end].sum())
                of_after = float(likelihood[row.span.sentence, row.end : row.end + len(row.after)].sum())
                each = [
                    Found(self._text(one.tokens), one.score - of_span, value - of_after)
                    for one, value in zip(own, values, strict=True)
                ]
                found[row.number] = sorted(each, key=lambda one: (-one.gain - one.after, one.text))
        return found

    def _read(self, encoded: Sequence[Encoding], source: Source) -> tuple[torch.Tensor, list[Cells], torch.Tensor]:
        """The sentences' tokens, the decoder's states before each, and how likely each is."""
        most = max(len(each.ids) for each in encoded) + 1
        ids = torch.tensor([[*each.ids, *[END] * (most - len(each.ids))] for each in encoded])
        cells, history, likelihood = self._back.begin(len(encoded)), [], []
        for place in range(most):
            history.append(cells)
            last = ids[:, place - 1] if place else None
            hidden, cells = self._back.step(last, torch.full((len(encoded),), place), cells, source)
            own = torch.tensor([self._number.get(token, -1) for token in ids[:, place].tolist()])
            said = self._logs(hidden).gather(1, own.clamp(min=0)[:, None])[:, 0]
            likelihood.append(torch.where(own < 0, _LEAST, said))
        return ids, history, torch.stack(likelihood, dim=1)

    def _row(self, number: int, span: Span, encoded: Encoding) -> _Row | None:
        """None if the span is at the sentence's begin, ends within a token, or is followed by a rare token."""
        offsets = encoded.offsets
        first = next((place for place, (_, end) in enumerate(offsets) if end > span.start), len(offsets))
        end = next((place for place, (_, end) in enumerate(offsets) if end > span.end), len(offsets))
        if not 0 < first < end or (end < len(offsets) and offsets[end][0] < span.end):
            return None
        after = [self._number.get(token, -1) for token in [*encoded.ids[end:], END][:AFTER]]
        return None if -1 in after else _Row(number, span, first, end, after)

    def _search(
        self,
        rows: Sequence[_Row],
        sentences: Sequence[str],
        ids: torch.Tensor,
        history: Sequence[Cells],
        source: Source,
    ) -> list[list[_Hypothesis]]:
        """A beam search for each span; hypotheses are taken wherever the token after the span may follow."""
        n = len(rows)
        sentence = torch.tensor([row.span.sentence for row in rows])
        source = source.take(sentence.repeat_interleave(BEAM))
        first = torch.tensor([row.first for row in rows]).repeat_interleave(BEAM)
        last = ids[sentence, torch.tensor([row.first - 1 for row in rows])].repeat_interleave(BEAM)
        following = torch.tensor([row.after[0] for row in rows]).repeat_interleave(BEAM)
        cells = tuple(
            torch.stack([history[row.first][layer][row.span.sentence] for row in rows]).repeat_interleave(BEAM, 0)
            for layer in range(len(history[0]))
        )
        bans = [_ban(sentences[row.span.sentence][row.span.start : row.span.end]) for row in rows]
        limits = [row.end - row.first + EXTRA for row in rows]
        score = torch.full((n, BEAM), _NEVER)
        score[:, 0] = 0
        beams: list[list[list[int]]] = [[[]] for _ in rows]
        found: list[list[_Hypothesis]] = [[] for _ in rows]
        for step in range(max(limits) + 1):
            hidden, cells = self._back.step(last, first + step, cells, source)
            logs = self._logs(hidden)
            with_next = (score.view(-1) + logs.gather(1, following[:, None])[:, 0]).tolist()
            for each, beam in enumerate(beams):
                for place, tokens in enumerate(beam):
                    at = each * BEAM + place
                    if tokens and with_next[at] > _LEAST_WITH_NEXT and not self._is_banned(tokens, bans[each]):
                        own = tuple(cell[at] for cell in cells)
                        found[each].append(_Hypothesis(tokens, float(score[each, place]), with_next[at], own))
            logs[:, END] = _NEVER
            if not step:
                logs[:, self._within] = _NEVER  # it begins with a word, not within one
            values, places = (score.view(-1, 1) + logs).view(n, -1).topk(3 * BEAM, dim=1)
            parents = torch.arange(n * BEAM)
            score, tokens_of = torch.full((n, BEAM), _NEVER), torch.zeros(n * BEAM, dtype=torch.long)
            for each, options in enumerate(zip(values.tolist(), places.tolist(), strict=True)):
                chosen: list[list[int]] = []
                for value, place in zip(*options, strict=True):
                    if value < _LEAST or len(chosen) == BEAM or step >= limits[each]:
                        break
                    parent, token = divmod(place, len(self._tokens))
                    before = beams[each][parent]
                    if before and self._pieces[token].startswith(_START) and self._is_banned(before, bans[each]):
                        continue
                    at = each * BEAM + len(chosen)
                    score[each, len(chosen)], tokens_of[at], parents[at] = value, token, each * BEAM + parent
                    chosen.append([*before, token])
                beams[each] = chosen
            if not any(beams):
                break
            last = self._tokens[tokens_of]
            cells = tuple(cell[parents] for cell in cells)
        return [sorted(each, key=lambda one: -one.with_next)[:BEST] for each in found]

    def _after(
        self, rows: Sequence[_Row], hypotheses: Sequence[Sequence[_Hypothesis]], source: Source
    ) -> list[list[float]]:
        """How likely the tokens after the span are after each hypothesis."""
        all_of = [(row, one) for row, own in zip(rows, hypotheses, strict=True) for one in own]
        values = torch.tensor([one.with_next - one.score for _, one in all_of])
        if all_of:
            source = source.take(torch.tensor([row.span.sentence for row, _ in all_of]))
            cells = tuple(
                torch.stack([one.cells[layer] for _, one in all_of]) for layer in range(len(all_of[0][1].cells))
            )
            place = torch.tensor([row.first + len(one.tokens) for row, one in all_of])
            after = torch.tensor([row.after + [END] * (AFTER - len(row.after)) for row, _ in all_of])
            going_on = torch.ones(len(all_of), dtype=torch.bool)
            for step in range(1, AFTER):
                going_on &= after[:, step - 1] != END
                hidden, cells = self._back.step(self._tokens[after[:, step - 1]], place + step, cells, source)
                said = self._logs(hidden).gather(1, after[:, step, None])[:, 0]
                values = values + torch.where(going_on, said, 0.0)
        left = iter(values.tolist())
        return [[next(left) for _ in own] for own in hypotheses]

    def _logs(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(hidden @ self._matrix + self._bias, dim=1)

    def _text(self, tokens: Iterable[int]) -> str:
        return "".join(self._pieces[each] for each in tokens).replace(_START, " ").strip()

    def _is_banned(self, tokens: Sequence[int], banned: Callable[[str], bool]) -> bool:
        """Whether the last word is."""
        begin = next((at for at in reversed(range(len(tokens))) if self._pieces[tokens[at]].startswith(_START)), 0)
        return any(map(banned, words(self._text(tokens[begin:]))))


def translated(model: Marian, texts: Sequence[str], *, most: int = 80) -> list[str]:
    """The translations, greedily."""
    source, cells = model.encode(texts), model.begin(len(texts))
    matrix, bias = model.output(torch.arange(model.tokenizer.get_vocab_size()))
    bias[1] = _NEVER  # the unknown token
    last, chosen, ended = None, [], torch.zeros(len(texts), dtype=torch.bool)
    for place in range(most):
        hidden, cells = model.step(last, torch.full((len(texts),), place), cells, source)
        last = (hidden @ matrix + bias).argmax(dim=1)
        chosen.append(last)
        ended |= last == END
        if ended.all():
            break
    rows = torch.stack(chosen, dim=1).tolist()
    found: list[str] = model.tokenizer.decode_batch([row[: row.index(END)] if END in row else row for row in rows])
    return found


def _ban(phrase: str) -> Callable[[str], bool]:
    """Whether a word may not be in a paraphrase: the constraint of `transforms/paraphrase`, here on whole words."""
    banned = frozenset(banned_words(phrase, inflections=True))
    stems = frozenset(map(stem, banned))
    return lambda word: word in banned or (word not in STOPWORDS and stem(word) in stems)


def _encoded(model: Marian, texts: Sequence[str]) -> list[Encoding]:
    found: list[Encoding] = model.tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return found
