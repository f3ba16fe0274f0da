"""Credentials given in addresses or the environment appear in nothing that is written or printed."""

from __future__ import annotations

import sys
from urllib.parse import quote

import jobs
import pytest
from stores import BUCKET, Store

# Not those that the store was made with, so that they come from the addresses alone; the "/" is percent-encoded.
KEY, SECRET = "AKIASECRETINADDRESS", "c2VjcmV0/aW4gYWRkcmVzcw"
_PARSED = "secret/out/c-sentences/_work/parse"
WORDS = (KEY, SECRET, quote(SECRET, safe=""), SECRET.partition("/")[2])


@pytest.fixture(scope="module")
def addresses(store: Store) -> tuple[str, str]:
    """Input and output on moto's S3, which takes any credentials."""
    if not store.takes_any_key:
        pytest.skip("this store knows no other credentials")
    for name, text in list(jobs.chapters().items())[:1]:
        store.folder("secret/in").write(name, text)
    base = f"s3://{KEY}:{quote(SECRET, safe='')}@{BUCKET}/secret"
    return f"{base}/in?{store.query}", f"{base}/out/c?{store.query}"


def assert_hidden(text: str | bytes) -> None:
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for word in WORDS:
        assert word not in text, text[max(text.index(word) - 200, 0) : text.index(word) + 200]


def _unset(store: Store) -> dict[str, str | None]:
    """The environment that leaves it to the addresses to say where the store is and who asks."""
    return dict.fromkeys(store.environment.keys() - {"AWS_EC2_METADATA_DISABLED"})


@pytest.mark.heavy
def test_in_nothing_that_a_run_writes_or_prints(store: Store, addresses: tuple[str, str]) -> None:
    inputs, output = addresses
    printed = jobs.kill(jobs.command(inputs, output), when=lambda: store.folder(_PARSED).files("done"), **_unset(store))
    assert_hidden(printed)
    left = store.objects("secret/out")
    assert {"c/_work/run.json", "c-sentences/_work/build.json", "c-sentences/_work/parse/plan.json"} <= left.keys()
    for data in left.values():
        assert_hidden(data)
    done = jobs.mine(inputs, output, "--resume", **_unset(store))
    assert done.returncode == 0, done.stderr
    assert_hidden(done.stdout + done.stderr)
    found = store.objects("secret/out")
    assert "c/manifest.json" in found
    for name, data in found.items():
        assert_hidden(name)
        assert_hidden(data)
        if name.endswith(".parquet"):  # compressed
            assert_hidden(str(jobs.rows(data)))
    datasets = [output.replace("/c?", f"/c{each}?") for each in jobs.DATASETS]
    checked = jobs.check(*datasets)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "offsets agree with" in checked.stdout
    assert_hidden(checked.stdout + checked.stderr)
    planned = jobs.mine(inputs, output.replace("/c?", "/d?"), "--plan", **_unset(store))
    assert planned.returncode == 0, planned.stderr
    assert_hidden(planned.stdout + planned.stderr)
    for module in ("status", "rejects", "report"):
        for address in (output, output.replace("/c?", "/nothing?"), output.replace("s3://", "s4://")):
            looked = jobs.run([sys.executable, "-m", f"pipelines.{module}", address], **_unset(store))
            assert "Traceback" not in looked.stderr
            assert_hidden(looked.stdout + looked.stderr)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("/in?", "/nothing?"), "does not exist: no 'nothing' in 'corpora/secret'"),
        (("/in?", "/nothing*.txt?"), "matches no file"),
        (("/in?", "/in?foo=1&"), "cannot be opened"),
        (("@corpora/secret/in", "@nobucket/in"), "does not exist"),
        (("@corpora/secret/out", "@nobucket/out"), "the bucket does not exist; make it"),
        (("/secret/out/c?", "/secret/out/c?secret_key=" + SECRET + "&"), "cannot be opened"),
        (("s3://", "s4://"), "cannot be opened"),
    ],
)
def test_in_no_error(store: Store, addresses: tuple[str, str], change: tuple[str, str], says: str) -> None:
    inputs, output = (each.replace(*change) for each in addresses)
    failed = jobs.mine(inputs, output, "--overwrite", **_unset(store))
    assert failed.returncode == 2, failed.stderr
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr
    assert_hidden(failed.stdout + failed.stderr)


def test_a_wrong_key_is_one_line(store: Store) -> None:
    if store.takes_any_key or store.scheme != "s3":
        pytest.skip("only a store that checks credentials")
    for name, key in {"AWS_SECRET_ACCESS_KEY": "wrong/secret/key", "AWS_ACCESS_KEY_ID": "AKIAUNKNOWNKEY"}.items():
        failed = jobs.mine(store.address("in"), store.address("denied/c"), **{name: key})
        assert failed.returncode == 2
        assert failed.stderr.startswith("error: ")
        assert "Traceback" not in failed.stderr
        assert key not in failed.stdout + failed.stderr
