"""MediaWiki's tables page, redirect and page_props, from the SQL dumps that mysqldump and mariadb-dump write.

    enwiki-20240101-page.sql.gz: INSERT INTO `page` VALUES (10,0,'AccessibleComputing',1,...),(12,0,'Anarchism',0,...);

Statements are long (1-16 MB) and rows short, so bytes are read in windows and a whole window is cut into rows at once:
one pass finds the quotes, backslashes, commas and brackets, the rest works on these places only. Each row must have as
many values as the table has columns. Only the wanted rows and columns become strings and numbers.

Every defect is a UserError: no part of a damaged table is used, because links would lead to wrong pages.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from schemas.errors import UserError
from transforms.arrays import I64, U8, slice_strings
from transforms.sources.lines import is_plain
from transforms.sources.streams import REMEDY, Damaged, chunks, read_head

Bools = npt.NDArray[np.bool_]

FACTS = pa.schema(
    [
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("title", pa.string(), nullable=False),  # "" where this table does not say
        pa.field("entity", pa.int64(), nullable=False),  # the number of its Wikidata id, 0 where this table says none
        pa.field("disambiguation", pa.bool_(), nullable=False),
        pa.field("target_title", pa.string(), nullable=False),  # where a redirect points to, else ""
        pa.field("is_page", pa.bool_(), nullable=False),  # known to be an article, not a redirect
        pa.field("section", pa.string(), nullable=False),  # of the page that a redirect points to, else ""
    ]
)
"""What one row of a table says about a page. The facts of several tables are joined on page_id."""

NEEDED = {
    "page": ("page_id", "page_namespace", "page_title", "page_is_redirect"),
    "redirect": ("rd_from", "rd_namespace", "rd_title"),
    "page_props": ("pp_page", "pp_propname", "pp_value"),
}
"""The tables that are read, each with the columns it must have."""

WINDOW = 1 << 18  # bytes cut into rows at once
MAX_ROW = 1 << 26  # bytes; a value has at most 16 MB, and each byte can be escaped
_MAX_LINE = 1 << 16  # bytes between statements
_FETCH = "fetch it again"
_DUMP = "give <wiki>-<date>-page.sql.gz, -redirect.sql.gz or -page_props.sql.gz of dumps.wikimedia.org"


class SqlTable(NamedTuple):
    """A dump of one table. `name` is the file's stable name, `source` the wiki's database name ("enwiki")."""

    path: str
    name: str
    table: str
    source: str
    columns: tuple[str, ...]


_CREATE = re.compile(rb"^CREATE TABLE (?:IF NOT EXISTS )?`?(\w+)`? *\(\s*\n(.*?)\n\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(rb"^\s*`(\w+)` ", re.MULTILINE)
_DATABASE = re.compile(rb"^-- Host:.*Database: *([\w-]+)[ \t\r]*$", re.MULTILINE)
_FILE_NAME = re.compile(r"(\w+)-(?:\d{8}|latest)-")


def open_table(filesystem: fs.FileSystem, path: str) -> SqlTable:
    """The table in a dump, by the dump's head. Raises UserError if it is none of the three, or is damaged."""
    try:
        head = read_head(filesystem, path)
    except Damaged as damaged:
        raise _unusable(damaged) from None
    except FileNotFoundError:
        raise UserError(f"{path!r} does not exist; check the name") from None
    name = posixpath.basename(path)
    created = _CREATE.search(head)
    if created is None:
        raise UserError(f"{path!r} is not an SQL dump of a table: it does not begin with a CREATE TABLE; {_DUMP}")
    table = created[1].decode()
    if table not in NEEDED:
        raise UserError(f"{path!r} holds the table {table!r}, not {', '.join(NEEDED)}; {_DUMP}")
    columns = tuple(each.decode() for each in _COLUMN.findall(b"\n" + created[2]))
    _check_columns(path, table, columns)
    database = _DATABASE.search(head)
    named = _FILE_NAME.match(name)
    if not database and not named:
        raise UserError(f"{path!r} does not name its wiki; rename it to <wiki>-<date>-{table}.sql.gz")
    source = database[1].decode() if database else named[1] if named else ""
    return SqlTable(path, name, table, source, columns)


