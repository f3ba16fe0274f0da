"""The texts of evaluation sets, from files of their formats as they are."""

from __future__ import annotations

import bz2
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import UserError
from transforms.decontamination.files import EVALUATION_FORMATS, EvaluationFile, texts_of
from transforms.sources.inputs import InputError, resolve_inputs

SENTENCE = {"sentences": [["New", "York", "won", "."], ["So"]], "ner": [[[0, 1, "LOC"]], [[4, 4, "X"]]]}

FILES = {
    "turney.txt": (
        "lines",
        "double star | binary | double\nbass fiddle | contrabass\n",
        [(1, "double star"), (1, "binary"), (1, "double"), (2, "bass fiddle"), (2, "contrabass")],
    ),
    "pairs.tsv": ("lines", "Ben Duke\tB. N. Duke\n", [(1, "Ben Duke"), (1, "B. N. Duke")]),
    "plain": ("lines", "an old man\r\nthe sea", [(1, "an old man"), (2, "the sea")]),
    "ppdb-s": (
        "lines",
        "[NP] ||| big car ||| large car ||| A=1 B=2 ||| 0-0 ||| Equivalence",
        [(1, each) for each in ("[NP]", "big car", "large car", "A=1 B=2", "0-0", "Equivalence")],
    ),
    "names.csv": (
        "csv",
        'id,title\n0,"Paul, Saint"\n1,"two\nlines"\n',
        [(1, "id"), (1, "title"), (2, "0"), (2, "Paul, Saint"), (4, "1"), (4, "two\nlines")],
    ),
    "ppdb.json": (
        "json",
        '[\n  ["thanking you", "thank you", "pos", 5.5],\n  ["big car", "car", "neg", null]\n]',
        [(1, "thanking you"), (1, "thank you"), (1, "pos"), (2, "big car"), (2, "car"), (2, "neg")],
    ),
    "spans.json": (
        "json",
        json.dumps(SENTENCE) + "\r\n" + json.dumps({"sentences": [["Paris"]], "ner": [[]]}),
        [
            *((1, each) for each in ("New York won .", "New", "York", "won", ".", "So", "LOC", "X")),
            *((1, each) for each in ("New York", "So")),
            (2, "Paris"),
        ],
    ),
    "one.json": ("json", '{"text": "an old man"}', [(1, "an old man")]),
    "conll.txt": (
        "columns",
        "-DOCSTART- -X- O O\n\nNew NNP B-NP B-LOC\nYork NNP I-NP I-LOC\nUganda NNP B-NP B-LOC\n",
        [
            (1, "-DOCSTART-"),
            *((3, each) for each in ("New York Uganda", "New York", "Uganda")),
        ],
    ),
    "wnut.conll": (
        "columns",
        "the\tO\nESB\tB-location\n\t\nwon\tO\n",
        [(1, "the ESB"), (1, "ESB"), (4, "won")],
    ),
    "semeval": (
        "columns",
        "sudden\tJJ\nrush\tNN\nspate\n1\nacute\tJJ\nrash\tNN\nspot\n0\n",
        [(1, "sudden rush"), (3, "spate"), (4, "1"), (5, "acute rash"), (7, "spot"), (8, "0")],
    ),
}


def read(path: Path) -> tuple[str, list[tuple[int, str]]]:
    (found,) = resolve_inputs([str(path)], formats=EVALUATION_FORMATS).inputs
    file = EvaluationFile(found.address, found.file.name, found.format.name, "")
    return file.format, [(each.place, each.text) for each in texts_of(file)]


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path, name):
    format_, text, texts = FILES[name]
    (tmp_path / name).write_bytes(text.encode())
    assert read(tmp_path / name) == (format_, texts)
    (tmp_path / f"{name}.bz2").write_bytes(bz2.compress(text.encode()))
    assert read(tmp_path / f"{name}.bz2") == (format_, texts)


def test_parquet(tmp_path):
    rows = {"a": ["an old man", None], "b": [[{"c": "the sea", "n": 1}], []], "d": [["the", "boy"], None]}
    pq.write_table(pa.table(rows), tmp_path / "any")
    texts = [(1, each) for each in ("an old man", "the sea", "the boy", "the", "boy")]
    assert read(tmp_path / "any") == ("parquet", texts)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("cut.json", b'[["a b", "c d", "pos"], ["e', "cannot be read as json .* fetch it again, or write its texts as"),
        ("span.json", b'{"sentences": [["a"]], "ner": [[[0, 1, "X"]]]}', r"a span \[0, 1\] of 1 tokens"),
        ("bad.csv", b'id,title\n0,"never closed\n', "cannot be read as csv .unexpected end of data"),
        ("latin.csv", "id,title\n0,caf\u00e9 noir\n".encode("latin-1"), "is not UTF-8 at byte 14: convert it .iconv"),
        ("cut.txt.bz2", bz2.compress(b"an old man")[:-9], "ends inside .* at byte 36; fetch it again$"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=said) as error:
        read(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)


@pytest.mark.parametrize(("name", "data"), [("model.bin", b"\x00\x01\x02\x03"), ("page.html", b"<p>an old man</p>")])
def test_what_is_no_set_is_not_read(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=f"{name}.* of no known format; the formats are parquet, json, columns, csv"):
        read(tmp_path / name)


SETS = {
    "autofj/Country/gt.csv": "csv",
    "bc5cdr/dev.json": "json",
    "bird/bird.txt": "lines",
    "conll2003/dev.json": "json",
    "crossner/ai/dev.txt": "columns",
    "ppdb/ppdb.json": "json",
    "ppdb_filtered/ppdb_filtered.json": "json",
    "semeval2013_5a/en.trainSet": "columns",
    "turney/turney.txt": "lines",
    "turney2012/jair.train": "columns",
    "umls_er/umls_test_samples.txt": "lines",
    "wnut17/emerging.dev.conll": "columns",
    "wnut17/wnut17train.conll": "columns",
    "yago_er/yago_test_samples.txt": "lines",
}


def test_the_formats_of_the_sets_that_are_here(test_data):
    given = [str(test_data / "eval" / name) for name in SETS]
    found = {each.address: each.format.name for each in resolve_inputs(given, formats=EVALUATION_FORMATS).inputs}
    assert found == dict(zip(given, SETS.values(), strict=True))
