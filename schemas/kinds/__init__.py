"""The kinds of datasets, one file each. A new kind is one more file, and one more line here."""

from __future__ import annotations

from schemas.kind import Kind
from schemas.kinds import alias_pairs, contexts, documents, mention_pairs, mentions, phrases, sentences
from schemas.reasons import REJECTS, WORKER_FAULTS

KINDS: dict[str, Kind] = {
    kind.record: kind
    for kind in (
        documents.KIND,
        sentences.KIND,
        phrases.KIND,
        contexts.KIND,
        mentions.KIND,
        mention_pairs.KIND,
        mention_pairs.MASKED_KIND,
        alias_pairs.KIND,
    )
}

SIDES = {"rejects": REJECTS} | {name: side.schema for kind in KINDS.values() for name, side in kind.sides.items()}
"""The side tables of all kinds, with their schemas."""

REJECT_REASONS = {reason: text for kind in KINDS.values() for reason, text in kind.rejects.items()} | WORKER_FAULTS
"""The closed list of reasons for which a record is rejected (a fault), as opposed to filtered (by a rule)."""

FILTER_REASONS = {reason: text for kind in KINDS.values() for reason, text in kind.filters.items()}
"""The closed list of reasons for which a stage leaves something out by a rule."""
