"""Reports in a real browser: drawn, silent, on phones and desktops, light and dark, safe from hostile corpora."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, chromium, find_chromium
from written import Written, context, document, hostile, phrase, sentence, write_dataset

from schemas.json_values import checked
from schemas.kinds.contexts import CONTEXTS
from schemas.kinds.documents import DOCUMENTS
from schemas.kinds.phrases import PHRASES
from schemas.kinds.sentences import SENTENCES
from schemas.manifest import Manifest
from transforms.reports.page import dataset_report

pytestmark = pytest.mark.heavy

PHONE, DESK = 375, 1280


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = find_chromium()
    if program is None:
        pytest.skip("needs chromium (Debian: apt-get install chromium)")
    with chromium(program, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


def _written(folder: Path) -> dict[str, Written]:
    """A dataset of each record type, the later ones made from the earlier ones, with rejects."""
    link = {"start_char": 0, "end_char": 5, "target_title": "Ship", "entity_id": "", "section": ""}
    documents = [
        document(number, text="Ships sail the seas. " * (number % 9 + 1), links=[link] * (number % 4))
        | {"source": f"source {number % 3}"}
        for number in range(60)
    ]
    rejects = [{"reason": "bad_xml", "source": "dump.xml", "position": "byte 7", "excerpt": "<x " * 60}]
    words = [sentence("the old man saw it " * (number % 5) + "go", [("NP", 0, 1)]) for number in range(80)]
    phrases = [phrase(f"{'old ' * (number % 4)}{number}", 2000 // number) for number in range(1, 300)]
    contexts = [context(f"{'old ' * (n % 4)}{n}", f"{'x ' * n}[MASK] {'y ' * n}", frequency=n) for n in range(1, 120)]
    first = write_dataset(
        folder / "documents",
        DOCUMENTS,
        [[documents]],
        rejects=rejects,
        filtered={"redirect": 4000},
        licences={"CC BY-SA 4.0": 59, "public domain": 1},
    )
    second = write_dataset(folder / "sentences", SENTENCES, [[words]], made_from=first)
    third = write_dataset(folder / "phrases", PHRASES, [[phrases]], made_from=second, filtered={"too_rare": 10**9})
    last = write_dataset(folder / "contexts", CONTEXTS, [[contexts]], made_from=third)
    return {"documents": first, "sentences": second, "phrases": third, "contexts": last}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of each dataset, as if its run had taken half an hour."""
    course = [[10.0 * step, step, 700 * step + step**2, 9000 * step] for step in range(120)]
    run = {"finished": "2026-01-01T00:00:00Z", "seconds": {"write": 2000}, "throughput": {"write": course}}
    found = {}
    for name, written in _written(tmp_path_factory.mktemp("datasets")).items():
        manifest = checked(Manifest, {**json.loads(written.manifest.to_json()), "run": run})
        found[name] = written.path / "report.html"
        found[name].write_text(dataset_report(written.folder, manifest))
    return found


def complaints(tab: Chromium) -> list[tuple[str, dict[str, Any]]]:
    """What a page must not do: log, throw, request anything but itself, open a dialog."""
    loud = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening"}
    requests = [event for event in tab.events if event[0] == "Network.requestWillBeSent"]
    return [event for event in tab.events if event[0] in loud] + requests[1:]


