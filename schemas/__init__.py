"""The contract: records, manifest, reading and checking a dataset. Imports neither Beam nor torch."""

import signal
import sys

if sys.argv[:1] == ["-m"]:  # a program of ours: this package holds its main module, which is not run yet
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it without a traceback, also while it imports
