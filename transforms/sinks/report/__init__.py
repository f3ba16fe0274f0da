"""A dataset's `report.html`: what is in it and how it came about, for a person to look at."""

from transforms.sinks.report.page import dataset_report

__all__ = ["dataset_report"]
