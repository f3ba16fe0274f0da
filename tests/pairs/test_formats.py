"""Readers of files of pairs, and the rules for what is kept: literal lines in, pairs and reasons out."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from schemas.errors import UserError
from transforms.pairs.formats import PAIR_FORMATS, PairRow
from transforms.pairs.options import PairRules
from transforms.pairs.rules import dropped_for, read_words, rules_of
from transforms.sources.formats import InputFile, Segment
from transforms.sources.inputs import resolve_inputs
from transforms.sources.items import Corrupt, Filtered, Rejected

PPDB_2 = """\
[NP] ||| the small boat ||| the little boat ||| PPDB2.0Score=4.51234 PPDB1.0Score=12.5 -logp(LHS|e1)=0.1 \
-logp(e1|e2)=2.39790 AGigaSim=0.71152 Abstract=0 Adjacent=0 CharCountDiff=1 GlueRule=0 MVLSASim=NA Monotonic=1 \
||| 0-0 1-1 2-2 ||| Equivalence
[VP/NP] ||| set sail ||| sail away ||| PPDB2.0Score=3.1 PPDB1.0Score=9 MVLSASim=NA||| 1-0 ||| ForwardEntailment
[S/PP] ||| [NP/NP,1] such boats [VP/PP,2] ||| [NP/NP,1] those boats [VP/PP,2] ||| PPDB2.0Score=5.4 \
||| 1-1 ||| Independent
[NN] ||| boat ||| vessel ||| PPDB2.0Score=NA ||| 0-0 ||| OtherRelated
"""
PPDB_1 = """\
[NP] ||| the old port ||| the ancient port ||| Abstract=0 Adjacent=0 CharCountDiff=4 GlueRule=0 Identity=0 \
Lex(e|f)=62.90141 Lex(f|e)=62.90141 Lexical=0 LogCount=0 p(e|f)=2.30259 p(f|e)=1.60944 ||| 0-0 1-1 2-2
"""


def read(path: Path, *, score: str = "PPDB2.0Score", bytes_a_part: int = 1 << 30, name: str = "") -> list:
    """All items of a file, in the format that is found for it, in parts."""
    found = resolve_inputs([str(path)], input_format=name or None, formats=PAIR_FORMATS)
    file = InputFile(str(path), path.name, path.stat().st_size)
    format_ = found.inputs[0].format
    parts = format_.split(fs.LocalFileSystem(), file, target_bytes=bytes_a_part)
    return [each for part in parts for each in format_.read(fs.LocalFileSystem(), file, part, score=score)]


def test_ppdb_2(tmp_path):
    (tmp_path / "ppdb").write_text(PPDB_2)
    assert read(tmp_path / "ppdb") == [
        PairRow("the small boat", "the little boat", 4.51234, "Equivalence"),
        PairRow("set sail", "sail away", 3.1, "ForwardEntailment"),
        Filtered("pattern"),
        PairRow("boat", "vessel", None, "OtherRelated"),
    ]
    assert read(tmp_path / "ppdb", score="-logp(e1|e2)")[0].score == 2.3979


def test_ppdb_1_compressed(tmp_path):
    (tmp_path / "ppdb.gz").write_bytes(gzip.compress(PPDB_1.encode()))
    assert read(tmp_path / "ppdb.gz") == [PairRow("the old port", "the ancient port", None, None)]
    assert read(tmp_path / "ppdb.gz", score="p(f|e)") == [PairRow("the old port", "the ancient port", 1.60944, None)]


def test_json_tsv_and_paws(tmp_path):
    rows = [["set sail", "sail away", "pos", 4.5], ["set sail", "old port", "neg", None], ["a b", "c d", "pos"]]
    (tmp_path / "eval.json").write_text(json.dumps(rows, indent=4))
    assert read(tmp_path / "eval.json") == [
        PairRow("set sail", "sail away", 4.5),
        PairRow("set sail", "old port", label=False),
        PairRow("a b", "c d"),
    ]
    (tmp_path / "pairs.tsv").write_text("phrase\tparaphrase\tscore\r\nset  sail\tsail away\t.5\r\na b\tc d\n")
    assert read(tmp_path / "pairs.tsv") == [
        Filtered("heading"),
        PairRow("set sail", "sail away", 0.5),
        PairRow("a b", "c d"),
    ]
    paws = "id\tsentence1\tsentence2\tlabel\n1\tA b .\tB a .\t0\n2\tA c .\tThe c .\t1\n"
    (tmp_path / "dev.tsv").write_text(paws)
    assert read(tmp_path / "dev.tsv") == [
        Filtered("heading"),
        PairRow("A b .", "B a .", label=False),
        PairRow("A c .", "The c ."),
    ]


@pytest.mark.parametrize(
    ("name", "broken", "said"),
    [
        ("ppdb", "[NP] ||| a b ||| c d", "3 fields between |||, not 5 or 6"),
        ("ppdb", "[NP] ||| a b |||  ||| PPDB2.0Score=1 ||| 0-0", "a phrase is empty"),
        ("ppdb", "[NP] ||| a b ||| c d ||| PPDB2.0Score=much ||| 0-0", "the score is 'much', not a number"),
        ("ppdb", "[NP] ||| a b ||| c d ||| PPDB2.0Score=1e99 ||| 0-0", "the score is '1e99', not a number"),
        ("tsv", "one field", "1 fields between tabs, not 2 to 4"),
        ("paws", "1\tA b .\tB a .\tyes", "the label is 'yes', not 0 or 1"),
        ("paws", "1\tA b .\t1", "3 fields between tabs, not 4"),
        ("tsv", "a b\t" + "c" * (1 << 16), "more than 65,536 bytes"),
        ("tsv", "a b\t\udce9", "can't decode byte 0xe9"),
    ],
)
def test_a_broken_line_is_rejected_with_its_place(tmp_path, name, broken, said):
    good = {"ppdb": PPDB_1, "tsv": "a b\tc d\n", "paws": "id\tsentence1\tsentence2\tlabel\n"}[name]
    (tmp_path / "file").write_bytes((good + broken + "\n" + good).encode("utf-8", "surrogateescape"))
    before, found, after = read(tmp_path / "file", name=name)
    assert before == after
    assert isinstance(found, Rejected)
    assert (found.reason, found.position) == ("bad_pair", f"byte {len(good)}")
    assert said in found.exception


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[["a", "b", "pos"], ["a"]]', "not [phrase, other, label]"),
        ('[["a", "b", "pos"], ["a", "b", "yes"]]', "the label is 'yes'"),
        ('[["a", "b", "pos"], ["a", "b", "pos", true]]', "the score is 'True'"),
        ('[["a", "b", "pos"], ["a", " ", "pos"]]', "a phrase is empty"),
    ],
)
def test_a_broken_row_of_json(tmp_path, text, said):
    (tmp_path / "pairs.json").write_text(text)
    good, found = read(tmp_path / "pairs.json")
    assert good == PairRow("a", "b")
    assert found.position == "row 1"
    assert said in found.exception


def test_json_that_ends_early(tmp_path):
    (tmp_path / "pairs.json").write_text('[["a", "b", "pos"],')
    (found,) = read(tmp_path / "pairs.json")
    assert isinstance(found, Corrupt)
    assert "is no JSON array of pairs" in found.message


@examples(8)
@given(st.lists(st.sampled_from([*PPDB_2.splitlines()[:2], "broken", "", "x ||| y"]), min_size=1), st.integers(1, 900))
def test_parts_of_a_file_have_the_lines_of_the_whole(tmp_path_factory, lines, size):
    path = tmp_path_factory.mktemp("ppdb") / "ppdb"
    path.write_text("\n".join([PPDB_1.strip(), *lines]))
    assert read(path, bytes_a_part=size) == read(path)


def test_the_rest_of_a_file_after_some_items(tmp_path):
    (tmp_path / "ppdb").write_text(PPDB_2)
    file = InputFile(str(tmp_path / "ppdb"), "ppdb", len(PPDB_2))
    rest = PAIR_FORMATS["ppdb"].read(fs.LocalFileSystem(), file, Segment(0, len(PPDB_2)), score="x", skip=3)
    assert [each.phrase for each in rest] == ["boat"]


# ---- Rules


KNOWN = frozenset("a big small large car boat of the".split())


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (PairRow("big car", "large car"), None),
        (PairRow("big car", "boat"), None),
        (PairRow("big car", "big car"), "identical"),
        (PairRow("big car", "large car", label=False), "labelled_negative"),
        (PairRow("big car .", "large car"), "non_letter"),
        (PairRow("big car", "large car 2"), "non_letter"),
        (PairRow("big-car a", "large car"), "non_letter"),
        (PairRow("huge car", "large car"), "unknown_word"),
        (PairRow("big car", "Large car"), "unknown_word"),
        (PairRow("boat", "car"), "single_words"),
        (PairRow("boat", "vessel"), "unknown_word"),
    ],
)
def test_the_rules_of_pairwise_gru(row, reason):
    rules = PairRules(preset="pgru", vocabulary="words.txt").resolved
    assert dropped_for(row, rules_of(rules, KNOWN)) == reason


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (PairRules(), [0, 1, 2]),
        (PairRules(min_score=2.0), [0]),
        (PairRules(relations=("Equivalence",)), [0, 1]),
        (PairRules(no_single_words=True), [0, 1]),
    ],
)
def test_other_rules(rules, kept):
    rows = [PairRow("a b", "c", 2.0, "Equivalence"), PairRow("a é", "c", 1.0, "Equivalence"), PairRow("a", "c")]
    assert [n for n, row in enumerate(rows) if dropped_for(row, rules_of(rules, None)) is None] == kept


def test_the_preset_needs_a_vocabulary():
    with pytest.raises(UserError, match="needs the words of the embeddings; give their file with --vocabulary"):
        _ = PairRules(preset="pgru").resolved


def vector(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("words.txt", b"car\nboat\n\n"),
        ("vectors.txt", b"2 2\ncar 0.5 1\nboat 1 2\n"),
        ("glove.txt", b"car 0.5 1\nboat 1 2\n"),
        ("vectors.bin", b"2 2\ncar " + vector(0.5, 1) + b"\nboat " + vector(1, 2) + b"\n"),
        ("packed.bin", b"2 2\ncar " + vector(0.5, 1) + b"boat " + vector(1, 2)),
        ("words.txt.gz", gzip.compress(b"car\nboat", mtime=0)),
    ],
)
def test_the_words_of_a_file(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert read_words(tmp_path / name) == {"car", "boat"}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("words.txt", b"\n", "holds no words"),
        ("vectors.bin", b"2 2\ncar " + vector(0.5), "ends inside a vector"),
        ("words.gz", b"car", "cannot be read"),
    ],
)
def test_a_file_without_words(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=said):
        read_words(tmp_path / name)
