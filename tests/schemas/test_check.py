"""schemas.check on real datasets: sound ones, and ones that are broken in every way that it should find."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from breaking import Row, edit, field, ledger, rewrite, write
from literal import mine, parse_options, run_inline
from literal import shard as shard_of

from pipelines import corpus
from schemas.check import main
from schemas.storage.folder import Folder
from transforms.sources.sample import sample_inputs

NAMES = ("contexts", "contexts-documents", "contexts-sentences", "contexts-phrases")


def retype(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """Changes the first shard's schema."""

    def break_(folder: Path) -> None:
        data = json.loads((folder / "manifest.json").read_text())
        entry = data["splits"]["train"][0]
        write(folder, entry, change(pq.read_table(folder / entry["path"], partitioning=None)))
        (folder / "manifest.json").write_text(json.dumps(data))

    return break_


def swap(folder: Path) -> None:
    """The first two shards change places, also in the manifest."""
    data = json.loads((folder / "manifest.json").read_text())
    first, second = data["splits"]["train"][:2]
    names = first["path"], second["path"]
    tables = [pq.read_table(folder / name, partitioning=None) for name in names]
    for entry, table in zip((first, second), reversed(tables), strict=True):
        write(folder, entry, table)
    (folder / "manifest.json").write_text(json.dumps(data))


def shard(folder: Path, index: int = 0) -> Path:
    return sorted((folder / "data").iterdir())[index]


def flip_a_bit(folder: Path) -> None:
    data = bytearray(shard(folder).read_bytes())
    data[200] ^= 1
    shard(folder).write_bytes(data)


def cut_short(folder: Path) -> None:
    shard(folder).write_bytes(shard(folder).read_bytes()[:-100])


def other_documents(folder: Path) -> None:
    """The documents that are found have another fingerprint."""
    edit(lambda data: data.update(fingerprint="0" * 64))(folder.with_name("contexts-documents"))


def move_rows(rows: list[Row]) -> None:
    rows[2], rows[3] = rows[3], rows[2]


def shift(rows: list[Row]) -> None:
    """The offsets of a context are one character off; the surface has the same length."""
    rows[1]["start_char"] += 1
    rows[1]["end_char"] += 1


def mask_too_early(rows: list[Row]) -> None:
    """The mask swallows the word before the phrase; everything else agrees."""
    row = next(row for row in rows if re.search(r"\w \[MASK\]", row["context"][: row["mask_start"] + 6]))
    before, _, after = row["context"].partition("[MASK]")
    before = before.rstrip().rpartition(" ")[0] + " "
    context = f"{before}[MASK]{after}"
    row.update(context=context, mask_start=len(before))


