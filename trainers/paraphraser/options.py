"""What a paraphraser is trained on, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schemas.options import count, natural, number, option, share, whole

positive = number(float, lambda each: 0 < each < float("inf"), "a number above 0")


@dataclass(frozen=True)
class ParaphraserTraining:
    """How a paraphraser is trained."""

    pairs: tuple[str, ...] = option(
        repeated=True,
        place=True,
        metavar="PATH",
        help="a dataset whose rows have two phrases that mean the same (mine_pairs, extract_pairs, aliases, "
        "paraphrases), or a Parquet file with the columns phrase, paraphrase and, if known, score; repeatable",
    )
    output: Path = option(Path("out/paraphraser"), takes=Path, metavar="DIR", help="the folder of the model")
    base: str | None = option(
        None,
        metavar="MODEL",
        help="the causal language model to fine-tune: a folder or a name on the hub",
        unset="a new one of GPT-2's architecture",
    )
    embeddings: str | None = option(
        "intfloat/e5-small-v2",
        metavar="MODEL",
        help="the uncased BERT encoder whose word embeddings a new model starts from; none: random ones",
    )
    layers: int = option(4, takes=count, metavar="N", help="layers of a new model")
    width: int = option(384, takes=count, metavar="N", help="width of a new model with random embeddings")
    vocabulary: int = option(16_000, takes=count, metavar="N", help="word pieces of a new model, about")
    trained_layers: int | None = option(
        None,
        takes=natural,
        metavar="N",
        help="of --base, train only the last N layers",
        unset="all, and the embeddings",
    )
    frozen_embeddings: bool = option(False, help="keep the word embeddings as they are")
    epochs: float = option(1.5, takes=positive, metavar="X", help="how often each pair is learned from")
    rate: float | None = option(
        None, takes=positive, metavar="X", help="the highest learning rate", unset="1e-3, or 5e-5 with --base"
    )
    batch_tokens: int = option(640, takes=count, metavar="N", help="tokens of a batch")
    smoothing: float = option(0.0, takes=share, metavar="X", help="label smoothing")
    dropout: float = option(0.0, takes=share, metavar="X", help="dropout of a new model")
    alone: float = option(
        0.05,
        takes=share,
        metavar="X",
        help="share of the phrases that are also learned from alone, so that the model scores fluency",
    )
    paper_filter: bool = option(False, help="leave out pairs that the filter of Phrase-BERT's training pairs refuses")
    one_direction: bool = option(False, help="learn from each pair in the direction in which it is given only")
    most_pairs: int = option(
        5_000_000, takes=count, metavar="N", help="at most N pairs, those of lowest hash; it bounds memory"
    )
    max_tokens: int = option(64, takes=count, metavar="N", help="leave out pairs of more tokens")
    held_out: float = option(0.005, takes=share, metavar="X", help="share of the phrases that are only scored")
    checkpoint_steps: int = option(500, takes=count, metavar="N", help="steps between two checkpoints")
    float32: bool = option(False, help="no half precision (bfloat16) in the network's products")
    threads: int | None = option(None, takes=count, metavar="N", help="torch's threads", unset="the number of cores")
    seed: int = option(0, takes=whole, metavar="N", help="of the first weights and the order of the pairs")
