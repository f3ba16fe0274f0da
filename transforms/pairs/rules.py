"""Which pairs are kept: the rules of Pairwise-GRU and others, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from schemas.errors import UserError
from transforms.pairs.formats import PairRow
from transforms.pairs.options import PairRules
from transforms.word_vectors import entries

Rule = Callable[[PairRow], bool]


def rules_of(rules: PairRules, vocabulary: Collection[str] | None) -> list[tuple[str, Rule]]:
    """(reason, whether a pair is left out for it), in the order in which they are asked; the first that fits counts."""
    least, relations = rules.min_score, rules.relations
    found: list[tuple[str, Rule]] = [
        ("labelled_negative", lambda row: not row.label),
        ("identical", lambda row: row.phrase == row.paraphrase),
    ]
    if rules.letters_only:
        found.append(("non_letter", lambda row: not _letters(row.phrase) or not _letters(row.paraphrase)))
    if vocabulary is not None:
        found.append(
            ("unknown_word", lambda row: not _known(row.phrase, vocabulary) or not _known(row.paraphrase, vocabulary))
        )
    if rules.no_single_words:
        found.append(("single_words", lambda row: " " not in row.phrase and " " not in row.paraphrase))
    if relations:
        found.append(("other_relation", lambda row: row.relation not in relations))
    if least is not None:
        found.append(("below_score", lambda row: row.score is None or row.score < least))
    return found


def _letters(phrase: str) -> bool:
    """Whether a phrase has letters and spaces only; letters of any script."""
    return phrase.replace(" ", "").isalpha()


def _known(phrase: str, vocabulary: Collection[str]) -> bool:
    return all(word in vocabulary for word in phrase.split(" "))


def dropped_for(row: PairRow, rules: list[tuple[str, Rule]]) -> str | None:
    """The reason for which a pair is left out; None if it is kept."""
    return next((reason for reason, drops in rules if drops(row)), None)


# ---- The words of embeddings


def read_words(path: Path) -> frozenset[str]:
    """The words of a file: a word a line, or word2vec's (GloVe's, fastText's) text format, or word2vec's binary one.

    UserError if it has none.
    """
    try:
        found = frozenset(word for _, word, _ in entries(path))
    except UserError as error:
        raise UserError(f"--vocabulary {error}") from None
    except (OSError, EOFError) as error:
        raise UserError(f"--vocabulary {path}: cannot be read ({error}); give a file of words or vectors") from None
    if not found:
        raise UserError(f"--vocabulary {path}: holds no words; give a file of words or vectors")
    return found
