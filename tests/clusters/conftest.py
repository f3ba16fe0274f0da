"""Makes this folder's helpers, the toy pipeline and the small job importable, also by worker processes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
for _folder in (_HERE, _HERE.parent / "pipelines", _HERE.parent / "storage"):
    sys.path.insert(0, str(_folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_folder), os.environ.get("PYTHONPATH")]))
