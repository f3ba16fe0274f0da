"""Makes the image's script, this folder's helpers and those of stores and clusters importable."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
for _folder in (_HERE.parents[1] / "docker", _HERE, _HERE.parent / "storage", _HERE.parent / "clusters"):
    sys.path.insert(0, str(_folder))
