"""Augmentations: phrases a CPU second of each operation, beside nlpaug's equivalent, and of the whole command.

    python -m benchmarks.augment --phrases out/phrases --json augment.json

The phrases are in order of hash; ours gets all of them in batches as the command makes them, nlpaug the first `--few`
in one call. Each is timed `--times` times, in turns, in one process for each operation, with one thread; the figures
are medians. nlpaug (1.1.11, not a dependency: the extra `augment`) is set to one edit of a phrase, and to letters of
lower case where it inserts. "changed" is the share of phrases that come out changed. MiB are what the process takes
beyond its libraries and the phrases.

synonym needs WordNet: nlpaug's SynonymAug has no tagger there, at no cost; in synonym:tagged it has NLTK's averaged
perceptron, as it does for its users, trained on 2,000 sentences of GUM (PHRASEMILL_TEST_DATA, default ../shared/data).
In its first turn synonym looks up the words, in the next ones it knows them, as in a long run; `first` in the file of
figures is that of the first turn. contextual needs --masked-lm: ours gets the phrases that nlpaug gets of the others,
nlpaug's own a twentieth of them, one by one.

At the end the command makes two draws of all phrases: seconds, phrases/s and memory of its stages in one process.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from benchmarks import harness
from schemas.errors import UserError
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from schemas.storage.parquet import read_parquet
from transforms.arrays import U64, mix64
from transforms.augmentation.options import AugmenterOptions
from transforms.augmentation.registry import augmenter_identity, load_augmenter
from transforms.augmentation.wordnet import find_wordnet, read_files

BATCH = 1 << 14
GUM = Path(os.environ.get("PHRASEMILL_TEST_DATA", "../shared/data"), "treebanks", "gum", "train.ptb")

Figures: TypeAlias = dict[str, float]


def of_characters(action: str) -> Any:
    from nlpaug.augmenter import char

    kinds = {"include_upper_case": False, "include_numeric": False, "spec_char": ""} if action == "insert" else {}
    return char.RandomCharAug(action=action, aug_char_max=1, aug_word_max=1, min_char=4, **kinds)


def of_keyboard() -> Any:
    from nlpaug.augmenter import char

    letters = {"include_special_char": False, "include_numeric": False, "include_upper_case": False}
    return char.KeyboardAug(aug_char_max=1, aug_word_max=1, min_char=4, **letters)


def of_tokens() -> Any:
    from nlpaug.augmenter import word

    return word.RandomWordAug(action="swap", aug_max=1)


def of_synonyms(*, tagged: bool) -> Any:
    import nltk
    from nlpaug.augmenter import word
    from nlpaug.model.word_dict import WordNet

    folder = tempfile.TemporaryDirectory()
    nltk.data.path.insert(0, for_nltk(Path(folder.name)))
    # Without a tagger every word is a noun at once, in nlpaug's favour.
    tag = trained_tagger() if tagged else lambda tokens: [(each, "NN") for each in tokens]
    WordNet.pos_tag = classmethod(lambda cls, tokens: tag(tokens))
    augmenter = word.SynonymAug(aug_max=1)
    augmenter.folder = folder  # NLTK reads from it when it needs to
    return augmenter


def trained_tagger() -> Callable[[list[str]], Any]:
    """NLTK's tagger, whose own model is in no package registry: the speed is the same with another."""
    from nltk.tag.perceptron import PerceptronTagger

    with GUM.open() as trees:
        sentences = [re.findall(r"\(([^\s()]+) ([^\s()]+)\)", tree) for tree in islice(trees, 2_000)]
    tagger = PerceptronTagger(load=False)
    tagger.train([[(word, tag) for tag, word in each] for each in sentences if each], nr_iter=3)
    return tagger.tag  # type: ignore[no-any-return]


def for_nltk(folder: Path) -> str:
    """A folder of NLTK's data with WordNet's files, and the two that NLTK wants besides; synonyms need neither."""
    corpus = folder / "corpora" / "wordnet"
    corpus.mkdir(parents=True)
    for name, content in read_files(find_wordnet()).items():
        (corpus / name).write_bytes(content)
    (corpus / "lexnames").write_text("".join(f"{number:02}\tfile.{number}\t1\n" for number in range(45)))
    (corpus / "index.sense").touch()
    return str(folder)


