"""The tasks, one module a task or a family of tasks of one protocol."""
