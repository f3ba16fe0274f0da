"""Lists the pipelines, and the tools that look at what they made: `python -m pipelines`."""

from __future__ import annotations

from pipelines import (
    count_phrases,
    extract_documents,
    find_mentions,
    mentions,
    mine_contexts,
    mine_mentions,
    parse_sentences,
    rejects,
    report,
    status,
)

COMMANDS = [
    each.COMMAND
    for each in (mine_contexts, mine_mentions, extract_documents, parse_sentences, count_phrases, find_mentions)
]
TOOLS = [each.TOOL for each in (status, rejects, report, mentions)]

if __name__ == "__main__":
    width = max(len(command.module) for command in COMMANDS)
    for command in COMMANDS:
        print(f"python -m pipelines.{command.module:<{width}}  {command.description}")
    print()
    for tool in TOOLS:
        print(f"python -m pipelines.{tool.module + ' DIR':<{width}}  {tool.description}")