def read_facts(filesystem: fs.FileSystem, table: SqlTable, *, batch_rows: int = 1 << 17) -> Iterator[pa.Table]:
    """What a table says about pages (FACTS), in order of the file, in batches of `batch_rows` rows.

    page: the pages of namespace 0; redirect: targets in namespace 0 of the same wiki; page_props: Wikidata ids and
    disambiguation pages, of any namespace. Raises UserError if the file is damaged.
    """
    waiting = FACTS.empty_table()
    for facts in _facts(filesystem, table):
        waiting = pa.concat_tables([waiting, facts])
        while waiting.num_rows >= batch_rows:
            yield waiting.slice(0, batch_rows).combine_chunks()
            waiting = waiting.slice(batch_rows)
    if waiting.num_rows:
        yield waiting.combine_chunks()


def _facts(filesystem: fs.FileSystem, table: SqlTable) -> Iterator[pa.Table]:
    read = {"page": _pages, "redirect": _redirects, "page_props": _properties}[table.table]
    try:
        reader = _Reader(table, exact=is_plain(filesystem, table.path))
        for stored, data in chunks(filesystem, table.path):
            yield from map(read, reader.add(stored, data))
        yield from map(read, reader.finish(filesystem.get_file_info(table.path).size))
    except Damaged as damaged:
        raise _unusable(damaged) from None


def _unusable(damaged: Damaged) -> UserError:
    return UserError(damaged.message.removesuffix(REMEDY) + _FETCH)


def _check_columns(path: str, table: str, columns: tuple[str, ...]) -> None:
    missing = [each for each in NEEDED[table] if each not in columns]
    if missing:
        raise UserError(f"{path!r} has no column {missing[0]!r} in its table {table!r}, which MediaWiki's has; {_DUMP}")


# ---- Bytes to rows


class Rows(NamedTuple):
    """Whole rows of a table: value c of row r is written `data[edges[r, c] + 1 : edges[r, c + 1]]`."""

    data: U8
    edges: I64  # [rows, columns + 1]
    end: int  # where these rows end in `data`
    closed: bool  # whether the statement ends there


class NotRows(Exception):
    """Bytes that are not rows of a table; the first wrong row begins at the byte `at`."""

    def __init__(self, at: int) -> None:
        self.at = at
        super().__init__(at)


_QUOTE, _BACKSLASH, _COMMA, _OPEN, _CLOSE, _END = b"'\\,();"
_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\r\n")] = True


def cut_rows(data: bytes | memoryview, *, columns: int) -> Rows:
    """The whole rows at the beginning of some bytes, up to the end of their statement. Raises NotRows.

    Rows are separated by commas, in newer dumps with blanks after them. The marks that count are outside of quotes: the
    bracket, the commas between values, the bracket, and the comma or ";" after it. The comma in 'b,c' does not count.

    >>> rows = cut_rows(b"(1,'a'),(2,'b,c');", columns=2)
    >>> rows.edges.tolist(), rows.end, rows.closed
    ([[0, 2, 6], [8, 10, 16]], 18, True)
    """
    raw = np.frombuffer(data, dtype=np.uint8)
    marks = raw - np.uint8(_QUOTE) <= _CLOSE - _QUOTE  # a quote or a bracket
    for mark in (_COMMA, _END, _BACKSLASH):
        marks |= raw == mark
    at = np.flatnonzero(marks)
    kind = raw[at]
    if (kind == _BACKSLASH).any():
        at, kind = _unescaped(at, kind)
    quote = kind == _QUOTE
    outside = (np.cumsum(quote) & 1) == 0
    outside &= ~quote
    at, kind = at[outside], kind[outside]
    width = columns + 2
    ends = np.flatnonzero(kind == _END)
    stop = int(ends[0]) + 1 if len(ends) else len(kind)
    rows = stop // width
    after = at[rows * width :]
    at, kind = at[: rows * width].reshape(rows, width), kind[: rows * width].reshape(rows, width)
    right = (kind[:, 0] == _OPEN) & (kind[:, 1:-2] == _COMMA).all(axis=1) & (kind[:, -2] == _CLOSE)
    right &= at[:, -1] == at[:, -2] + 1
    right &= (kind[:, -1] == _COMMA) | ((kind[:, -1] == _END) & (np.arange(rows) == rows - 1))
    begin = np.append(0, at[:-1, -1] + 1) if rows else np.zeros(0, dtype=np.int64)
    gap = at[:, 0] - begin
    joined = (gap == 0) | ((gap == 1) & _BLANK[raw[begin]])
    for row in np.flatnonzero(~joined & right).tolist():
        joined[row] = _BLANK[raw[begin[row] : at[row, 0]]].all()
    right &= joined
    if not right.all():
        raise NotRows(int(begin[np.argmin(right)]))
    if len(ends) and stop % width:
        raise NotRows(int(after[0]))
    end = int(at[-1, -1]) + 1 if rows else 0
    return Rows(raw, at[:, :-1], end, bool(len(ends)))


