"""The errors that a user can fix, and what helps after them."""

from __future__ import annotations


class UserError(Exception):
    """Something that a user asked for cannot be done. The message names the file or option and the remedy.

    It is shown without a traceback and never retried: the same input would fail again.
    """

    then = ""
    """The flag with which a run goes on when the cause is mended.

    Empty: the message says what to do, or the same command would end in the same way. Errors that a user did not cause
    have no such attribute: `--resume` may help.
    """


class CorruptInput(UserError):
    """The input is damaged. Another input, or --on-corrupt=skip, makes another dataset, which does not resume this."""

    then = "--overwrite"


class WorkerError(UserError):
    """Worker processes died or hung. With more memory, or fewer of them, the same command may succeed."""

    then = "--resume"


def resumes(error: BaseException | None) -> bool:
    """Whether the same command with --resume may go on after an error, or an interruption."""
    return getattr(error, "then", "--resume") == "--resume"
