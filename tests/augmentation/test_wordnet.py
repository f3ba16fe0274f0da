"""WordNet's files: where they are found, and what is read from them."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from schemas.errors import UserError
from transforms.augmentation import wordnet as module
from transforms.augmentation.synonyms import Synonym
from transforms.augmentation.wordnet import ADJECTIVE, NOUN, VERB, WordNet, find_wordnet, identify


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: WordNet) -> Path:
    """A copy of the files; without it there are none, wherever they may be installed."""
    place, copy = find_wordnet(), tmp_path / "dict"
    copy.mkdir()
    for name, content in module.read_files(place).items():
        (copy / name).write_bytes(content)
    monkeypatch.setattr(module, "_USUAL", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    return copy


def test_where_it_is_found(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"no WordNet.*transforms\.augmentation\.wordnet.*--operations"):
        Synonym.identity()
    monkeypatch.setenv("WNSEARCHDIR", str(nowhere))
    assert find_wordnet() == nowhere
    monkeypatch.delenv("WNSEARCHDIR")
    corpora = tmp_path / "nltk" / "corpora"
    corpora.mkdir(parents=True)
    monkeypatch.setenv("NLTK_DATA", f"{tmp_path / 'none'}:{tmp_path / 'nltk'}")
    with zipfile.ZipFile(corpora / "wordnet.zip", "w") as archive:
        for file in nowhere.iterdir():
            archive.write(file, f"wordnet/{file.name}")
    assert find_wordnet() == corpora / "wordnet.zip"
    assert identify(corpora / "wordnet.zip") == identify(nowhere)
    shutil.copytree(nowhere, corpora / "wordnet")
    assert find_wordnet() == corpora / "wordnet"
    (corpora / "wordnet" / "data.verb").unlink()  # not complete
    assert find_wordnet() == corpora / "wordnet.zip"


def test_identity(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(nowhere))
    identity = Synonym.identity()
    assert (identity["model"], identity["model_version"]) == ("WordNet", "3.0")
    with (nowhere / "cntlist.rev").open("a") as file:
        file.write("\n")
    identify.cache_clear()
    assert Synonym.identity()["model_sha256"] != identity["model_sha256"]


def test_senses_and_base_forms(database: WordNet) -> None:
    first, second, *_ = database.senses("city", NOUN)
    assert ([each.lemma for each in first.members], first.occurrences) == (["city", "metropolis", "urban center"], 103)
    assert second.occurrences == 13
    large = database.senses("large", ADJECTIVE)[0]
    assert set(large.antonyms) & {each.synset for each in database.senses("small", ADJECTIVE)}
    thank = database.senses("thank", VERB)[0]
    assert [each.frames for each in thank.members] == [(), ("22",)]  # "gives thanks to"
    assert database.base_forms("axes", NOUN) == ["ax", "axis", "axe"]
    assert database.base_forms("left", VERB) == ["leave"]
    assert database.senses("phrasemill", NOUN) == ()


@pytest.mark.heavy
def test_as_nltk_reads_it(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk_data = pytest.importorskip("nltk.data")
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    folder = tmp_path / "nltk" / "corpora" / "wordnet"
    shutil.copytree(nowhere, folder)
    (folder / "lexnames").write_text("".join(f"{n:02}\tname.{n}\t1\n" for n in range(45)))
    (folder / "index.sense").touch()
    monkeypatch.setattr(nltk_data, "path", [str(tmp_path / "nltk")])
    with pytest.warns(UserWarning, match="multilingual"):
        theirs = WordNetCorpusReader(nltk_data.find("corpora/wordnet"), None)
    ours = WordNet(nowhere)
    for pos in "nvar":
        lemmas = sorted(ours._index[pos])[::37]
        for lemma in lemmas:
            found = {
                (each.synset[1], tuple(member.lemma for member in each.members)) for each in ours.senses(lemma, pos)
            }
            synsets = theirs.synsets(lemma.replace(" ", "_"), pos)  # and those of its base forms
            names = [(each.offset(), tuple(each.lemma_names())) for each in synsets]
            spaced = {(offset, tuple(each.replace("_", " ") for each in members)) for offset, members in names}
            expected = {each for each in spaced if lemma in map(str.lower, each[1])}
            assert found == expected, lemma
