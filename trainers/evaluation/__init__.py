"""Evaluation of phrase representations: tasks, models, and the table of both."""
