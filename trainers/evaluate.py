"""Evaluates a model of phrases as the papers did, beside their scores.

python -m trainers.evaluate intfloat/e5-small-v2 --data eval
python -m trainers.evaluate out/model --data eval --tasks pearl --against intfloat/e5-small-v2
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from schemas.commands import Tool
from schemas.errors import UserError
from trainers.evaluation.models.options import ModelOptions
from trainers.evaluation.options import Evaluation

TOOL = Tool(
    "trainers.evaluate",
    "Evaluates a model of phrases on the tasks of the papers, beside their scores.",
    Evaluation,
    (ModelOptions,),
)

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    try:
        options = TOOL.flags.parse(arguments)
        print(_run(options[Evaluation], options[ModelOptions]), end="")
        return 0
    except ModuleNotFoundError as error:
        print(f"error: this needs {error.name}: pip install 'phrasemill[evaluate,transformers]'", file=sys.stderr)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on with the tasks that are not finished", file=sys.stderr)
        return INTERRUPTED
    return 2


def _run(chosen: Evaluation, of_model: ModelOptions) -> str:
    from trainers.evaluation.models.registry import find_model
    from trainers.evaluation.progress import on_stderr
    from trainers.evaluation.registry import all_tasks
    from trainers.evaluation.run import evaluate
    from trainers.evaluation.table import RENDERERS

    with on_stderr() as progress:
        report = evaluate(
            chosen, lambda name, own: find_model(name, of_model if own else ModelOptions()), progress, all_tasks()
        )
    return RENDERERS[chosen.format](report)


if __name__ == "__main__":
    sys.exit(main())
