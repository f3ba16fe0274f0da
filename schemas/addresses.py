"""Addresses of storage (`s3://`, `gs://`, `file://`): their parts, the form that may be shown, the filesystem behind.

    s3://KEY:SECRET@bucket/corpora/wiki?region=eu-west-1&endpoint_override=...
         access     rest               query

Access is better given in the environment (AWS_ACCESS_KEY_ID..., GOOGLE_APPLICATION_CREDENTIALS): an address on a
command line can be read in the list of processes. Whatever phrasemill writes or prints holds the shown form only.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
from pyarrow import fs

from schemas.errors import StorageError

_QUERY = re.compile(r"\?(?=[A-Za-z_][\w.-]*=)")  # "?" alone is a wildcard
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_HOST_AND_PORT = re.compile(r"[^:]*(?::\d*)?|\[[0-9A-Fa-f:.]*\](?::\d*)?")
_OPEN = frozenset(
    """
    allow_bucket_creation allow_bucket_deletion allow_delayed_open default_bucket_location endpoint_override project_id
    region retry_limit_seconds scheme smart_defaults tls_ca_file_path tls_verify_certificates
    """.split()
)
"""Query parameters that hold no secret."""

_BUCKETS = ("s3", "gs", "gcs")
"""Schemes whose addresses begin with a bucket."""

_GOOGLE_RETRIES = 60  # seconds

_SECRET_FLAG = re.compile(r"--\w*(?:secret|password|session_token|access_key|connection_string|credential)\w*")
"""Flags of Beam, such as --s3_secret_access_key."""

_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")


class Address(NamedTuple):
    """The parts of an address. `rest` is bucket and path, percent-encoded as given; `query` is without its "?"."""

    scheme: str
    access: str
    rest: str
    query: str

    def __str__(self) -> str:
        """The address in full, with its access."""
        access = f"{self.access}@" if self.access else ""
        return f"{self.scheme}://{access}{self.rest}" + (f"?{self.query}" if self.query else "")

    @property
    def shown(self) -> str:
        """Without what gives access; "anonymous@" says that none is needed."""
        access = "anonymous" if self.access == "anonymous" else ""
        query = "&".join(_shown_parameter(each) for each in self.query.split("&") if each)
        return str(self._replace(access=access, query=query))

    def same_store(self, other: Address) -> bool:
        """Whether both lie in one bucket, reached in one way."""
        return self._replace(rest=_bucket(self.rest)) == other._replace(rest=_bucket(other.rest))


def is_address(text: str) -> bool:
    return "://" in text


def parse(address: str) -> Address:
    """The parts of an address. Never fails: where it is malformed, too much rather than too little counts as access."""
    base, *query = _QUERY.split(address, maxsplit=1)
    scheme, _, rest = base.partition("://")
    authority = rest.partition("/")[0]
    access = ""
    if "@" in authority:
        access, _, _ = authority.rpartition("@")
        rest = rest[len(access) + 1 :]
    elif ":" in authority and (scheme in _BUCKETS or not _HOST_AND_PORT.fullmatch(authority)):
        # A secret with a "/" that was not written as %2F ends the authority too early.
        access, _, rest = rest.rpartition("@") if "@" in rest else (authority, "", rest[len(authority) :])
    return Address(scheme, access, rest, "".join(query))


def shown(text: str) -> str:
    """A path or address as it may be shown: without credentials."""
    return parse(text).shown if is_address(text) else text


def shown_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command as they may be shown."""
    found: list[str] = []
    for each in arguments:
        flag, equals, _ = each.partition("=")
        if found and not each.startswith("-") and _SECRET_FLAG.fullmatch(found[-1]):
            found.append("***")
        else:
            found.append(f"{flag}=***" if equals and _SECRET_FLAG.fullmatch(flag) else shown(each))
    return found


def without_secrets(text: str) -> str:
    """Any text, such as another's error message, without the credentials of addresses in it and of the environment."""
    text = _IN_TEXT.sub(lambda found: shown(found[0]), text)
    for name in _SECRETS:
        if len(secret := os.environ.get(name, "")) >= 8:
            text = text.replace(secret, "***")
    return text


def filesystem_of(uri: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or address, and the path within it (absolute on a local disk)."""
    if not is_address(uri):
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(uri))
    address = parse(uri)
    if address.scheme not in _BUCKETS:
        return _open(str(address))
    bucket = _bucket(address.rest)
    if not bucket:
        raise StorageError(f"{address.shown}: names no bucket; write {address.scheme}://BUCKET/PATH")
    filesystem, _ = _open(str(address._replace(rest=bucket)))
    return filesystem, unquote(address.rest).rstrip("/")


def relative_path(path: str, start: str) -> str:
    """The path of an input as seen from a dataset, where both lie in one store, so that both may move together.

    Else where it lies: an absolute path, or an address in its shown form.
    """
    if not is_address(path) and not is_address(start):
        return os.path.relpath(os.path.abspath(os.path.expanduser(path)), os.path.abspath(os.path.expanduser(start)))
    if is_address(path) and is_address(start) and parse(path).same_store(parse(start)):
        return os.path.relpath("/" + parse(path).rest, "/" + parse(start).rest)
    return shown(path) if is_address(path) else os.path.abspath(os.path.expanduser(path))


def joined_path(start: str, path: str) -> str:
    """The way back from `relative_path`: what `path` is as seen from `start`."""
    if is_address(path) or os.path.isabs(path):
        return path
    if not is_address(start):
        return os.path.normpath(os.path.join(start, path))
    address = parse(start)
    return str(address._replace(rest=os.path.normpath(f"/{address.rest}/{path}").lstrip("/")))


def _bucket(rest: str) -> str:
    return rest.partition("/")[0]


def _shown_parameter(parameter: str) -> str:
    name, _, value = parameter.partition("=")
    return f"{name}={re.sub(r'[^/]*@', '', unquote(value))}" if name in _OPEN else f"{name}=***"


@lru_cache(maxsize=64)
def _open(uri: str) -> tuple[fs.FileSystem, str]:
    """One filesystem, and so one set of connections, for all that lies in one store."""
    address = parse(uri)
    given = str(address._replace(access=quote(address.access, safe=":%")))
    and_more = given + ("&" if address.query else "?")
    try:
        if address.scheme == "s3":
            # A small file goes up in one request instead of three. An older pyarrow does not know this, and a fault
            # of the address is told below.
            with contextlib.suppress(pa.ArrowInvalid):
                return fs.FileSystem.from_uri(f"{and_more}allow_delayed_open=true")
        elif address.scheme in _BUCKETS and "retry_limit_seconds=" not in address.query:
            # Without credentials it would try for a quarter of an hour.
            return fs.FileSystem.from_uri(f"{and_more}retry_limit_seconds={_GOOGLE_RETRIES}")
        return fs.FileSystem.from_uri(given)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(without_secrets(str(error).replace(given, address.shown)).split())
        raise StorageError(f"{address.shown}: cannot be opened ({reason}); check the address and the network") from None
