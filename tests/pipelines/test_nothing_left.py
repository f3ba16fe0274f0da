"""A run that leaves nothing of its input is an error: it names the reasons, and publishes and claims nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from literal import chain_of, dump, run_inline
from literal import dataset as given
from toy import poisoned_words

from pipelines import extract_documents, find_mentions, mine_contexts, mine_mentions, rejects
from pipelines.__main__ import commands
from pipelines.cli import Command, main
from pipelines.engine.driver import run
from pipelines.engine.executors import Executor, InlineExecutor, PoolExecutor
from pipelines.engine.progress import Progress
from schemas.commands import typed
from schemas.errors import UserError
from schemas.kinds import KINDS
from schemas.kinds.documents import DOCUMENTS
from schemas.manifest import is_dataset
from schemas.options import options_of
from schemas.reasons import options_in
from schemas.storage.folder import Folder


def by_beam() -> Executor:
    from pipelines.engine.beam import BeamExecutor

    return BeamExecutor(workers=1)


@pytest.mark.parametrize("executor", [InlineExecutor, lambda: PoolExecutor(1), by_beam])
@pytest.mark.parametrize("words", [1, 30])  # fewer and more than the rejects that never stop a run
def test_all_rejected(executor: Callable[[], Executor], words: int, tmp_path: Path) -> None:
    build = poisoned_words(tmp_path / "words", (" ".join(["BAD"] * words),))
    build.begin(resume=False)
    with pytest.raises(UserError) as refused:
        run([build], executor(), progress=Progress(io.StringIO()), max_reject_rate=0.01)
    assert str(refused.value) == (
        f"{tmp_path}/words: no words are left of the input: words rejected {words} of {words} words as bad_record "
        f"(--text-column); look at them: {typed('pipelines.rejects', build.output)}; "
        "change these options, or give other input with --overwrite"
    )
    assert not is_dataset(build.output)


TEXT = "The old cat sat on the mat. It ran."

NOTHING: list[tuple[Command, Callable[[Path], object], list[str], str, str]] = [
    (
        extract_documents.COMMAND,
        lambda path: path.write_text(TEXT),
        ["--max-document-bytes=9"],
        "out: no documents are left of the input: extract rejected 1 of 1 records as document_too_large "
        "(--max-document-bytes); look at them: ",
        "document_too_large",
    ),
    (
        extract_documents.COMMAND,
        lambda path: path.write_text("\n \n"),
        [],
        "out: no documents are left of the input: extract filtered 1 of 1 records as no_text; look at them: ",
        "no_text",
    ),
    (
        mine_contexts.COMMAND,
        lambda path: path.write_text(TEXT),
        ["--max-sentence-tokens=2"],
        "out-sentences: no sentences are left of the input: parse rejected 2 of 2 sentences as too_many_tokens "
        "(--max-sentence-tokens); look at them: ",
        "too_many_tokens",
    ),
    (
        mine_contexts.COMMAND,
        lambda path: path.write_text(TEXT),
        [],  # no phrase occurs twice
        "out-phrases: no phrases are left of the input: count filtered 1 of 5 constituents as pronoun "
        "(--keep-pronouns), select filtered 4 of 4 phrases as too_rare (--min-frequency, --max-phrases); look at them",
        "too_rare",
    ),
    (
        find_mentions.COMMAND,
        lambda path: dump(path, {1: "It was in [[1990]]."}),
        [],
        "out: no mentions are left of the input: mentions filtered 1 of 1 links as date (--keep-dates); ",
        "date",
    ),
    (
        mine_mentions.COMMAND,
        lambda path: dump(path, {1: "It was in [[Paris]]."}),
        [],
        "out: no pairs are left of the input: pair read 0 candidate pairs; give other input",
        "",
    ),
]


@pytest.mark.parametrize(("command", "make", "flags", "message", "reason"), NOTHING)
def test_every_dataset_of_a_chain(
    command: Command,
    make: Callable[[Path], object],
    flags: list[str],
    message: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("a.xml" if "mentions" in command.module else "a.txt")
    make(path)
    arguments = [f"--input={path}", "--output=out", *flags]
    first = None
    for more in ([], [], ["--resume"]):  # again, it neither does the work again nor takes the dataset for finished
        assert main(command, [*arguments, *more]) == 2
        shown = capsys.readouterr()
        last = shown.err.splitlines()[-1]
        assert message in last
        assert "next:" not in shown.out
        assert "to go on from here" not in shown.err
        assert first in (None, last)
        first = last
    place = last.removeprefix("error: ").partition(":")[0]
    assert not is_dataset(Folder(place))
    assert rejects.main([place]) == 0
    assert reason in capsys.readouterr().out


def test_other_options_need_no_more_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    arguments = [f"--input={tmp_path}/a.txt", f"--output={tmp_path}/out"]
    assert main(mine_contexts.COMMAND, [*arguments, "--min-frequency=9"]) == 2
    assert main(mine_contexts.COMMAND, [*arguments, "--min-frequency=1"]) == 0
    (tmp_path / "b.txt").write_text(f"{TEXT} {TEXT}")
    other = [f"--input={tmp_path}/b.txt", *arguments[1:], "--overwrite"]
    assert main(mine_contexts.COMMAND, other) == 0


def test_slices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    arguments = [f"--input={tmp_path}/a.txt", f"--output={tmp_path}/out", "--max-document-bytes=9"]
    assert [main(extract_documents.COMMAND, [*arguments, f"--units={n}/2"]) for n in (1, 2)] == [0, 0]
    for more in ("--resume", "--units=1/2"):
        assert main(extract_documents.COMMAND, [*arguments, more]) == 2
        assert "as document_too_large (--max-document-bytes)" in capsys.readouterr().err


def test_an_empty_dataset_as_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given(tmp_path / "docs", [DOCUMENTS.empty_table()])
    assert main(mine_contexts.COMMAND, [f"--input={tmp_path}/docs", f"--output={tmp_path}/out"]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/docs: no documents are left of the input: given read 0 rows; "
        "give other input with --overwrite\n"
    )


def test_an_empty_dataset_of_before_is_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("\n")
    flags = [f"--input={tmp_path}/a.txt", f"--output={tmp_path}/out"]
    run_inline(chain_of(extract_documents.COMMAND, flags[0], f"--output={tmp_path}/out-documents")[0].build)
    for slice_ in ([], ["--units=1/2"]):
        assert main(mine_contexts.COMMAND, [*flags, *slice_]) == 2
        assert "out-documents: no documents are left of the input" in capsys.readouterr().err


def test_a_reason_names_options_that_there_are() -> None:
    flags = {
        command.module: {each.flag for of in command.flags.groups for each in options_of(of)} for command in commands()
    }
    named = [
        (kind.command, option)
        for kind in KINDS.values()
        if kind.command in flags
        for meaning in [*kind.filters.values(), *kind.rejects.values()]
        for option in options_in(meaning)
    ]
    assert len(named) > 20
    assert [each for each in named if each[1] not in flags[each[0]]] == []
