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
    width = max(len(command.module) for command in COMMANDS)
    for command in COMMANDS:
        print(f"python -m pipelines.{command.module:<{width}}  {command.description}")
    print()
    for tool in TOOLS:
        print(f"python -m pipelines.{tool.module + ' DIR':<{width}}  {tool.description}")
