"""The error that a user can fix."""

from __future__ import annotations


class UserError(Exception):
    """Something that a user asked for cannot be done. The message names the file or option and the remedy.

    It is shown without a traceback and never retried: the same input would fail again.
    """
