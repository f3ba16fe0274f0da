"""Near duplicates: shingles, signatures and clusters, and what is dropped, compared with brute force."""

from __future__ import annotations

import bz2
import io
import json
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import dump, parse_options, rows, run_inline
from properties import examples

from pipelines import corpus
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.executors import Executor, InlineExecutor, PoolExecutor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import close_stage, open_stage
from pipelines.engine.task_writer import do_unit
from pipelines.stages import duplicates as duplicate_steps
from pipelines.stages import near_duplicates as step
from schemas.dataset_checks import check_dataset
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.sources import near_duplicates as kernel
from transforms.sources.near_duplicates import (
    Bands,
    Shingles,
    band_keys,
    banding,
    clusters,
    jaccard,
    neighbours,
    shingles,
)

# ---- The kernels


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def runs(text: str, n: int) -> set[tuple[str, ...]]:
    words = words_of(text)
    return {tuple(words[i : i + n]) for i in range(max(len(words) - n + 1, 1))} if words else set()


def shared(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    return len(one & other) / len(one | other)


def sets(texts: Sequence[str], n: int) -> list[np.ndarray]:
    found = shingles(texts, n)
    return [np.unique(found.hashes[start:end]) for start, end in zip(found.edges[:-1], found.edges[1:], strict=True)]


@pytest.mark.parametrize(
    ("one", "other", "n", "expected"),
    [
        ("the old man", "the old man", 2, 1.0),
        ("The old\nman!", "the (old) man", 2, 1.0),
        ("the old man", "the old woman", 2, 1 / 3),
        ("the old man", "the old woman", 1, 2 / 4),
        ("a b a b a b", "a b a", 2, 1.0),  # sets, not bags
        ("a b", "a b c", 5, 0.0),  # fewer words than a run: all of them
        ("a b", "A, b.", 5, 1.0),
        ("ab c", "a bc", 2, 0.0),
        ("Éa ßb 12", "éa ßb 12", 2, 1.0),
        ("x_y", "x y", 2, 1.0),
        (" ".join("abcdefghij"), " ".join("abcdeXghij"), 3, 5 / 11),
    ],
)
def test_how_alike_two_texts_are(one, other, n, expected):
    assert jaccard(*sets([one, other], n)) == jaccard(*sets([other, one], n)) == pytest.approx(expected)
    assert shared(runs(one, n), runs(other, n)) == pytest.approx(expected)


def test_a_text_without_words_has_no_shingles():
    assert shingles(["", "a b c", "?! _", "c"], 2).edges.tolist() == [0, 0, 2, 2, 3]


TEXT = st.text(st.sampled_from("ab é.\n_1"), max_size=30)


@given(st.lists(TEXT, max_size=5), st.integers(1, 4), st.integers(1, 9))
def test_any_shingles(texts, n, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_PIECE", piece)
        in_pieces = shingles(texts, n)
    whole = shingles(texts, n)
    assert whole.hashes.tolist() == in_pieces.hashes.tolist()
    assert [len(each) for each in sets(texts, n)] == [len(runs(text, n)) for text in texts]
    for (one, a), (other, b) in combinations(zip(texts, sets(texts, n), strict=True), 2):
        if len(a) and len(b):
            assert jaccard(a, b) == pytest.approx(shared(runs(one, n), runs(other, n)))
    alone = [hash_ for text in texts for hash_ in shingles([text], n).hashes]
    assert whole.hashes.tolist() == alone, "the same whatever the other texts are"


@pytest.mark.parametrize(("index", "least"), [(0.5, 0.95), (0.75, 0.95), (0.8, 0.95), (1.0, 1.0)])
def test_the_bands_find_the_pairs(index, least):
    bands, number_of_rows = banding(index)
    assert bands * number_of_rows <= kernel.HASHES
    assert 1 - (1 - index**number_of_rows) ** bands >= least


SHINGLES = st.lists(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6), min_size=1, max_size=5)


@given(SHINGLES, st.sampled_from([Bands(1, 1), Bands(3, 2), Bands(18, 6)]))
def test_bands_agree_where_all_their_lowest_values_do(texts, bands):
    flat = np.array([x for text in texts for x in text], np.uint64)
    keys = band_keys(Shingles(flat, np.cumsum([0, *map(len, texts)])), bands)
    assert keys.shape == (len(texts), bands.bands)
    hashes = list(zip(kernel._FACTORS.tolist(), kernel._TERMS.tolist(), strict=True))
    lowest = [[min((factor * x + term) % 2**64 for x in text) for factor, term in hashes] for text in texts]
    for one, other in combinations(range(len(texts)), 2):
        for band in range(bands.bands):
            part = slice(band * bands.rows, (band + 1) * bands.rows)
            assert (keys[one, band] == keys[other, band]) == (lowest[one][part] == lowest[other][part])
    assert len({*keys[0].tolist()}) == bands.bands, "bands of one text have different keys"


def test_bands_agree_as_often_as_texts_are_alike():
    """1,000 pairs of 100 shingles, of which 80 are shared: an index of 80 / 120."""
    drawn = np.random.default_rng(1).integers(0, 2**64, (1000, 120), np.uint64)
    texts = np.stack([drawn[:, :100], drawn[:, 20:]], axis=1).reshape(-1)
    keys = band_keys(Shingles(texts, np.arange(2001) * 100), Bands(100, 1))
    assert (keys[::2] == keys[1::2]).mean() == pytest.approx(2 / 3, abs=0.01)
    keys = band_keys(Shingles(texts, np.arange(2001) * 100), Bands(20, 5))
    assert (keys[::2] == keys[1::2]).mean() == pytest.approx((2 / 3) ** 5, abs=0.01)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30, unique=True), st.integers(1, 4))
