"""Digests of the files of models."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sha256_of(path: Path, files: Iterable[Path] | None = None) -> str:
    """The sha256 of a file, or of a folder's files with their names: of all, or of those given."""
    digest = hashlib.sha256()
    within = path.is_dir()
    for file in sorted(files or path.rglob("*")) if within else [path]:
        if file.is_file() or not within:
            if within:
                digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as content:
                while block := content.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()
