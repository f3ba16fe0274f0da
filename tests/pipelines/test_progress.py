"""Progress inside a unit: what a stage says of itself, and what is seen of it in a run."""

from __future__ import annotations

import io
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from literal import dataset, rows, run_here, sentences
from test_mine_mentions import PAGES, page_table, wiki
from toy import WORDS, AwaitedWords, word_count

from pipelines import augment, extract_documents, find_entities, mine_contexts, mine_mentions
from pipelines.engine.dataset_build import DatasetBuild
from pipelines.engine.driver import run
from pipelines.engine.exchange import merge_sorted
from pipelines.engine.executors import Executor, InlineExecutor, PoolExecutor
from pipelines.engine.progress import Progress
from pipelines.engine.stage import unit_sizes
from pipelines.engine.task_writer import TaskWriter
from pipelines.stages import augment as augment_steps
from pipelines.stages import contexts as context_steps
from pipelines.stages import count as count_steps
from pipelines.stages import duplicates as duplicate_steps
from pipelines.stages import entities as entity_steps
from pipelines.stages import mentions as mention_steps
from pipelines.stages import near_duplicates as near_steps
from pipelines.stages import pairs as pair_steps
from pipelines.stages import units as unit_steps
from schemas.manifest import read_manifest
from schemas.storage.folder import Folder
from transforms import activity
from transforms.parsing.phrasemill_parser import PhrasemillParser
from transforms.phrases.options import PhraseRules

SMALL = (
    (unit_steps, "UNITS", 1),
    (unit_steps, "MOST_SHARDS", 3),
    (duplicate_steps, "SHARDS_A_GROUP", 4),
    (near_steps, "BANDS_A_RANGE", 40),
    (count_steps, "TOKENS_A_RANGE", 300),
    (context_steps, "CONTEXTS_A_SHARD", 400),
    (entity_steps, "CALL_TOKENS", 40),
    (augment_steps, "DRAWS_A_RANGE", 8),
    (augment_steps, "BATCH", 2),
    (mention_steps, "ROWS_A_RANGE", 20),
    (pair_steps, "PAIRS_A_SHARD", 300),
    (pair_steps, "ROW_GROUP", 64),
)
"""Several shards a unit and ranges an exchange, of a small corpus."""


def test_parts_of_a_unit(tmp_path: Path) -> None:
    build = word_count(tmp_path / "words", ("a",))
    write = TaskWriter(build.work, build.stages[0], 0, "x")
    far = [0.5, 2.0, -1.0]
    seen = [write.fraction()]
    for _ in write.each("ab", 0.5):
        with write.part(0.5):
            seen.append(write.fraction())
        seen.append(write.fraction())
    seen.append(write.fraction())
    with write.part(0.5, lambda: far[0]):
        while len(far) > 1:
            with write.part(0.5):  # does not count within a part that is measured otherwise
                seen.append(write.fraction())
            far.pop(0)
        seen.append(write.fraction())
    with write.part():
        seen.append(write.fraction())
    assert seen == [0, 0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.5, 0.75]
    assert write.fraction() == 1.0
    assert list(write.each([])) == []


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(1)])
def test_what_is_seen_of_a_unit(tmp_path: Path, executor: Callable[[], Executor]) -> None:
    """Each word is done when what was seen shows that the one before is done."""
    stage = AwaitedWords(("a b c d",), str(tmp_path))
    build = DatasetBuild(Folder(str(tmp_path / "words")), WORDS, (stage,), (), {})
    build.begin(resume=True)
    progress = Progress(io.StringIO())
    seen: list[float] = []

    def follow() -> None:
        for number, word in enumerate("abcd"):
            while not (stages := progress.figures().stages) or stages[0].share < number / 4:
                time.sleep(0.01)
            seen.append(stages[0].share)
            (tmp_path / word).touch()

    thread = threading.Thread(target=follow)
    thread.start()
    run([build], executor(), progress=progress)
    thread.join()
    assert seen == [0, 0.25, 0.5, 0.75]
    assert progress.figures().stages[0].share == 1.0
    assert len(rows(build.output)) == 4


@contextmanager
def fractions_seen() -> Iterator[dict[str, set[float]]]:
    """By stage, how far its units were at the end of each part, piece of input and batch of sentences."""
    seen: dict[str, set[float]] = defaultdict(set)
    part, note_read, noting = TaskWriter.part, activity.note_read, activity.noting
    at_work: list[TaskWriter] = []

    def look() -> None:
        if at_work:
            seen[at_work[-1]._stage.name].add(at_work[-1].fraction())

    @contextmanager
    def watched_part(write: TaskWriter, *share: float, **options: object) -> Iterator[None]:
        with part(write, *share, **options):  # type: ignore[arg-type]
            at_work.append(write)
            yield
            look()
        look()

    def watched_note_read(byte: int) -> None:
        note_read(byte)
        look()

    def watched_noting(total: int, **options: float) -> Callable[[int, int], None]:
        note = noting(total, **options)

        def watched(size: int, number: int) -> None:
            note(size, number)
            look()

        return watched

    def watched_merge(*files: Any, **options: Any) -> Iterator[pa.Table]:
        for table in merge_sorted(*files, **options):
            yield table
            look()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskWriter, "part", watched_part)
        for module in ("pipelines.stages.extract", "transforms.sources.streams"):
            patch.setattr(f"{module}.note_read", watched_note_read)
        patch.setattr("transforms.parsing.phrasemill_parser.noting", watched_noting)
        patch.setattr(count_steps, "merge_sorted", watched_merge)
        for module_, name, value in SMALL:
            patch.setattr(module_, name, value)
        yield seen


