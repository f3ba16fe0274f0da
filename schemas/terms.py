"""Closed lists of terms, for columns and options. This module imports nothing, because `--help` needs it."""

from __future__ import annotations

PHRASE_LABELS = ("NP", "VP", "PP", "ADJP", "ADVP")
"""The labels of constituents that the papers use as phrases. Their order breaks ties between labels."""

NAME_TYPES = tuple("PERSON NORP FAC ORG GPE LOC PRODUCT EVENT WORK_OF_ART LAW LANGUAGE".split())
"""The types of OntoNotes' entities that are names; the others are numbers and times."""

ENTITY_TYPES = (*NAME_TYPES, "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL")
"""The 18 types of entities of OntoNotes, in the order of its guidelines."""

NO_ENTITY = "OTHER"
"""The entity type of what is no entity."""

UNKNOWN_TOKEN = "\ufffd"
"""A word of a text that the source does not give, such as WikiText's <unk>. No phrase may contain it."""

NEGATIVES = {
    "random": ("document",),
    "same-source": ("document", "source"),
    "same-label": ("document", "label"),
    "same-source-and-label": ("document", "source", "label"),
}
"""What the negative of a context has to be, besides a context of another phrase: of another document, of the same
source, of the same label. Where no row is all of it, the last is given up first."""

RESOLUTIONS = ("qid", "redirect", "title", "NIL")
"""How the target of a mention was found (docs/mentions.md)."""

ORIGINS = ("link", "title", "repeat")
"""Why a text is a mention: it is a hyperlink, the page's own title, or an anchor that the page linked before."""

PAIR_KINDS = ("entity", "surface")
"""What the two mentions of a pair share."""

STRAIGHT_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
"""The typographic apostrophes and quotes that are straight ones in phrases."""

KEYBOARD = ((0.0, "qwertyuiop"), (0.25, "asdfghjkl"), (0.75, "zxcvbnm"))
"""The letters of an English keyboard, row by row, and by how many keys each row is shifted to the right."""
