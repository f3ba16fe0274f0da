"""The tasks by name. Their modules are imported when they are asked for."""

from __future__ import annotations

from importlib import import_module

from trainers.evaluation.task import Task

MODULES = (
    "turney",
    "bird",
    "pair_classification",
    "bigrams",
    "ppdb_choice",
    "entity_retrieval",
    "entity_clustering",
    "autofj",
    "short_text",
    "mention_clustering",
    "diversity",
)
"""The modules of `trainers.evaluation.tasks`, in the order of tables; each has TASKS, a tuple of `Task`."""


def all_tasks() -> dict[str, Task]:
    """All tasks by name, in the order of tables."""
    found = [task for each in MODULES for task in import_module(f"trainers.evaluation.tasks.{each}").TASKS]
    return {task.name: task for task in found}
