"""Real object stores on loopback, for tests: S3 by moto and by versitygw, Google Cloud Storage by fake-gcs-server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs
from servers import free_port, go_install, running

from schemas.storage import addresses
from schemas.storage.folder import Folder

KEY, SECRET = "AKIATESTTESTTEST", "Zm9vYmFy/c2VjcmV0+c2VjcmV0"
BUCKET = "corpora"

_MOTO = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


class Store(NamedTuple):
    """A bucket of a running server, reached with the variables `environment` and `query` in addresses."""

    scheme: str
    endpoint: str
    environment: dict[str, str]
    takes_any_key: bool = False

    @property
    def query(self) -> str:
        return f"scheme=http&endpoint_override={self.endpoint}"

    def address(self, path: str) -> str:
        return f"{self.scheme}://{'anonymous@' if self.scheme == 'gs' else ''}{BUCKET}/{path}"

    def folder(self, path: str) -> Folder:
        return Folder(self.address(path))

    def objects(self, path: str) -> dict[str, bytes]:
        """All objects below a path, except the empty ones that represent folders."""
        folder = self.folder(path)
        return {name: folder.read(name) for name in folder.files(recursive=True)}


def assert_hidden(*said: str | bytes) -> None:
    """Asserts that the credentials of the environment are not in anything that is written or printed."""
    for each in said:
        text = each.decode("utf-8", "replace") if isinstance(each, bytes) else each
        for word in (KEY, SECRET, SECRET.partition("/")[2]):
            assert word not in text, text[max(text.index(word) - 200, 0) : text.index(word) + 200]


@contextmanager
def reached(store: Store) -> Iterator[None]:
    """Let this process, and those that it starts, reach one of the stores."""
    before = {name: os.environ.get(name) for name in store.environment}
    os.environ.update(store.environment)
    addresses._open.cache_clear()  # normally a process has one environment
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        addresses._open.cache_clear()


@contextmanager
def moto(scratch: Path) -> Iterator[Store]:
    # In another process, because pyarrow closes a dropped stream without releasing the interpreter's lock.
    server = subprocess.Popen([sys.executable, "-c", _MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin
    assert server.stdout
    try:
        yield _s3(f"127.0.0.1:{int(server.stdout.readline())}")._replace(takes_any_key=True)
    finally:
        server.stdin.close()
        server.wait(30)


@contextmanager
def versitygw(scratch: Path) -> Iterator[Store]:
    program = go_install("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
    address = f"127.0.0.1:{free_port()}"
    root = scratch / "root"
    root.mkdir()
    command = [program, "--port", address, "--access", KEY, "--secret", SECRET, "posix", "--sidecar", scratch / "side"]
    (scratch / "side").mkdir()
    with running([*map(str, command), str(root)], address):
        yield _s3(address)


def _s3(address: str) -> Store:
    environment = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region="us-east-1",
        scheme="http",
        endpoint_override=address,
        allow_bucket_creation=True,
    ).create_dir(BUCKET)
    return Store("s3", address, environment)


@contextmanager
def fake_gcs_server(scratch: Path) -> Iterator[Store]:
    program = go_install("github.com/fsouza/fake-gcs-server", "v1.56.1")
    host, port = "127.0.0.1", free_port()
    command = [program, "-scheme", "http", "-host", host, "-port", str(port), "-backend", "memory"]
    command += ["-public-host", f"{host}:{port}", "-log-level", "error"]
    with running(command, f"{host}:{port}"):
        store = Store("gs", f"{host}:{port}", {"CLOUD_STORAGE_EMULATOR_ENDPOINT": f"http://{host}:{port}"})
        filesystem = fs.GcsFileSystem(
            anonymous=True, scheme="http", endpoint_override=f"{host}:{port}", project_id="phrasemill"
        )
        filesystem.create_dir(BUCKET)
        yield store


SERVERS: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {
    "moto": moto,
    "versitygw": versitygw,
    "fake-gcs-server": fake_gcs_server,
}