def of_ocr() -> Any:
    from nlpaug.augmenter import char

    return char.OcrAug(aug_char_max=1, aug_word_max=1)


def of_spelling() -> Any:
    from nlpaug.augmenter import word

    return word.SpellingAug(aug_max=1)


class OneByOne:
    """nlpaug's contextual augmenter, asked for one phrase at a time."""

    def __init__(self, masked_lm: str) -> None:
        from nlpaug.augmenter import word
        from transformers import PreTrainedTokenizerBase

        # What it calls, and transformers 5 no longer has.
        PreTrainedTokenizerBase._convert_token_to_id = PreTrainedTokenizerBase.convert_tokens_to_ids
        self._augmenter = word.ContextualWordEmbsAug(
            model_path=masked_lm, model_type="bert", action="substitute", aug_max=1
        )

    def augment(self, texts: list[str]) -> list[str]:
        return ["".join(self._augmenter.augment(text)) for text in texts]


BUILT_IN = ("swap_characters", "drop_character", "insert_character", "keyboard", "swap_tokens")
"""What needs no model and no extra: the operations of the command that is measured."""

SLOW = {"contextual": 20}
"""Operations that get the phrases that nlpaug gets, and nlpaug one in so many of them."""

EQUIVALENTS: dict[str, Callable[..., Any]] = {
    "swap_characters": partial(of_characters, "swap"),
    "drop_character": partial(of_characters, "delete"),
    "insert_character": partial(of_characters, "insert"),
    "keyboard": of_keyboard,
    "swap_tokens": of_tokens,
    "synonym": partial(of_synonyms, tagged=False),
    "synonym:tagged": partial(of_synonyms, tagged=True),
    "nlpaug_keyboard": of_keyboard,
    "nlpaug_ocr": of_ocr,
    "nlpaug_spelling": of_spelling,
    "contextual": OneByOne,
}
"""What makes nlpaug's equivalent of an operation; after a colon a variant of nlpaug's."""


def read_phrases(place: str, most: int) -> list[str]:
    """Phrases of a dataset, in order of hash."""
    folder = Folder(place)
    texts: list[str] = []
    for shard in read_manifest(folder).shards:
        texts += read_parquet(folder, shard.path, ["phrase"]).column("phrase").to_pylist()
    return sorted(texts, key=lambda text: xxhash.xxh3_64_intdigest(text.encode()))[:most]


def measure(operation: str, texts: Sequence[str], few: int, times: int, masked_lm: str) -> dict[str, Figures]:
    """An operation, ours and nlpaug's, in turns."""
    if operation in SLOW:
        texts, few = texts[:few], few // SLOW[operation]
    phrases, part = pa.array(texts, pa.string()), list(texts[:few])
    augmenter = load_augmenter(operation.split(":")[0], vars(AugmenterOptions(masked_lm=masked_lm)))
    augmenter.augment(phrases.slice(0, 100), np.arange(100, dtype=np.uint64))  # what is loaded at the first use
    needs = [masked_lm] if operation == "contextual" else []
    theirs = EQUIVALENTS[operation](*needs) if find_spec("nlpaug") else None
    speeds: dict[str, list[tuple[float, float]]] = {"ours": [], "nlpaug": []}
    memory = 0
    for turn in range(times):
        with harness.Meter(interval=0.05) as meter:
            began = time.process_time()
            same = 0
            for first in range(0, len(phrases), BATCH):
                batch = phrases.slice(first, BATCH)
                same += augmenter.augment(batch, _seeds(turn, first, len(batch))).null_count
            seconds = time.process_time() - began
        memory = max(memory, meter.added)
        speeds["ours"].append((len(texts) / seconds, 1 - same / len(texts)))
        if theirs is not None:
            began = time.process_time()
            found = theirs.augment(part)
            seconds = time.process_time() - began
            changed = sum(after != text for text, after in zip(part, found, strict=True))
            speeds["nlpaug"].append((len(part) / seconds, changed / len(part)))
    made = {
        name: {"phrases_per_cpu_second": median(s for s, _ in each), "changed": median(c for _, c in each)}
        for name, each in speeds.items()
        if each
    }
    made["ours"] |= {"peak_memory_bytes": memory, "first": speeds["ours"][0][0]}
    return made