def _unescaped(at: I64, kind: U8) -> tuple[I64, U8]:
    """The marks without the backslashes and what they escape: of \\\\\\' (two escapes) nothing, of \\\\' the quote."""
    backslash = kind == _BACKSLASH
    places = at[backslash]
    # Every other backslash of a run escapes the byte after it, beginning with the first.
    first = np.ones(len(places), dtype=bool)
    first[1:] = places[1:] != places[:-1] + 1
    number = np.arange(len(places))
    escaping = (number - np.maximum.accumulate(np.where(first, number, 0))) % 2 == 0
    escaped = places[escaping] + 1
    kept = ~backslash
    index = np.searchsorted(at, escaped)
    index = index[(index < len(at)) & (at[np.minimum(index, len(at) - 1)] == escaped)]
    kept[index] = False
    return at[kept], kind[kept]


_BINARY = b"_binary "  # before strings of bytes, in newer dumps of MySQL
_STRING = re.compile(r"(?:[^\\']|\\.|'')*", re.DOTALL)  # between its quotes
_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_MOST_DIGITS = 18  # of a number of 64 bits


class _Block(NamedTuple):
    """Rows, and their values by the name of the column. The argument `rows` of a method has numbers of rows."""

    rows: Rows
    columns: tuple[str, ...]
    reader: _Reader

    def every(self) -> I64:
        return np.arange(len(self.rows.edges))

    def having(self, column: str, written: bytes) -> I64:
        """The rows whose value in a column is written like this."""
        return np.flatnonzero(self.are(column, self.every(), written))

    def are(self, column: str, rows: I64, *written: bytes) -> Bools:
        """Which of the rows have a value written in one of these ways."""
        start, end = self._spans(column, rows)
        found = np.zeros(len(rows), dtype=bool)
        for each in written:
            alike = np.flatnonzero(end - start == len(each))
            found[alike[self._at(start[alike], each)]] = True
        return found

    def numbers(self, column: str, rows: I64) -> I64:
        """Natural numbers."""
        return self._numbers(column, *self._spans(column, rows))

    def items(self, column: str, rows: I64) -> I64:
        """The numbers of Wikidata ids: 42 for 'Q42'."""
        start, end = self._strings(column, rows)
        self._must(column, (end > start) & (self.rows.data[start] == ord("Q")), start, "no Wikidata id")
        return self._numbers(column, start + 1, end)

    def titles(self, column: str, rows: I64) -> pa.StringArray:
        """Titles, with spaces for underscores as in documents."""
        start, end = self._strings(column, rows)
        texts = slice_strings(self.rows.data, start, end)
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            utf8 = np.array([_is_utf8(each) for each in texts.cast(pa.binary()).to_pylist()], dtype=bool)
            self._must(column, utf8, start, "bytes that are not UTF-8")
        # Escapes are written with a backslash or a second quote.
        marks = [pc.match_substring(texts, mark).to_numpy(zero_copy_only=False) for mark in ("\\", "'")]
        escaped = np.logical_or(*marks)
        if escaped.any():
            written = texts.filter(pa.array(escaped)).to_pylist()
            right = np.ones(len(rows), dtype=bool)
            right[escaped] = [_STRING.fullmatch(each) is not None for each in written]
            self._must(column, right, start, "a quote that nothing escapes")
            meant = [_ESCAPE.sub(_character, each) for each in written]
            texts = pc.replace_with_mask(texts, pa.array(escaped), pa.array(meant, pa.string()))
        return pc.replace_substring(texts, "_", " ")

    def _spans(self, column: str, rows: I64) -> tuple[I64, I64]:
        """Where the values of a column begin and end in the data."""
        number = self.columns.index(column)
        return self.rows.edges[rows, number] + 1, self.rows.edges[rows, number + 1]

    def _strings(self, column: str, rows: I64) -> tuple[I64, I64]:
        """Where the strings of a column begin and end, without quotes and `_BINARY`; NULL is an empty string."""
        data = self.rows.data
        start, end = self._spans(column, rows)
        start = start + len(_BINARY) * self._at(start, _BINARY)
        null = self.are(column, rows, b"NULL")
        quoted = (data[start] == _QUOTE) & (data[end - 1] == _QUOTE) & (end - start >= 2)
        self._must(column, quoted | null, start, "no string")
        return np.where(null, start, start + 1), np.where(null, start, end - 1)

    def _numbers(self, column: str, start: I64, end: I64) -> I64:
        length = end - start
        values = np.zeros(len(start), dtype=np.int64)
        right = (length > 0) & (length <= _MOST_DIGITS)
        for place in range(int(min(length.max(initial=0), _MOST_DIGITS))):
            digit = self.rows.data[np.minimum(start + place, end)].astype(np.int64) - ord("0")
            here = length > place
            right &= ~here | ((digit >= 0) & (digit <= 9))
            values = np.where(here, 10 * values + digit, values)
        self._must(column, right, start, "no number")
        return values

    def _at(self, start: I64, written: bytes) -> Bools:
        """Whether the data holds these bytes at each `start`."""
        data = self.rows.data
        found = np.ones(len(start), dtype=bool)
        for place, byte in enumerate(written):
            found[found] = data[np.minimum(start[found] + place, len(data) - 1)] == byte
        return found

    def _must(self, column: str, right: Bools, start: I64, instead: str) -> None:
        if not right.all():
            raise self.reader.damaged(f"holds {instead} in {column!r}", int(start[np.argmin(right)]))


