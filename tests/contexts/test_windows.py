"""Windows and masks: where a context begins and ends, and what is masked in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal import mine, shard

from schemas.dataset_checks import check_dataset
from schemas.keys import is_validation, row_key
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms.contexts.options import WindowRules
from transforms.contexts.windows import window_bounds


def contexts(folder, document: str, *flags: str) -> dict[str, str]:
    """The context of each phrase of a document in brackets, mined by the real stages."""
    rows = mine(folder, [shard({"d": document})], *flags).train
    return {row["phrase"]: row["context"] for row in rows}


@pytest.mark.parametrize(
    ("document", "phrase", "context"),
    [
        # the phrase at either end of the document, and alone
        ("[NP Ishmael] fled", "ishmael", "[MASK] fled"),
        ("he saw [NP the whale]", "whale", "he saw the [MASK]"),
        ("[NP Ishmael]", "ishmael", "[MASK]"),
        # blanks as in the text
        ("a [NP well ~- ~known man] ~.", "well-known man", "a [MASK]."),
        # a line break, and an empty line, are one blank
        ("[NP Title]\nIt is\n\nso", "title", "[MASK] It is so"),
        ("Once\n\n[NP Ishmael]\n\nfled", "ishmael", "Once [MASK] fled"),
        # other occurrences of the same words, also over a line break
        ("[NP Tom] saw Tom ~. | tom fled", "tom", "[MASK] saw [MASK]. [MASK] fled"),
        ("red wine and [NP red wine] and redwine", "red wine", "[MASK] and [MASK] and redwine"),
        ("New\nYork was [NP New York]", "new york", "[MASK] was [MASK]"),
        # a part of a longer token is not an occurrence
        ("[NP na] banana", "na", "[MASK] banana"),
        ("banana [NP na]", "na", "banana [MASK]"),
        ("[NP a.b] a ~.b a.b a.bc", "a.b", "[MASK] [MASK] [MASK] a.bc"),
        # overlapping occurrences: from left to right, never overlapping the phrase itself
        ("[NP ha ha] ha ha ha", "ha ha", "[MASK] [MASK] ha"),
        ("ha ha ha [NP ha ha] ha", "ha ha", "[MASK] ha [MASK] ha"),
        # characters of two and of four bytes
        ("😀 é [NP 𝔸 whale] 😀 𝔸 Whale", "𝔸 whale", "😀 é [MASK] 😀 [MASK]"),
        ("[NP İstanbul] é İSTANBUL", "i̇stanbul", "[MASK] é [MASK]"),
    ],
)
def test_masks(tmp_path, document, phrase, context):
    mined = mine(tmp_path, [shard({"d": document})])
    (row,) = [row for row in mined.train if row["phrase"] == phrase]
    assert row["context"] == context
    assert row["context"][row["mask_start"] :].startswith("[MASK]")
    assert mined.documents[0]["text"][row["start_char"] : row["end_char"]] == row["surface"]


@pytest.mark.parametrize(
    ("document", "context"),
    [
        ("the \ufffd saw [NP Tom]", "the [UNK] saw [MASK]"),
        ("[NP Tom] saw \ufffd ~'s \ufffd ~.\n\n\ufffd fled", "[MASK] saw [UNK]'s [UNK]. [UNK] fled"),
        # each character, also within a word and after others of several bytes
        ("é caf\ufffd ~\ufffd\ufffd 😀 [NP Tom]", "é caf[UNK][UNK][UNK] 😀 [MASK]"),
        ("\ufffd\n\n\ufffd\n[NP é] \ufffd É", "[UNK] [UNK] [MASK] [UNK] [MASK]"),
    ],
)
@pytest.mark.parametrize("token", ["[UNK]", "<unk>", "\ufffd", "?", "ein unbekanntes Wört"])
def test_unknown_words(tmp_path, document, context, token):
    (row,) = mine(tmp_path, [shard({"d": document})], "--unknown-token", token).train
    assert row["context"] == context.replace("[UNK]", token)
    assert row["context"][row["mask_start"] :].startswith("[MASK]")


@pytest.mark.parametrize(("most", "contexts"), [(0, 1), (1, 2), (2, 2), (3, 3)])
def test_contexts_with_too_many_unknown_words_are_left_out(tmp_path, most, contexts):
    documents = {"d": "\ufffd [NP x] \ufffd\ufffd", "e": "a [NP y] b", "f": "a\ufffd [NP z]"}
    mined = mine(tmp_path, [shard(documents)], f"--max-unknown-words={most}", "--validation-rate=0.3")
    assert len(mined.contexts) == contexts
    cut = read_manifest(Folder(str(tmp_path / "contexts"))).stage("cut").ledger
    assert cut is not None
    assert (cut.read, cut.written, cut.filtered["unknown_words"]) == (3, contexts, 3 - contexts)
    assert not list(check_dataset(str(tmp_path / "contexts")))


def test_other_occurrences_are_kept_on_request(tmp_path):
    found = contexts(tmp_path, "tom saw [NP Tom] and tom", "--keep-other-occurrences")
    assert found == {"tom": "tom saw [MASK] and tom"}


@pytest.mark.parametrize("token", ["<mask>", "⟪маска⟫😀", "_"])
def test_any_mask_token(tmp_path, token):
    mined = mine(tmp_path, [shard({"d": f"é {token} tom [NP Tom] é tom"})], "--mask-token", token)
    (row,) = mined.train
    assert (row["context"], row["mask_start"]) == (f"é {token} {token} {token} é {token}", 4 + 2 * len(token))


@pytest.mark.parametrize(
    ("document", "window", "context"),
    [
        ("a b c [NP X] d e f", 5, "b c [MASK] d e"),
        ("a b c [NP X] d e f", 4, "c [MASK] d e"),
        ("a b c [NP X Y] d e f", 5, "c [MASK] d e"),
        # full length also at the ends of the document
        ("[NP X] d e f g", 3, "[MASK] d e"),
        ("a b c d [NP X]", 3, "c d [MASK]"),
        # a short document gives a short window, a long phrase a long one
        ("b [NP X] d", 120, "b [MASK] d"),
        ("a [NP V W X Y Z] b", 3, "[MASK]"),
        # a window crosses sentences and paragraphs
        ("a b | c [NP X] d\n\ne f g", 7, "a b c [MASK] d e f"),
        # ... but not rejected text, whose tokens are unknown
        ("a b | (( bad bad )) | c [NP X] d | e | (( bad )) | f", 9, "c [MASK] d e"),
        ("(( bad )) | [NP X] | (( bad ))", 9, "[MASK]"),
    ],
)
def test_the_window(tmp_path, document, window, context):
    flags = ("--placement", "centre", "--window", str(window))
    assert list(contexts(tmp_path, document, *flags).values()) == [context]


def test_a_window_never_leaves_its_document(tmp_path):
    mined = mine(tmp_path, [shard({"d": "a [NP X] b", "e": "c [NP Y] d", "f": "e"})])
    assert sorted(row["context"] for row in mined.train) == ["a [MASK] b", "c [MASK] d"]


@given(
    low=st.integers(0, 50),
    before=st.integers(0, 200),
    length=st.integers(1, 12),
    after=st.integers(0, 200),
    window=st.integers(1, 130),
    chance=st.integers(0, 2**63 - 1),
    placement=st.sampled_from(["random", "centre"]),
)
def test_a_window_is_as_long_as_asked_for_wherever_the_run_is(low, before, length, after, window, chance, placement):
    start, end, high = low + before, low + before + length, low + before + length + after
    rules = WindowRules(window=window, placement=placement)
    arrays = [np.array([each], dtype=np.int64) for each in (start, end, low, high, chance)]
    first, last = (int(each[0]) for each in window_bounds(*arrays[:4], rules=rules, chance=arrays[4]))
    assert low <= first <= start < end <= last <= high
    assert last - first == max(min(window, high - low), length)
    if placement == "centre" and first > low and last < high and window >= length:
        assert abs((start - first) - (last - end)) <= 1


def test_random_placement_puts_the_phrase_anywhere(tmp_path):
    documents = {f"d{i}": " ".join([*"abcdefghij", f"[NP X{i}]", *"klmnopqrst"]) for i in range(400)}
    rows = mine(tmp_path, [shard(documents)], "--window", "5").train
    places = Counter(row["context"].split().index("[MASK]") for row in rows)
    assert sorted(places) == [0, 1, 2, 3, 4]
    assert min(places.values()) > 50  # of 80 expected


def test_the_identity_of_a_row_is_its_place_its_phrase_and_the_seed():
    base: dict[str, Any] = {"seed": 0, "doc_id": "d", "start_char": 1, "phrase": "x"}
    others: list[dict[str, Any]] = [
        {"seed": 1},
        {"doc_id": "e"},
        {"start_char": 2},
        {"phrase": "y"},
        {"doc_id": "d\0001", "start_char": 1},
    ]
    assert len({row_key(**base), *(row_key(**(base | other)) for other in others)}) == len(others) + 1


def test_the_validation_split_is_a_share_of_the_documents():
    ids = [f"wiki:{number}" for number in range(20_000)]
    for rate in (0.0, 0.01, 0.5):
        chosen = sum(is_validation(each, rate=rate, seed=3) for each in ids)
        assert abs(chosen - rate * len(ids)) <= 4 * (rate * len(ids)) ** 0.5
    assert {each for each in ids if is_validation(each, rate=0.1, seed=3)} < {
        each for each in ids if is_validation(each, rate=0.2, seed=3)
    }
