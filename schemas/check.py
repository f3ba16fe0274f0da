"""Verify dataset directories: every file, every row, every number of the manifest.

    python -m schemas.check out/contexts out/contexts-phrases

It checks the manifest, the shards (present, named, bytes, sha256, schema, rows), the ledgers, the side tables, and the
rules of the dataset's kind (`schemas/kinds/`) for each row. Rows are compared with the dataset that they point into,
such as the text of documents, if it is where the manifest (or --source) says. Exit status: 0 no findings, 1 findings,
2 no dataset.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.commands import Tool
from schemas.errors import UserError
from schemas.options import option
from schemas.process import leave_out_pandas, until_pipe_closes
from schemas.storage.errors import storage_error


@dataclass(frozen=True)
class Check:
    """What is checked, and how far."""

    datasets: tuple[str, ...] = option(
        flag="DIR", repeated=True, place=True, help="a dataset directory, or its address"
    )
    source: str | None = option(
        None,
        also=("--documents",),
        place=True,
        metavar="DIR",
        help="what it was made from (documents, mentions), if that was moved",
    )
    quick: bool = option(False, help="leave out hashes and rows: no data is read")


TOOL = Tool("schemas.check", "Verifies datasets: every file, every row, every number of the manifest.", Check)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check each directory; returns the exit status."""
    try:
        options = TOOL.flags.parse(arguments)[Check]
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    leave_out_pandas()
    from schemas.dataset_checks import check_dataset, summary
    from schemas.storage.folder import Folder

    status = 0
    for path in options.datasets:
        try:
            with until_pipe_closes():
                findings = 0
                for finding in check_dataset(path, elsewhere=options.source, quick=options.quick):
                    print(finding, flush=True)
                    findings += 1
                if findings:
                    print(f"{Folder(path)}: {findings:,} finding{'s' if findings != 1 else ''}", flush=True)
                    status = max(status, 1)
                else:
                    print(summary(path, elsewhere=options.source, quick=options.quick), flush=True)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            status = 2
        except OSError as error:
            print(f"error: {storage_error(error, str(Folder(path)), final=True)}", file=sys.stderr)
            status = 2
    return status


if __name__ == "__main__":
    sys.exit(main())
