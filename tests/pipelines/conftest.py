"""Makes `toy` importable, for worker processes too."""

import os
import sys
from pathlib import Path

_HERE = str(Path(__file__).parent)
sys.path.insert(0, _HERE)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_HERE, os.environ.get("PYTHONPATH")]))
