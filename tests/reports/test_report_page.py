"""The report's page: numbers in words, what it shows, and that no text of the corpus becomes markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path

import lxml.html
import pytest
from written import REJECT, Written, context, document, hostile, phrase, write_dataset

from pipelines.report import main
from schemas.json_values import checked
from schemas.kinds.contexts import CONTEXTS
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.phrases import PHRASES
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import Ledger, Manifest, read_manifest
from schemas.storage.folder import Folder
from transforms.reports.figures import duration, plain, share, size
from transforms.reports.page import _key_figures, dataset_report, history

REPORT = Path(history.__file__).parent


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "–"),
        (0, 7, "0 %"),
        (7, 7, "100 %"),
        (1, 4, "25.0 %"),
        (1, 3, "33.3 %"),
        (1, 1000, "0.1 %"),
        (1, 10_000, "0.01 %"),
        (999_999, 1_000_000, "> 99.999 %"),
        (1, 1_000_000_000, "< 0.001 %"),
        (99_999, 100_000, "99.999 %"),
    ],
)
def test_shares_hide_neither_little_nor_almost_all(part, whole, text):
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (5e9, "5.0 GB"), (7.25e15, "7,250.0 TB")],
)
def test_sizes(number, text):
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.9, "9.9 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (12_000, "3 h 20 min"),
        (200_000, "2 days 7 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_names():
    assert plain("too_many_tokens") == "too many tokens"


def test_branches_are_written_filtered_rejected():
    ledger = Ledger("records", 10, 3)
    ledger.filtered.update(redirect=2, no_text=2, not_an_article=1, not_wikitext=0)
    ledger.rejected.update(bad_xml=2)
    assert [(each.kind, each.reason, each.number) for each in history.branches(ledger)] == [
        ("written", "", 3),
        ("filtered", "no_text", 2),
        ("filtered", "redirect", 2),
        ("filtered", "not_an_article", 1),
        ("rejected", "bad_xml", 2),
    ]


def manifest_of_run(run: dict[str, object], written: Written) -> Manifest:
    data = json.loads(written.manifest.to_json())
    return checked(Manifest, {**data, "run": run})


def test_times_at_the_top_are_those_of_all_datasets_from_the_raw_input_on(tmp_path):
    written = write_dataset(tmp_path / "p", PHRASES, [[[phrase("sea", 1)]]])
    written = write_dataset(tmp_path / "p", PHRASES, [[[phrase("sea", 1)]]])
    runs = [
        {"wall_seconds": {"parse": 60.0}, "seconds": {"parse": 100.0}, "peak_memory": 5_000_000},
        {"wall_seconds": {"count": 30.0, "select": 0.4}, "peak_memory": 2_000_000},
        {},
    ]
    found = dict(_key_figures(manifest_of_run({}, written), runs))
    assert (found["clock time"], found["worker time"], found["largest worker"]) == (
        "1 min 30 s",
        "1 min 40 s",
        "5.0 MB",
    )


def test_paces_are_rates_in_equal_parts_of_the_time(tmp_path):
    written = write_dataset(tmp_path / "p", PHRASES, [[[phrase("sea", 1)]]])
    course = [[1.0, 0, 0, 0], [2.0, 1, 10, 0], [2.5, 2, 15, 0], [5.0, 3, 60, 0]]
    run = {"seconds": {"write": 7.5}, "wall_seconds": {"write": 4.0}, "throughput": {"write": course}}
    (pace,) = history.paces("x", manifest_of_run(run, written))
    assert pace == history.Pace("x", "write", 4.0, 7.5, 3, 60, 0, [(2.0, 12.0), (4.0, 18.0)], [])


def test_older_manifests_tell_less_of_the_run(tmp_path):
    written = write_dataset(tmp_path / "p", PHRASES, [[[phrase("sea", 1)]]])
    (pace,) = history.paces("x", manifest_of_run({"seconds": {"write": 7.5}}, written))
    assert pace == history.Pace("x", "write", 0, 7.5, 1, 0, 0, [], [])


def chain(folder: Path) -> tuple[Written, Written]:
    """Documents, and contexts made from them."""
    documents = write_dataset(folder / "documents", DOCUMENTS, [[[document(1)]]], filtered={"redirect": 3})
    contexts = write_dataset(folder / "contexts", CONTEXTS, [[[context("sea", "the [MASK]")]]], made_from=documents)
    return documents, contexts


def test_the_whole_way_is_found_through_the_manifests(tmp_path):
    documents, contexts = chain(tmp_path)
    found = history.lineage(contexts.folder, contexts.manifest)
    assert [manifest for _, manifest in found] == [documents.manifest, contexts.manifest]
    assert [each.name for each in history.raw_inputs(found)] == ["raw.txt"]
    assert [(each.dataset, each.stage) for each in history.steps(found)] == [
        ("documents", "write"),
        ("contexts", "write"),
    ]


def test_datasets_that_were_moved_or_written_anew_are_left_out(tmp_path):
    _, contexts = chain(tmp_path)
    shutil.rmtree(tmp_path / "documents")
    assert len(history.lineage(contexts.folder, contexts.manifest)) == 1
    write_dataset(tmp_path / "documents", DOCUMENTS, [[[document(1)]]], made_from=contexts)
    assert len(history.lineage(contexts.folder, contexts.manifest)) == 1
    assert "is not where the manifest says" in dataset_report(contexts.folder, contexts.manifest)


def test_hostile_strings_stay_text(tmp_path):
    for written in hostile(tmp_path):
        report = dataset_report(written.folder, written.manifest)
        page = lxml.html.document_fromstring(report)
        assert [each.get("type") for each in page.iter("script")] == ["application/json", None, None]
        assert not list(page.iter("img"))
        assert not [each for each in page.iter("a") if each.get("href", "").startswith("javascript")]
        assert "alert(1)" in page.find(".//main").text_content(), written.path
        assert "49" not in page.find(".//section[@id='samples']").text_content()
        (block,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', report, re.DOTALL)
        assert not {"<", ">", "&", "\u2028"} & {*block}
        json.loads(block)


def test_the_policy_allows_the_two_scripts_and_nothing_else(tmp_path):
    _, contexts = chain(tmp_path)
    report = dataset_report(contexts.folder, contexts.manifest)
    page = lxml.html.document_fromstring(report)
    (policy,) = (each.get("content") for each in page.iter("meta") if each.get("http-equiv"))
    scripts = re.findall(r"<script>(.*?)</script>", report, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert len(scripts) == 2
    assert policy == (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'"
    )


def test_what_a_report_says(tmp_path):
    documents, contexts = chain(tmp_path)
    page = lxml.html.document_fromstring(dataset_report(contexts.folder, contexts.manifest))
    text = " ".join(" ".join(page.itertext()).split())
    for words in ("(1 row)", "raw.txt", "12.3 kB", "4 rows", "filtered: redirect 3 75.0 %", "Nothing was rejected"):
        assert words in text
    assert [each.text for each in page.iter("mark")] == ["sea"]
    assert contexts.manifest.fingerprint in text
    tables = [[cell.text_content() for cell in row] for row in page.iter("tr")]
    assert ["write: rows read documents", "4", ""] in tables
    assert documents.folder.name in text


@pytest.mark.parametrize("schema", [DOCUMENTS, SENTENCES, PHRASES, CONTEXTS])
def test_a_report_of_no_rows(schema, tmp_path):
    written = write_dataset(tmp_path / "empty", schema, [[]])
    assert "The dataset has no rows." in dataset_report(written.folder, written.manifest)


def test_a_report_is_bounded_in_size(tmp_path):
    """For texts, names and lists of any length."""
    long = "word " * 5_000
    rejects = [{**REJECT, "reason": reason, "excerpt": long, "exception": long} for reason in ("bad_xml", "corrupt")]
    text = long + "[MASK]" + long
    rows = [context("p" * 25_000, text, title=long, source=f"{number}{long}") for number in range(40)]
    options = {f"option {number}": long for number in range(20)}
    licences = {f"{number} {long}": 1 for number in range(200)}
    common = {"rejects": rejects * 50, "options": options, "licences": licences}
    written = write_dataset(tmp_path / "long", CONTEXTS, [[rows]], **common)
    assert len(dataset_report(written.folder, written.manifest).encode()) < 900_000


def colours(block: str) -> dict[str, tuple[int, ...]]:
    found = re.findall(r"--([a-z0-9-]+): #([0-9a-f]{6})", block)
    return {name: tuple(bytes.fromhex(colour)) for name, colour in found}


def luminance(colour: tuple[int, ...]) -> float:
    """Relative luminance, as the Web Content Accessibility Guidelines define it."""
    parts = [each / 255 / 12.92 if each <= 10 else ((each / 255 + 0.055) / 1.055) ** 2.4 for each in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("place", [1, 2], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(place):
    """At least 4.5 : 1, as the guidelines require for small text."""
    style = (REPORT / "style.css").read_text()
    found = colours(style.split(":root {")[place])
    assert len(found) == 17
    for ground in ("ground", "card"):
        for name in found.keys() - {"ground", "card", "line", "mark"}:
            low, high = sorted(map(luminance, (found[name], found[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, ground)
    low, high = sorted(map(luminance, (found["text"], found["mark"])))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_rejects_whose_files_were_deleted_since_have_no_examples(tmp_path):
    documents = write_dataset(tmp_path / "documents", DOCUMENTS, [[[document(1)]]], rejects=[REJECT])
    contexts = write_dataset(tmp_path / "contexts", CONTEXTS, [[[context("sea", "[MASK]")]]], made_from=documents)
    shutil.rmtree(documents.path / "rejects")
    assert "bad xml" in dataset_report(contexts.folder, contexts.manifest)


def test_the_library_is_the_version_that_the_lock_names():
    folder = REPORT / "echarts"
    version = json.loads((folder / "package.json").read_text())["dependencies"]["echarts"]
    lock = json.loads((folder / "package-lock.json").read_text())["packages"]
    library = (folder / "echarts.min.js").read_text(encoding="ascii")
    assert lock["node_modules/echarts"]["version"] == version
    assert library.startswith(f"/* Apache ECharts {version}, Apache License 2.0 ")
    assert "</script" not in library
    assert len(library) < 600_000


def test_the_command_writes_reports_again(tmp_path, capsys):
    documents, contexts = chain(tmp_path)
    assert main([str(documents.path), str(contexts.path)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{each.path}/report.html" for each in (documents, contexts)]
    assert (contexts.path / "report.html").read_text() == dataset_report(contexts.folder, contexts.manifest)
    assert read_manifest(Folder(str(contexts.path))) == contexts.manifest


def test_the_command_says_what_is_no_dataset(tmp_path, capsys):
    assert main([str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
