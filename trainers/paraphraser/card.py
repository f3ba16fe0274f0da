"""The card of a paraphraser: README.md beside its weights."""

from __future__ import annotations

from typing import Any

from trainers.paraphraser.options import ParaphraserTraining
from trainers.training.card import licences


def write_card(options: ParaphraserTraining, command: str, scores: dict[str, Any]) -> None:
    """Write the card: what the model was made from, with its licences, and how good it is on held-out phrases."""
    held_out = scores.get("held_out", {})
    lines = [
        "---",
        "language: en",
        "pipeline_tag: text-generation",
        "library_name: transformers",
        "---",
        "",
        "# A paraphraser of phrases",
        "",
        "A causal language model: phrase, separator token, paraphrase, end token. Load it with",
        "`AutoModelForCausalLM` and `AutoTokenizer`, or generate with phrasemill.",
        f"{scores['weights']:,} weights, in float16.",
        "",
        "## How it was made",
        "",
        f"    {command}",
        "",
        f"It starts from {options.base or 'random weights'}"
        + (f" and the word embeddings of {options.embeddings}" if _has_embeddings(options) else "")
        + f". {scores['pairs']['learned']:,} pairs, both directions counted, {scores['examples']:,} examples, "
        f"{scores['steps']:,} steps.",
        "",
        "| pairs | licences |",
        "|---|---|",
        *(f"| {place} | {licences(place)} |" for place in options.pairs),
        "",
        "## Scores",
        "",
        f"On {scores['pairs']['held_out']:,} pairs that were held out: none of their phrases was learned from.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in held_out.items()),
        "",
        "`loss` is a token's. Of four draws a phrase under the lexical constraint, nucleus .8: `satisfying` is the",
        "share that is finished and has no word of the phrase in any form; `exact` the share of phrases for which one",
        "of these is in the pairs; `nearest` the mean F1 of words with the nearest paraphrase in the pairs.",
    ]
    (options.output / "README.md").write_text("\n".join(lines) + "\n")


def _has_embeddings(options: ParaphraserTraining) -> bool:
    return not options.base and options.embeddings not in (None, "none")
