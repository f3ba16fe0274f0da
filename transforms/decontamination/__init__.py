"""Texts of evaluation sets that occur in datasets: reading the sets, and finding their texts."""
