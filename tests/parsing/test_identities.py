"""The identities of parsers, without loading them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from schemas.errors import UserError
from transforms.parsing import registry
from transforms.parsing.identities import sha256_of
from transforms.parsing.phrasemill.model_file import read_model_file
from transforms.parsing.phrasemill.network import session_options
from transforms.parsing.registry import PARSERS, load_parser, needs_torch, parser_identity
from transforms.parsing.spacy_files import find_spacy
from transforms.parsing.spacy_parser import SpacyParser


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.heavy] * (n == "benepar")) for n in PARSERS])
def test_the_options_listed_are_those_of_the_class(name: str) -> None:
    listed = registry.REGISTRY.listed[name]
    module = pytest.importorskip(listed.module, reason=f"needs the extra {name!r}")
    options = listed.options.split()
    assert sorted(inspect.signature(getattr(module, listed.cls)).parameters) == sorted(options)
    assert {*listed.runtime} <= {*options}


def test_a_network_says_of_itself_what_onnx_runtime_reads() -> None:
    file = read_model_file()
    session = onnxruntime.InferenceSession(file.content, session_options(), ["CPUExecutionProvider"])
    assert file.metadata == session.get_modelmeta().custom_metadata_map
    assert parser_identity("phrasemill").model_sha256 == file.sha256 == sha256_of(Path(file.name))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda content: content[: len(content) // 2], "cannot be read as a network: .*cut short"),
        (lambda content: content[:-1], "cannot be read as a network: .*cut short"),
        (lambda content: b"Call me Ishmael.", "cannot be read as a network: no protobuf message"),
        (lambda content: bytes(content).replace(b"format", b"FORMAT"), "not a parser of format 1; export it"),
        (lambda content: b"", "not a parser of format 1; export it"),
    ],
)
def test_a_file_that_is_no_network_is_refused_before_it_is_loaded(tmp_path: Path, spoil, message: str) -> None:
    path = tmp_path / "other.onnx"
    path.write_bytes(spoil(read_model_file().content))
    for refused in (parser_identity, load_parser):
        with pytest.raises(UserError, match=f"{path}: {message}"):
            refused("phrasemill", model=str(path))


def test_a_pipeline_says_of_itself_what_spacy_reads(tmp_path: Path) -> None:
    files = find_spacy()
    nlp = SpacyParser(str(files.folder)).nlp
    assert (files.folder, files.name) == (nlp.path, f"{nlp.lang}_{nlp.meta['name']}")
    assert files.version == nlp.meta["version"]
    assert files.labels is not None
    assert {name: sorted(nlp.pipe_labels[name]) for name in ("tagger", "parser")} == {
        name: sorted(files.labels[name]) for name in ("tagger", "parser")
    }
    assert parser_identity("spacy") == parser_identity("spacy", model=str(files.folder))
    with pytest.raises(UserError, match=r"no spaCy pipeline in .*meta\.json"):
        parser_identity("spacy", model=str(tmp_path))
    with pytest.raises(UserError, match=r"no spaCy pipeline in .*meta\.json"):
        parser_identity("spacy", model="numpy")


def test_no_library_is_loaded_to_tell_an_identity() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from transforms.parsing.registry import parser_identity\n"
            "for name, options in (('phrasemill', {}), ('spacy', {}), ('corenlp', {'endpoint': 'http://127.0.0.1:9'})):\n"
            "    print(parser_identity(name, **options))\n"
            "print(sorted({'spacy', 'thinc', 'torch', 'onnxruntime', 'stanza'} & {*sys.modules}))",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said == [str(parser_identity("phrasemill")), str(load_parser("spacy").identity), said[2], "[]"]


@pytest.mark.heavy
def test_what_a_parser_does_not_need_stays_unloaded(tmp_path: Path) -> None:
    """Torch, if it is installed, and spaCy's command line. A later import of them works."""
    pytest.importorskip("torch", reason="needs an extra that brings torch")
    text = "The old man saw a well-known whale. It swam."
    # In a process that has spaCy with torch, which this one has not.
    with_torch = f"""
import spacy
from spacy.training import Example
from pipelines.stages.parse import cached_parser
nlp = spacy.load({find_spacy().loads_as!r})
encoder = {{"@architectures": "spacy.TorchBiLSTMEncoder.v1", "width": 8, "depth": 1, "dropout": 0.0}}
embedding = {{"@architectures": "spacy.MultiHashEmbed.v2", "width": 8, "rows": [10], "attrs": ["NORM"]}}
network = {{"@architectures": "spacy.Tok2Vec.v2", "embed": embedding | {{"include_static_vectors": False}}}}
added = nlp.add_pipe("tok2vec", name="with_torch", config={{"model": network | {{"encode": encoder}}}})
added.initialize(lambda: [Example.from_dict(nlp.make_doc("a word"), {{}})])
nlp.to_disk({str(tmp_path)!r})
print(cached_parser("spacy", (("model", {str(tmp_path)!r}),)).parse_texts([{text!r}]))
"""
    parse = subprocess.run([sys.executable, "-c", with_torch], capture_output=True, text=True, check=True).stdout
    program = f"""
import sys
from pipelines.stages.parse import cached_parser
for name, model in (("phrasemill", ""), ("spacy", ""), ("spacy", {str(tmp_path)!r})):
    try:
        print(cached_parser(name, (("model", model),)).parse_texts([{text!r}]), "torch" in sys.modules)
    except Exception as error:
        print(error)
print("requests" in sys.modules)
import spacy.cli, torch
print(spacy.cli.download.__name__)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    expected = [load_parser(name).parse_texts([text]) for name in ("phrasemill", "spacy")]
    *parses, refused, with_requests, command = said.splitlines()
    assert parses == [f"{each} False" for each in expected]
    assert (with_requests, command) == ("False", "download")
    assert "needs torch: install it, and load the pipeline in a process that" in refused
    assert needs_torch("spacy", model=str(tmp_path))
    assert parse == f"{expected[1]}\n"


def test_hash_of_a_folder_covers_names_and_content(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"x")
    (tmp_path / "a").write_bytes(b"")
    before = sha256_of(tmp_path)
    assert sha256_of(tmp_path / "a") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "a").rename(tmp_path / "c")
    renamed = sha256_of(tmp_path)
    (tmp_path / "c").write_bytes(b"x")
    assert len({before, renamed, sha256_of(tmp_path)}) == 3
