"""Addresses of storage (`s3://`, `gs://`, `file://`): their parts and their filesystems.

    s3://bucket/corpora/wiki?region=eu-west-1&endpoint_override=...
         rest                query

Credentials come from the environment or a profile. In an address they could be read in the list of processes, a shell's
history, a manifest or a job's web page. So `parse` refuses them, and every address passes through it before it is used,
written or printed.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from schemas.storage.errors import StorageError

if TYPE_CHECKING:
    from pyarrow import fs

_QUERY = re.compile(r"\?(?=[A-Za-z_][\w.-]*=)")  # "?" alone is a wildcard
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_HOST_AND_PORT = re.compile(r"[^:]*(?::\d*)?|\[[0-9A-Fa-f:.]*\](?::\d*)?")
_OPEN = frozenset(
    """
    allow_bucket_creation allow_bucket_deletion allow_delayed_open default_bucket_location endpoint_override project_id
    region retry_limit_seconds scheme smart_defaults tls_ca_dir_path tls_ca_file_path tls_verify_certificates
    """.split()
)
"""Query parameters that are not secrets."""

_BUCKETS = ("s3", "gs", "gcs")
"""Schemes whose addresses begin with a bucket."""

_GOOGLE_RETRIES = 60  # seconds

_REMEDY = (
    "give them in the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS) or "
    "in a profile (AWS_PROFILE); see docs/operations.md"
)

_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID")


class Address(NamedTuple):
    """The parts of an address. `rest` is bucket and path, percent-encoded as given; `query` has no "?".

    `anonymous`: it has "anonymous@" before the bucket, so no credentials are needed.
    """

    scheme: str
    anonymous: bool
    rest: str
    query: str

    def __str__(self) -> str:
        access = "anonymous@" if self.anonymous else ""
        return f"{self.scheme}://{access}{self.rest}" + (f"?{self.query}" if self.query else "")

    def same_store(self, other: Address) -> bool:
        """Whether both are in the same bucket, with the same scheme and parameters."""
        return self._replace(rest=_bucket(self.rest)) == other._replace(rest=_bucket(other.rest))


def is_address(text: str) -> bool:
    return "://" in text


def parse(address: str) -> Address:
    """The parts of an address. StorageError, which does not show them, if it has or may have credentials.

    If it is malformed, everything that may be a secret counts as one.
    """
    base, *query = _QUERY.split(address, maxsplit=1)
    scheme, _, rest = base.partition("://")
    bare = rest.removeprefix("anonymous@")
    authority = bare.partition("/")[0]
    is_odd = ":" in authority and (scheme in _BUCKETS or not _HOST_AND_PORT.fullmatch(authority))
    if "@" in authority or is_odd:
        # A secret may contain a "/" or "?" that is not percent-encoded. With several "@" it is unclear where it ends.
        place = _QUERY.split(address.partition("@")[2])[0] if address.count("@") == 1 else "***"
        raise StorageError(f"{scheme}://{place}: credentials do not belong in an address; {_REMEDY}")
    kept = Address(scheme, bare != rest, bare, "")
    parameters = [each.partition("=") for each in re.split("[&?]", "".join(query)) if each]
    for name, _, value in parameters:
        if name not in _OPEN or (name == "endpoint_override" and "@" in unquote(value)):
            named = name if _NAME.fullmatch(name) else "***"
            raise StorageError(
                f"{kept}: the parameter {named} may hold credentials, which do not belong in an address; {_REMEDY}"
            )
    # Written in one way, so that addresses can be compared.
    kept_query = "&".join(f"{name}={quote(unquote(value), safe='/:+')}" for name, _, value in parameters)
    return kept._replace(query=kept_query)


def checked_arguments(arguments: Sequence[str] | None = None) -> list[str]:
    """The arguments of a command, by default of this process; to be called before a message repeats one.

    StorageError if an address among them has credentials.
    """
    found = sys.argv[1:] if arguments is None else list(arguments)
    for address in _IN_TEXT.findall("\n".join(found)):
        parse(address)
    return found


def without_secrets(text: str) -> str:
    """A text, such as a library's error message, without the credentials of the environment."""
    for name in _SECRETS:
        if len(secret := os.environ.get(name, "")) >= 8:
            text = text.replace(secret, "***")
    return text


def filesystem_of(uri: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or address, and the path within it (absolute on a local disk)."""
    from pyarrow import fs

    if not uri.strip():  # otherwise it would be the current folder
        raise StorageError("an empty path: name a file or a folder")
    if not is_address(uri):
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(uri))
    address = parse(uri)
    if address.scheme not in _BUCKETS:
        return _open(str(address), os.getpid())
    bucket = _bucket(address.rest)
    if not bucket:
        raise StorageError(f"{address}: names no bucket; write {address.scheme}://BUCKET/PATH")
    filesystem, _ = _open(str(address._replace(rest=bucket)), os.getpid())
    return filesystem, unquote(address.rest).rstrip("/")


def relative_path(path: str, start: str) -> str:
    """The path of an input relative to a dataset if both are in one store, so that both can be moved together.

    Otherwise an absolute path, or an address.

    >>> relative_path("s3://corpora/wiki/a.xml", "s3://corpora/out/contexts")
    '../../wiki/a.xml'
    """
    if not is_address(path) and not is_address(start):
        return os.path.relpath(os.path.abspath(os.path.expanduser(path)), os.path.abspath(os.path.expanduser(start)))
    if is_address(path) and is_address(start) and parse(path).same_store(parse(start)):
        return os.path.relpath("/" + parse(path).rest, "/" + parse(start).rest)
    return str(parse(path)) if is_address(path) else os.path.abspath(os.path.expanduser(path))


def joined_path(start: str, path: str) -> str:
    """The inverse of `relative_path`: the path or address of what is at `path` relative to `start`."""
    if is_address(path) or os.path.isabs(path):
        return path
    if not is_address(start):
        return os.path.normpath(os.path.join(start, path))
    address = parse(start)
    return str(address._replace(rest=os.path.normpath(f"/{address.rest}/{path}").lstrip("/")))


def _bucket(rest: str) -> str:
    return rest.partition("/")[0]


@lru_cache(maxsize=64)
def _open(uri: str, process: int) -> tuple[fs.FileSystem, str]:
    """One filesystem, and so one set of connections, for each store and process: a forked one must not share them."""
    import pyarrow as pa
    from pyarrow import fs

    address = parse(uri)
    and_more = uri + ("&" if address.query else "?")
    try:
        if address.scheme == "s3":
            # With this a small file is uploaded in one request instead of three. Older pyarrow refuses it; errors in
            # the address are reported below.
            with contextlib.suppress(pa.ArrowInvalid):
                return fs.FileSystem.from_uri(f"{and_more}allow_delayed_open=true")
        elif address.scheme in _BUCKETS and "retry_limit_seconds=" not in address.query:
            # Without credentials it would retry for 15 minutes.
            return fs.FileSystem.from_uri(f"{and_more}retry_limit_seconds={_GOOGLE_RETRIES}")
        return fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        remedy = "check the address and the network"
        if "Unrecognized filesystem type" in reason:
            fetch = f"fetch the file first (curl -LO {uri}); " if address.scheme in ("http", "https", "ftp") else ""
            remedy = f"{fetch}addresses of storage begin with s3://, gs:// or file://"
        raise StorageError(f"{uri}: cannot be opened ({reason}); {remedy}") from None