def check(seen: dict[str, set[float]], stages: Sequence[str]) -> None:
    assert [stage for stage in stages if len({each for each in seen[stage] if 0 < each < 1}) < 2] == []
    assert {stage for stage, all_of in seen.items() if not all(0 <= each <= 1 for each in all_of)} == set()


def test_every_stage_shows_what_it_has_done_of_a_unit(tmp_path: Path) -> None:
    paragraph = "The old man and the sea saw a white whale in the harbour of the small town."
    for book in range(8):
        text = "\n\n".join(f"{paragraph} In {1800 + book} the clerk {book} had the book {n}." for n in range(6))
        (tmp_path / f"book{book}.txt").write_text(f"{text}\n\n{paragraph * 2}\n")
    common = ["--input", str(tmp_path), "--shard-bytes=700", "--dedup=paragraphs"]
    with fractions_seen() as seen:
        run_here(mine_contexts.COMMAND, *common, "--output", str(tmp_path / "out/contexts"))
        sentences = str(tmp_path / "out/contexts-sentences")
        run_here(find_entities.COMMAND, "--input", sentences, "--output", str(tmp_path / "out/entities"))
        phrases, output = str(tmp_path / "out/contexts-phrases"), str(tmp_path / "out/augmented")
        run_here(augment.COMMAND, "--input", phrases, "--operations=character", "--output", output)
    extracting = ["extract", "find_duplicate_ids", "find_duplicates", "drop"]
    check(seen, [*extracting, "parse", "count", "add_up", "select", "choose", "keep", "cut", "order"])
    check(seen, ["find_entities", "send_phrases", "augment"])


def test_near_duplicates_show_what_is_done_of_a_unit(tmp_path: Path) -> None:
    """Books that are alike, far apart and next to each other."""
    words = "the old man and the sea saw a white whale in the harbour of the small town".split()
    for book in range(24):
        text = " ".join(f"{word} {(n * (book % 5 + 1)) % 97}" for n, word in enumerate(words * 6))
        (tmp_path / f"book{book:02}.txt").write_text(f"{text} and book {book}\n")
    with fractions_seen() as seen:
        arguments = ["--input", str(tmp_path), "--shard-bytes=700", "--dedup=near"]
        run_here(extract_documents.COMMAND, *arguments, "--output", str(tmp_path / "out/documents"))
    check(seen, ["sign", "match", "send", "compare", "cluster", "drop"])


def test_sizes_of_units(tmp_path: Path) -> None:
    folder = dataset(
        tmp_path / "sentences", [sentences("[NP the whale]"), *[sentences(*["[NP old men]"] * 9)] * 2]
    ).folder
    shards = read_manifest(folder).shards
    stage = count_steps.Count(PhraseRules(), folder.uri)
    units = [[*each] for each in unit_steps.shard_units(folder, 1)]
    assert unit_sizes(stage, units) == [each.bytes for each in shards]
    assert unit_sizes(word_count(tmp_path, ("a",)).stages[1], [[0], [1], [2]]) == [1, 1, 1]


def test_every_stage_of_mentions_shows_what_it_has_done_of_a_unit(tmp_path: Path) -> None:
    pages = {f"{title} {n}" if n else title: text for n in range(4) for title, text in PAGES.items()}
    dump = wiki(tmp_path / "enwiki-20240101-pages-articles.xml", pages)
    arguments = ["--input", str(dump), "--shard-bytes=300", "--tables", str(page_table(tmp_path))]
    with fractions_seen() as seen:
        run_here(mine_mentions.COMMAND, *arguments, "--masked", "--output", str(tmp_path / "out/pairs"))
    tables = ["read_tables", "join_tables", "follow", "targets", "resolve"]
    check(seen, [*tables, "mentions", "group", "pair", "fetch", "order_pairs", "count_surfaces", "pair_aliases"])


def test_a_parser_tells_how_far_it_is() -> None:
    shares: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transforms.parsing.phrasemill.network.MAX_BATCH_PIECES", 60)
        parser = PhrasemillParser()
        run = parser._network._run
        patch.setattr(parser._network, "_run", lambda batch: (shares.append(activity.parsed_share()), run(batch))[1])
        before = activity.parsed()
        parser.parse_texts(["The old man saw a whale. " * number for number in (3, 8, 5)])
    assert len(shares) > 2
    assert shares == sorted(set(shares))
    assert (activity.parsed_share(), activity.parsed() - before) == (1.0, 16)