def _character(escape: re.Match[str]) -> str:
    return _CHARACTERS.get(escape[1], escape[1]) if escape[1] else "'"


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_BETWEEN = re.compile(
    rb"\s*(?:$|--|/\*|#|\)|`"
    rb"|(?:PRIMARY|UNIQUE|FULLTEXT|KEY|INDEX|CONSTRAINT|CREATE|DROP|ALTER|LOCK|UNLOCK|SET|USE|START|BEGIN|COMMIT)\b)"
)
"""Lines between the statements that insert rows."""
_INSERTS = re.compile(rb"\s*(?:INSERT|REPLACE)\b")
_INSERT = re.compile(
    rb"\s*(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+`?(\w+)`?\s*(?:\(([\w`,\s]+)\)\s*)?VALUES\s*(?=\()"
)


class _Reader:
    """Cuts a stream of bytes into blocks of rows; has at most a window or a row of it in memory."""

    def __init__(self, table: SqlTable, *, exact: bool) -> None:
        self._table = table
        self._exact = exact  # a byte of the stream is a byte of the file
        self._bytes = b""
        self._position = 0  # of the first of these bytes in the stream
        self._wanted = WINDOW  # how many bytes to collect before they are read
        self._more: list[bytes] = []
        self._size = 0
        self._origins: deque[tuple[int, int]] = deque()  # position in the stream, offset in the file
        self._columns: tuple[str, ...] = ()  # of the current statement; () between statements
        self._begun = self._complete = False

    def add(self, stored: int, data: bytes) -> Iterator[_Block]:
        self._origins.append((self._position + len(self._bytes) + self._size, stored))
        self._more.append(data)
        self._size += len(data)
        if len(self._bytes) + self._size >= self._wanted:
            yield from self._look(last=False)

    def finish(self, size: int) -> Iterator[_Block]:
        """The blocks up to the end of the file, whose stored size is `size` bytes."""
        yield from self._look(last=True)
        if self._columns:
            raise self._error("ends inside a statement", size)
        if self._begun and not self._complete:
            raise self._error("ends before the end of its table, so rows may be missing,", size)

    def damaged(self, what: str, at: int) -> UserError:
        """An error at an offset in the current bytes."""
        return self._error(what, self._stored(self._position + at))

    def _error(self, what: str, byte: int) -> UserError:
        return UserError(f"{self._table.path!r} {what} at byte {byte:,}; {_FETCH}")

    def _look(self, *, last: bool) -> Iterator[_Block]:
        self._bytes = b"".join((self._bytes, *self._more))
        self._more, self._size = [], 0
        at = 0
        while at < len(self._bytes):
            if not self._columns:
                begin = self._find_statement(at, last=last)
            elif (rows := self._cut(at)) is not None:
                yield _Block(rows, self._columns, self)
                begin = at + rows.end
                self._columns = () if rows.closed else self._columns
            else:
                begin = at
            if begin == at:
                break
            # Errors in the values of a block count from the block's beginning.
            self._position += begin - at
            at = begin
        self._bytes = self._bytes[at:]
        while len(self._origins) > 1 and self._origins[1][0] <= self._position:
            self._origins.popleft()
        if self._columns and len(self._bytes) > MAX_ROW:
            raise self.damaged(f"holds a row of more than {MAX_ROW >> 20} MB", 0)
        self._wanted = max(WINDOW, 2 * len(self._bytes))

    def _cut(self, at: int) -> Rows | None:
        """The whole rows from a byte on; None if there are none."""
        view = memoryview(self._bytes)
        # Most statements end with a line, so look up to the end of the line first, and then at everything.
        near = min(at + WINDOW, len(view))
        line = self._bytes.find(b";\n", at, near) + 1
        for end in (line or near, len(view)):
            try:
                rows = cut_rows(view[at:end], columns=len(self._columns))
            except NotRows as wrong:
                what = f"holds no row of {len(self._columns)} values where one should begin,"
                raise self.damaged(what, wrong.at) from None
            if rows.end:
                return rows
            if end == len(view):
                break
        return None

    def _find_statement(self, at: int, *, last: bool) -> int:
        """Where the rows of the next statement begin, or else the first line that is not complete yet."""
        first = at
        while at < len(self._bytes):
            end = self._bytes.find(b"\n", at)
            if _INSERTS.match(self._bytes, at):
                if insert := _INSERT.match(self._bytes, at):
                    self._columns = self._columns_of(insert)
                    return insert.end()
                if last or len(self._bytes) - at > _MAX_LINE:
                    break
                return at
            if end < 0 and not last:
                if len(self._bytes) - at > _MAX_LINE:
                    break
                return at
            line = self._bytes[at : end if end >= 0 else len(self._bytes)]
            if not _BETWEEN.match(line):
                break
            self._begun = self._begun or b" DISABLE KEYS */" in line
            self._complete = self._complete or b" ENABLE KEYS */" in line or line.startswith(b"-- Dump completed")
            at += len(line) + 1
        else:
            return len(self._bytes)
        raise self.damaged("holds a line that no dump has", at - first)

    def _columns_of(self, insert: re.Match[bytes]) -> tuple[str, ...]:
        path, table = self._table.path, self._table.table
        if (name := insert[1].decode()) != table:
            raise UserError(f"{path!r} holds rows of {name!r} besides those of {table!r}; dump each table by itself")
        if not insert[2]:
            return self._table.columns
        columns = tuple(re.findall(r"\w+", insert[2].decode()))
        _check_columns(path, table, columns)
        return columns

    def _stored(self, position: int) -> int:
        if self._exact:
            return position
        origin = max((each for each in self._origins if each[0] <= position), default=self._origins[0])
        return origin[1]


