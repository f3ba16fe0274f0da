# ruff: noqa: F401 (a kind is registered when its module is imported)
"""The kinds of datasets, one file each. A new kind is a new file, and a line in this import."""

from __future__ import annotations

from schemas import overlaps
from schemas.kind import KINDS as KINDS
from schemas.kinds import (
    alias_pairs,
    augmentations,
    contexts,
    contrast_pairs,
    documents,
    embeddings,
    entities,
    hard_negatives,
    labelled_pairs,
    mention_pairs,
    mentions,
    neighbours,
    paraphrase_candidates,
    paraphrases,
    phrase_pairs,
    phrases,
    sentences,
    typed_phrases,
)
from schemas.reasons import REJECTS, WORKER_FAULTS

SIDES = {
    "rejects": REJECTS,
    overlaps.SIDE: overlaps.OVERLAPS,
    **{name: side.schema for kind in KINDS.values() for name, side in kind.sides.items()},
}
"""The side tables of all kinds, with their schemas."""

REJECT_REASONS = {reason: text for kind in KINDS.values() for reason, text in kind.rejects.items()} | WORKER_FAULTS
"""All reasons for which a record is rejected for a fault, with their meaning."""

FILTER_REASONS = overlaps.FILTERS | {reason: text for kind in KINDS.values() for reason, text in kind.filters.items()}
"""All reasons for which a stage filters something by a rule, with their meaning."""