CASES = {
    # The manifest
    "manifest cut": (
        "contexts",
        lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text()[:900]),
        r"contexts/manifest.json: cannot be read \(Unterminated string .*; .*--overwrite",
    ),
    "manifest of something else": (
        "contexts",
        edit(lambda data: data.update(format="npm")),
        "format 'npm' instead of 'phrasemill dataset'",
    ),
    "manifest of the future": (
        "contexts",
        edit(lambda data: data.update(schema_version=9)),
        "has schema version 9, this phrasemill reads version 2; use the phrasemill that wrote it",
    ),
    "unknown records": (
        "contexts",
        edit(lambda data: data.update(record="Tree")),
        "records of unknown type 'Tree'; update phrasemill",
    ),
    "manifest without a key": (
        "contexts",
        edit(lambda data: data.pop("stages")),
        r"cannot be read \(stages is missing\)",
    ),
    "a list for an object": (
        "contexts",
        edit(lambda data: data.update(splits=[])),
        r"\(splits is \[\], not an object\)",
    ),
    "a word for a number": (
        "contexts",
        edit(lambda data: data["splits"]["train"][0].update(rows="many")),
        r"cannot be read \(splits.train\[0\].rows is 'many', not a whole number\)",
    ),
    "a word for a counter": (
        "contexts-sentences",
        edit(lambda data: data["stages"][0]["counters"].update(tokens="many")),
        r"stages\[0\].counters.tokens is 'many', not a whole number",
    ),
    "a negative number": (
        "contexts-sentences",
        edit(ledger("parse", written=-1)),
        r"stages\[0\].ledger.written is -1, not a count",
    ),
    "a path that leads away": (
        "contexts",
        edit(lambda data: data["splits"]["train"][0].update(path="../else/train-00000-of-00003.parquet")),
        "path is '../else/train-00000-of-00003.parquet', not the path of a file inside of the folder",
    ),
    "a name of its own": (
        "contexts",
        edit(lambda data: data["splits"]["train"][0].update(path="data/first.parquet")),
        'file 0 of "train" is "data/first.parquet" instead of "data/train-00000-of-00003.parquet"',
    ),
    "a shard twice": (
        "contexts",
        edit(lambda data: data["splits"]["train"].append(data["splits"]["train"][0])),
        '"data/train-00000-of-00003.parquet" is named 2 times; the manifest was changed',
    ),
    "an option of another type": (
        "contexts",
        edit(lambda data: data["options"].update(mask_token=7)),
        "options.mask_token is 7, not a text",
    ),
    "rows a split": (
        "contexts",
        edit(lambda data: data["rows"].update(train=7)),
        r'rows are {"train": 7, "validation": \d+} instead of {"train": (?!7,).*}; the manifest was changed',
    ),
    "columns": ("contexts", edit(lambda data: data["columns"].pop()), "columns are .* instead of"),
    "a split with a name of its own": (
        "contexts-documents",
        edit(lambda data: data["splits"].update(dev=[]) or data["rows"].update(dev=0)),
        'there is no split "dev", only train, validation, test',
    ),
    "options gone": ("contexts", edit(lambda data: data["options"].pop("mask_token")), "options lack 'mask_token'"),
    "licences": (
        "contexts",
        edit(lambda data: data["licences"].update(unknown=3)),
        r'licences: \d+ documents are "unknown"; the manifest says 3',
    ),
    "no card": ("contexts", lambda folder: (folder / "README.md").unlink(), "README.md: is missing; copy the dataset"),
    # Ledgers
    "ledger": (
        "contexts-sentences",
        edit(ledger("parse", read=99)),
        r"the ledger of sentences does not add up: 99 read, not (\d+) = \d+ written \+ 0 filtered \+ 1 rejected",
    ),
    "ledger of more than was read": (
        "contexts-sentences",
        edit(ledger("parse", read=0)),
        r"the ledger of sentences does not add up: 0 read, not \d+ =",
    ),
    "ledger and rows": (
        "contexts-sentences",
        edit(ledger("parse", read=99, written=98)),
        r"rows, and what the last stage wrote: \d+ is not 98",
    ),
    "documents dropped": (
        "contexts-documents",
        edit(ledger("extract", filtered={"redirect": 2}, written=10)),
        "documents extracted less those dropped: 11 is not 10",
    ),
    "phrases left out": (
        "contexts-phrases",
        edit(lambda data: data["stages"][1]["counters"].update(candidates=9)),
        r"phrases that select read, and those counted: \d+ is not 9;",
    ),
    "unknown reason": (
        "contexts-sentences",
        edit(ledger("parse", rejected={"bad_mood": 1})),
        'stage parse: there is no reason "bad_mood"',
    ),
    "unknown reason of a rule": (
        "contexts-documents",
        edit(ledger("extract", filtered={"redirect": 0, "boring": 1})),
        'stage extract: there is no reason "boring"',
    ),
    "rejects and ledger": (
        "contexts-sentences",
        rewrite(field(0, reason="parser_error"), split="rejects"),
        'rejects: 1 rows of stage "parse" have the reason "parser_error"; its ledger says 0',
    ),
    "reject lost": (
        "contexts-documents",
        rewrite(lambda rows: rows.clear(), split="rejects"),
        'rejects: 0 rows of stage "extract" have the reason "bad_record"; its ledger says 1',
    ),
    # Files
    "a bit flipped": (
        "contexts",
        flip_a_bit,
        "train-00000-of-00003.parquet: has the sha256 .*; copy the dataset again",
    ),
    "a shard cut": ("contexts", cut_short, r"has [\d,]+ bytes; the manifest says [\d,]+; copy"),
    "a shard that is none": (
        "contexts",
        lambda folder: shard(folder).write_text("to do"),
        "train-00000-of-00003.parquet: cannot be read as a Parquet file",
    ),
    "a shard gone": (
        "contexts",
        lambda folder: shard(folder, 1).unlink(),
        "train-00001-of-00003.parquet: is missing; the manifest names it",
    ),
    "a stranger": (
        "contexts",
        lambda folder: shutil.copy(shard(folder), folder / "data/train-00003-of-00003.parquet"),
        "data/train-00003-of-00003.parquet: is not named in the manifest; move it elsewhere",
    ),
    "a stranger among the rejects": (
        "contexts",
        lambda folder: (
            (folder / "rejects").mkdir() or shutil.copy(shard(folder), folder / "rejects/part-00000.parquet")
        ),
        "rejects/part-00000.parquet: is not named in the manifest",
    ),
    "shards swapped": (
        "contexts",
        lambda folder: (
            shard(folder).rename(folder / "x")
            and shard(folder).rename(shard(folder, 0).with_name("train-00000-of-00003.parquet"))
            and (folder / "x").rename(folder / "data/train-00001-of-00003.parquet")
        ),
        "train-00001-of-00003.parquet: has ",
    ),
    "rows of a shard": (
        "contexts-documents",
        edit(lambda data: data["splits"]["train"][1].update(rows=5)),
        "train-00001-of-00003.parquet: has 4 rows; the manifest says 5",
    ),
    "another type": (
        "contexts-phrases",
        retype(lambda table: table.set_column(5, "frequency", table.column("frequency").cast(pa.int32()))),
        "column frequency is int32 or null, not int64",
    ),
    "nullable": (
        "contexts-phrases",
        retype(lambda table: table.cast(table.schema.set(0, pa.field("phrase", pa.string())))),
        "column phrase is string or null, not string",
    ),
    "a column gone": (
        "contexts-phrases",
        retype(lambda table: table.drop_columns("label")),
        "has the columns phrase, surface, surface_share, label_",
    ),
    "records unnamed": (
        "contexts-phrases",
        retype(lambda table: table.replace_schema_metadata(None)),
        "holds unnamed records, not Phrase records",
    ),
    "not UTF-8": (
        "contexts-phrases",
        retype(
            lambda table: pa.table(
                [pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))]
                + [column.slice(0, 1) for column in table.columns[1:]],
                schema=table.schema,
            )
        ),
        "holds invalid values .*UTF8",
    ),
    # Documents
    "doc_id twice": (
        "contexts-documents",
        rewrite(field(2, doc_id="tales.jsonl:0"), shard=1),
        r"00001-of-00003.parquet: row 2: doc_id is not unique: \"tales.jsonl:0\" is in row 0 of data/train-00001",
    ),
    "doc_id of another source": (
        "contexts-documents",
        rewrite(field(1, source="lakewiki")),
        'row 1: doc_id does not begin with the source: "seawiki:11", source "lakewiki"',
    ),
    "no licence": ("contexts-documents", rewrite(field(0, licence="")), 'row 0: the licence is empty: "seawiki:10"'),
    "no text": ("contexts-documents", rewrite(field(0, text="", links=[])), 'row 0: the text is empty: "seawiki:10"'),
    "carriage return": (
        "contexts-documents",
        rewrite(lambda rows: rows[1].update(text=rows[1]["text"].replace("\n", "\r\n"))),
        "row 1: the text has a carriage return",
    ),
    "two empty lines": (
        "contexts-documents",
        rewrite(lambda rows: rows[0].update(text=rows[0]["text"].replace("\n\n", "\n\n\n"))),
        'row 0: the text has two empty lines in a row: "seawiki:10"',
    ),
    "blank at a line's end": (
        "contexts-documents",
        rewrite(lambda rows: rows[1].update(text=rows[1]["text"].replace("\n", "\u00a0\n"))),
        'row 1: a line of the text begins or ends with whitespace: "seawiki:11": "A ship',
    ),
    "link after the text": (
        "contexts-documents",
        rewrite(lambda rows: rows[1]["links"][-1].update(end_char=999)),
        r'row 1: a link ends after the text: "seawiki:11": \[49:999\], text of 128 characters',
    ),
    "links in disorder": (
        "contexts-documents",
        rewrite(lambda rows: rows[1]["links"].reverse()),
        "row 1: a link begins before the one before it ends",
    ),
    "empty link": (
        "contexts-documents",
        rewrite(lambda rows: rows[1]["links"][0].update(end_char=18)),
        "row 1: a link is empty or ends before it starts",
    ),
    # Sentences
    "sentence_id": (
        "contexts-sentences",
        rewrite(field(0, sentence_id="seawiki:10#1")),
        'row 0: sentence_id is not <doc_id>#<start_char>: "seawiki:10#1" instead of "seawiki:10#0"',
    ),
    "sentences in disorder": (
        "contexts-sentences",
        rewrite(lambda rows: rows.insert(0, rows.pop(1))),
        'row 1: the sentence begins before the one before it ends: "seawiki:10#0", the one before ends at 69',
    ),
    "sentence twice": (
        "contexts-sentences",
        rewrite(lambda rows: rows.insert(1, rows[0])),
        "row 1: the sentence begins before the one before it ends",
    ),
    "documents in pieces": (
        "contexts-sentences",
        rewrite(lambda rows: rows.append(rows.pop(0))),
        "row 7: the document's sentences are not side by side",
    ),
    "documents in two shards": (
        "contexts-sentences",
        lambda folder: rewrite(lambda rows: rows.append(pq.read_table(shard(folder, 1)).slice(0, 1).to_pylist()[0]))(
            folder
        ),
        "00001-of-00003.parquet: row 0: the document has sentences in another shard",
    ),
    "empty line": (
        "contexts-sentences",
        rewrite(lambda rows: rows[0].update(text="\n\n" + rows[0]["text"][2:])),
        "row 0: the text has an empty line",
    ),
    "no tokens": (
        "contexts-sentences",
        rewrite(field(0, tokens=[], constituents=[])),
        "row 0: the sentence has no token",
    ),
    "token outside": (
        "contexts-sentences",
        rewrite(lambda rows: rows[1]["tokens"][0].update(start_char=0)),
        r'row 1: a token is outside of the sentence: "seawiki:10#36": token \[0:39\], sentence \[36:69\]',
    ),
    "empty token": (
        "contexts-sentences",
        rewrite(lambda rows: rows[1]["tokens"][0].update(end_char=36)),
        "row 1: a token is empty or ends before it starts",
    ),
    "tokens overlap": (
        "contexts-sentences",
        rewrite(lambda rows: rows[1]["tokens"][0].update(end_char=41)),
        "row 1: a token begins before the one before it ends",
    ),
    "whitespace token": (
        "contexts-sentences",
        rewrite(lambda rows: rows[1]["tokens"].insert(1, {"start_char": 39, "end_char": 40, "tag": "_SP"})),
        'row 1: a token is whitespace: "seawiki:10#36"',
    ),
    "constituent too long": (
        "contexts-sentences",
        rewrite(lambda rows: rows[0]["constituents"][0].update(end_token=60)),
        r"row 0: a constituent ends after the last token: .*\[0:60\], 8 tokens",
    ),
    "empty constituent": (
        "contexts-sentences",
        rewrite(lambda rows: rows[0]["constituents"][0].update(end_token=0)),
        "row 0: a constituent is empty",
    ),
    "constituents in disorder": (
        "contexts-sentences",
        rewrite(lambda rows: rows[0]["constituents"].reverse()),
        "row 0: constituents are not in order of start, longest first",
    ),
    "constituent twice": (
        "contexts-sentences",
        rewrite(
            lambda rows: rows[0].update(
                constituents=[
                    {"label": label, "start_token": 0, "end_token": 2} for label in ("NP", "ADJP", "NX", "ADJP", "QP")
                ]
            )
        ),
        r"row 0: a constituent occurs twice: \"seawiki:10#0\": ADJP \[0:2\]",
    ),
    "sentence elsewhere": (
        "contexts-sentences",
        rewrite(lambda rows: rows[0].update(text=rows[0]["text"].replace("large", "small"))),
        "row 0: the text is not at start_char in the document: .*The whale is a small.*The whale is a large",
    ),
    "shards of sentences swapped": (
        "contexts-sentences",
        swap,
        "row 0: the document is not in the shard of documents of the same number: .* [(]and 7 rows more[)]",
    ),
    # Phrases
    "phrase twice": (
        "contexts-phrases",
        rewrite(lambda rows: rows[-1].update(phrase=rows[0]["phrase"])),
        r'row \d+: the phrase is not unique: "small village" is in row 0',
    ),
    "phrases in disorder": (
        "contexts-phrases",
        rewrite(move_rows),
        "row 3: the phrase is not after the one before it, by frequency and hash",
    ),
    "frequency": (
        "contexts-phrases",
        rewrite(field(0, frequency=99)),
        r"frequencies add up to \d+ .* \d+ occurrences were",
    ),
    "no frequency": ("contexts-phrases", rewrite(field(-1, frequency=0)), r"row \d+: the frequency is below 1"),
    "document frequency": (
        "contexts-phrases",
        rewrite(field(0, document_frequency=7)),
        r'row 0: document_frequency is not from 1 to frequency: "small village", frequency \d, document_frequency 7',
    ),
    "no surface": ("contexts-phrases", rewrite(field(0, surface="")), 'row 0: the surface is empty: "small village"'),
    "another surface": (
        "contexts-phrases",
        rewrite(field(0, surface="Small villages")),
        'row 0: the surface has other letters than the phrase: "small village": "Small villages", share ',
    ),
    "no share of the surface": (
        "contexts-phrases",
        rewrite(field(0, surface_share=0.0)),
        "row 0: surface_share is not above 0 and at most 1: ",
    ),
    "too large a share of the surface": (
        "contexts-phrases",
        rewrite(field(0, surface_share=1.5)),
        "row 0: surface_share is not above 0 and at most 1: ",
    ),
    "shares": (
        "contexts-phrases",
        rewrite(lambda rows: rows[0]["label_shares"].update(NP=0.5)),
        'row 0: label_shares do not add up to 1: "small village": label "NP", NP 0.5, VP 0',
    ),
    "minority label": (
        "contexts-phrases",
        rewrite(field(0, label="VP")),
        "row 0: label is not that of most occurrences",
    ),
    "tied label": (
        "contexts-phrases",
        rewrite(lambda rows: rows[0].update(label="VP") or rows[0]["label_shares"].update(NP=0.5, VP=0.5)),
        "row 0: label is not that of most occurrences [(]ties by the order of the shares[)]",
    ),
    "unknown label": ("contexts-phrases", rewrite(field(0, label="XP")), "row 0: label is not one of NP, VP"),
    # Contexts
    "splits of another seed": (
        "contexts",
        edit(lambda data: data.update(seed=5)),
        r"row \d+: the document belongs to the other split, by the hash of its id",
    ),
    "mask": ("contexts", rewrite(field(1, mask_start=3)), "row 1: there is no mask at mask_start: .* at 3, not "),
    "negative": (
        "contexts",
        rewrite(lambda rows: rows[1].update(negative=rows[5]["context"])),
        'row 1: the negative is not the context of the next row that may be it [(]docs/contexts.md[)]: ".*", not ".*"',
    ),
    "no negative": (
        "contexts",
        rewrite(field(-1, negative=""), 2),
        r"00002-of-00003.parquet: row \d+: the negative is not",
    ),
    "negative of a lonely document": (
        "contexts",
        rewrite(field(0, negative="A [MASK]."), split="validation"),
        "validation-00000-of-00002.parquet: row 0: the negative is not",
    ),
    "negatives counted": (
        "contexts",
        edit(lambda data: data["stages"][-1]["counters"].update(without_negative=77)),
        r'\d rows count as "without_negative"; the manifest says 77',
    ),
    "documents of negatives counted": (
        "contexts",
        edit(lambda data: data["stages"][-1]["counters"].update(negatives_of_any_document=77)),
        r'\d rows count as "negatives_of_any_document"; the manifest says 77',
    ),
    "negatives of another kind": (
        "contexts",
        edit(lambda data: data["options"].update(negatives="hard")),
        "options.negatives is 'hard', not one of random, same-source, same-label, same-source-and-label",
    ),
    "negatives that were random": (
        "contexts",
        edit(lambda data: data["options"].update(negatives="same-label")),
        r"row \d+: the negative is not the context of the next row that may be it",
    ),
    "surface": (
        "contexts",
        rewrite(field(1, surface="a very long surface form")),
        r"row 1: surface is empty or not as long as end_char - start_char: .*: 24 characters, \[\d+:\d+\]",
    ),
    "sentence of another document": (
        "contexts",
        rewrite(field(1, sentence_id="seawiki:10#0")),
        "row 1: sentence_id is not that of a sentence of the document before the phrase",
    ),
    "contexts in disorder": ("contexts", rewrite(move_rows), "row 3: the row is not after the one before it, by hash"),
    "shards of contexts swapped": (
        "contexts",
        swap,
        "00001-of-00003.parquet: row 0: the row is not after the one before",
    ),
    "offsets": (
        "contexts",
        rewrite(shift),
        'row 1: the surface is not at start_char in the document: ".*" in ".*": "(.).*", in the document "',
    ),
    "mask elsewhere": (
        "contexts",
        rewrite(mask_too_early),
        "the context is not the document's text around the phrase",
    ),
    "provenance": (
        "contexts",
        rewrite(field(1, title="Moby")),
        "row 1: source, title, url, licence are not the document's: .*'Moby'.* instead of ",
    ),
    "another document": (
        "contexts",
        rewrite(field(1, doc_id="seawiki:99", sentence_id="seawiki:99#0")),
        'row 1: the document is not in the documents dataset: "seawiki:99"',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_broken_is_found(copied, capsys, case):
    name, break_, expected = CASES[case]
    folder = copied(name)
    break_(folder)
    assert main([str(folder)]) == 1
    shown = capsys.readouterr().out
    assert re.search(expected, shown), shown
    *findings, last = shown.splitlines()
    assert last.startswith(f"{folder}: {len(findings)} finding")
    for finding in findings:
        assert finding.startswith(str(folder)), finding
        assert re.search(r"; [^;]*(--overwrite|bug in phrasemill|phrasemill|read it, too)[^;]*$", finding), finding


def test_whole_datasets_are_ok(mined, capsys):
    assert main([str(mined / name) for name in NAMES]) == 0
    contexts, documents, sentences, phrases = capsys.readouterr().out.splitlines()
    digest = hashlib.sha256()
    for path in sorted((mined / "contexts/data").iterdir()):
        digest.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  data/{path.name}\n".encode())
    ok = rf"ok: \d+ Context rows in \d shards, sha256 {digest.hexdigest()[:16]}, ledgers add up, offsets agree"
    assert re.search(ok, contexts)
    assert contexts.endswith("contexts-documents")
    assert "ok: 11 Document rows in 3 shards" in documents
    assert re.search(r"ok: \d+ Sentence rows in 3 shards", sentences)
    assert re.search(r"ok: \d+ Phrase rows in 1 shard,", phrases)


def test_quick_reads_no_data(copied, capsys):
    folder = copied("contexts")
    flip_a_bit(folder)
    assert main(["--quick", str(folder)]) == 0
    assert "hashes and rows not checked (--quick)" in capsys.readouterr().out
    cut_short(folder)
    assert main(["--quick", str(folder)]) == 1


def test_documents_that_were_moved(copied, capsys, tmp_path):
    folder = copied("contexts")
    rewrite(shift)(folder)
    (tmp_path / "contexts-documents").rename(tmp_path / "texts")
    assert main([str(folder)]) == 1  # the order of rows depends on the offsets
    assert "is not at start_char" not in capsys.readouterr().out
    assert main([str(folder), "--documents", str(tmp_path / "texts")]) == 1
    assert "the surface is not at start_char in the document" in capsys.readouterr().out


def test_documents_out_of_reach_are_said(copied, capsys, tmp_path):
    folder = copied("contexts-sentences")
    other_documents(folder)
    assert main([str(folder)]) == 0
    found = "offsets not checked: .*holds another dataset, .*; give the documents with"
    assert re.search(found, capsys.readouterr().out)
    assert main([str(folder), "--documents", str(tmp_path / "contexts-documents")]) == 2
    assert "was not made from these documents" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "contexts-documents")
    assert main([str(folder)]) == 0
    assert "offsets not checked: " in capsys.readouterr().out


