"""Pairs by substitution: phrases -> phrases and paraphrases, by pair; and pairs of a dataset that share no word.

Substitute      map of the exchange by pair: the paraphrases of some phrases
TakePairs       map of the same exchange: the pairs of texts of another dataset, such as aliases
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from pipelines.engine.exchange import n_ranges, write_ranges
from pipelines.engine.stage import Stage, Work, location
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages.extract_pairs import KEYED, PAIRS_A_RANGE, keyed
from pipelines.stages.models import check_model, import_spacy
from pipelines.stages.units import piece_units
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.augmentation.wordnet import wordnet
from transforms.paraphrase.constraints import banned_words, kept_words, violations
from transforms.paraphrase.masked_words import MaskedWords, masked_identity
from transforms.paraphrase.substitution import Analysed, Substitution, read_thesaurus
from transforms.paraphrase.words import words

PHRASES_A_UNIT = 1 << 13
"""About two minutes' work of a core with BERT base."""

_MORE = 3
"""Combinations of a phrase that are looked at, beside those that may be kept."""


class Portion(NamedTuple):
    """Consecutive rows of a shard of a dataset, [first, end), and the number of ranges of the exchange."""

    path: str
    first: int
    end: int
    ranges: int


def _portions(folder: Folder, rows: int, ranges: int) -> list[Portion]:
    return [Portion(each.path, each.first, each.end, ranges) for each in piece_units(folder, rows)]


def _ranges(phrases: str, pairs: str, most: int) -> int:
    rows = read_manifest(Folder(phrases)).rows * most + (read_manifest(Folder(pairs)).rows * 2 if pairs else 0)
    return n_ranges(rows, rows_a_range=PAIRS_A_RANGE)


@dataclass(frozen=True)
class Substitute(Stage):
    """Map of the exchange by pair: the paraphrases of some phrases of a shard. Batches are formed from these alone."""

    name: ClassVar[str] = "substitute"
    version: ClassVar[int] = 2
    counts: ClassVar[str] = "candidates"
    Unit: ClassVar[type] = Portion

    max_words: int
    pairs_per_phrase: int
    min_score: float
    min_share_of_best: float
    precision: str
    thesaurus_sha256: str
    phrases: str = location()
    masked_lm: str = location()
    thesaurus: str = location(default="")
    pairs: str = location(default="")

    def plan(self, work: Work) -> list[Portion]:
        return _portions(Folder(self.phrases), PHRASES_A_UNIT, _ranges(self.phrases, self.pairs, self.pairs_per_phrase))

    def most_rows(self, work: Work) -> int:
        return read_manifest(Folder(self.phrases)).rows * self.pairs_per_phrase

    def check_machine(self, models: Sequence[Mapping[str, Any]]) -> None:
        check_model(f"--masked-lm {self.masked_lm}", models[0], masked_identity(self.masked_lm))

    def process(self, unit: Portion, write: TaskWriter) -> None:
        with write.busy("loading the models"):
            substitution, model = _loaded(self.masked_lm, self.precision, self.thesaurus)
        rows = read_parquet(Folder(self.phrases), unit.path, ["phrase", "surface"])
        rows = rows.slice(unit.first, unit.end - unit.first)
        analysed = list[tuple[str, Analysed]]()
        with write.part(0.2):
            for phrase, found in self._analysed(rows, substitution):
                if isinstance(found, str):
                    write.ledger.read += 1
                    write.ledger.filtered[found] += 1
                else:
                    analysed.append((phrase, found))
        done = 0

        def note(number: int) -> None:
            nonlocal done
            done += number

        with write.part(0.7, lambda: done / max(len(analysed), 1)):
            views = model.views([each for each, _ in analysed], [each.asked for _, each in analysed], note)
        pairs = list[tuple[str, str, float, None, str]]()
        for (phrase, places), seen in zip(write.each(analysed, 0.98), views, strict=True):
            candidates = substitution.paraphrases(places, seen, most=self.pairs_per_phrase + _MORE)
            if not candidates:
                write.ledger.read += 1
                write.ledger.filtered["no_substitute"] += 1
            least = max(self.min_score, self.min_share_of_best * candidates[0].score) if candidates else 0.0
            for rank, each in enumerate(candidates):
                write.ledger.read += 1
                if each.score < self.min_score:
                    write.ledger.filtered["below_score"] += 1
                elif each.score < least or rank >= self.pairs_per_phrase:
                    write.ledger.filtered["not_among_best"] += 1
                else:
                    write.ledger.written += 1
                    pairs.append((phrase, each.text, each.score, None, ORIGIN))
        write_ranges(write, "pairs", keyed(pairs, KEYED), ranges=unit.ranges)

    def _analysed(self, rows: pa.Table, substitution: Substitution) -> list[tuple[str, Analysed | str]]:
        """Each phrase with its places, or the reason for which it has none."""
        from transforms.parsing.tokens import tag

        found: list[tuple[str, Analysed | str]] = []
        asked = list[tuple[int, str, str]]()
        for phrase, surface in zip(rows.column("phrase").to_pylist(), rows.column("surface").to_pylist(), strict=True):
            if phrase.count(" ") >= self.max_words:
                found.append((phrase, "too_many_words"))
            else:
                asked.append((len(found), phrase, surface))
                found.append((phrase, "no_substitute"))
        # The forms of a phrase and of its surface have the same tokens, but for an article that is not there.
        texts = [
            surface.split() if surface.count(" ") == phrase.count(" ") else phrase.split()
            for _, phrase, surface in asked
        ]
        for (row, phrase, _), text, tags in zip(asked, texts, tag(_tagger(), texts), strict=True):
            found[row] = (phrase, substitution.analyse(phrase, " ".join(text), tags))
        return found


