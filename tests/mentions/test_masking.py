"""Masked mentions: one mask, or one for each sub-token, with real tokenizers made here."""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from watched import watch

from schemas.errors import UserError
from schemas.kinds.mention_pairs import MASKED_MENTION_PAIRS, MENTION_PAIRS
from transforms.mentions import masking
from transforms.mentions.masking import identified, load_masker, mask, masked_pairs, without_masks
from transforms.mentions.options import MaskRules


@pytest.mark.parametrize(
    ("text", "mask_token", "masks", "masked"),
    [
        ("He saw {New York}.", "[MASK]", 1, "He saw [MASK]."),
        ("{He} saw it", "<mask>", 1, "<mask> saw it"),
        ("I saw {him}", "[MASK]", 3, "I saw [MASK] [MASK] [MASK]"),
        ("New {York}-based", "[MASK]", 2, "New [MASK] [MASK]-based"),
        ("😀 é {x} 𝒳", "_", 1, "😀 é _ 𝒳"),
        ("[MASK] by {x} [MASK] [MASK]", "[MASK]", 1, " MASK] by [MASK]  MASK]  MASK]"),
        ("[MASK{] x}", "[MASK]", 1, "[MASK[MASK]"),
        ("of {the [MASK] token}", "[MASK]", 1, "of [MASK]"),
    ],
)
def test_one_mention(text, mask_token, masks, masked):
    start, end = text.index("{"), text.index("}") - 1
    assert mask(text.replace("{", "").replace("}", ""), start, end, mask_token=mask_token, masks=masks) == masked


@pytest.mark.parametrize(
    ("text", "mask_token", "without"),
    [("a_b__", "_", "a b  "), ("aaa", "aa", "  a"), ("x [M] y", " [M]", "x  M] y"), ("x", "[MASK]", "x")],
)
def test_a_mask_token_of_the_sentence_is_broken(text, mask_token, without):
    assert without_masks(text, mask_token) == without


@given(st.text("ab[] "), st.sampled_from(["a", "[a]", "aa", " b", "[ab"]))
def test_no_mask_is_left_and_nothing_moves(text, mask_token):
    without = without_masks(text, mask_token)
    assert mask_token not in without
    assert len(without) == len(text)
    assert all(old == new or new == " " for old, new in zip(text, without, strict=True))


def pairs(*rows: tuple[str, str, int]) -> pa.Table:
    """Pairs of two sentences with the mention in braces, and which of them is unmasked."""
    table = []
    for *texts, unmasked in rows:
        row: dict[str, Any] = {
            **{field.name: "" if pa.types.is_string(field.type) else 0 for field in MENTION_PAIRS},
            "unmasked": unmasked,
        }
        for side, text in enumerate(texts, start=1):
            row[f"text_{side}"] = text.replace("{", "").replace("}", "")
            row[f"start_char_{side}"], row[f"end_char_{side}"] = text.index("{"), text.index("}") - 1
        table.append(row)
    return pa.Table.from_pylist(table, schema=MENTION_PAIRS)


ROWS = [
    ("see {Rome}", "{Rome} again", 0),
    ("see {Rome}", "{Rome} again", 1),
    ("see {Rome}", "{Rome} again", 2),
    ("[MASK] is {BERT}'s", "{BERT} has [MASK]", 1),
    ("[MASK] is {BERT}'s", "{BERT} has [MASK]", 2),
]


@pytest.mark.parametrize("batch", [1, 2, 2048])
def test_the_side_that_keeps_its_words_does(monkeypatch, batch):
    monkeypatch.setattr(masking, "SENTENCES_A_BATCH", batch)
    table = pairs(*ROWS)
    anchor, positive = masked_pairs(table, load_masker(MaskRules()))
    assert list(zip(anchor.to_pylist(), positive.to_pylist(), strict=True)) == [
        ("see [MASK]", "[MASK] again"),
        ("see Rome", "[MASK] again"),
        ("see [MASK]", "Rome again"),
        (" MASK] is BERT's", "[MASK] has  MASK]"),
        (" MASK] is [MASK]'s", "BERT has  MASK]"),
    ]
    assert pa.table([*table.columns, anchor, positive], schema=MASKED_MENTION_PAIRS).validate(full=True) is None
    assert [len(each) for each in masked_pairs(table.slice(0, 0), load_masker(MaskRules()))] == [0, 0]