def marks(tab: Chromium) -> dict[str, list[int]]:
    """For each kind of chart, the number of marks in the colours of data in each chart."""
    return tab.evaluate(
        """(() => {
            const data = JSON.parse(document.getElementById("charts").textContent);
            const style = getComputedStyle(document.documentElement);
            const names = ["blue", "amber", "red", "series-1"];
            const colours = names.map((name) => style.getPropertyValue("--" + name).trim());
            const found = {};
            for (const { id, kind } of data) {
                const shapes = [...document.querySelectorAll(`#${id} svg path`)];
                const drawn = shapes.filter((each) => colours.some(
                    (colour) => [each.getAttribute("fill"), each.getAttribute("stroke")].includes(colour)));
                (found[kind] ??= []).push(drawn.length);
            }
            return found;
        })()"""
    )


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["documents", "sentences", "phrases", "contexts"])
def test_a_report_is_drawn_and_quiet(name, dark, width, browser, pages):
    browser.look(width=width, dark=dark)
    browser.open(pages[name].as_uri())
    assert complaints(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    (ground,) = [browser.evaluate("getComputedStyle(document.body).backgroundColor")]
    assert (ground == "rgb(255, 255, 255)") is not dark
    found = marks(browser)
    assert {"flow", "histogram", "course"} <= found.keys()
    for kind, numbers in found.items():
        assert min(numbers) >= {"flow": 3, "bars": 2, "histogram": 2}.get(kind, 1), (kind, numbers)
    # Charts are inside their cards, and their labels inside the charts.
    sticking_out = browser.evaluate(
        """[...document.querySelectorAll(".chart svg text")].filter((text) => {
            const inner = text.getBoundingClientRect(), outer = text.closest(".chart").getBoundingClientRect();
            return inner.left < outer.left - 2 || inner.right > outer.right + 2;
        }).map((text) => text.textContent)"""
    )
    assert sticking_out == []


def test_every_bin_and_every_branch_is_drawn(browser, pages):
    browser.look(width=DESK)
    browser.open(pages["documents"].as_uri())
    charts = browser.evaluate("JSON.parse(document.getElementById('charts').textContent)")
    expected = {
        "flow": [len(each["branches"]) for each in charts if each["kind"] == "flow"],
        "bars": [len(each["labels"]) for each in charts if each["kind"] == "bars"],
        "histogram": [sum(map(bool, each["counts"])) for each in charts if each["kind"] == "histogram"],
    }
    found = marks(browser)
    assert found["flow"] == [2 * number for number in expected["flow"]]  # a band, and the node that it ends in
    assert found["bars"] == expected["bars"]
    assert all(drawn >= bins for drawn, bins in zip(found["histogram"], expected["histogram"], strict=True))


def test_a_band_of_a_billionth_can_be_seen(browser, pages):
    """Of 10^9 phrases 299 were written."""
    browser.look(width=DESK)
    browser.open(pages["phrases"].as_uri())
    heights = browser.evaluate(
        """[...document.querySelectorAll(".chart.flow")].at(-1).querySelectorAll("svg path").values()
            .map((path) => path.getBoundingClientRect().height).toArray()"""
    )
    assert min(heights) >= 0.5
    labels = browser.evaluate("[...document.querySelectorAll('.chart.flow')].at(-1).textContent")
    assert "299 · < 0.001 %" in labels
    assert "1B · > 99.999 %" in labels


def test_the_page_follows_the_scheme_and_the_width(browser, pages):
    """While the page is open, as when a phone is turned or switches to dark mode."""
    browser.look(width=DESK)
    browser.open(pages["contexts"].as_uri())
    browser.look(width=PHONE, dark=True)
    browser.settle()
    assert complaints(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth") == PHONE
    assert all(numbers and min(numbers) >= 1 for numbers in marks(browser).values())  # in the colours of the dark
    browser.look(width=DESK)
    browser.settle()
    wide = browser.evaluate("document.querySelector('.chart.course svg').getBoundingClientRect().width")
    assert wide == browser.evaluate("document.querySelector('.chart.course').clientWidth") > PHONE


def test_nothing_moves(browser, pages):
    for motion in (True, False):
        browser.look(width=DESK, motion=motion)
        browser.open(pages["contexts"].as_uri())
        assert browser.evaluate("document.getAnimations().length") == 0


def test_charts_have_words_for_those_who_do_not_see_them(browser, pages):
    browser.open(pages["contexts"].as_uri())
    labels = browser.evaluate("[...document.querySelectorAll('.chart')].map((each) => each.getAttribute('aria-label'))")
    assert labels
    assert all(label and len(label) > 20 for label in labels)
    assert browser.evaluate("[...document.querySelectorAll('h1, h2, h3')].map((each) => each.tagName)")[0] == "H1"


def test_without_scripts_the_tables_remain(browser, pages):
    browser.look(width=DESK)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["contexts"].as_uri())
        shown = browser.call("Page.captureScreenshot", format="png")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert shown["data"]
    assert browser.evaluate("document.querySelectorAll('.chart').values().every((e) => e.clientHeight === 0)")
    heights = browser.evaluate("[...document.querySelectorAll('table')].map((each) => each.clientHeight)")
    assert len(heights) > 5
    assert min(heights) > 20


def test_tables_are_closed_where_charts_show_the_same_and_open_on_paper(browser, pages):
    browser.look(width=DESK)
    browser.open(pages["contexts"].as_uri())
    opened = "[...document.querySelectorAll('details')].map((each) => each.open)"
    assert not any(browser.evaluate(opened))
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.evaluate(opened))
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not any(browser.evaluate(opened))
    assert complaints(browser) == []


@pytest.mark.parametrize("number", range(8))
def test_hostile_strings_are_harmless(number, browser, tmp_path):
    written = hostile(tmp_path)[number]
    page = written.path / "report.html"
    page.write_text(dataset_report(written.folder, written.manifest))
    for width in (PHONE, DESK):
        browser.look(width=width)
        browser.open(page.as_uri())
        assert complaints(browser) == []
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.evaluate("document.scripts.length") == 3
        assert browser.evaluate("document.images.length") == 0
        assert "alert(1)" in browser.evaluate("document.querySelector('main').innerText")


def test_the_policy_stops_what_gets_in_all_the_same(browser, pages, tmp_path):
    """If something of the corpus became markup, still no script would run and no request would be sent."""
    text = pages["contexts"].read_text()
    broken = tmp_path / "broken.html"
    intruders = "<script>window.ran = 1</script><img src='https://example.org/x.png' onerror='window.ran = 2'>"
    broken.write_text(text.replace("<main>", f"<main>{intruders}"))
    browser.open(broken.as_uri())
    assert browser.evaluate("window.ran") is None
    errors = [event for event in complaints(browser) if event[0] == "Log.entryAdded"]
    assert len(errors) >= 2  # so the test for a silent page would see it
    loaded = [event for event in browser.events if event[0] == "Network.responseReceived"]
    assert [event[1]["response"]["url"] for event in loaded] == [broken.as_uri()]
