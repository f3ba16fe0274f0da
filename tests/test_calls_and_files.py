"""Nothing behind the user's back: no call and no look-up of a name that was not asked for, no file in other places."""

from __future__ import annotations

import sys

import pytest
from watched import watch

from transforms.sources.sample import sample_inputs

PYTHON = [sys.executable, "-c"]
MODEL = "from transforms.parsing.phrasemill.network import Network; Network()"
COMPONENT = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("phrasemill_constituents")
print(len(nlp("The old man saw a whale.").spans["constituents"]))
"""
LIBRARIES = """
import transforms, huggingface_hub, transformers, datasets
print(huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY)
"""


def test_what_is_seen(tmp_path):
    """A call, a look-up of a name, files made, renamed and removed, also by a child and where nothing answers."""
    program = f"""
import os, socket, subprocess
def call(to):
    try:
        socket.create_connection(to, timeout=0.1)
    except OSError:
        pass
call(("192.0.2.1", 9))
call(("127.0.0.1", 9))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    try:
        udp.sendto(b"a name?", ("127.0.0.53", 53))
    except OSError:
        pass
subprocess.run(["sh", "-c", "echo > ~/a; mv ~/a ~/b; rm ~/b; mkdir {tmp_path}/in; echo > {tmp_path}/in/c"])
open(os.environ["TMPDIR"] + "/d", "w").close()
open("/dev/null", "w").close()
open("e", "w").close()
"""
    seen = watch([*PYTHON, program], tmp_path / "watched", [tmp_path / "in"])
    assert seen.calls == ["127.0.0.53 port 53", "192.0.2.1 port 9"]
    assert seen.written == [f"{tmp_path}/watched/{each}" for each in ("here/e", "home/a", "home/b")]


def test_a_parser(tmp_path):
    seen = watch([*PYTHON, MODEL], tmp_path / "watched")
    assert seen == (0, "", [], [])


@pytest.mark.heavy
def test_telemetry_that_is_left_on_is_seen(tmp_path):
    """What this is about. Once ONNX Runtime keeps no events any more, `refuse_telemetry` has a variable too many."""
    seen = watch(["env", "ORT_DISABLE_TELEMETRY=0", *PYTHON, MODEL], tmp_path / "watched")
    assert any("onnxruntime" in place for place in seen.written)


@pytest.mark.heavy
def test_the_component_of_spacy(tmp_path):
    seen = watch([*PYTHON, COMPONENT], tmp_path / "watched")
    assert seen == (0, "4\n", [], [])


@pytest.mark.heavy
def test_the_libraries_of_the_hub(tmp_path):
    seen = watch([*PYTHON, LIBRARIES], tmp_path / "watched")
    assert seen == (0, "True\n", [], [])


@pytest.mark.heavy
@pytest.mark.parametrize("command", ["mine_contexts", "mine_mentions"])
def test_a_job_of_the_sample(command, tmp_path):
    """With workers, its plan, and the tools that read its datasets."""
    output = tmp_path / "output"
    output.mkdir()  # otherwise a nameless file beside it tries whether one can be made
    run = ["-m", f"pipelines.{command}", "--max-documents=20", "--workers=2"]
    run += [*(f"--input={each}" for each in sample_inputs()), f"--output={output / 'out'}"]
    for number, arguments in enumerate(
        [
            [*run, "--plan"],
            run,
            ["-m", "schemas.check", str(output / "out")],
            ["-m", "pipelines.status", str(output / "out")],
            ["-m", "pipelines.rejects", str(output / "out")],
            ["-m", "pipelines.report", str(output / "out")],
        ]
    ):
        seen = watch([sys.executable, *arguments], tmp_path / f"watched-{number}", [output])
        assert (seen.calls, seen.written, seen.status) == ([], [], 0), seen.printed
