"""The contract: records, manifest, reading and checking a dataset. Imports neither Beam nor torch."""

import os
import signal
import sys

_OURS = ("pipelines", "schemas", "transforms", "trainers", "phrasemill")


def _starts_us() -> bool:
    """Whether this process is beginning to import one of our commands, not a program that uses our packages."""
    if os.path.basename(next(iter(sys.argv), "")) == "phrasemill":
        return True
    after = sys.orig_argv[sys.orig_argv.index("-m") + 1 :] if "-m" in sys.orig_argv else []
    return sys.argv[:1] == ["-m"] and next(iter(after), "").split(".")[0] in _OURS


if _starts_us():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
