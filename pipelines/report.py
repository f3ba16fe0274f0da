"""Writes the report of finished datasets again: `python -m pipelines.report DIR...`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from schemas.addresses import checked_arguments
from schemas.dataset import Dataset
from schemas.errors import UserError
from transforms.sinks.report import dataset_report

DESCRIPTION = "Writes report.html of finished datasets again."

REPORT = "report.html"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 2 where a directory is no dataset."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.report", description=DESCRIPTION)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a dataset, on a disk or at s3:// or gs://")
    try:
        for directory in parser.parse_args(checked_arguments(arguments)).directories:
            dataset = Dataset.open(directory)
            dataset.folder.write(REPORT, dataset_report(dataset.folder, dataset.manifest).encode())
            print(f"{dataset.folder}/{REPORT}")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
