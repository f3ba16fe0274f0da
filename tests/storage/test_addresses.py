"""Addresses: their parts, their shown form, what is hidden in texts, paths from one dataset to another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.addresses import Address, joined_path, parse, relative_path, shown, shown_arguments, without_secrets
from schemas.errors import StorageError
from schemas.storage import Folder

SECRET = "Zm9v/YmFy+c2Vj"


@pytest.mark.parametrize(
    ("address", "parts", "is_shown"),
    [
        ("s3://bucket/a/b", ("s3", "", "bucket/a/b", ""), "s3://bucket/a/b"),
        ("s3://bucket", ("s3", "", "bucket", ""), "s3://bucket"),
        ("s3://KEY:SECRET@bucket/a", ("s3", "KEY:SECRET", "bucket/a", ""), "s3://bucket/a"),
        ("s3://KEY:SEC%2FRET@bucket/a", ("s3", "KEY:SEC%2FRET", "bucket/a", ""), "s3://bucket/a"),
        ("s3://KEY:SEC/RET@bucket/a", ("s3", "KEY:SEC/RET", "bucket/a", ""), "s3://bucket/a"),
        ("s3://KEY:SEC@RET@bucket/a", ("s3", "KEY:SEC@RET", "bucket/a", ""), "s3://bucket/a"),
        ("s3://KEY@bucket/a", ("s3", "KEY", "bucket/a", ""), "s3://bucket/a"),
        ("s3://KEY:123/ET@bucket/a", ("s3", "KEY:123/ET", "bucket/a", ""), "s3://bucket/a"),
        ("s3://bucket/a@b/c", ("s3", "", "bucket/a@b/c", ""), "s3://bucket/a@b/c"),
        ("hdfs://host:8020/a@b", ("hdfs", "", "host:8020/a@b", ""), "hdfs://host:8020/a@b"),
        ("gs://anonymous@bucket/a", ("gs", "anonymous", "bucket/a", ""), "gs://anonymous@bucket/a"),
        ("file:///home/a", ("file", "", "/home/a", ""), "file:///home/a"),
        ("s3://bucket/*.txt?region=x", ("s3", "", "bucket/*.txt", "region=x"), "s3://bucket/*.txt?region=x"),
        ("s3://bucket/part?.txt", ("s3", "", "bucket/part?.txt", ""), "s3://bucket/part?.txt"),
        (
            "s3://bucket/a?scheme=http&endpoint_override=127.0.0.1:9000",
            ("s3", "", "bucket/a", "scheme=http&endpoint_override=127.0.0.1:9000"),
            "s3://bucket/a?scheme=http&endpoint_override=127.0.0.1:9000",
        ),
        (
            "s3://bucket/a?endpoint_override=http%3A%2F%2FKEY:SECRET@host:9",
            ("s3", "", "bucket/a", "endpoint_override=http%3A%2F%2FKEY:SECRET@host:9"),
            "s3://bucket/a?endpoint_override=http://host:9",
        ),
        (
            "s3://bucket/a?secret_key=SECRET&region=x&session_token=T",
            ("s3", "", "bucket/a", "secret_key=SECRET&region=x&session_token=T"),
            "s3://bucket/a?secret_key=***&region=x&session_token=***",
        ),
        (
            "https://host/a?X-Amz-Credential=KEY&X-Amz-Signature=abc",
            ("https", "", "host/a", "X-Amz-Credential=KEY&X-Amz-Signature=abc"),
            "https://host/a?X-Amz-Credential=***&X-Amz-Signature=***",
        ),
    ],
)
def test_parts_and_shown_form(address: str, parts: tuple[str, str, str, str], is_shown: str) -> None:
    assert parse(address) == Address(*parts)
    assert str(parse(address)) == address
    assert shown(address) == is_shown
    assert str(Folder(address)) == is_shown
    assert shown(is_shown) == is_shown


@pytest.mark.parametrize("path", ["out/wiki", "/data/a?b=c@d", "~/x", "C:odd", ""])
def test_a_local_path_is_shown_as_it_is(path: str) -> None:
    assert shown(path) == path


@given(st.text("abcXYZ019/+=%-_.:", min_size=1))
def test_no_part_of_a_secret_is_shown(secret: str) -> None:
    assert shown(f"s3://KEY:{secret}@bucket/a") == "s3://bucket/a"
    assert shown(f"gs://KEY:{secret}@bucket?secret={secret}") == "gs://bucket?secret=***"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("no address", "no address"),
        ("s3://K:S@b/x: no such dataset", "s3://b/x: no such dataset"),
        ("Cannot parse URI: 's3://K:S@b/x?a=b' due to", "Cannot parse URI: 's3://b/x?a=***' due to"),
        ("from (s3://K:S@b/x, gs://b/y)", "from (s3://b/x, gs://b/y)"),
        (f"signed with {SECRET}.", "signed with ***."),
        ("AKIAXXXXXXXX is unknown", "*** is unknown"),
        ("user@host:22 and a: b//c", "user@host:22 and a: b//c"),
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
        ("s3://K:S@b/c?region=x&scheme=http", "data", "s3://K:S@b/c/data?region=x&scheme=http"),
        ("odd?name=x", "data", "odd?name=x/data"),
    ],
)
def test_names_go_before_the_query(folder: str, name: str, found: str) -> None:
    assert Folder(folder) / name == Folder(found)
    assert (Folder(folder) / name).uri == found


def test_arguments_as_they_are_shown() -> None:
    given = ["--input", "s3://K:S@b/x", "--output=s3://K:S@b/y", "--mask-token", "[M]", "--s3_secret_access_key", "S"]
    given += ["--s3_session_token=S", "--azure_connection_string", "--job_name=a=b"]
    shown_as = ["--input", "s3://b/x", "--output=s3://b/y", "--mask-token", "[M]", "--s3_secret_access_key", "***"]
    assert shown_arguments(given) == [
        *shown_as,
        "--s3_session_token=***",
        "--azure_connection_string",
        "--job_name=a=b",
    ]


def test_beside() -> None:
    assert Folder("s3://K:S@b/out/c/?region=x").beside("-documents").uri == "s3://K:S@b/out/c-documents?region=x"
    assert Folder("out/c/").beside("-documents").uri == "out/c-documents"


@pytest.mark.parametrize(
    ("path", "start", "relative"),
    [
        ("/d/out/c-documents", "/d/out/c", "../c-documents"),
        ("/in/a.txt", "/d/out/c", "../../../in/a.txt"),
        ("s3://b/out/c-documents", "s3://b/out/c", "../c-documents"),
        ("s3://K:S@b/in/a.txt?region=x", "s3://K:S@b/out/c?region=x", "../../in/a.txt"),
        ("s3://K:S@b/in/a.txt", "s3://other/out/c", "s3://b/in/a.txt"),
        ("s3://K:S@b/in/a.txt", "s3://b/out/c", "s3://b/in/a.txt"),
        ("s3://K:S@b/in/a.txt", "/d/out/c", "s3://b/in/a.txt"),
        ("gs://b/in", "s3://b/out/c", "gs://b/in"),
        ("/in/a.txt", "s3://b/out/c", "/in/a.txt"),
    ],
)
def test_paths_from_a_dataset_to_its_inputs(path: str, start: str, relative: str) -> None:
    assert relative_path(path, start) == relative
    back = joined_path(start, relative)
    assert back == (path if "://" not in relative else shown(path))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3:///x", "s3:///x: names no bucket; write s3://BUCKET/PATH"),
        ("s3://K:SECRET@bucket/x?foo=SECRET", r"s3://bucket?foo=***: cannot be opened (Unexpected query parameter"),
        ("s3://K:SEC RET@bucket/x?foo=SECRET", "s3://bucket?foo=***: cannot be opened ("),
        (
            "gs://K:SECRET@bucket/x",
            'gs://bucket: cannot be opened (GCS URIs do not accept username except "anonymous"',
        ),
        (
            "nowhere://K:SECRET@x/y",
            "nowhere://x/y: cannot be opened (Unrecognized filesystem type in URI: nowhere://x/y)",
        ),
    ],
)
def test_addresses_that_cannot_be_opened(address: str, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        Folder(address).exists()
    assert str(caught.value).startswith(says)
    assert "SEC" not in str(caught.value)