ORIGIN = "substitution"


@functools.lru_cache(maxsize=1)
def _loaded(masked_lm: str, precision: str, thesaurus: str) -> tuple[Substitution, MaskedWords]:
    """The words and the model, loaded once per process."""
    model = MaskedWords(masked_lm, precision=precision)
    return Substitution(wordnet(), model, read_thesaurus(thesaurus) if thesaurus else {}), model


@functools.cache
def _tagger() -> Any:
    import_spacy()
    from transforms.parsing.tokens import load_spacy

    return load_spacy(exclude=("ner", "lemmatizer", "parser"))


@dataclass(frozen=True)
class TakePairs(Stage):
    """Map of the exchange by pair: the pairs of texts of a dataset that share no word of content, in both directions.

    Names and numbers may be shared, as everywhere.
    """

    name: ClassVar[str] = "take_pairs"
    counts: ClassVar[str] = "pairs"
    Unit: ClassVar[type] = Portion

    max_words: int
    pairs_per_phrase: int
    origin: str
    phrases: str = location()
    pairs: str = location()

    def plan(self, work: Work) -> list[Portion]:
        return _portions(Folder(self.pairs), 1 << 20, _ranges(self.phrases, self.pairs, self.pairs_per_phrase))

    def process(self, unit: Portion, write: TaskWriter) -> None:
        folder = Folder(self.pairs)
        alike = read_manifest(folder).kind.alike
        assert alike is not None
        rows = read_parquet(folder, unit.path, [alike.one, alike.other])
        rows = rows.slice(unit.first, unit.end - unit.first)
        found = list[tuple[str, str, None, None, str]]()
        sides = (rows.column(name).to_pylist() for name in (alike.one, alike.other))
        for one, other in write.each(list(zip(*sides, strict=True)), 0.98):
            for text, paraphrase in ((one, other), (other, one)):
                write.ledger.read += 1
                if reason := self._left_out(text, paraphrase):
                    write.ledger.filtered[reason] += 1
                else:
                    write.ledger.written += 1
                    found.append((text.lower(), paraphrase.lower(), None, None, self.origin))
        write_ranges(write, "pairs", keyed(found, KEYED), ranges=unit.ranges)

    def _left_out(self, phrase: str, paraphrase: str) -> str | None:
        if max(len(phrase.split()), len(paraphrase.split())) > self.max_words:
            return "too_many_words"
        # A name is what has capitals on both sides; so a name may become what it is: "the Cape" / "Cape Town".
        kept = {*kept_words(phrase.lower(), surface=phrase)} & set(words(paraphrase))
        banned = banned_words(phrase.lower(), inflections=True, kept=kept)
        if not banned:
            return "no_content"
        return "shared_word" if violations(paraphrase.lower(), banned, inflections=True) else None
