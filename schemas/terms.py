"""Closed lists of terms that columns hold and options choose among. Imports nothing: `--help` needs them."""

from __future__ import annotations

PHRASE_LABELS = ("NP", "VP", "PP", "ADJP", "ADVP")
"""The constituents that the papers make phrases of, in the fixed order that breaks ties between labels."""

UNKNOWN_TOKEN = "\ufffd"
"""In a text: a word that the source does not give, such as WikiText's <unk>. No phrase may hold it."""

RESOLUTIONS = ("qid", "redirect", "title", "NIL")
"""How the target of a mention was found (docs/mentions.md)."""

ORIGINS = ("link", "title", "repeat")
"""What makes a mention: a hyperlink, the page's own title, an anchor that the page linked before."""

PAIR_KINDS = ("entity", "surface")
"""What two mentions of a pair share."""
