"""Reading the files of evaluation sets; errors name the file, the line and the format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from schemas.errors import UserError


def text_of(path: Path) -> str:
    """The text of a UTF-8 file. UserError if it cannot be read, or is empty."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file; docs/evaluation.md says where it comes from") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error}); fetch it again") from error
    if not text:
        raise UserError(f"{path}: is empty; fetch it again")
    return text


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers from 1, without their ends. UserError if it cannot be read."""
    lines = text_of(path).split(
        "\n"
    )  # not splitlines(), which also ends lines at characters that tweets have, as U+2028
    if lines[-1] == "":
        lines.pop()
    yield from enumerate((line.removesuffix("\r") for line in lines), 1)


def malformed(path: Path, line: int, wanted: str) -> UserError:
    """The error for a line that is not in the documented format."""
    return UserError(f"{path}: line {line} is no {wanted}; docs/evaluation.md shows the format")