# ---- Rows to facts


def _pages(block: _Block) -> pa.Table:
    rows = block.having("page_namespace", b"0")
    return _table(
        page_id=block.numbers("page_id", rows),
        title=block.titles("page_title", rows),
        is_page=block.are("page_is_redirect", rows, b"0"),
    )


def _redirects(block: _Block) -> pa.Table:
    rows = block.having("rd_namespace", b"0")
    if "rd_interwiki" in block.columns:
        rows = rows[block.are("rd_interwiki", rows, b"NULL", b"''", _BINARY + b"''")]
    target = {"target_title": block.titles("rd_title", rows)}
    if "rd_fragment" in block.columns:
        target["section"] = block.titles("rd_fragment", rows)
    return _table(page_id=block.numbers("rd_from", rows), **target)


def _properties(block: _Block) -> pa.Table:
    every = block.every()
    with_item, disambiguation = (
        block.are("pp_propname", every, name, _BINARY + name) for name in (b"'wikibase_item'", b"'disambiguation'")
    )
    entity = np.zeros(len(every), dtype=np.int64)
    entity[with_item] = block.items("pp_value", every[with_item])
    rows = np.flatnonzero(with_item | disambiguation)
    return _table(page_id=block.numbers("pp_page", rows), entity=entity[rows], disambiguation=disambiguation[rows])


def _table(*, page_id: I64, **known: pa.Array | npt.NDArray[np.generic]) -> pa.Table:
    """FACTS; columns that are not given are unknown."""
    nothing = np.zeros(len(page_id), dtype=np.int64)
    blank = pa.repeat("", len(page_id))
    columns = {
        "page_id": page_id,
        "title": blank,
        "entity": nothing,
        "disambiguation": nothing.astype(bool),
        "target_title": blank,
        "is_page": nothing.astype(bool),
        "section": blank,
        **known,
    }
    return pa.table(columns, schema=FACTS)
