"""Titles of a wiki's pages: one form for all the ways to write them, and their keys.

MediaWiki's rules decide which page a title names (mediawiki.org, "Manual:Page title" and "Manual:$wgLegalTitleChars").
Titles that MediaWiki refuses name nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from html.entities import html5
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.arrays import U64
from transforms.phrases.counting import phrase_keys
from transforms.sources.wikitext import capitalised

Strings: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[str]

MAX_BYTES = 255  # of a title in UTF-8
_KEYS_AT_ONCE = 1 << 16


# Keys


def title_keys(source: str | Strings, titles: Strings) -> tuple[U64, U64]:
    """The keys of titles: 128 bits of xxh3 over "<source>\\0<title>", as two 64-bit columns.

    `source` is the wiki's name, one for all titles or one for each.
    """
    return _keys(source, _array(titles))


def page_keys(source: str | Strings, page_ids: Strings | Sequence[int]) -> tuple[U64, U64]:
    """The keys of pages, over "<source>\\0<page id>"; ids are integers or strings of digits."""
    ids = page_ids if isinstance(page_ids, pa.Array | pa.ChunkedArray) else pa.array(page_ids)
    return _keys(source, pc.cast(ids, pa.string()))


def _keys(source: str | Strings, names: pa.Array | pa.ChunkedArray) -> tuple[U64, U64]:
    sources = source if isinstance(source, str) else _array(source)
    if not isinstance(sources, str) and len(sources) != len(names):
        raise ValueError(f"{len(sources)} sources of {len(names)} titles")
    parts = []
    for start in range(0, len(names), _KEYS_AT_ONCE):
        some = names.slice(start, _KEYS_AT_ONCE)
        of = sources if isinstance(sources, str) else sources.slice(start, _KEYS_AT_ONCE)
        parts.append(phrase_keys(pc.binary_join_element_wise(of, some, "\0")))
    hi, lo = zip(*parts, strict=True) if parts else ((), ())
    nothing = np.zeros(0, dtype=np.uint64)
    return np.concatenate([nothing, *hi]), np.concatenate([nothing, *lo])


def _array(strings: Strings) -> pa.Array | pa.ChunkedArray:
    return strings if isinstance(strings, pa.Array | pa.ChunkedArray) else pa.array(strings, pa.string())


# Forms

_PLAIN = re.compile(r"[A-Z0-9][A-Za-z0-9'(),-]*(?: [A-Za-z0-9'(),-]+)*")
_SCHEME = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_MOBILE = re.compile(r"(?<=\.)m\.")
_INDEX = re.compile(r"(?:.*/)?index\.php\?(?:.*&)?title=([^&#]*)(?:&[^#]*)?(#.*)?", re.DOTALL)
_PATH = re.compile(r"(?:\./|/wiki/)([^?#]*)(?:\?[^#]*)?(#.*)?", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));")
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e]")
_BLANKS = re.compile(r"[\s_\u180e]+")
_ILLEGAL = re.compile(r"[<>\[\]{}|\x00-\x1f\x7f\ufffd\ud800-\udfff]|~~~|%[0-9A-Fa-f]{2}|&[0-9A-Za-z\x80-\U0010ffff]+;")
_RELATIVE = re.compile(r"\.\.?(?:/.*)?|.*/\.\.?(?:/.*)?", re.DOTALL)


def normalise(title: str, capitalise: bool = True, *, prefixes: Collection[str] = frozenset(), host: str = "") -> str:
    """The title of an article in the wiki's own form; "" if `title` names no article.

    `title` is the target of a link, a path ("/wiki/A_b", "./A_b?action=edit"), or an address of the wiki at `host`
    ("https://en.wikipedia.org/wiki/A_b"). HTML entities and percent escapes are decoded, runs of underscores and white
    space become one space, the fragment is removed, and with `capitalise` the first letter becomes a capital.

    `prefixes` are the lower-case names of namespaces and other wikis: a title that begins with one names no article.
    Neither does an address of another host, an empty title, one of more than MAX_BYTES, or one with illegal characters.
    """
    if _PLAIN.fullmatch(title) and len(title) <= MAX_BYTES:  # most titles need none of the steps below
        return title
    if address := _SCHEME.match(title):
        found, _, path = title[address.end() :].partition("/")
        if not host or _MOBILE.sub("", found.lower()) != _MOBILE.sub("", host.lower()):
            return ""
        title = "/" + path
        if not (_INDEX.fullmatch(title) or _PATH.fullmatch(title)):
            return ""
    if form := _INDEX.fullmatch(title):
        title = form[1].replace("+", " ")
    elif form := _PATH.fullmatch(title):
        title = form[1]
    if _ESCAPE.search(title):
        try:
            title = unquote_to_bytes(title).decode()
        except UnicodeError:
            return ""
    if "&" in title:
        title = _ENTITY.sub(_character, title)
    title = unicodedata.normalize("NFC", _DIRECTION.sub("", title))
    title = _BLANKS.sub(" ", title).strip().removeprefix(":").lstrip()
    prefix, colon, _ = title.partition(":")
    if colon and prefix.strip().lower() in prefixes:
        return ""
    title = title.partition("#")[0].rstrip()
    if title.startswith(":") or _ILLEGAL.search(title) or _RELATIVE.fullmatch(title):
        return ""
    title = capitalised(title) if capitalise else title
    return title if len(title.encode()) <= MAX_BYTES else ""


def _character(entity: re.Match[str]) -> str:
    decimal, hexadecimal, name = entity.groups()
    if name:
        return html5.get(name + ";", entity[0])
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else entity[0]
