"""The requirements of phrasemill, without phrasemill: the worker image installs them in a separate layer.

    python docker/requirements.py benepar,gcp < pyproject.toml > requirements.txt

Standard library only: it runs during the build, before anything is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib


def requirements(project: Mapping[str, Any], extras: Iterable[str]) -> list[str]:
    """The requirements of a pyproject's `project` table with these extras, each once. KeyError: an unknown extra."""
    found = dict.fromkeys(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            name, bracket, rest = line.partition("[")
            if bracket and name == project["name"]:  # an extra made of extras
                found.update(dict.fromkeys(requirements(project, rest.partition("]")[0].split(","))))
            else:
                found[line] = None
    return list(found)


def split_extras(text: str) -> list[str]:
    """`"gcp, benepar"` -> `["benepar", "gcp"]`."""
    return sorted({extra.strip() for extra in text.split(",")} - {""})


if __name__ == "__main__":
    print(*requirements(tomllib.load(sys.stdin.buffer)["project"], split_extras(sys.argv[1])), sep="\n")