def _seeds(turn: int, first: int, number: int) -> U64:
    return mix64(np.arange(first, first + number, dtype=np.uint64) + np.uint64(turn << 32))


def command(place: str, folder: str) -> Figures:
    """Two draws of all phrases, by the stages of the command in this process."""
    from pipelines import corpus
    from pipelines.augment import COMMAND

    source = corpus.given([place], input_format=None)
    operations = ",".join(BUILT_IN)
    chain = COMMAND.build(source, COMMAND.parse(["--operations", operations])[0], Folder(folder))
    build = chain[-1].build
    assert build is not None
    rows = read_manifest(Folder(place)).rows
    with harness.Meter(interval=0.05) as meter:
        for _ in harness.build_here(build):
            pass
    return {"rows": rows * 2, "cpu_seconds": meter.cpu_seconds, "peak_memory_bytes": meter.added}


def main() -> int:
    parser = harness.arguments(__doc__)
    parser.add_argument("--phrases", required=True, metavar="DIR", help="a dataset of phrases")
    parser.add_argument("--most", type=int, default=1 << 40, metavar="N", help="take N phrases at most")
    parser.add_argument("--few", type=int, default=10_000, metavar="N", help="of which nlpaug gets N (default: 10,000)")
    parser.add_argument("--times", type=int, default=3, metavar="N", help="measure each N times (default: 3)")
    parser.add_argument("--only", default="", metavar="OP,OP", help="these operations alone")
    parser.add_argument("--masked-lm", default=AugmenterOptions().masked_lm, metavar="NAME", help="of contextual")
    asked = parser.parse_args()
    texts = read_phrases(asked.phrases, asked.most)
    if not find_spec("nlpaug"):
        print("nlpaug: skipped: not installed; pip install 'phrasemill[augment]'")
    figures: dict[str, Any] = {}
    rows = []
    for operation in filter(None, asked.only.split(",")) if asked.only else EQUIVALENTS:
        try:
            augmenter_identity(operation.split(":")[0], vars(AugmenterOptions(masked_lm=asked.masked_lm)))
            if operation == "synonym:tagged" and not GUM.is_file():
                raise UserError(f"no {GUM}; set PHRASEMILL_TEST_DATA")
        except UserError as error:
            print(f"{operation}: skipped: {error}")
            continue
        [found] = harness.apart(partial(measure, operation, texts, asked.few, asked.times, asked.masked_lm))
        figures[operation] = found
        ours, theirs = found["ours"], found.get("nlpaug")
        cells: list[object] = [operation, round(ours["phrases_per_cpu_second"]), f"{ours['changed']:.1%}"]
        if theirs:
            ratio = ours["phrases_per_cpu_second"] / theirs["phrases_per_cpu_second"]
            cells += [round(theirs["phrases_per_cpu_second"]), f"{theirs['changed']:.1%}", f"{ratio:.1f}"]
        else:
            cells += ["", "", ""]
        rows.append([*cells, round(ours["peak_memory_bytes"] / 2**20)])
    with tempfile.TemporaryDirectory() as folder:
        [whole] = harness.apart(partial(command, asked.phrases, f"{folder}/augmented"))
    figures["command"] = whole
    headings = ["operation", "phrases/CPU s", "changed", "nlpaug's", "changed", "times", "MiB"]
    harness.show(f"{len(texts):,} phrases", headings, rows)
    made, memory = whole["rows"] / whole["cpu_seconds"], whole["peak_memory_bytes"] / 2**20
    print(f"the command: {whole['rows']:,} draws in {whole['cpu_seconds']:.1f} CPU s, {made:,.0f}/s, {memory:,.0f} MiB")
    harness.write(asked.json, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