def test_any_neighbours(found, most):
    found.sort()
    a, b = neighbours(np.array([x for x, _ in found], np.uint64), np.array([x for _, x in found], np.int64), most)
    expected = set()
    for bucket in range(4):
        items = [item for each, item in found if each == bucket]
        expected |= {(one, two) for i, two in enumerate(items) for one in items[max(i - most, 0) : i]}
    assert list(zip(a.tolist(), b.tolist(), strict=True)) == sorted(expected)


def components(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The first item of each one's component, one pair after the other."""
    first = {item: item for pair in pairs for item in pair}
    for one, other in pairs:
        low, high = sorted((first[one], first[other]))
        first = {item: low if each == high else each for item, each in first.items()}
    return dict(sorted(first.items()))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40))
def test_any_clusters(pairs):
    item, first = clusters(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))
    assert dict(zip(item.tolist(), first.tolist(), strict=True)) == components(pairs)


@pytest.mark.parametrize("order", [1, -1])
def test_long_chains_are_clusters(order):
    chain = np.arange(100_000)[::order]
    shuffled = np.random.default_rng(0).permutation(100_000)
    for items in (chain, shuffled):
        item, first = clusters(items[1:], items[:-1])
        assert len(item) == 100_000
        assert not first.any()


# ---- Through the stages


