"""Four small datasets made by the real stages, and copies of them to break."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from literal import parse_options, run_inline

from pipelines import corpus, mine_contexts
from pipelines.steps import contexts
from schemas.storage import Folder

_PAGES = {
    "Whale": "The '''whale''' is a [[marine mammal|large marine mammal]]. Old sailors fear the white whale.\n\n"
    "The [[Atlantic Ocean]] is the home of many large whales. A whale breathes air.",
    "Ship": "A '''ship''' is a large [[boat]]. The old ship crossed the [[Atlantic Ocean]] in eleven days.\n\n"
    "Its crew were old sailors from a small village.",
    "Café": "A '''café''' in [[Zürich]] serves strong coffee — the best coffee of the old town 😀.\n\n"
    "Many old sailors drink strong coffee in the small café.",
}
_TEXTS = (
    "The old captain saw a white whale. He went quickly below deck.",
    "A small boat came alongside the old ship.\n\nThe crew drank strong coffee in the morning.",
    "My uncle lives in a small village near the sea. Very few people visit the small village.",
    "The white whale sank the old ship. Nobody saw the old captain again.",
    "Strong coffee keeps the old captain awake. He drinks strong coffee every day.",
    "The old captain saw a white whale. He went quickly below deck.",
    "A very old map shows the small village. The map is quite beautiful.",
    "People near the sea eat fresh fish. Fresh fish is really cheap in the small village.",
)


def _dump() -> str:
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>1</id>"
        f'<text xml:space="preserve">{text}</text></revision></page>\n'
        for number, (title, text) in enumerate(_PAGES.items(), start=10)
    )
    redirect = (
        '<page><title>Coffee house</title><ns>0</ns><id>9</id><redirect title="Café" /><revision><id>1</id>'
        '<text xml:space="preserve">#REDIRECT [[Café]]</text></revision></page>\n'
    )
    return (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="en"><siteinfo><dbname>seawiki</dbname>'
        "<base>https://sea.example.org/wiki/Main_Page</base>"
        '<namespaces><namespace key="0" case="first-letter" /></namespaces></siteinfo>\n'
        f"{redirect}{pages}</mediawiki>\n"
    )


@pytest.fixture(scope="session")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with contexts, contexts-documents, contexts-sentences and contexts-phrases; each has several shards.

    With rejects, a redirect, links, text that is not ASCII and a validation split.
    """
    folder = tmp_path_factory.mktemp("mined")
    (folder / "raw").mkdir()
    (folder / "raw/sea.xml").write_text(_dump())
    lines = [json.dumps({"text": text, "title": f"Tale {n}"}) for n, text in enumerate(_TEXTS)]
    (folder / "raw/tales.jsonl").write_text("\n".join([*lines[:4], '{"text": cut', *lines[4:]]) + "\n")
    chosen = parse_options(
        *("--on-corrupt=skip", "--shard-bytes=300", "--contexts-per-phrase=2"),
        *("--validation-rate=0.3", "--window=20", "--max-sentence-tokens=14"),
    )
    source = corpus.given([str(folder / "raw")], input_format=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contexts, "CONTEXTS_A_SHARD", 25)
        for dataset in mine_contexts.build(source, chosen, Folder(str(folder / "contexts"))):
            assert dataset.build is not None
            run_inline(dataset.build)
    return folder


@pytest.fixture
def copied(mined: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a dataset, with the documents beside it that its offsets are checked against; gives its folder."""

    def copy(name: str) -> Path:
        for each in {name, "contexts-documents"}:
            shutil.copytree(mined / each, tmp_path / each)
        return tmp_path / name

    return copy
