"""Errors of storage that name the place and the remedy."""

from __future__ import annotations

import errno
import re

from schemas.errors import UserError


class StorageError(UserError, OSError):
    """Storage failed for a reason that lasts: a full disk, no access, a file in the way."""

    then = "--resume"


class PassingError(OSError):
    """Storage failed for a reason that may pass, such as a network that is down. The message names the place."""


_IN_THE_WAY = "move it away, or choose another --output"
_ACCESS = "check the access rights"
_FAULTS = {
    errno.ENOSPC: ("no space is left on its disk", "free some, then go on with --resume"),
    errno.EDQUOT: ("the quota of disk space is used up", "free some, then go on with --resume"),
    errno.EROFS: ("its file system can only be read", "choose another --output, or mount it for writing"),
    errno.EACCES: ("permission denied", _ACCESS),
    errno.EPERM: ("permission denied", _ACCESS),
    errno.ENOTDIR: ("a file is where a folder should be", _IN_THE_WAY),
    errno.EEXIST: ("a file is where a folder should be", _IN_THE_WAY),
    errno.EISDIR: ("a folder is where a file should be", _IN_THE_WAY),
    errno.ENAMETOOLONG: ("the name is too long for its file system", "choose a shorter one"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n)"),
    errno.ENFILE: ("too many files are open", "raise the limit of this machine"),
}
_LATER = "when the cause is mended, go on with --resume"
_GONE = ("is gone", "bring it back and go on with --resume, or start again with --overwrite")

_STORE_FAULTS = {
    "NO_SUCH_BUCKET": ("the bucket does not exist", "make it, or add ?allow_bucket_creation=true to the address"),
    "ACCESS_DENIED": ("access denied", "check the credentials (docs/operations.md) and what they allow"),
    "INVALID_ACCESS_KEY_ID": ("the access key is unknown", "check the credentials (docs/operations.md)"),
    "INVALID_CLIENT_TOKEN_ID": ("the access key is unknown", "check the credentials (docs/operations.md)"),
    "SIGNATURE_DOES_NOT_MATCH": ("the secret key is wrong", "check the credentials (docs/operations.md)"),
    "MISSING_AUTHENTICATION_TOKEN": ("no credentials are given", "see docs/operations.md"),
    "HTTP status 403": ("access denied", "check the credentials (docs/operations.md) and what they allow"),
    "PERMISSION_DENIED": ("access denied", "check the credentials (docs/operations.md) and what they allow"),
    "OAuth2 access token": ("no credentials are given", "see docs/operations.md"),
    "UNAUTHENTICATED": ("no credentials, or none that are valid", "see docs/operations.md"),
}
"""By a word in the messages of pyarrow's S3 and Google Cloud filesystems, whose errors have no number."""


def storage_error(error: OSError, place: str = "", *, final: bool = False) -> StorageError | None:
    """The StorageError for an error of storage.

    None if trying again may help (a network that is down, a busy server), or if a file is missing, for which callers
    may have a better message. `final`: nobody tries again, so there is always a StorageError.
    """
    if isinstance(error, StorageError):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, PassingError):
        return StorageError(f"{text}; {_LATER}") if final else None
    found = _FAULTS.get(error.errno or 0)
    if found is None and error.errno is None:
        found = next((fault for word, fault in _STORE_FAULTS.items() if re.search(rf"\b{word}\b", text)), None)
    if found is None and final:
        found = _GONE if error.errno == errno.ENOENT else (f"failed ({text})", _LATER)
    if found is None:
        return None
    problem, remedy = found
    return StorageError(f"{place or _place(error, text)}: {problem}; {remedy}")


def _place(error: OSError, text: str) -> str:
    """The file that an error names."""
    if error.filename is not None:
        return str(error.filename)
    named = re.search(r"'([^']+)'", text)
    return named[1] if named else "storage"