def build_of(folder: Path, texts: Sequence[str], *flags: str, files: int = 1) -> DatasetBuild:
    source = folder / "in"
    source.mkdir(parents=True)
    share = -(-len(texts) // files)
    for number in range(files):
        part = texts[number * share : (number + 1) * share]
        (source / f"{number}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in part) or "\n")
    found = corpus.given([str(source)], input_format=None)
    build = corpus.documents(found, parse_options(*flags), Folder(str(folder / "out"))).build
    assert build is not None
    return build


def duplicates(folder: Folder) -> list[dict]:
    paths = [shard.path for shard in read_manifest(folder).sides.get("duplicates", [])]
    return [row for path in paths for row in pq.read_table(f"{folder.uri}/{path}").to_pylist()]


def small(patch: pytest.MonkeyPatch, *, shards_a_group: int = 2) -> None:
    """Many groups, ranges and files, of a small corpus."""
    patch.setattr(duplicate_steps, "SHARDS_A_GROUP", shards_a_group)
    patch.setattr(step, "BANDS_A_RANGE", 150)
    patch.setattr(step, "BANDS_A_FILE", 60)
    patch.setattr(step, "SHINGLES_A_FILE", 40)


def paired(texts: Sequence[str], n: int, index: float) -> list[tuple[int, int]]:
    """The pairs that share a band and are alike, by brute force."""
    found = shingles(texts, n)
    keys = [{*each} for each in band_keys(found, banding(index)).tolist()]
    return [
        (a, b)
        for a, b in combinations(range(len(texts)), 2)
        if keys[a] & keys[b] and shared(runs(texts[a], n), runs(texts[b], n)) >= index
    ]


SENTENCE = "the old man and the sea saw a white whale in the harbour of a small town".split()


def edited(words: Sequence[str], edits: Sequence[int]) -> str:
    """The words with others in some places."""
    text = list(words)
    for place in edits:
        text[place % len(text)] = f"word{place}"
    return " ".join(text)


TEXTS = st.lists(st.lists(st.integers(0, 40), max_size=4).map(lambda edits: edited(SENTENCE, edits)), max_size=14)


@examples(15)
@given(TEXTS, st.sampled_from([30, 200, 10_000]), st.sampled_from([0.5, 0.7, 0.9]), st.integers(1, 3))
def test_any_documents(tmp_path_factory, texts, shard_bytes, index, shards_a_group):
    folder = tmp_path_factory.mktemp("documents")
    flags = ("--dedup=near", "--near-words=2", f"--near-jaccard={index}", f"--shard-bytes={shard_bytes}")
    with pytest.MonkeyPatch.context() as patch:
        small(patch, shards_a_group=shards_a_group)
        patch.setattr(step, "NEIGHBOURS", 50)
        build = build_of(folder, texts, *flags, files=2)
        run_inline(build)
    first: dict[str, int] = {}
    for number, text in enumerate(texts):
        first.setdefault(text, number)
    distinct = list(first)
    pairs = [(first[distinct[a]], first[distinct[b]]) for a, b in paired(distinct, 2, index)]
    cluster = components(pairs)
    kept = [n for n, text in enumerate(texts) if first[text] == n and cluster.get(n, n) == n]
    found = rows(build.output)
    assert [row["text"] for row in found] == [texts[n] for n in kept]
    ledger = read_manifest(build.output).ledger("drop")
    assert ledger.filtered["duplicate_document"] == len(texts) - len(distinct)
    assert ledger.filtered["near_duplicate"] == len(distinct) - len(kept)
    # Each one that is left out names the one that stays for it, and how alike it is to the text most like it.
    ids = {row["text"]: row["doc_id"] for row in found}
    best: dict[str, float] = {}
    for a, b in pairs:
        for text in (texts[a], texts[b]):
            best[text] = max(best.get(text, 0), shared(runs(texts[a], 2), runs(texts[b], 2)))
    left_out = [n for n in range(len(texts)) if n not in kept]
    for n, row in zip(left_out, duplicates(build.output), strict=True):
        one = first[texts[n]]
        assert row["repeats"] == ids[texts[cluster.get(one, one)]]
        assert row["excerpt"] == texts[n][:100]
        if one == n:
            assert (row["reason"], row["jaccard"]) == ("near_duplicate", pytest.approx(best[texts[n]]))
        else:
            assert (row["reason"], row["jaccard"]) == ("duplicate_document", 1)
    assert not [*check_dataset(build.output.uri)]


ONE = (
    "It is a truth universally acknowledged that a single man in possession of a good fortune must be in need of love."
)
LIKE_ONE = ONE.replace("fortune must", "fortune, must").upper()
TWO = "However little known the feelings or views of such a man may be on first entering a neighbourhood, this is so."
LIKE_TWO = TWO.replace("is so.", "is true.")
SHORT = "Yes, he said."


@pytest.mark.parametrize(
    ("dedup", "texts", "expected", "table"),
    [
        ("documents", [ONE, LIKE_ONE], [ONE, LIKE_ONE], []),
        ("near", [ONE, LIKE_ONE, TWO], [ONE, TWO], [(1, -1, 0, "near_duplicate")]),
        ("near", [SHORT, "YES, HE SAID", "he said"], [SHORT, "he said"], [(1, -1, 0, "near_duplicate")]),
        ("near", ["...", "?!", "..."], ["...", "?!"], [(2, -1, 0, "duplicate_document")]),
        # the copy of a document that is itself left out repeats the one that stays
        (
            "near",
            [ONE, LIKE_ONE, TWO, LIKE_ONE],
            [ONE, TWO],
            [(1, -1, 0, "near_duplicate"), (3, -1, 0, "duplicate_document")],
        ),
        ("near-paragraphs", [ONE, LIKE_ONE], [ONE], [(1, 0, 0, "near_duplicate_paragraph")]),
        (
            "near-paragraphs",
            [f"{ONE}\n\n{SHORT}", f"{TWO}\n\n{SHORT}\n\n{LIKE_ONE}", f"{LIKE_TWO}\n\n{SHORT}"],
            [f"{ONE}\n\n{SHORT}", f"{TWO}\n\n{SHORT}"],
            [(1, 4, 0, "near_duplicate_paragraph"), (2, 0, 1, "near_duplicate_paragraph")],
        ),
        (
            "near-paragraphs",
            [f"{TWO}\n\n{ONE}", f"{SHORT}\n{ONE}\n\n{LIKE_TWO}\n\n{SHORT * 6}"],
            [f"{TWO}\n\n{ONE}", f"{SHORT}\n\n{SHORT * 6}"],
            [(1, 1, 0, "duplicate_paragraph"), (1, 3, 0, "near_duplicate_paragraph")],
        ),
    ],
)
@pytest.mark.parametrize("shard_bytes", [50, 10_000])
def test_what_is_left_out(tmp_path, dedup, texts, expected, table, shard_bytes):
    build = build_of(tmp_path, texts, f"--dedup={dedup}", f"--shard-bytes={shard_bytes}")
    run_inline(build)
    assert [row["text"] for row in rows(build.output)] == expected
    starts = np.cumsum([0, *(len(json.dumps({"text": text})) + 1 for text in texts)]).tolist()
    assert [(row["doc_id"], row["paragraph"], row["repeats"], row["reason"]) for row in duplicates(build.output)] == [
        (f"0.jsonl:{starts[one]}", paragraph, f"0.jsonl:{starts[first]}", reason)
        for one, paragraph, first, reason in table
    ]
    manifest = read_manifest(build.output)
    lost = sum(len(texts[one].split("\n")[paragraph]) for one, paragraph, *_ in table if paragraph >= 0)
    assert manifest.counter("duplicate_characters") == lost
    assert not [*check_dataset(build.output.uri)]


def test_a_document_dropped_for_its_id_is_not_the_first_of_a_cluster(tmp_path):
    dump(tmp_path / "a.xml", {7: "An article."})
    dump(tmp_path / "b.xml", {7: ONE, 8: LIKE_ONE, 9: f"{ONE} Or so."})
    found = corpus.given([str(tmp_path / name) for name in ("a.xml", "b.xml")], input_format=None)
    build = corpus.documents(found, parse_options("--dedup=near"), Folder(str(tmp_path / "out"))).build
    assert build is not None
    run_inline(build)
    assert [row["text"] for row in rows(build.output)] == ["An article.", LIKE_ONE]
    assert [(each["doc_id"], each["repeats"]) for each in duplicates(build.output)] == [("enwiki:9", "enwiki:8")]


def many(number: int) -> list[str]:
    """Texts of several paragraphs in families that are alike, far apart from each other."""
    texts = []
    for n in range(number):
        words = [f"{word}{n % 7}" for word in SENTENCE]
        texts.append("\n\n".join(edited([*words, f"p{p}"] * 3, [n * 5 + p] * (n % 3)) for p in range(3)))
    return texts


@pytest.mark.parametrize("dedup", ["near", "near-paragraphs"])
def test_the_same_bytes_in_any_order_and_the_same_rows_in_any_shards(tmp_path, monkeypatch, dedup):
    small(monkeypatch)
    kept, hashes = [], []
    for name, order, shard_bytes in (("a", 1, 900), ("b", -1, 900), ("c", 1, 300), ("d", 1, 100_000)):
        flags = (f"--dedup={dedup}", "--near-jaccard=0.6", f"--shard-bytes={shard_bytes}")
        build = build_of(tmp_path / name, many(20), *flags, files=3)
        run_inline(build, order=order)
        manifest = read_manifest(build.output)
        kept.append((rows(build.output), duplicates(build.output)))
        hashes.append([shard.sha256 for shard in (*manifest.shards, *manifest.sides["duplicates"])])
        assert manifest.counter("pairs_alike") > 10
    assert hashes[0] == hashes[1]
    assert kept[0] == kept[1] == kept[2] == kept[3]


def beam() -> Executor:
    from pipelines.engine.beam import BeamExecutor

    return BeamExecutor(workers=2)


@pytest.mark.heavy
def test_the_same_bytes_for_any_executor_and_after_an_interruption(tmp_path):
    """Several groups of shards, with the sizes that users have."""

    def hashes(build: DatasetBuild) -> list[str]:
        manifest = read_manifest(build.output)
        return [shard.sha256 for shard in (*manifest.shards, *manifest.sides["duplicates"])]

    def begun(name: str) -> DatasetBuild:
        return build_of(tmp_path / name, many(70), "--dedup=near", "--near-jaccard=0.6", "--shard-bytes=100")

    reference = begun("inline")
    run_inline(reference)
    assert len(read_manifest(reference.output).shards) > duplicate_steps.SHARDS_A_GROUP
    for name, executor in (("pool", PoolExecutor(2)), ("beam", beam())):
        build = begun(name)
        build.begin(resume=False)
        run([build], executor, progress=Progress(io.StringIO()))
        assert hashes(build) == hashes(reference), name
    stopped = begun("stopped")
    stopped.begin(resume=False)
    for stage in stopped.stages:
        for unit in open_stage(stopped.work, stage)[::2]:
            do_unit(stopped.work, stage, unit)
        if stage.name == "compare":
            break
        for unit in open_stage(stopped.work, stage):
            do_unit(stopped.work, stage, unit)
        close_stage(stopped.work, stage)
    stopped.begin(resume=True)
    run([stopped], InlineExecutor(), progress=Progress(io.StringIO()))
    assert hashes(stopped) == hashes(reference)


def test_a_large_bucket_makes_few_pairs(tmp_path):
    """Each of 300 texts that are all alike is compared with 8 others, and one of them stays."""
    words = [f"{word}{n // 16}" for n, word in enumerate(SENTENCE * 20)]
    texts = [edited(words, [7 * n]) for n in range(300)]
    build = build_of(tmp_path, texts, "--dedup=near")
    run_inline(build)
    manifest = read_manifest(build.output)
    assert [row["text"] for row in rows(build.output)] == [texts[0]]
    assert 299 <= manifest.counter("pairs_compared") <= 300 * kernel.NEIGHBOURS * 3


def test_real_paragraphs_that_are_edited(tmp_path, test_data):
    """A wiki, and a mirror of it with a word changed in each paragraph: links stay where their words are."""
    xml = bz2.decompress((test_data / "corpora/wikipedia/enwiki-minidump.xml.bz2").read_bytes()).decode()
    mirror = re.sub(r"(?m)^(\w+ \w+) \w+ (?=\w+ \w+ [^|=\n]{300,}$)", r"\1 otherwise ", xml)
    (tmp_path / "a.xml").write_text(xml)
    (tmp_path / "b.xml").write_text(mirror.replace("<dbname>enwiki<", "<dbname>mirrorwiki<"))
    made = {}
    for dedup in ("off", "near-paragraphs"):
        found = corpus.given([str(tmp_path / name) for name in ("a.xml", "b.xml")], input_format=None)
        build = corpus.documents(found, parse_options(f"--dedup={dedup}"), Folder(str(tmp_path / dedup))).build
        assert build is not None
        run_inline(build)
        made[dedup] = {row["doc_id"]: row for row in rows(build.output)}
        assert not [*check_dataset(build.output.uri)]
    lost: dict[str, set[int]] = {}
    table = duplicates(build.output)
    for each in table:
        line = made["off"][each["doc_id"]]["text"].split("\n")[each["paragraph"]]
        assert line.startswith(each["excerpt"])
        lost.setdefault(each["doc_id"], set()).add(each["paragraph"])
        assert each["repeats"] in made["near-paragraphs"]
    assert sum(each["reason"] == "near_duplicate_paragraph" for each in table) > 20
    for doc_id, document in made["near-paragraphs"].items():
        before = made["off"][doc_id]
        anchors = [
            (link["target_title"], before["text"][link["start_char"] : link["end_char"]])
            for link in before["links"]
            if before["text"][: link["start_char"]].count("\n") not in lost.get(doc_id, ())
        ]
        assert anchors == [
            (link["target_title"], document["text"][link["start_char"] : link["end_char"]])
            for link in document["links"]
        ]