# Real tokenizers: BERT's vocabulary, and a byte-level BPE learnt here, like RoBERTa's

TEXT = ["of Paris, the capital of France", "the city of Paris, in France", "Washington was born in the city"] * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved tokenizers: wordpiece, bpe (as RoBERTa's), bpe-untrimmed (offsets with the blank), gpt (no mask), cut."""
    transformers = pytest.importorskip("transformers", reason="sub-tokens need the extra 'train'")
    import tokenizers
    from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors, trainers
    from tokenizers.implementations import BertWordPieceTokenizer

    made = tmp_path_factory.mktemp("tokenizers")

    def save(name: str, tokenizer: Any, mask_token: str | AddedToken | None = None, **options: Any) -> None:
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token=mask_token, **options)
        fast.save_pretrained(made / name)

    vocabulary = resources.files("transforms.parsing.phrasemill") / "model" / "vocab.txt"
    with resources.as_file(vocabulary) as path:
        save("wordpiece", BertWordPieceTokenizer(str(path))._tokenizer, "[MASK]")
        short = BertWordPieceTokenizer(str(path))
    short.enable_truncation(4)
    short.enable_padding(length=50)
    save("cut", short._tokenizer, "[MASK]", model_max_length=4)

    def learn(*, trim_offsets: bool) -> tokenizers.Tokenizer:
        bpe = tokenizers.Tokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = decoders.ByteLevel()
        bpe.post_processor = processors.ByteLevel(trim_offsets=trim_offsets)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        bpe.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet))
        return bpe

    save("bpe", learn(trim_offsets=True), AddedToken("<mask>", lstrip=True))
    save("bpe-untrimmed", learn(trim_offsets=False), AddedToken("<mask>", lstrip=True))
    save("bpe-no-lstrip", learn(trim_offsets=True), "<mask>")
    save("gpt", learn(trim_offsets=True))
    return made


def masker(folder: Path, name: str) -> masking.Masker:
    return load_masker(MaskRules("<mask>" if "bpe" in name else "[MASK]", "subtokens", str(folder / name)))


@pytest.mark.parametrize(
    ("text", "masks"),
    [
        ("he lived in {Paris}.", 1),
        ("he lived in {New York City}.", 3),
        ("{Unaffordableness}!", 5),  # una ##ff ##ord ##able ##ness
        ("the {U.S.} dollar", 4),
        ("he saw {Xyzzyq} there", None),
        ("a {naïve} man", 1),  # accents are removed
        ("an {emoji 😀} there", None),  # [UNK]
        ("a {\u200b} there", 1),  # nothing is kept
        ("Par{is} it", 1),  # a part of a word
        ("the {" + "word " * 600 + "end} of it", 601),  # no limit
    ],
)
def test_wordpiece(folder, text, masks):
    from transformers import AutoTokenizer

    plain = text.replace("{", "").replace("}", "")
    start, end = text.index("{"), text.index("}") - 1
    if masks is None:
        masks = len(AutoTokenizer.from_pretrained(folder / "wordpiece").tokenize(plain[start:end]))
    for name in ("wordpiece", "cut"):
        (masked,) = masker(folder, name).mask([plain], [start], [end])
        assert masked == plain[:start] + " ".join(["[MASK]"] * masks) + plain[end:]


@pytest.mark.heavy
def test_a_tokenizer_in_a_folder_calls_nobody_and_writes_nothing(folder, tmp_path):
    program = "import sys; from transforms.mentions.masking import Subtokens; Subtokens(sys.argv[1], '[MASK]')"
    seen = watch([sys.executable, "-c", program, str(folder / "wordpiece")], tmp_path / "watched")
    assert (seen.calls, seen.written, seen.status) == ([], [], 0), seen.printed


def test_the_blank_before_belongs_to_the_first_subtoken(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "bpe")
    assert len(tokenizer.tokenize(" Paris")) == 1
    alone = len(tokenizer.tokenize("Paris"))
    assert alone > 1
    for name, blank in (("bpe", " "), ("bpe-untrimmed", " "), ("bpe-no-lstrip", "")):
        texts = ["the city of Paris", "Paris, the city", "(Paris)", "of Paris of Paris", "the city of   Paris"]
        starts = [12, 0, 1, 12, 14]
        found = masker(folder, name).mask(texts, starts, [start + 5 for start in starts])
        several = blank.join(["<mask>"] * alone)
        wanted = ["the city of <mask>", f"{several}, the city", f"({several})", "of Paris of <mask>"]
        assert found == [*wanted, "the city of   <mask>"]