def test_no_dataset(tmp_path, mined, capsys):
    assert main([str(tmp_path), str(mined / "contexts-phrases")]) == 2
    shown = capsys.readouterr()
    assert f"error: {tmp_path}: not a dataset: it has no manifest.json" in shown.err
    assert "contexts-phrases: ok" in shown.out
    assert main([str(tmp_path / "nowhere")]) == 2
    assert main([]) == 2
    assert "arguments are required: DIR; see --help" in capsys.readouterr().err


def test_it_runs_as_a_command_without_beam_and_torch(mined):
    spy = """if True:
        import atexit, runpy, sys
        atexit.register(lambda: print({"apache_beam", "torch", "spacy"} & {*sys.modules}))
        runpy.run_module("schemas.check", run_name="__main__")
    """
    done = subprocess.run([sys.executable, "-c", spy, str(mined / "contexts-phrases")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("documents", "flags", "rows"),
    [
        ({"a:1": "[NP The whale] sank ~."}, (), 1),  # no other phrase: no negative
        ({"a:1": "[NP The whale] sank [NP the ship] ~. | [NP The ship] sank ~."}, ("--contexts-per-phrase=2",), 3),
        ({"a:1": "[NP The whale] sank ~."}, ("--min-frequency=2",), 0),
        ({"a:1": "Go ~!"}, (), 0),
        ({"a:1": "[NP The whale] sank ~."}, ("--validation-rate=0.999",), 1),
    ],
)
def test_small_and_empty_datasets_are_ok(tmp_path, capsys, documents, flags, rows):
    mined = mine(tmp_path, [shard_of(documents)], *flags)
    assert len(mined.contexts) == rows
    assert main([str(tmp_path / name) for name in ("sentences", "phrases", "contexts")]) == 0, capsys.readouterr().out


def test_licences_are_those_of_the_documents_left(tmp_path):
    lines = [json.dumps({"text": text}) for text in ("A whale.", "A whale.", "A ship.")]
    (tmp_path / "raw.jsonl").write_text("\n".join(lines))
    source = corpus.given([str(tmp_path / "raw.jsonl")], input_format=None)
    documents = corpus.documents(source, parse_options("--dedup=documents"), Folder(str(tmp_path / "documents")))
    assert documents.build is not None
    run_inline(documents.build)
    assert main([str(tmp_path / "documents")]) == 0


def test_the_shipped_sample(tmp_path, capsys):
    """Real Wikipedia pages and books, as documents."""
    source = corpus.given([str(path) for path in sample_inputs()], input_format=None)
    documents = corpus.documents(source, parse_options(), Folder(str(tmp_path / "documents")))
    assert documents.build is not None
    run_inline(documents.build)
    assert main([str(tmp_path / "documents")]) == 0
    assert "ok: 57 Document rows" in capsys.readouterr().out
