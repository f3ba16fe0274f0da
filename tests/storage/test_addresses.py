"""Addresses: their parts, which are refused for credentials in them, paths from one dataset to another."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.storage.addresses import Address, checked_arguments, joined_path, parse, relative_path, without_secrets
from schemas.storage.errors import StorageError
from schemas.storage.folder import Folder

SECRET = "Zm9v/YmFy+c2Vj"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("s3://bucket/a/b", ("s3", False, "bucket/a/b", "")),
        ("s3://bucket", ("s3", False, "bucket", "")),
        ("s3://bucket/a@b/c", ("s3", False, "bucket/a@b/c", "")),
        ("s3://bucket/a:b", ("s3", False, "bucket/a:b", "")),
        ("hdfs://host:8020/a@b", ("hdfs", False, "host:8020/a@b", "")),
        ("hdfs://[::1]:8020/a", ("hdfs", False, "[::1]:8020/a", "")),
        ("gs://anonymous@bucket/a", ("gs", True, "bucket/a", "")),
        ("file:///home/a", ("file", False, "/home/a", "")),
        ("s3://bucket/*.txt?region=x", ("s3", False, "bucket/*.txt", "region=x")),
        ("s3://bucket/part?.txt", ("s3", False, "bucket/part?.txt", "")),
        (
            "s3://bucket/a?scheme=http&endpoint_override=127.0.0.1:9000",
            ("s3", False, "bucket/a", "scheme=http&endpoint_override=127.0.0.1:9000"),
        ),
    ],
)
def test_parts(address: str, parts: tuple[str, bool, str, str]) -> None:
    assert parse(address) == Address(*parts)
    assert str(parse(address)) == str(Folder(address)) == address


def test_one_way_of_writing_a_query() -> None:
    address = "s3://bucket/a%20b?endpoint_override=http%3A%2F%2Fhost%3A9&&tls_ca_file_path=/a%26b"
    written = "s3://bucket/a%20b?endpoint_override=http://host:9&tls_ca_file_path=/a%26b"
    assert str(Folder(address)) == str(Folder(written)) == written


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3://KEY:SECRET@bucket/a", "s3://bucket/a: credentials do not belong in an address; give them in the "),
        ("s3://KEY:SEC%2FRET@bucket/a", "s3://bucket/a: credentials"),
        ("s3://KEY:SEC/RET@bucket/a", "s3://bucket/a: credentials"),
        ("s3://KEY:SEC?x=RET@bucket/a", "s3://bucket/a: credentials"),
        ("s3://KEY:SEC RET@bucket/a", "s3://bucket/a: credentials"),
        ("s3://KEY:123/RET@bucket/a", "s3://bucket/a: credentials"),
        ("s3://KEY:SEC@RET@bucket/a", "s3://***: credentials"),
        ("s3://KEY:SEC@RET?x=y@bucket/a", "s3://***: credentials"),
        ("s3://KEY:SECRET@bucket/a@b", "s3://***: credentials"),
        ("s3://anonymous@KEY:SECRET@bucket/a", "s3://***: credentials"),
        ("s3://KEY:SECRET/bucket/a", "s3://***: credentials"),
        ("s3://KEY@bucket/a", "s3://bucket/a: credentials"),
        ("gs://KEY:SECRET@bucket/a?region=x", "gs://bucket/a: credentials"),
        ("s3://KEY:SECRET@bucket/a?secret_key=SECRET", "s3://bucket/a: credentials"),
        ("https://KEY:SECRET@host/a", "https://host/a: credentials"),
        (
            "s3://bucket/a?endpoint_override=http%3A%2F%2FKEY:SECRET@host:9",
            "s3://bucket/a: the parameter endpoint_override may hold credentials, which do not belong in an address; ",
        ),
        ("s3://bucket/a?region=x&secret_key=SECRET&session_token=T", "s3://bucket/a: the parameter secret_key may "),
        ("s3://bucket/a?region=x?secret_key=SECRET", "s3://bucket/a: the parameter secret_key may "),
        ("s3://bucket/a?region=x&SEC/RET", "s3://bucket/a: the parameter *** may "),
        ("gs://anonymous@bucket/a?foo=SECRET", "gs://anonymous@bucket/a: the parameter foo may "),
        (
            "https://host/a?X-Amz-Credential=KEY&X-Amz-Signature=a",
            "https://host/a: the parameter X-Amz-Credential ",
        ),
    ],
)
def test_refused(address: str, says: str) -> None:
    with pytest.raises(StorageError) as refused:
        parse(address)
    with pytest.raises(StorageError) as among_arguments:
        checked_arguments(["--max", "1", f"--input={address}"])
    assert str(refused.value).startswith(says)
    for each in (refused, among_arguments):
        said = str(each.value).replace("AWS_SECRET_ACCESS_KEY", "").replace("AWS_ACCESS_KEY_ID", "")
        assert not re.search("SEC|RET|KEY", said)


@given(st.text("abcXYZ019/+=%-_.:@?& ", min_size=1))
def test_no_part_of_a_secret_is_shown(secret: str) -> None:
    for address in (f"s3://KEY:{secret}@bucket/a", f"s3://bucket/a?region=x&secret_key={secret}"):
        with pytest.raises(StorageError) as refused:
            parse(address)
        shown = str(refused.value).partition(": ")[0]
        assert shown in ("s3://bucket/a", "s3://***")


@pytest.mark.parametrize(
    "arguments", [[], ["--input", "s3://b/x", "out/a?b=c@d"], ["--output=gs://anonymous@b/y", "user@host:22", "C:odd"]]
)
def test_arguments_without_credentials(arguments: list[str]) -> None:
    assert checked_arguments(arguments) == arguments


@pytest.mark.parametrize("path", ["out/wiki", "/data/a?b=c@d", "~/x", "C:odd", ""])
def test_a_local_path_stays_as_it_is(path: str) -> None:
    assert str(Folder(path)) == path


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("no secret", "no secret"),
        (f"signed with {SECRET}.", "signed with ***."),
        ("AKIAXXXXXXXX is unknown", "*** is unknown"),
    ],
)
def test_texts_without_secrets(monkeypatch: pytest.MonkeyPatch, text: str, hidden: str) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAXXXXXXXX")
    assert without_secrets(text) == hidden


@pytest.mark.parametrize(
    ("folder", "name", "found"),
    [
        ("out/c", "data", "out/c/data"),
        ("out/c/", "data", "out/c/data"),
        ("s3://b/c", "data/x", "s3://b/c/data/x"),
        ("s3://b/c/?region=x", "data", "s3://b/c/data?region=x"),
        ("gs://anonymous@b/c?region=x&scheme=http", "data", "gs://anonymous@b/c/data?region=x&scheme=http"),
        ("odd?name=x", "data", "odd?name=x/data"),
    ],
)
def test_names_go_before_the_query(folder: str, name: str, found: str) -> None:
    assert Folder(folder) / name == Folder(found)
    assert (Folder(folder) / name).uri == found


def test_beside() -> None:
    assert Folder("s3://b/out/c/?region=x").beside("-documents").uri == "s3://b/out/c-documents?region=x"
    assert Folder("out/c/").beside("-documents").uri == "out/c-documents"


@pytest.mark.parametrize(
    ("path", "start", "relative"),
    [
        ("/d/out/c-documents", "/d/out/c", "../c-documents"),
        ("/in/a.txt", "/d/out/c", "../../../in/a.txt"),
        ("s3://b/out/c-documents", "s3://b/out/c", "../c-documents"),
        ("s3://b/in/a.txt?region=x", "s3://b/out/c?region=x", "../../in/a.txt"),
        ("s3://b/in/a.txt?region=x", "s3://b/out/c", "s3://b/in/a.txt?region=x"),
        ("s3://b/in/a.txt", "s3://other/out/c", "s3://b/in/a.txt"),
        ("gs://anonymous@b/in/a.txt", "gs://b/out/c", "gs://anonymous@b/in/a.txt"),
        ("s3://b/in/a.txt", "/d/out/c", "s3://b/in/a.txt"),
        ("gs://b/in", "s3://b/out/c", "gs://b/in"),
        ("/in/a.txt", "s3://b/out/c", "/in/a.txt"),
    ],
)
def test_paths_from_a_dataset_to_its_inputs(path: str, start: str, relative: str) -> None:
    assert relative_path(path, start) == relative
    assert joined_path(start, relative) == path


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3:///x", "s3:///x: names no bucket; write s3://BUCKET/PATH"),
        ("gs://bucket/x?retry_limit_seconds=x", "gs://bucket?retry_limit_seconds=x: cannot be opened (retry_limit_"),
        ("nowhere://x/y", "nowhere://x/y: cannot be opened (Unrecognized filesystem type in URI: nowhere://x/y)"),
    ],
)
def test_addresses_that_cannot_be_opened(address: str, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        Folder(address).exists()
    assert str(caught.value).startswith(says)
