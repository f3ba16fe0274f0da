"""From sentences to phrases and contexts through the real stages, compared with plain Python, row for row.

The input is real text (books and Wikipedia, parsed here) and a treebank. Units, ranges and shards are small, so that
there are many of each.
"""

from __future__ import annotations

import bz2
import hashlib
import itertools
import re
import shutil
import string
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import brute_force
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import Mined, Row, mine, mine_datasets, parse_options, rows, run_here, run_inline, shard, treebank_shards
from properties import examples

from pipelines import corpus, summary
from pipelines.cli import main
from pipelines.mine_contexts import COMMAND, build
from pipelines.stages import contexts as context_steps
from pipelines.stages import count as count_steps
from pipelines.stages import units as unit_steps
from schemas import negatives as search
from schemas.kinds.phrases import PHRASES
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.terms import NEGATIVES, PHRASE_LABELS
from transforms.contexts.options import NegativeRules, Occurrences, WindowRules
from transforms.options import Draws
from transforms.phrases.options import PhraseRules, Vocabulary

SMALL = (
    (unit_steps, "UNITS", 1),
    (unit_steps, "MOST_SHARDS", 2),
    (count_steps, "TOKENS_A_RANGE", 1500),
    (count_steps, "MERGE_ROWS", 4096),
    (count_steps, "PHRASES_A_SHARD", 700),
    (context_steps, "ROWS_A_RANGE", 500),
    (context_steps, "CONTEXTS_A_SHARD", 400),
    (context_steps, "ROW_GROUP", 64),
)
"""Makes many units, ranges and shards of a small corpus."""

OPTIONS = [
    flags.split()
    for flags in (
        "",
        "--contexts-per-phrase=3 --window=20 --placement=centre --keep-other-occurrences --seed=5 "
        "--negatives=same-source",
        "--validation-rate=0.4 --max-phrases=300 --contexts-per-phrase=2 --seed=7 --mask-token=<é> "
        "--negatives=same-source-and-label",
        "--min-frequency=2 --labels=NP,PP --keep-case --keep-determiners --contexts-per-phrase=4 "
        "--negatives=same-label --nested=all",
        "--max-phrase-tokens=2 --keep-punctuation --keep-numbers --keep-pronouns --window=2",
        "--nested=outermost --keep-auxiliaries --keep-clauses --keep-possessives --keep-measures",
    )
]


