"""Lists the pipelines, and the tools that read their datasets: `python -m pipelines`."""

from __future__ import annotations

from importlib import import_module

COMMANDS = [
    import_module(f"pipelines.{name}").COMMAND
    for name in (
        "mine_contexts",
        "mine_mentions",
        "extract_documents",
        "parse_sentences",
        "count_phrases",
        "find_mentions",
    )
]
TOOLS = [import_module(f"pipelines.{name}").TOOL for name in ("status", "rejects", "report", "mentions")]

if __name__ == "__main__":
    from rich.table import Table

    from transforms.reports.figures import text_of

    table = Table.grid(padding=(0, 2))
    for command in COMMANDS:
        table.add_row(f"python -m pipelines.{command.module}", command.description)
    table.add_row()
    for tool in TOOLS:
        table.add_row(f"python -m pipelines.{tool.module} DIR", tool.description)
    print("\n".join(text_of(table)))
