"""Rewrites the reports of finished datasets, for `python -m pipelines.report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.dataset import Dataset
from transforms.reports.page import dataset_report

if TYPE_CHECKING:
    from pipelines.report import Report

REPORT = "report.html"


def run(chosen: Report) -> int:
    for directory in chosen.directories:
        dataset = Dataset.open(directory)
        dataset.folder.write(REPORT, dataset_report(dataset.folder, dataset.manifest).encode())
        print(f"{dataset.folder}/{REPORT}")
    return 0
