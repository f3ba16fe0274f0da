"""Reasons for which something is rejected (a fault) or filtered (a rule). Each kind declares further ones."""

from __future__ import annotations

import re

import pyarrow as pa

from schemas.columns import column, schema, term

REJECTS = schema(
    "Reject",
    term("stage", "the stage that refused it"),
    term("reason", "one of the reasons in schemas.records.REJECT_REASONS"),
    column("source", pa.string(), "the input file or the document"),
    column("position", pa.string(), "where in it: a byte, a line, a page, a character span"),
    column("excerpt", pa.string(), "the beginning of what was refused, at most 200 characters"),
    column("exception", pa.string(), "class and message of the error, empty where a limit refused it"),
)
"""The side table of rejects. Its descriptions are part of the files, so they must not change."""

WORKER_FAULTS = {
    "worker_died": "a document on which worker processes died (a crash, or out of memory), also alone",
    "worker_hung": "a document on which worker processes hung, also alone",
    "worker_failed": "a document on which workers failed with an error, also alone",
}
"""Reasons for rejects of the engine, in stages that can do a unit record by record."""

PUNCTUATION = {"punctuation": "a constituent or mention of punctuation only"}
NUMBER = {"number": "a constituent or mention of numbers only (--keep-numbers)"}
DATE = {"date": "a constituent or mention that is a date, a time or a part of one (--keep-dates)"}
"""Reasons for filtering that more than one kind has."""


def options_in(meaning: str) -> list[str]:
    """The options that decide what is left out for a reason: those that its meaning names."""
    return re.findall(r"--[a-z-]+", meaning)