class Corpus(NamedTuple):
    """A documents dataset and the sentences dataset made from it."""

    documents: corpus.ChainDataset
    sentences: corpus.ChainDataset


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in SMALL:
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="session")
def raw_files(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Pieces of two books, and the short articles of a Wikipedia dump."""
    folder = tmp_path_factory.mktemp("raw")
    books = test_data / "corpora/books"
    for name in ("h-g-wells_the-war-of-the-worlds", "henry-david-thoreau_walden"):
        text = (books / f"{name}.txt").read_text()
        start = text.index("\n", len(text) // 2) + 1
        (folder / f"{name}.txt").write_text(text[start : text.index("\n", start + 11_000)])
    dump = bz2.decompress((test_data / "corpora/wikipedia/enwiki-minidump.xml.bz2").read_bytes()).decode()
    pages = [page for page in re.findall(r"<page>.*?</page>", dump, re.DOTALL) if len(page) < 10_000]
    (folder / "wiki.xml").write_text(dump[: dump.index("<page>")] + "\n".join(pages) + "\n</mediawiki>\n")
    return sorted(folder.iterdir())


DATASETS = ("out", "out-phrases", "out-sentences", "out-documents")


def arguments(folder: Path, files: list[Path]) -> list[str]:
    """The whole chain from raw files, by the command, in shards of a few documents."""
    return [*(f"--input={path}" for path in files), f"--output={folder / 'out'}", "--shard-bytes=6000"]


@pytest.fixture(scope="session")
def made_here(raw_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The datasets that one process makes of the raw files."""
    folder = tmp_path_factory.mktemp("here")
    run_here(COMMAND, *arguments(folder, raw_files))
    return folder


@pytest.fixture(scope="session")
def real(made_here: Path) -> Corpus:
    """The raw files extracted and parsed."""
    folders = [Folder(str(made_here / name)) for name in ("out-documents", "out-sentences")]
    return Corpus(*(corpus.ChainDataset(folder, read_manifest(folder).fingerprint) for folder in folders))


@pytest.fixture(scope="session")
def reference(real: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Mined:
    """The datasets that the default options make of the real text."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in SMALL:
            patch.setattr(module, name, value)
        return mine_datasets(tmp_path_factory.mktemp("reference"), *real)


def expected(mined: Mined) -> tuple[list[Row], list[Row], list[Row]]:
    """Phrases, training and validation rows in plain Python."""
    options = parse_options(*mined.flags)
    rules, vocabulary, draws = options[PhraseRules], options[Vocabulary], options[Draws]
    phrases = brute_force.count(brute_force.find(mined.sentences, rules).occurrences)
    phrases = [row for row in phrases if row["frequency"] >= vocabulary.least]
    phrases = stored(phrases[: vocabulary.most])
    train, validation = brute_force.contexts(
        mined.documents,
        mined.sentences,
        phrases,
        phrase_rules=rules,
        window_rules=options[WindowRules],
        most=options[Occurrences].contexts_per_phrase,
        seed=draws.seed,
        validation_rate=draws.validation_rate,
        negatives=options[NegativeRules].negatives,
    )
    return phrases, train, validation


def stored(phrases: list[Row]) -> list[Row]:
    """The rows of phrases with their shares in the stored precision."""
    return pa.Table.from_pylist(phrases, schema=PHRASES).to_pylist()


def assert_equal(found: list[Row], wanted: list[Row]) -> None:
    """Compares row for row and shows the first row that differs."""
    for place, (one, other) in enumerate(zip(found, wanted, strict=False)):
        assert one == other, f"row {place}"
    assert len(found) == len(wanted)


def shards_of(dataset: Path) -> dict[str, str]:
    """The sha256 of each shard by its path; asserts that the manifest has the same."""
    manifest = read_manifest(Folder(str(dataset)))
    found = {each.path: hashlib.sha256((dataset / each.path).read_bytes()).hexdigest() for each in manifest.shards}
    assert found == {each.path: each.sha256 for each in manifest.shards}
    return found


# ---- Every row


@pytest.mark.parametrize("flags", OPTIONS, ids=" ".join)
def test_all_rows_of_real_text(tmp_path, real, flags):
    mined = mine_datasets(tmp_path, *real, *flags)
    phrases, train, validation = expected(mined)
    assert_equal(mined.phrases, phrases)
    assert_equal(mined.train, train)
    assert_equal(mined.validation, validation)
    manifest = read_manifest(Folder(str(tmp_path / "contexts")))
    assert len(manifest.splits["train"]) > 1 or len(train) < 400


def test_all_rows_of_a_treebank(tmp_path, test_data):
    shards = treebank_shards(test_data / "treebanks/gum/dev.ptb", shards=7)
    flags = ("--max-phrases=1500", "--contexts-per-phrase=2", "--window=60", "--labels=NP,VP,PP,ADJP,ADVP")
    mined = mine(tmp_path, shards, *flags)
    assert len({row["label"] for row in mined.phrases}) == 5
    phrases, train, _ = expected(mined)
    assert_equal(mined.phrases, phrases)
    assert_equal(mined.train, train)


def test_the_ledgers_of_real_text(reference, real):
    found = brute_force.find(reference.sentences, PhraseRules())
    manifest = read_manifest(Folder(str(reference.folder / "phrases")))
    count, select = manifest.stage("count").ledger, manifest.stage("select").ledger
    assert count is not None
    assert (count.read, count.written, count.filtered) == (found.read, len(found.occurrences), found.filtered)
    assert select is not None
    assert (select.read, select.written) == (len({each.phrase for each in found.occurrences}), len(reference.phrases))
    choose = read_manifest(Folder(str(reference.folder / "contexts"))).stage("choose").ledger
    assert choose is not None
    chosen = sum(row["frequency"] for row in reference.phrases)
    assert (choose.read, choose.written) == (len(found.occurrences), chosen)
    assert choose.filtered == {"not_in_vocabulary": len(found.occurrences) - chosen}


def test_the_cut_at_k_and_at_a_frequency(tmp_path, real, reference):
    found = brute_force.count(brute_force.find(reference.sentences, PhraseRules()).occurrences)
    often = {least: [row for row in found if row["frequency"] >= least] for least in (1, 2, 3)}
    for number, (flags, wanted) in enumerate(
        (
            ((), often[2]),
            (("--max-phrases=100",), often[2][:100]),
            (("--max-phrases=1",), often[2][:1]),
            (("--min-frequency=1",), often[1]),
            (("--min-frequency=1", "--max-phrases=1000"), often[1][:1000]),
            (("--min-frequency=3",), often[3]),
            (("--min-frequency=3", "--max-phrases=20"), often[3][:20]),
            (("--min-frequency=100000",), []),
        )
    ):
        dataset = corpus.phrases(real.sentences, parse_options(*flags), Folder(str(tmp_path / str(number))))
        run_inline(corpus.to_build([dataset])[0])
        assert_equal(rows(dataset.folder), stored(wanted))
        rarest = wanted[-1]["frequency"] if wanted else 0
        tied = sum(row["frequency"] == rarest for row in found[len(wanted) :])
        manifest = read_manifest(dataset.folder)
        reasons = Counter(tied_at_cut=tied, too_rare=len(found) - len(wanted) - tied)
        assert manifest.ledger("select").filtered == reasons
        notes = [
            f"phrases: the cut falls among those that occur once: {tied:,} of them are left out, by hash alone; keep "
            "none of them with --min-frequency 2, or more with --max-phrases"
        ]
        assert list(manifest.kind.notes(manifest)) == (notes if rarest == 1 and tied else [])


def test_ties_at_the_cut_favour_no_letter(tmp_path):
    """26 times 100 phrases occur once and 800 are kept: about 31 of each letter, with a standard deviation of 4.6."""
    words = [f"{letter}{number}" for letter in string.ascii_lowercase for number in range(100)]
    shards = [shard({f"d{n}": " ".join(f"[NP {word}]" for word in words[n::3])}) for n in range(3)]
    mined = mine(tmp_path, shards, "--max-phrases=800")
    shares = Counter(row["phrase"][0] for row in mined.phrases)
    assert shares.total() == 800
    assert all(abs(shares[letter] - 800 / 26) <= 13 for letter in string.ascii_lowercase)
    folder = Folder(str(tmp_path / "phrases"))
    assert read_manifest(folder).ledger("select").filtered == {"tied_at_cut": 1800}
    note = "phrases: the cut falls among those that occur once: 1,800 of them are left out, by hash alone; keep none"
    for text in (summary.text([folder], {}), *(folder.read(name).decode() for name in ("README.md", "report.html"))):
        assert note in text


# ---- Properties of every row


def test_offsets_and_masks(reference):
    texts = {row["doc_id"]: row["text"] for row in reference.documents}
    sentences = {row["sentence_id"]: row for row in reference.sentences}
    for row in reference.contexts:
        text = texts[row["doc_id"]]
        assert text[row["start_char"] : row["end_char"]] == row["surface"]
        sentence = sentences[row["sentence_id"]]
        assert sentence["start_char"] <= row["start_char"] < row["end_char"]
        assert row["end_char"] <= sentence["start_char"] + len(sentence["text"])
        behind = row["mask_start"] + len("[MASK]")
        assert row["context"][row["mask_start"] : behind] == "[MASK]"
        assert "\n" not in row["context"]
        assert row["negative"] != row["context"]


def test_the_surface_gives_the_phrase(reference):
    tokens = {row["sentence_id"]: brute_force.tokens_of(row) for row in reference.sentences}
    for row in reference.contexts:
        inside = [
            each
            for each in tokens[row["sentence_id"]]
            if row["start_char"] <= each.start_char and each.end_char <= row["end_char"]
        ]
        assert brute_force.join(inside) == row["phrase"]


def test_the_mask_put_back_gives_the_text(tmp_path, real):
    mined = mine_datasets(tmp_path, *real, "--keep-other-occurrences", "--window=40")
    texts = {row["doc_id"]: row["text"] for row in mined.documents}
    lines = {doc_id: re.sub(r"\n+", " ", text) for doc_id, text in texts.items()}
    for row in mined.train:
        before, behind = row["context"][: row["mask_start"]], row["context"][row["mask_start"] + len("[MASK]") :]
        place = len(re.sub(r"\n+", " ", texts[row["doc_id"]][: row["start_char"]] + "\0")) - 1
        line = lines[row["doc_id"]]
        assert line[place - len(before) :].startswith(before + row["surface"] + behind)


def test_windows_have_the_length_asked_for(reference):
    found = brute_force.find(reference.sentences, PhraseRules()).occurrences
    around = brute_force.windows(reference.documents, reference.sentences, found, rules=WindowRules(), seed=0)
    by_place = {(each.doc_id, each.start_char, each.phrase): window for each, window in around.items()}
    lengths: Counter[int] = Counter()
    for row in reference.contexts:
        window = by_place[row["doc_id"], row["start_char"], row["phrase"]]
        lengths[window.last - window.first] += 1
        assert window.last - window.first == min(120, len(window.run))
    assert lengths[120] > len(reference.contexts) / 2


def test_each_phrase_has_as_many_contexts_as_it_can(tmp_path, real):
    mined = mine_datasets(tmp_path, *real, "--contexts-per-phrase=3")
    found = Counter(row["phrase"] for row in mined.contexts)
    assert found == {row["phrase"]: min(3, row["frequency"]) for row in mined.phrases}
    assert len({(row["doc_id"], row["start_char"], row["phrase"]) for row in mined.contexts}) == len(mined.contexts)


def test_the_order_is_random(reference):
    """A prefix is a random sample: documents, frequencies and places are mixed."""
    half = len(reference.train) // 2
    documents = [Counter(row["doc_id"] for row in part) for part in (reference.train[:half], reference.train[half:])]
    for doc_id, n in (documents[0] + documents[1]).items():
        assert abs(documents[0][doc_id] - n / 2) <= 4 * n**0.5 / 2 + 1


def test_the_splits_share_no_document(tmp_path, real):
    mined = mine_datasets(tmp_path, *real, "--validation-rate=0.5", "--contexts-per-phrase=2")
    parts = (mined.train, mined.validation)
    documents = [{row["doc_id"] for row in part} for part in parts]
    assert all(documents)
    assert not documents[0] & documents[1]
    for part in parts:
        own = defaultdict(set)
        for row in part:
            own[row["context"]].add((row["phrase"], row["doc_id"]))
        for row in part:
            pairs = own[row["negative"]]
            assert any(phrase != row["phrase"] and doc_id != row["doc_id"] for phrase, doc_id in pairs)


# ---- Negatives that are hard to find


@pytest.mark.parametrize(
    ("documents", "negatives"),
    [
        # one document: another phrase is enough
        ({"d": "[NP x] a b [NP y]"}, {"x": "y", "y": "x"}),
        # each is in the other's context
        ({"d": "[NP x] [NP y]"}, {"x": None, "y": None}),
        # one phrase, one context: none
        ({"d": "[NP x]", "e": "a [NP x]"}, {"x": None}),
        # another document before another phrase
        ({"d": "[NP x] [NP y]", "e": "[NP z]"}, {"x": "z", "y": "z", "z": "xy"}),
        ({}, {}),
        ({"d": "no phrase"}, {}),
    ],
)
def test_negatives_of_small_corpora(tmp_path, documents, negatives):
    mined = mine(tmp_path, [shard(documents)], "--window=2")
    of_context = {row["context"]: row["phrase"] for row in mined.train}
    assert {row["phrase"]: of_context.get(row["negative"]) for row in mined.train}.keys() == negatives.keys()
    for row in mined.train:
        wanted = negatives[row["phrase"]]
        assert row["negative"] == "" if wanted is None else of_context[row["negative"]] in wanted
    counters = read_manifest(Folder(str(tmp_path / "contexts"))).stage("order").counters
    assert counters.get("without_negative", 0) == sum(each is None for each in negatives.values())


def test_a_document_that_dominates(tmp_path, monkeypatch):
    """Most rows find another document only after many shards."""
    monkeypatch.setattr(context_steps, "CONTEXTS_A_SHARD", 40)
    shards = [shard({"d": " ".join(f"[NP a{i}] x" for i in range(500))}), shard({"e": "[NP b1] [NP b2]"})]
    mined = mine(tmp_path, shards, "--window=4")
    assert len(read_manifest(Folder(str(tmp_path / "contexts"))).shards) > 10
    assert_equal(mined.train, expected(mined)[1])
    assert {row["negative"] for row in mined.train if row["doc_id"] == "d"} <= {"[MASK] b2", "b1 [MASK]"}


def test_a_phrase_that_dominates(tmp_path, monkeypatch):
    monkeypatch.setattr(context_steps, "CONTEXTS_A_SHARD", 20)
    shards = [shard({f"d{i}.{n}": f"[NP x] a{i} {'[NP y]' if n < 1 else ''}" for i in range(60)}) for n in range(4)]
    flags = ("--contexts-per-phrase=1000", "--validation-rate=0.3")
    mined = mine(tmp_path, shards, *flags)
    _, train, validation = expected(mined)
    assert_equal(mined.train, train)
    assert_equal(mined.validation, validation)


# ---- Any corpus


WORDS = st.sampled_from(["x", "X", "the", "y y", "é", "😀", "~.", "~x", "it", "5", "\ufffd", "~\ufffd\ufffd"])
CONSTITUENT = st.builds(lambda label, word: f"[{label} {word}]", st.sampled_from(PHRASE_LABELS), WORDS)
SENTENCE = st.lists(st.one_of(WORDS, CONSTITUENT), min_size=1, max_size=5).map(" ".join)
REJECTED = SENTENCE.map(lambda sentence: f"(( {sentence} ))")
LINE = st.lists(st.one_of(SENTENCE, SENTENCE, REJECTED), min_size=1, max_size=3).map(" | ".join)
DOCUMENT = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
SHARDS = st.lists(st.lists(DOCUMENT, max_size=3), min_size=1, max_size=4).map(
    lambda texts: [
        shard({f"{'st'[place % 2]}:{number}.{place}": text for place, text in enumerate(some)})
        for number, some in enumerate(texts)
    ]
)
FLAGS = st.lists(
    st.sampled_from(
        "--seed=3 --window=3 --contexts-per-phrase=2 --validation-rate=0.5 --max-phrases=3 --min-frequency=2 "
        "--keep-case --unknown-token=[?] --max-unknown-words=1".split()
    ),
    unique=True,
)


@examples(8)
@given(SHARDS, FLAGS, st.sampled_from(list(NEGATIVES)), st.sampled_from([3, 1_000]))
def test_any_corpus(tmp_path_factory, shards, flags, negatives, look_ahead):
    flags = [*flags, f"--negatives={negatives}"]
    with pytest.MonkeyPatch.context() as patch:
        for module in (search, brute_force):
            patch.setattr(module, "LOOK_AHEAD", look_ahead)
        patch.setattr(context_steps, "CONTEXTS_A_SHARD", 2)
        patch.setattr(context_steps, "ROWS_A_RANGE", 2)
        patch.setattr(count_steps, "TOKENS_A_RANGE", 5)
        mined = mine(tmp_path_factory.mktemp("any"), shards, *flags)
        again = mine(tmp_path_factory.mktemp("again"), shards[::-1], *flags, order=-1)
        phrases, train, validation = expected(mined)
    assert_equal(mined.phrases, phrases)
    assert_equal(mined.train, train)
    assert_equal(mined.validation, validation)
    assert_equal(again.contexts, mined.contexts)
    assert_equal(again.phrases, mined.phrases)


# ---- The same bytes


def test_the_same_bytes_for_any_order_and_size_of_units(tmp_path, real, reference, monkeypatch):
    names = ("phrases", "contexts")
    wanted = [shards_of(reference.folder / name) for name in names]
    mine_datasets(tmp_path / "backwards", *real, order=-1)
    assert [shards_of(tmp_path / "backwards" / name) for name in names] == wanted
    for module, name, value in (
        (unit_steps, "MOST_SHARDS", 3),
        (count_steps, "TOKENS_A_RANGE", 400),
        (count_steps, "MERGE_ROWS", 1 << 20),
        (context_steps, "ROWS_A_RANGE", 77),
    ):
        monkeypatch.setattr(module, name, value)
    mine_datasets(tmp_path / "others", *real)
    assert [shards_of(tmp_path / "others" / name) for name in names] == wanted


def test_the_same_bytes_for_any_workers_and_order_of_inputs(tmp_path, made_here, raw_files, monkeypatch):
    monkeypatch.undo()  # it would not reach the worker processes
    assert main(COMMAND, [*arguments(tmp_path, raw_files[::-1]), "--workers=2"]) == 0
    for name in DATASETS:
        assert shards_of(tmp_path / name) == shards_of(made_here / name), name


def test_a_late_option_rebuilds_only_what_reads_it(tmp_path, made_here, raw_files, monkeypatch, capsys):
    monkeypatch.undo()
    shutil.copytree(made_here, tmp_path / "copy")
    before = {name: shards_of(made_here / name) for name in DATASETS}
    run_here(COMMAND, *arguments(tmp_path / "copy", raw_files), "--overwrite", "--seed=1")
    shown = capsys.readouterr().out
    for name in DATASETS[1:]:
        assert f"{tmp_path / 'copy' / name}: is there already and fits" in shown
        assert shards_of(tmp_path / "copy" / name) == before[name]
    assert not set(shards_of(tmp_path / "copy" / "out").values()) & set(before["out"].values())


# ---- The pages for users

DOCS = Path(__file__).parents[2] / "docs"


def table_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the table with this first heading."""
    lines = iter((DOCS / page).read_text().splitlines())
    rows = []
    for line in itertools.dropwhile(lambda line: not line.startswith(f"| {heading} |"), lines):
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows[2:]


ANOTHER = {
    "--seed": "1",
    "--window": "60",
    "--placement": "centre",
    "--mask-token": "<mask>",
    "--unknown-token": "<unk>",
    "--max-unknown-words": "3",
    "--negatives": "same-label",
    "--contexts-per-phrase": "2",
    "--validation-rate": "0.1",
    "--labels": "NP",
    "--max-phrases": "10",
    "--keep-case": None,
    "--max-sentence-tokens": "50",
    "--dedup": "documents",
    "--shard-bytes": "5000",
    "--sample-documents": "0.5",
    "--workers": "7",
    "--runner": "PrismRunner",
}
"""Other values of the options that a page describes."""


def test_the_datasets_that_an_option_changes(raw_files, tmp_path):
    """Each dataset depends only on what it reads, as docs/contexts.md says."""

    def fingerprints(*flags: str) -> list[str]:
        source = corpus.given([str(path) for path in raw_files], input_format=None)
        chain = build(source, parse_options(*flags), Folder(str(tmp_path / "out")))
        return [each.fingerprint for each in chain]

    base = fingerprints()
    names = ("documents", "sentences", "phrases", "contexts")
    named = 0
    for options, made_again in table_of("contexts.md", "changed option"):
        wanted = {"all": names, "nothing": ()}.get(made_again, tuple(made_again.split(", ")))
        for flag in re.findall(r"--[\w-]+", options):
            if flag == "--parser":
                continue  # another one has to be installed
            value = ANOTHER[flag]
            found = fingerprints(flag if value is None else f"{flag}={value}")
            changed = [name for name, one, other in zip(names, base, found, strict=True) if one != other]
            assert tuple(changed) == wanted, flag
            named += 1
    assert named == len(ANOTHER)


@pytest.mark.parametrize("page", ["phrases.md", "contexts.md"])
def test_the_flags_of_the_page_exist(page):
    assert set(re.findall(r"--[a-z][a-z-]+", (DOCS / page).read_text())) <= {*COMMAND.flags.names}


def test_more_contexts_contain_the_fewer(tmp_path, real):
    flags = ("--max-phrases=100",)
    few, many = (
        {(row["phrase"], row["doc_id"], row["start_char"]) for row in mined.train}
        for mined in (
            mine_datasets(tmp_path / "1", *real, *flags),
            mine_datasets(tmp_path / "3", *real, *flags, "--contexts-per-phrase=3"),
        )
    )
    assert few < many
