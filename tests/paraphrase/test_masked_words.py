"""What a masked language model says of places and words; the model has learnt nothing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from masked_models import make_masked_lm

from schemas.errors import UserError

WORDS = "the of old house ships kings river famous large".split()
PHRASES = ["old house", "the famous old house", "of kings", "zebra's house", "old house of the large ships", "house"]
PLACES = [[0, 1], [3], [1], [0, 1], [1, 5], []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("transformers", reason="needs the extra 'augment'")
    return make_masked_lm(tmp_path_factory.mktemp("model"), WORDS)


def test_views(folder: str) -> None:
    from transforms.paraphrase.masked_words import MaskedWords

    model = MaskedWords(folder)
    done: list[int] = []
    views = model.views(PHRASES, PLACES, done.append)
    assert [sorted(each) for each in views] == PLACES
    assert sum(done) == len(PHRASES) - 1
    for each in (view for found in views for view in found.values()):
        assert list(each.likely.values()) == sorted(each.likely.values(), reverse=True)
        assert set(each.likely) == set(WORDS) - {"of"}  # words of three letters or more
        assert sum(map(math.exp, each.likely.values())) < 1
    assert views[0][1].own == pytest.approx(views[0][1].likely["house"])
    # A phrase is read by itself: its batch changes nothing.
    for phrase, places, found in zip(PHRASES, PLACES, views, strict=True):
        (alone,) = model.views([phrase], [places])
        for place in places:
            assert alone[place].own == pytest.approx(found[place].own, abs=2e-3)
            assert alone[place].likely == pytest.approx(found[place].likely, abs=2e-3)


def test_words(folder: str) -> None:
    from transforms.paraphrase.masked_words import MaskedWords

    model = MaskedWords(folder)
    assert model.knows("house")
    assert not model.knows("zebra")
    assert 0 < model.rarity("old") < model.rarity("large") < model.rarity("zebra") == 1
    assert model.likeness("house", "house") == pytest.approx(1)
    assert model.likeness("house", "old zebra") == pytest.approx(model.likeness("old zebra", "house"))
    again = MaskedWords(folder)  # a tokenizer gives its vocabulary in any order
    pairs = [(one, other) for one in WORDS for other in [*WORDS, "zebra"]]
    assert [again.likeness(*each) for each in pairs] == [model.likeness(*each) for each in pairs]
    assert model.identity.masked_lm == Path(folder).name


def test_no_model(tmp_path: Path, folder: str) -> None:
    from transforms.paraphrase.masked_words import MaskedWords, masked_identity

    with pytest.raises(UserError, match="--masked-lm: no model"):
        masked_identity(str(tmp_path))
    with pytest.raises(UserError, match="no token that is a word in lower case"):
        MaskedWords(make_masked_lm(tmp_path / "letters", []))
