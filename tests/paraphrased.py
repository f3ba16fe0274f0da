"""Datasets of literal candidates for paraphrases, and what is chosen from them."""

from __future__ import annotations

from pathlib import Path

import literal
import pyarrow as pa

from pipelines import paraphrase
from schemas.kinds.paraphrase_candidates import PARAPHRASE_CANDIDATES
from schemas.manifest import Manifest, read_manifest
from schemas.storage.folder import Folder

GIVEN = """
the old king: the aged ruler, ruler | the old ferry: the ancient boat
a big house: a big home, a large home | a big quay: a large dock
its main goals: primary aims | its main gulls: a cold winter evening with tea and some bread
three cats: four felines | three tails: three rear ends
some boats: | some trains: many railways
"""
"""Phrases with their positives, and their corrupted forms with their negatives."""


def candidates(texts: str) -> list[dict]:
    return [
        {"text": text.strip(), "draw": draw, "log_probability": -4.0 - draw, "tokens": 4, "fluency": None}
        for draw, text in enumerate(texts.split(","))
        if text.strip()
    ]


def row(line: str) -> dict:
    (phrase, positives), (corrupted, negatives) = (each.split(":") for each in line.split("|"))
    words = {"banned": phrase.split()[-1:], "corrupted_banned": corrupted.split()[-1:]}
    texts = {"phrase": phrase.strip(), "corrupted": corrupted.strip()}
    lists = {"positives": candidates(positives), "negatives": candidates(negatives)}
    none = {"label": "NP", "frequency": 3, "names": [], "fluency": None, "corrupted_fluency": None, "generator": "g"}
    return {**none, **texts, **words, **lists}


def given(folder: Path, text: str = GIVEN, *, shards: int = 1) -> str:
    table = pa.Table.from_pylist([*map(row, text.strip().splitlines())], schema=PARAPHRASE_CANDIDATES)
    step = -(-table.num_rows // shards)
    literal.dataset(folder, [table.slice(n * step, step) for n in range(shards)])
    return str(folder)


def chosen(folder: Path, source: str, *flags: str, order: int = 1) -> list[dict]:
    chain = literal.chain_of(paraphrase.COMMAND, "--input", source, "--output", str(folder / "chosen"), *flags)
    assert chain[-1].build is not None
    literal.run_inline(chain[-1].build, order=order)
    return literal.rows(Folder(str(folder / "chosen")))


def manifest_of(folder: Path) -> Manifest:
    return read_manifest(Folder(str(folder / "chosen")))


PAPER = ("--preset", "paper")


def triples(rows: list[dict]) -> dict[str, tuple[str, str]]:
    return {row["phrase"]: (row["positive"], row["negative"]) for row in rows}
