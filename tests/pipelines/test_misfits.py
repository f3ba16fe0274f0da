"""What is said when an output does not fit, and what is offered after an error."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from literal import mine, parse_options, shard

from pipelines import cli, corpus, extract_documents
from pipelines.cli import _to_build
from pipelines.engine.attempts import Failed, Task, fault_of
from pipelines.engine.lease import read_run
from pipelines.engine.stage import StageError
from pipelines.options import RunOptions
from pipelines.tools import status
from schemas.errors import CorruptInput, UserError, WorkerError, resumes
from schemas.manifest import read_manifest
from schemas.storage.errors import PassingError, storage_error
from schemas.storage.folder import Folder

SHARD = shard({"a:1": "[NP The old whale] sank ~. | [NP The old whale] swam ~."})


def chain(made: Path, of: Path, *flags: str) -> list[corpus.ChainDataset]:
    """Phrases and contexts in `made`, of the documents and sentences in `of`."""
    chosen = parse_options("--min-frequency=1", "--min-phrase-letters=1", *flags)
    found = [Folder(f"{of}/{name}") for name in ("documents", "sentences")]
    documents, sentences = (corpus.ChainDataset(each, read_manifest(each).fingerprint) for each in found)
    phrases = corpus.phrases(sentences, chosen, Folder(f"{made}/phrases"))
    return [phrases, corpus.contexts(documents, sentences, phrases, chosen, Folder(f"{made}/contexts"))]


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("misfits")
    mine(folder, [SHARD])
    mine(folder / "more", [SHARD, shard({"a:2": "[NP A ship] sank ~."})])
    return folder


@pytest.mark.parametrize(
    ("of", "flags", "changed"),
    [
        ("", ["--window=60"], ["contexts: (window: 120 -> 60)"]),
        ("", ["--window=60", "--seed=7"], ["contexts: (seed: 0 -> 7; window: 120 -> 60)"]),
        (
            "",
            ["--keep-case"],
            [
                "phrases: (lowercase: true -> false)",
                "contexts: (input phrases has changed; lowercase: true -> false)",
            ],
        ),
        (
            "",
            ["--min-frequency=2", "--mask-token=<x>"],
            [
                "phrases: (min_frequency: 1 -> 2)",
                'contexts: (input phrases has changed; mask_token: "[MASK]" -> "<x>")',
            ],
        ),
        (
            "more",
            [],
            [
                "phrases: (input sentences has changed)",
                "contexts: (input documents has changed; input sentences has changed; input phrases has changed)",
            ],
        ),
    ],
)
def test_a_finished_dataset_that_does_not_fit(mined, of, flags, changed):
    with pytest.raises(UserError) as caught:
        _to_build(chain(mined, mined / of, *flags), RunOptions(output="", resume=True))
    said = str(caught.value).replace("holds a dataset made from other inputs or with other settings ", "")
    them = "it" if len(changed) == 1 else "them"
    whats = "; ".join(f"{mined}/{each}" for each in changed)
    assert said == f"{whats}; choose another --output, or replace {them} with --overwrite"


def test_other_versions_of_the_code_and_models_are_named(mined):
    manifest = mined / "contexts/manifest.json"
    original = manifest.read_text()
    data = json.loads(original)
    data["stages"][2]["version"] = 0
    data["models"] = [{"model": "mine", "version": 1}]
    manifest.write_text(json.dumps(data))
    build = chain(mined, mined)[-1].build
    assert build is not None
    assert (
        replace(build, models=({"model": "mine", "version": 2},))
        .misfit(read_manifest(build.output))
        .endswith("(version: 1 -> 2; version of cut: 0 -> 2)")
    )
    manifest.write_text(original)


def _input(folder: Path, lines: int = 400) -> list[str]:
    """The flags of a run whose second unit is damaged."""
    good, bad = (folder / f"{name}.jsonl" for name in ("a", "b"))
    good.write_text('{"text": "A whale."}\n' * lines)
    bad.write_text('{"text": cut\n')
    return [f"--input={good}", f"--input={bad}", f"--output={folder}/out", "--shard-bytes=1000"]


def test_damaged_input_needs_another_run(tmp_path, capsys):
    """What `--resume` does not take is not offered; what is said instead is true."""
    flags = _input(tmp_path)
    assert cli.main(extract_documents.COMMAND, flags) == 2
    said = capsys.readouterr().err
    assert "--resume" not in said
    (again,) = re.findall("when the input, or --on-corrupt, is another one, start again: (.*)", said)
    assert again.endswith("--overwrite")
    assert not read_run(Folder(f"{tmp_path}/out"))["command"]
    assert status.run(type("Status", (), {"dataset": f"{tmp_path}/out", "json": False})) == 1
    assert "to go on" not in capsys.readouterr().out

    assert cli.main(extract_documents.COMMAND, [*flags, "--on-corrupt=skip", "--resume"]) == 2
    assert 'other settings (on_corrupt: "fail" -> "skip")' in capsys.readouterr().err
    assert cli.main(extract_documents.COMMAND, [*flags, "--on-corrupt=skip", "--overwrite"]) == 0


def test_too_many_rejects_name_the_option_that_goes_on(tmp_path, capsys):
    lines = ['{"text": "A whale."}', *['{"text": cut'] * 30]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    flags = [f"--input={tmp_path}/a.jsonl", f"--output={tmp_path}/out", "--on-corrupt=skip"]
    assert cli.main(extract_documents.COMMAND, flags) == 2
    said = capsys.readouterr().err
    assert "to go on from here" not in said
    assert "go on with a higher rate and --resume" in said
    assert cli.main(extract_documents.COMMAND, [*flags, "--max-reject-rate=1", "--resume"]) == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KeyboardInterrupt(), True),
        (StageError("parse: unit 3 failed 3 times"), True),
        (OSError(errno.EIO, "input/output error"), True),
        (PassingError("the network is down"), True),
        (storage_error(OSError(errno.ENOSPC, "full")), True),
        (WorkerError("parse: unit 3 failed 3 times, last: the worker died"), True),
        (UserError("no such option"), False),
        (CorruptInput("not JSON"), False),
    ],
)
def test_what_resume_helps_after(error, expected):
    assert resumes(error) is expected
    if isinstance(error, UserError):  # and also if a runner hands it on as a text, or a worker in pieces
        from pipelines.engine.beam import failure_of

        kind = type(error)
        assert type(failure_of(RuntimeError(f"{kind.__name__}: {error} [while running 'x']"))) is kind
        with pytest.raises(kind):
            fault_of(Task(None, None, 0), Failed(str(error), "", kind), None, 1)
