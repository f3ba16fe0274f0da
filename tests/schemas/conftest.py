"""Four small datasets made by the real stages, and copies of them to break."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from literal import parse_options, run_inline

from pipelines import corpus, mine_contexts, mine_mentions
from pipelines.stages import contexts, pairs
from schemas.storage.folder import Folder

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
        "--min-frequency=1",
    )
    source = corpus.given([str(folder / "raw")], input_format=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contexts, "CONTEXTS_A_SHARD", 18)
        for dataset in mine_contexts.build(source, chosen, Folder(str(folder / "contexts"))):
            assert dataset.build is not None
            run_inline(dataset.build)
    return folder


@pytest.fixture
def copied(mined: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies a dataset, and the documents that its offsets are checked against; returns its folder."""

    def copy(name: str) -> Path:
        for each in {name, "contexts-documents"}:
            shutil.copytree(mined / each, tmp_path / each)
        return tmp_path / name

    return copy


_LINKED = {
    "Whale": "The '''whale''' is a [[marine mammal]] of the [[sea]]. A Whale breathes [[air]].\n\n"
    "Old sailors fear the white whale, a marine mammal.",
    "Sea": "The '''sea''' is home of the [[cachalot]] and of many a [[ship]]. "
    "Old sailors cross the [[sea (band)|sea]].",
    "Ship": "A '''ship''' 😀 crosses the [[sea|ocean]] in eleven days. It fears the [[Whale|white whale]].",
    "Moby Dick": "The '''white whale''' of [[Herman Melville]] sinks a [[ship]]. Nobody saw [[Ahab]] again.",
    "Herman Melville": "He wrote of the [[Moby Dick|white whale]] and of the [[sea]] in 1851.",
    "Atlantic Ocean": "An '''ocean''' with a [[whale]] or two. Every [[ship]] knows it.",
    "Sea (band)": "A band that sang of the [[Atlantic Ocean|ocean]] and of a [[ship]].",
    "Marine mammal": "A mammal of the [[sea]] or [[ocean]], like the [[Cachalot|sperm whale]].",
}


def _linked_dump() -> str:
    pages = dict(_LINKED)
    for number in range(16):
        whale, sea = ("Whale", "Moby Dick")[number % 3 > 1], ("sea", "Atlantic Ocean")[number % 2]
        pages[f"Port {number}"] = (
            f"In port number {number} they saw a [[whale]] near the [[{sea}|ocean]]. The [[{whale}|white whale]] left "
            f"port number {number} on a [[ship]]. Its crew came from [[port {(number + 5) % 16}]] in the night."
        )
    shown = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>1</id><text>{text}</text></revision></page>"
        for number, (title, text) in enumerate(pages.items(), start=10)
    )
    redirects = "".join(
        f'<page><title>{title}</title><ns>0</ns><id>{number}</id><redirect title="{target}" /><revision><id>1</id>'
        f"<text>#REDIRECT [[{target}]]</text></revision></page>"
        for number, (title, target) in enumerate({"Cachalot": "Whale", "Ocean": "Atlantic Ocean"}.items(), start=1)
    )
    return _dump().partition("<page>")[0] + f"{redirects}{shown}</mediawiki>"


_PROPERTIES = """-- Host: db    Database: seawiki
CREATE TABLE `page_props` (
  `pp_page` int(8) NOT NULL,
  `pp_propname` varbinary(60) NOT NULL,
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL
);
INSERT INTO `page_props` VALUES (10,'wikibase_item','Q160',NULL),(13,'wikibase_item','Q174596',NULL);
"""


@pytest.fixture(scope="session")
def mined_mentions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs, pairs-documents, pairs-mentions and pairs-aliases, and masked, from the same mentions.

    Documents, mentions and pairs have several shards, pairs two splits; mentions are of every resolution and origin.
    """
    folder = tmp_path_factory.mktemp("mentions")
    (folder / "sea.xml").write_text(_linked_dump())
    (folder / "seawiki-20240101-page_props.sql").write_text(_PROPERTIES)
    flags = (
        *("--shard-bytes=700", f"--tables={folder}/seawiki-20240101-page_props.sql", "--validation-rate=0.3"),
        *("--own-titles", "--repeated-anchors", "--min-alias-count=1"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_A_SHARD", 30)
        for name, more in (("pairs", ()), ("masked", ("--masked", "--mask-token=<mask>"))):
            chosen = parse_options(*flags, *more, command=mine_mentions.COMMAND)
            source = corpus.given([str(folder / "sea.xml")], input_format=None)
            for dataset in mine_mentions.build(source, chosen, Folder(str(folder / name))):
                assert dataset.build is not None
                run_inline(dataset.build)
    return folder


@pytest.fixture
def copied_mentions(mined_mentions: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies one of them, and what it was made from; returns its folder."""

    def copy(name: str) -> Path:
        for each in {name, "pairs-documents", "pairs-mentions", "masked-documents", "masked-mentions"}:
            shutil.copytree(mined_mentions / each, tmp_path / each)
        return tmp_path / name

    return copy
