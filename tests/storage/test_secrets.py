"""Credentials in addresses are refused by every option and never shown; test_addresses.py has their forms."""

from __future__ import annotations

import importlib
from pathlib import Path

import jobs
import pytest
from stores import Store, assert_hidden

from schemas.dataset import Dataset
from schemas.dataset_checks import find_source
from schemas.errors import UserError
from schemas.manifest import Input, Manifest
from schemas.storage.addresses import filesystem_of, relative_path
from schemas.storage.folder import Folder

ADDRESS = "s3://AKIASECRET:c2VjcmV0@bucket/wiki"
QUERY = "s3://bucket/wiki?region=x&secret_key=c2VjcmV0"
TOOLS = ["schemas.check", "pipelines.mentions", "pipelines.rejects", "pipelines.report", "pipelines.status"]
SAID = "s3://bucket/wiki: credentials do not belong in an address; give them in the environment (AWS_ACCESS_KEY_ID"


def hidden(error: object) -> str:
    text = str(error)
    assert "SECRET" not in text.replace("AWS_SECRET_ACCESS_KEY", "")
    assert "c2VjcmV0" not in text
    return text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--input", ADDRESS],
        ["--input", "in", f"--output={ADDRESS}"],
        ["--documents", ADDRESS],
        [f"--tables={ADDRESS}"],
        [f"--parser-option=server={ADDRESS}"],
        [f"--temp_location={ADDRESS}"],  # a flag of Beam
        [ADDRESS],
        ["--workers", ADDRESS],
        [f"--no-such-flag={ADDRESS}"],
    ],
)
def test_on_a_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from pipelines.cli import main
    from pipelines.mine_mentions import COMMAND

    assert main(COMMAND, arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert hidden(said.err).startswith(f"error: {SAID}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("address", [ADDRESS, QUERY])
@pytest.mark.parametrize("module", TOOLS)
def test_in_tools(module: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module(module).main
    for arguments in ([address], [str(tmp_path), address, address]):
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert hidden(said.err).startswith("error: s3://bucket/wiki: ")


def test_in_python() -> None:
    from transforms.sources.inputs import resolve_inputs

    for take in (
        Folder,
        Dataset.open,
        filesystem_of,
        Folder("s3://bucket").joined,
        lambda address: resolve_inputs([address]),
        lambda address: relative_path(address, "s3://other"),
    ):
        for address in (ADDRESS, QUERY):
            with pytest.raises(UserError) as refused:
                take(address)
            assert hidden(refused.value).startswith("s3://bucket/wiki: ")


def test_in_a_manifest(tmp_path: Path) -> None:
    """A manifest that somebody wrote by hand: ours never have credentials."""
    from pipelines.corpus import ChainDataset, documents_of
    from transforms.reports.history import lineage

    folder = Folder(str(tmp_path))
    inputs = [Input("dataset", "documents", ADDRESS, "f00d")]
    manifest = Manifest("Sentence", "beef", None, {}, inputs, {}, {}, [], {}, [], {}, "", {})
    with pytest.raises(UserError) as unchecked:
        find_source(Dataset(folder, manifest), manifest.kind.source, None)
    assert hidden(unchecked.value).startswith(SAID)
    with pytest.raises(UserError, match="give the documents dataset that it was made from with --documents") as refused:
        documents_of(ChainDataset(folder, "beef"), manifest, None)
    hidden(refused.value)
    assert lineage(folder, manifest) == [(folder, manifest)]


def test_a_wrong_key_is_one_line(store: Store) -> None:
    if store.takes_any_key or store.scheme != "s3":
        pytest.skip("only a store that checks credentials")
    for name, key in {"AWS_SECRET_ACCESS_KEY": "wrong/secret/key", "AWS_ACCESS_KEY_ID": "AKIAUNKNOWNKEY"}.items():
        failed = jobs.mine(store.address("in"), store.address("denied/c"), **{name: key})
        assert failed.returncode == 2
        assert failed.stderr.startswith("error: ")
        assert "Traceback" not in failed.stderr
        assert key not in failed.stdout + failed.stderr
        assert_hidden(failed.stdout, failed.stderr)
