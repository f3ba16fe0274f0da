"""Near duplicates: which planted copies are found, beside datatrove's MinHash, rensa and datasketch.

    python -m benchmarks.near_duplicates --documents out/contexts-documents --json near.json

The texts are pieces of the documents, of whole paragraphs and at least `--words` words, without those that share a
fifth of their shingles with an earlier one. Some have copies in which a share of the words is replaced by words of
other texts: scattered, each with this probability, or all in one place. The order is by hash. A copy is found if it is
in one cluster with its original; what is dropped is right if another text of its family is in its cluster. `recall` is
of all texts that should be dropped by brute force, at 5 words and a Jaccard index of .75.

Programs get the same texts, each in its own process with one thread, and 5-grams of words as shingles. Their seconds go
from the texts in memory (ours: from a dataset of documents, in shards) to what is dropped (ours: to the rewritten
shards); the memory is that added. datatrove, rensa and datasketch are not dependencies: `pip install datatrove spacy
rensa datasketch`; those that are missing are listed as skipped.

With `--synthetic N` N documents of 30 random words, of which the last tenth are copies of the first with the last two
words changed, go through our stages alone: seconds and memory of each stage, bytes on disk.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow.parquet as pq
import xxhash

from benchmarks import harness
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.arrays import mix64

if TYPE_CHECKING:
    import argparse

    from pipelines.engine.dataset_build import DatasetBuild

WORDS, JACCARD = 5, 0.75
HASHES, BANDS = 112, 14
EDITS = (0.01, 0.02, 0.05, 0.1, 0.2)
MANNERS = ("scattered", "in one place")


class Text(NamedTuple):
    text: str
    family: int  # a text and its copies
    kind: str  # "" for the text that was copied


def pieces(documents: Iterable[str], words: int) -> list[str]:
    found: list[str] = []
    for document in documents:
        piece: list[str] = []
        for line in filter(None, document.split("\n")):
            piece.append(line)
            if sum(each.count(" ") + 1 for each in piece) >= words:
                found.append("\n\n".join(piece))
                piece = []
    return found


def edited(text: str, share: float, manner: str, words: Sequence[str], seed: int) -> str:
    tokens = re.split(r"(\s+)", text)
    places = range(0, len(tokens), 2)
    chance = np.random.default_rng(seed)
    if manner == "scattered":
        changed = [place for place in places if chance.random() < share]
    else:
        length = round(share * len(places))
        start = int(chance.integers(0, len(places) - length + 1))
        changed = list(places[start : start + length])
    for place in changed:
        tokens[place] = words[int(chance.integers(0, len(words)))]
    return "".join(tokens)


def planted(found: Sequence[str], copied: int) -> list[Text]:
    pairs = alike(found, least=0.2)
    repeated = {max(pair) for pair in pairs}
    originals = [text for n, text in enumerate(found) if n not in repeated]
    words = sorted({word for text in originals for word in text.split()})
    texts = [Text(text, n, "") for n, text in enumerate(originals)]
    for n, text in enumerate(originals[:: max(len(originals) // copied, 1)][:copied]):
        family = originals.index(text)
        for number, (manner, share) in enumerate((manner, share) for manner in MANNERS for share in EDITS):
            copy = edited(text, share, manner, words, seed=1000 * n + number)
            texts.append(Text(copy, family, f"{share:.0%} {manner}"))
    return sorted(texts, key=lambda each: xxhash.xxh3_64_intdigest(each.text.encode()))


# ---- What is true


_WORD = re.compile(r"[^\W_]+")


def runs(text: str) -> list[str]:
    words = _WORD.findall(text.lower())
    return [" ".join(words[i : i + WORDS]) for i in range(max(len(words) - WORDS + 1, 1))]


def alike(texts: Sequence[str], least: float = JACCARD) -> list[tuple[int, int]]:
    """All pairs with at least this Jaccard index, found by counting the shingles that two texts share."""
    sets = [{*runs(text)} for text in texts]
    having = defaultdict(list)
    for number, each in enumerate(sets):
        for run in each:
            having[run].append(number)
    common = Counter(pair for numbers in having.values() if len(numbers) < 500 for pair in combinations(numbers, 2))
    return [(a, b) for (a, b), n in common.items() if n / (len(sets[a]) + len(sets[b]) - n) >= least]


# ---- Programs: from texts to clusters, as the number of the first text of each one that is in a cluster


Clusters: TypeAlias = dict[int, int]


def joined(pairs: Iterable[tuple[int, int]]) -> Clusters:
    """Connected components."""
    parent: dict[int, int] = {}

    def root(item: int) -> int:
        while parent.setdefault(item, item) != item:
            parent[item] = item = parent[parent[item]]
        return item

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {item: root(item) for item in list(parent)}


def near_build(texts: Iterable[str], folder: Path, *flags: str) -> DatasetBuild:
    """Documents from lines of JSON; the numbers of the texts are their titles."""
    from pipelines import corpus
    from pipelines.extract_documents import COMMAND

    lines = (json.dumps({"title": str(n), "text": text}) + "\n" for n, text in enumerate(texts))
    (folder / "texts.jsonl").write_text("".join(lines))
    source = corpus.given([str(folder / "texts.jsonl")], input_format=None)
    made = corpus.documents(source, COMMAND.parse(["--dedup=near", *flags])[0], Folder(str(folder / "out")))
    assert made.build is not None
    return made.build


def phrasemill(texts: Sequence[str], folder: Path, meter: harness.Meter, *flags: str) -> Clusters:
    build = near_build(texts, folder, *flags)
    stages = harness.build_here(build)
    next(stage for stage, _ in stages if stage == "find_duplicate_ids")
    with meter:
        for _ in stages:
            pass
    starts = np.cumsum([0, *(len(line) for line in (folder / "texts.jsonl").read_bytes().splitlines(True))]).tolist()
    number = {f"texts.jsonl:{start}": n for n, start in enumerate(starts)}
    rows = [
        row
        for shard in read_manifest(build.output).sides.get("duplicates", [])
        for row in pq.read_table(folder / "out" / shard.path).to_pylist()
    ]
    return joined((number[row["doc_id"]], number[row["repeats"]]) for row in rows)


def datatrove(texts: Sequence[str], folder: Path, meter: harness.Meter) -> Clusters:
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )
    from datatrove.utils.logging import logger

    logger.remove()
    config = MinhashConfig(n_grams=WORDS)
    signatures, buckets, ends = (str(folder / name) for name in ("signatures", "buckets", "clusters"))
    sign = MinhashDedupSignature(signatures, config)
    sign._hash_func = lambda run: xxhash.xxh64_intdigest(run.encode())  # its own call fails with xxhash 4
    with meter:
        sign.run((Document(text=text, id=str(n)) for n, text in enumerate(texts)), 0, 1)
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(signatures, buckets, config=config).run(None, bucket, config.num_buckets)
        MinhashDedupCluster(buckets, ends, config=config, save_cluster_id=True).run(None, 0, 1)
    found = np.fromfile(folder / "clusters/000000.clusters", dtype="<u4").reshape(-1, 2).tolist()
    first: dict[int, int] = {}
    return {text: first.setdefault(cluster, text) for text, cluster in found}


def rensa(texts: Sequence[str], folder: Path, meter: harness.Meter) -> Clusters:
    from rensa import RMinHash, RMinHashLSH

    with meter:
        index = RMinHashLSH(threshold=JACCARD, num_perm=HASHES, num_bands=BANDS)
        made = []
        for number, text in enumerate(texts):
            signature = RMinHash(num_perm=HASHES, seed=1)
            signature.update(runs(text))
            index.insert(number, signature)
            made.append(signature)
        pairs = [
            (number, other)
            for number, signature in enumerate(made)
            for other in index.query(signature)
            if other < number and signature.jaccard(made[other]) >= JACCARD
        ]
        return joined(pairs)


def datasketch(texts: Sequence[str], folder: Path, meter: harness.Meter) -> Clusters:
    from datasketch import MinHash, MinHashLSH

    with meter:
        index = MinHashLSH(num_perm=HASHES, params=(BANDS, HASHES // BANDS))
        pairs = []
        made = []
        for number, text in enumerate(texts):
            signature = MinHash(num_perm=HASHES, hashfunc=xxhash.xxh32_intdigest)
            signature.update_batch([run.encode() for run in runs(text)])
            made.append(signature)
            pairs += [(each, number) for each in index.query(signature) if made[each].jaccard(signature) >= JACCARD]
            index.insert(number, signature)
        return joined(pairs)


PROGRAMS: dict[str, tuple[Callable[..., Clusters], tuple[str, ...]]] = {
    "phrasemill": (phrasemill, ()),
    "phrasemill, 2 words": (phrasemill, ("--near-words=2",)),
    "phrasemill, 1 word, .6": (phrasemill, ("--near-words=1", "--near-jaccard=0.6")),
    "datatrove": (datatrove, ()),
    "rensa": (rensa, ()),
    "datasketch": (datasketch, ()),
}


class Figures(NamedTuple):
    seconds: float
    cpu_seconds: float
    added: int  # bytes of memory
    clusters: Clusters


def measure(name: str, texts: Sequence[str]) -> Figures:
    meter = harness.Meter(interval=0.02)
    with tempfile.TemporaryDirectory() as folder:
        program, flags = PROGRAMS[name]
        clusters = program(texts, Path(folder), meter, *flags)
    return Figures(meter.seconds, meter.cpu_seconds, meter.added, clusters)


def scores(texts: Sequence[Text], pairs: Sequence[tuple[int, int]], clusters: Clusters) -> dict[str, Any]:
    """Shares of copies that are found, of texts to be dropped by brute force that are, and of drops that are right."""
    original = {each.family: n for n, each in enumerate(texts) if not each.kind}
    planted_, found = Counter[str](), Counter[str]()
    for n, each in enumerate(texts):
        if each.kind:
            planted_[each.kind] += 1
            together = clusters.get(n, -1) == clusters.get(original[each.family], -2)
            found[each.kind] += together
    true = joined(pairs)
    should = {n for n, first in true.items() if n != first}
    dropped = {n for n, first in clusters.items() if n != first}
    families = Counter((first, texts[n].family) for n, first in clusters.items())
    right = sum(families[clusters[n], texts[n].family] > 1 for n in dropped)
    return {
        "recall_by_kind": {kind: found[kind] / total for kind, total in sorted(planted_.items())},
        "dropped": len(dropped),
        "recall": len(dropped & should) / max(len(should), 1),
        "precision": right / max(len(dropped), 1),
    }


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = Folder(arguments.documents)
    read = (
        text
        for shard in read_manifest(folder).shards
        for text in read_parquet(folder, shard.path, ["text"]).column("text").to_pylist()
    )
    texts = planted(pieces(read, arguments.words), arguments.copied)
    pairs = alike([each.text for each in texts])
    figures: dict[str, Any] = {"texts": len(texts), "words": sum(len(each.text.split()) for each in texts)}
    for name in PROGRAMS:
        needs = name.split()[0].rstrip(",")
        if not find_spec(needs):
            print(f"{needs}: skipped: not installed; pip install {needs}")
            continue
        [found] = harness.apart(partial(measure, name, [each.text for each in texts]))
        figures[name] = {
            "documents_per_second": round(len(texts) / found.seconds),
            "documents_per_cpu_second": round(len(texts) / found.cpu_seconds),
            "peak_memory_mib": round(found.added / 2**20),
            **scores(texts, pairs, found.clusters),
        }
    shown = [name for name in PROGRAMS if name in figures]
    kinds = [f"{share:.0%} {manner}" for manner in MANNERS for share in EDITS]
    table = [(kind, *(figures[name]["recall_by_kind"][kind] for name in shown)) for kind in kinds]
    for what in ("recall", "precision", "dropped"):
        table.append((what.replace("_", " "), *(figures[name][what] for name in shown)))
    for what in ("documents_per_second", "documents_per_cpu_second", "peak_memory_mib"):
        table.append((what.replace("_", " "), *(figures[name][what] for name in shown)))
    harness.show(f"{len(texts):,} texts", ("copies found, by edits", *shown), table)
    return figures


# ---- Many documents


def synthetic(number: int) -> Iterator[str]:
    """Documents of 30 random words; the last tenth are copies of the first, with the last two words changed."""
    copies = number // 10
    for n in range(number):
        words = _random(n % (number - copies))
        if n >= number - copies:
            words[-2:] = _random(n)[:2]
        yield " ".join(f"w{word}" for word in words)


def _random(n: int) -> list[int]:
    return (mix64(np.arange(n * 30, n * 30 + 30, dtype=np.uint64)) % np.uint64(50_000)).tolist()


def scale(number: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"documents": number}
    with tempfile.TemporaryDirectory() as folder:
        build = near_build(synthetic(number), Path(folder))
        stages = harness.build_here(build)
        rows = []
        while True:
            with harness.Meter() as meter:
                stage = next(stages, None)
            if stage is None:
                break
            name, completions = stage
            size = sum(file.bytes for each in completions for file in each.files)
            figures[name] = {
                "seconds": round(meter.seconds, 1),
                "cpu_seconds": round(meter.cpu_seconds, 1),
                "peak_memory_mib": round(meter.peak / 2**20),
                "bytes_a_document": round(size / number, 1),
            }
            rows.append((name, *figures[name].values()))
        figures["filtered"] = dict(read_manifest(build.output).ledger("drop").filtered)
    harness.show(f"{number:,} documents", ("stage", "seconds", "CPU s", "MiB", "bytes a document"), rows)
    print(figures["filtered"])
    return figures


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--documents", help="a dataset of documents")
    parser.add_argument("--words", type=int, default=300, help="words of a text, at least; default: %(default)s")
    parser.add_argument("--copied", type=int, default=400, help="texts with copies; default: %(default)s")
    parser.add_argument("--synthetic", type=int, metavar="N", help="go through our stages with N documents")
    arguments = parser.parse_args()
    if not arguments.documents and not arguments.synthetic:
        sys.exit("give --documents or --synthetic")
    figures: dict[str, Any] = {}
    if arguments.documents:
        figures["planted"] = compare(arguments)
    if arguments.synthetic:
        figures["synthetic"] = scale(arguments.synthetic)
    harness.write(arguments.json, figures)


if __name__ == "__main__":
    main()
