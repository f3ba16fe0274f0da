"""A sample of datasets that are there already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from pipelines.corpus import ChainDataset
from pipelines.planning.pieces import (
    FEWEST,
    PARSED_POINTS,
    POINTS,
    Piece,
    Pieces,
    most_text_of,
    name_of,
    spread,
)
from schemas.columns import record_name
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.mentions import MENTIONS
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import MANIFEST, Shard, read_manifest
from schemas.storage.folder import AtomicFile, Folder
from schemas.storage.parquet import parquet_file, parquet_writer


def sample_datasets(
    before: Sequence[ChainDataset], places: dict[str, Folder], folder: Folder, most_text: int, *, parses: bool
) -> tuple[Pieces, int]:
    """Samples of the datasets that are there: of documents, of sentences and the documents behind them, of mentions.

    Vocabularies are taken as they are. Adds the samples to `places`. Returns also the bytes of text in a shard of the
    whole, where only parts of shards were taken: of documents.
    """
    documents, sentences, mentions = map(record_name, (DOCUMENTS, SENTENCES, MENTIONS))
    of = {each.folder.uri: read_manifest(each.folder).record for each in before}
    found = [each.folder for each in before if of[each.folder.uri] in (documents, sentences, mentions)]
    if of[found[-1].uri] == mentions:
        found = found[-1:]
    text = most_text if parses or of[found[-1].uri] == documents else None
    sizes = [shard.bytes for shard in read_manifest(found[-1]).shards]
    if text is None:
        points = min(max(most_text_of(None) * len(sizes) // max(sum(sizes), 1), FEWEST), PARSED_POINTS)
    else:
        points = POINTS
    hits = spread(sizes, points)
    if sum(sizes) * (1 if text is None else 3) <= (most_text_of(None) if text is None else text):
        hits, text = Counter(range(len(sizes))), None
    numbers = sorted(hits)
    for each in found:
        places[each.uri] = folder / name_of(each)
        shares = _take(each, numbers, places[each.uri], most_text=text and text // points)
    pieces = [Piece(sizes[number] * share, hits[number]) for number, share in zip(numbers, shares, strict=True)]
    full = round((text or 0) / points / max(sum(shares) / max(len(shares), 1), 1e-9)) if text else 1
    return Pieces(pieces, [sum(sizes)], [], list(range(len(pieces))) or [0]), max(full, 1)


def _take(folder: Folder, numbers: Sequence[int], to: Folder, *, most_text: int | None = None) -> list[float]:
    """A dataset of some shards of another, of each the first documents with so much text. Returns the share taken."""
    manifest = read_manifest(folder)
    shares, shards = [], []
    for number in numbers:
        shard = manifest.shards[number]
        with parquet_file(folder, shard.path) as reader:
            table = reader.read(use_threads=False)
        share = 1.0
        if most_text is not None:
            lengths = np.cumsum(pc.binary_length(table.column("text")).to_numpy())
            rows = min(int(np.searchsorted(lengths, most_text)) + 1, table.num_rows)
            share = float(lengths[rows - 1] / lengths[-1]) if rows else 1.0
            table = table.slice(0, rows)
        with AtomicFile(to, shard.path) as sink, parquet_writer(sink, table.schema) as writer:
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
        shards.append(Shard(shard.path, table.num_rows, sink.bytes, sink.sha256))
        shares.append(share)
    part = sum(shard.rows for shard in shards) / max(manifest.rows, 1)
    # The tokens of a corpus decide how many ranges its exchange has.
    stages = [
        each._replace(counters={name: round(n * part) for name, n in each.counters.items()}) for each in manifest.stages
    ]
    whole = most_text is None and len(numbers) == len(manifest.shards)
    sides = {
        side: _take_some(folder, files, to, most=len(files) if whole else FEWEST)
        for side, files in manifest.sides.items()
    }
    to.write(MANIFEST, replace(manifest, splits={"train": shards}, sides=sides, stages=stages).to_json().encode())
    return shares


def _take_some(folder: Folder, files: Sequence[Shard], to: Folder, *, most: int) -> list[Shard]:
    """Copies of a few files of a side table, evenly spread."""
    chosen = range(len(files)) if len(files) <= most else sorted(spread([file.bytes for file in files], most))
    for number in chosen:
        to.write(files[number].path, folder.read(files[number].path))
    return [files[number] for number in chosen]