@examples(20)
@given(
    st.lists(st.text("Paris 😀é,\u00a0n", min_size=1, max_size=20), min_size=1, max_size=5),
    st.sampled_from(["wordpiece", "bpe", "bpe-untrimmed"]),
    st.randoms(use_true_random=False),
)
def test_as_many_masks_as_the_encoding_has_subtokens_there(folder, texts, name, random):
    from transformers import AutoTokenizer

    tokenizer = saved.setdefault(name, AutoTokenizer.from_pretrained(folder / name))
    spans = [sorted(random.sample(range(len(text) + 1), 2)) for text in texts]
    loaded = maskers.setdefault(name, masker(folder, name))
    for text, (start, end), masked in zip(texts, spans, loaded.mask(texts, *zip(*spans, strict=True)), strict=True):
        offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        touching = sum(not (last <= start or first >= end) for first, last in offsets)
        assert masked.startswith(text[:start] + tokenizer.mask_token)
        assert masked.endswith(text[end:])
        ids = tokenizer(masked, add_special_tokens=False)["input_ids"]
        assert ids.count(tokenizer.mask_token_id) == masked.count(tokenizer.mask_token) == max(touching, 1)


saved: dict[str, Any] = {}
maskers: dict[str, masking.Masker] = {}


def test_pairs_by_subtokens(folder):
    table = pairs(("in {Paris} there", "in {New York} there", 0), ("in {Paris} there", "in {New York} there", 2))
    anchor, positive = masked_pairs(table, masker(folder, "wordpiece"))
    assert anchor.to_pylist() == ["in [MASK] there"] * 2
    assert positive.to_pylist() == ["in [MASK] [MASK] there", "in New York there"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (MaskRules(" "), "--mask-token: must not be empty"),
        (MaskRules(masks="many"), "--masks: no 'many'; choose among one, subtokens"),
        (MaskRules(masks="subtokens"), "--masks=subtokens: name the model .* with --tokenizer"),
        (
            MaskRules("[MASK]", "subtokens", "DIR/bpe"),
            "knows no mask token '\\[MASK\\]'; its own is '<mask>': --mask-token",
        ),
        (
            MaskRules("[MASK]", "subtokens", "DIR/gpt"),
            "knows no mask token '\\[MASK\\]'; choose another with --tokenizer",
        ),
        (MaskRules("Ġthe", "subtokens", "DIR/bpe"), "takes 'Ġthe' apart; .* --mask-token"),
        (MaskRules("[MASK]", "subtokens", "DIR/none"), "no such folder"),
        (MaskRules("[MASK]", "subtokens", "DIR"), "the tokenizer .*--tokenizer"),
        (MaskRules("[MASK]", "subtokens", "DIR/wordpiece", "0" * 32), "is not the one .* --overwrite"),
    ],
)
def test_errors_name_the_remedy(folder, rules, message):
    rules = replace(rules, tokenizer=rules.tokenizer.replace("DIR", str(folder)))
    with pytest.raises(UserError, match=message) as raised:
        load_masker(rules)
    assert "\n" not in str(raised.value)


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(UserError, match=re.escape("needs transformers: pip install 'phrasemill[train]'")):
        load_masker(MaskRules("[MASK]", "subtokens", "bert-base-uncased"))
    assert load_masker(MaskRules()).mask(["a b"], [2], [3]) == ["a [MASK]"]


def test_a_tokenizer_is_identified_by_what_it_is(folder, tmp_path):
    rules = [
        MaskRules("[MASK]", "subtokens", str(folder / "wordpiece")),
        MaskRules("<mask>", "subtokens", str(folder / "bpe")),
        MaskRules("<mask>", "subtokens", str(folder / "bpe-untrimmed")),
    ]
    found = [identified(each) for each in rules]
    assert all(one.digest != other.digest for one, other in itertools.combinations(found, 2))
    assert identified(rules[0]) == found[0]
    (tmp_path / "copy").symlink_to(folder / "wordpiece")
    assert identified(replace(rules[0], tokenizer=str(tmp_path / "copy"))).digest == found[0].digest
    assert load_masker(found[1]).mask(["of Paris"], [3], [8]) == ["of <mask>"]
    assert identified(MaskRules()) == MaskRules()
