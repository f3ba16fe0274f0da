"""Reading the files of evaluation sets; errors name the file, the line and the format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from schemas.errors import UserError


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers from 1, without their ends. UserError if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; docs/evaluation.md says where it comes from") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); fetch it again") from error
    lines = text.split("\n")  # not splitlines(), which also ends lines at characters that tweets have, as U+2028
    yield from enumerate((each.removesuffix("\r") for each in (lines if lines[-1] else lines[:-1])), 1)


def malformed(path: Path, line: int, wanted: str) -> UserError:
    """The error for a line that is not in the documented format."""
    return UserError(f"{path}: line {line} is no {wanted}; docs/evaluation.md shows the format")
