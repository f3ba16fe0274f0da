"""The entity finder on the parser's network."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import UserError
from transforms.entities.interface import Words
from transforms.entities.phrasemill_finder import PhrasemillFinder
from transforms.entities.registry import finder_identity, load_finder, needs_torch
from transforms.parsing.phrasemill.model_file import ENTITY_HEAD, read_model_file


@pytest.fixture(scope="module")
def finder() -> PhrasemillFinder:
    return PhrasemillFinder()


def sentence(text: str) -> Words:
    return Words(text.split(), [True] * len(text.split()))


TEXTS = {
    "Barack Obama was born in Honolulu in 1961 .": ["PERSON Barack Obama", "GPE Honolulu", "DATE 1961"],
    "Three of the French ships left Brest on Monday .": ["CARDINAL Three", "NORP French", "GPE Brest", "DATE Monday"],
    "Nobody saw the ship .": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_names_and_their_types(finder: PhrasemillFinder, text: str) -> None:
    words = sentence(text)
    found = [f"{type_} {' '.join(words.words[start:end])}" for start, end, type_ in finder.find([words])[0]]
    assert found == TEXTS[text]


def test_a_sentence_is_found_alike_alone_and_among_others(finder: PhrasemillFinder) -> None:
    """Several of its pieces' number, with fewer words and more, and an empty one."""
    texts = [*TEXTS, "Unbelievably , Paris", "A b c d", "Smith met Jones unaffordableness", ""]
    sentences = [*map(sentence, texts)]
    assert finder.find(sentences) == [finder.find([each])[0] for each in sentences]


def test_a_sentence_of_any_length_is_read(finder: PhrasemillFinder) -> None:
    text = " ".join(TEXTS)
    (once,), (often,) = finder.find([sentence(text)]), finder.find([sentence(" ".join([text] * 30))])
    assert len(often) >= 29 * len(once)
    assert often[-1].end_token > 510


def test_types_can_have_other_names() -> None:
    words = sentence(next(iter(TEXTS)))
    found = PhrasemillFinder(types="GPE:LOC,DATE:").find([words])
    assert [each.type for each in found[0]] == ["PERSON", "LOC"]


def test_the_identity_names_both_files() -> None:
    identity = finder_identity("phrasemill")
    assert identity == load_finder("phrasemill").identity
    assert identity.model_sha256.split() == [read_model_file().sha256, read_model_file(None, ENTITY_HEAD).sha256]
    assert len(identity.types) == 18
    assert not needs_torch("phrasemill")


def test_another_file_is_no_head(tmp_path: Path) -> None:
    content = read_model_file(None, ENTITY_HEAD).content
    files = {
        "words.txt": (b"no network", "cannot be read as a network: "),
        "parser.onnx": (read_model_file().content, "not an entity finder of format entities 1; "),
        "other.onnx": (
            content.replace(read_model_file().sha256.encode(), b"0" * 64),
            "made for another parser than the shipped one; ",
        ),
    }
    for name, (given, message) in files.items():
        (tmp_path / name).write_bytes(given)
        with pytest.raises(UserError, match=f"{name}: {message}"):
            PhrasemillFinder(str(tmp_path / name))
