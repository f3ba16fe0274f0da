"""The error that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """What a user gave or asked for cannot be done; the message names the file or option and the remedy.

    Shown without a traceback. Never retried: the same input would fail again.
    """
