"""SQL dumps of MediaWiki's tables: every title is read, however it is written and cut; all damage is found."""

from __future__ import annotations

import gzip
import itertools
import re
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from pyarrow import fs

from schemas.errors import UserError
from transforms.sources import sql_tables, streams
from transforms.sources.sql_tables import FACTS, NotRows, SqlTable, cut_rows, open_table, read_facts

LOCAL = fs.LocalFileSystem()

COLUMNS = {
    "page": "page_id page_namespace page_title page_is_redirect page_is_new page_random page_touch page_len page_lang",
    "redirect": "rd_from rd_namespace rd_title rd_interwiki rd_fragment",
    "page_props": "pp_page pp_propname pp_value pp_sortkey",
}


def dump(table: str, *statements: str, columns: str = "", database: str = "enwiki", end: bool = True) -> str:
    """A dump as mysqldump writes it; a statement is what follows VALUES, with its blank."""
    lines = "\n".join(f"  `{each}` varbinary(255) NOT NULL DEFAULT ''," for each in (columns or COLUMNS[table]).split())
    inserts = "".join(f"INSERT INTO `{table}` VALUES{each};\n" for each in statements)
    return f"""\
-- MySQL dump 10.19  Distrib 10.3.38-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: db1206    Database: {database}
-- ------------------------------------------------------
-- Server version\t10.4.26-MariaDB-log

/*!40101 SET NAMES utf8mb4 */;

--
-- Table structure for table `{table}`
--

DROP TABLE IF EXISTS `{table}`;
/*!40101 SET character_set_client = utf8 */;
CREATE TABLE `{table}` (
{lines}
  PRIMARY KEY (`x_id`),
  KEY `y` (`z`,`x`)
) ENGINE=InnoDB AUTO_INCREMENT=73605411 DEFAULT CHARSET=binary;

/*!40000 ALTER TABLE `{table}` DISABLE KEYS */;
{inserts}""" + (
        f"/*!40000 ALTER TABLE `{table}` ENABLE KEYS */;\n\n-- Dump completed on 2023-05-01 15:36:37\n" if end else ""
    )


def write(folder: Path, text: str | bytes, name: str = "enwiki-20230501-some.sql") -> str:
    path = folder / name
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(path)


def facts(path: str, **options: int) -> list[tuple[object, ...]]:
    """Each fact, without its empty columns."""
    tables = list(read_facts(LOCAL, open_table(LOCAL, path), **options))
    assert all(each.schema == FACTS for each in tables)
    rows = pa.concat_tables([FACTS.empty_table(), *tables]).to_pylist()
    assert all(value is not None for row in rows for value in row.values())
    return [tuple(each.values()) for each in rows]


def page(page_id: int, title: str, *, is_page: bool = True) -> tuple[object, ...]:
    return (page_id, title, 0, False, "", is_page, "")


def target(page_id: int, title: str, section: str = "") -> tuple[object, ...]:
    return (page_id, "", 0, False, title, False, section)


def test_pages(tmp_path: Path):
    text = dump(
        "page",
        " (10,0,'AccessibleComputing',1,0,0.33167112649574004,'20230401080435',111,NULL),"
        "(12,0,'Anarchism',0,0,0.786,'20230401080435',109,NULL),"
        "(13,1,'Anarchism',0,0,1e-05,'20230401080435',109,NULL),"
        "(25,10,'Citation_needed',0,0,0.1,'20230401080435',109,NULL)",
        " (290,0,'A',0,0,0.5,'20230401080435',7,NULL)",
        " (301,0,'Who\\'s_Afraid_of_(1,0,\\'a\\');_\\\"b\\\"\\\\',0,0,0.5,'',7,'en')",
    )
    path = write(tmp_path, text)
    assert open_table(LOCAL, path) == SqlTable(
        path, "enwiki-20230501-some.sql", "page", "enwiki", tuple(COLUMNS["page"].split())
    )
    assert facts(path) == [
        page(10, "AccessibleComputing", is_page=False),
        page(12, "Anarchism"),
        page(290, "A"),
        page(301, "Who's Afraid of (1,0,'a'); \"b\"\\"),
    ]


def test_redirects(tmp_path: Path):
    rows = (
        " (1,0,'A_b','',''),(2,0,'C',NULL,NULL),(3,0,'D','fr',''),(4,4,'E','',''),"
        "(5,0,'F','','Its_\\'part\\''),(6,0,_binary 'G',_binary '',_binary 'x')"
    )
    assert facts(write(tmp_path, dump("redirect", rows))) == [
        target(1, "A b"),
        target(2, "C"),
        target(5, "F", "Its 'part'"),
        target(6, "G", "x"),
    ]
    old = dump("redirect", " (1,0,'A'),(2,1,'B')", columns="rd_from rd_namespace rd_title")
    assert facts(write(tmp_path, old)) == [target(1, "A")]


def test_page_properties(tmp_path: Path):
    rows = (
        " (1,'wikibase_item','Q42',NULL),(1,'defaultsort','Q1, (a)',NULL),(2,'disambiguation','',NULL),"
        "(2,'wikibase_item',_binary 'Q123456789012',NULL),(3,'page_image_free','wikibase_item',1.5),"
        "(4,_binary 'disambiguation',_binary '',NULL),(5,'templatedata','\\x1f\\0\\Z\\n\\'\\\\',NULL),(6,'x',NULL,NULL)"
    )
    assert facts(write(tmp_path, dump("page_props", rows))) == [
        (1, "", 42, False, "", False, ""),
        (2, "", 0, True, "", False, ""),
        (2, "", 123456789012, False, "", False, ""),
        (4, "", 0, True, "", False, ""),
    ]


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("'A'", "A"),
        ("'A_b_c'", "A b c"),
        ("'Köln_日本'", "Köln 日本"),
        ("'O\\'Brien'", "O'Brien"),
        ("'O''Brien'''", "O'Brien'"),
        (r"'\"Heroes\"'", '"Heroes"'),
        (r"'a\\'", "a\\"),
        (r"'a\\\'b\\\\'", "a\\'b\\\\"),
        (r"'a\nb\rc\td\0e\Zf\bg'", "a\nb\rc\td\0e\x1af\bg"),
        (r"'a\%b\cd'", r"a\%bcd"),
        ("'a\nb;\nc'", "a\nb;\nc"),
        ("'(1,0),(2,0);'", "(1,0),(2,0);"),
        ("_binary 'A'", "A"),
        ("''", ""),
        ("NULL", ""),
    ],
)
def test_how_a_string_is_written(tmp_path: Path, written: str, title: str):
    rows = f" (1,0,'x','',''),(2,0,{written},'',''),(3,0,'y','','')"
    assert facts(write(tmp_path, dump("redirect", rows))) == [target(1, "x"), target(2, title), target(3, "y")]


@pytest.mark.parametrize(
    "statement",
    [
        "\n(1,0,'a','',''),\n(2,0,'b','','')",
        "\r\n(1,0,'a','','')\r\n".replace(")\r\n", ")") + ", \r\n\t(2,0,'b','','')",
        "(1,0,'a','',''),(2,0,'b','','')",
    ],
)
def test_rows_on_lines_of_their_own(tmp_path: Path, statement: str):
    assert facts(write(tmp_path, dump("redirect", statement))) == [target(1, "a"), target(2, "b")]


def test_columns_of_the_statement_count(tmp_path: Path):
    text = dump("redirect", " (1,0,'a','','')").replace(
        "`redirect` VALUES (1,0,'a','','')", "`redirect` (`rd_title`, `rd_from`,`rd_namespace`) VALUES ('a',7,0)"
    )
    assert facts(write(tmp_path, text)) == [target(7, "a")]


def test_a_table_without_rows(tmp_path: Path):
    path = write(tmp_path, dump("page"))
    assert list(read_facts(LOCAL, open_table(LOCAL, path))) == []


@pytest.mark.parametrize("name", ["dewiki-latest-page.sql.gz", "dewiki-20240101-page.sql"])
def test_the_wiki_by_the_files_name(tmp_path: Path, name: str):
    text = re.sub("-- Host.*\n", "", dump("page"))
    assert open_table(LOCAL, write(tmp_path, text, name)).source == "dewiki"
    with pytest.raises(UserError, match=r"'.*page\.sql' does not name its wiki; rename it to"):
        open_table(LOCAL, write(tmp_path, text, "page.sql"))


def escaped(text: str) -> str:
    """Escaped as by mysql_real_escape_string."""
    return "".join(
        {"\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"}.get(c, f"\\{c}" if c in "\\'\"" else c) for c in text
    )


TITLES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\\'\"(),;\n\0\x1aQ_ "), max_size=12)


@examples(30)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 10**10), TITLES, TITLES, st.sampled_from("01")), min_size=1), max_size=4
    ),
    st.sampled_from([" ", "\n"]),
    st.integers(1, 300),
    st.integers(1, 5),
)
def test_any_titles_and_cuts(tmp_path_factory, statements, blank, size, batch_rows):
    """For any titles, any sizes of pieces, and any number of rows in a batch."""
    written = [
        blank + ("," + blank.strip(" ")).join(f"({n},{ns},'{escaped(a)}','','{escaped(b)}')" for n, a, b, ns in rows)
        for rows in statements
    ]
    path = write(tmp_path_factory.mktemp("dump"), dump("redirect", *written))
    wanted = [
        target(n, title.replace("_", " "), section.replace("_", " "))
        for rows in statements
        for n, title, section, ns in rows
        if ns == "0"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", size)
        patch.setattr(sql_tables, "WINDOW", size)
        found = list(read_facts(LOCAL, open_table(LOCAL, path), batch_rows=batch_rows))
    assert [each.num_rows for each in found[:-1]] == [batch_rows] * (len(found) - 1)
    assert [tuple(row.values()) for each in found for row in each.to_pylist()] == wanted


@examples(150)
@given(st.lists(st.tuples(TITLES, TITLES), min_size=1, max_size=5), st.data())
def test_rows_of_any_beginning(rows, data):
    """The beginning of a statement gives its whole rows, no others, and no error."""
    texts = [f"('{escaped(a)}',_binary '{escaped(b)}',NULL)".encode() for a, b in rows]
    statement = b",".join(texts) + b";"
    length = data.draw(st.integers(0, len(statement)))
    cut = cut_rows(statement[:length], columns=3)
    ends = [len(b",".join(texts[:n])) + 1 for n in range(1, len(texts) + 1)]
    whole = [end for end in ends if end <= length]
    assert len(cut.edges) == len(whole)
    assert cut.end == (whole[-1] if whole else 0)
    assert cut.closed == (length == len(statement))
    for row, edges in zip(texts, cut.edges.tolist(), strict=False):
        assert b",".join(statement[a + 1 : b] for a, b in itertools.pairwise(edges)) == row[1:-1]


@pytest.mark.parametrize(
    ("rows", "at"),
    [
        (b"(1,2),(3),(4,5);", 6),
        (b"(1,2),(3,4,5),(4,5);", 6),
        (b"(1,2),x(3,4);", 6),
        (b"(1,2)(3,4);", 0),
        (b"(1,2),(3,4", None),
        (b"(1,'a),(2,'b,c,d'),(3,'c');", 0),
        (b"(1,2),;", 6),
        (b"(1,2);(", None),
        (b"1,2),(3,4);", 0),
    ],
)
def test_what_is_no_row(rows: bytes, at: int | None):
    if at is None:
        assert cut_rows(rows, columns=2).end
    else:
        with pytest.raises(NotRows) as error:
            cut_rows(rows, columns=2)
        assert error.value.at == at


def refusal(path: str) -> str:
    """The error, without the folder of the file."""
    with pytest.raises(UserError) as error:
        facts(path)
    message = str(error.value)
    assert message.startswith(repr(path))
    assert "\n" not in message
    return message.removeprefix(repr(path) + " ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not an SQL dump of a table: it does not begin with a CREATE TABLE"),
        ("<mediawiki>", "is not an SQL dump of a table"),
        (
            dump("pagelinks", columns="pl_from"),
            "holds the table 'pagelinks', not page, redirect, page_props; give <wiki>",
        ),
        (
            dump("page", columns="page_id page_title"),
            "has no column 'page_namespace' in its table 'page', which MediaWiki's has",
        ),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, message: str):
    assert refusal(write(tmp_path, text)).startswith(message)


def test_a_missing_file(tmp_path: Path):
    assert refusal(str(tmp_path / "none.sql")) == "does not exist; check the name"


ROWS = " (1,0,'a','',''),(2,0,'b','','')"


@pytest.mark.parametrize(
    ("old", "new", "what", "where"),
    [
        ("(2,0,'b'", "(2,0,b", "holds no string in 'rd_title'", "b,'"),
        ("(2,0,'b'", "(x,0,'b'", "holds no number in 'rd_from'", "x,"),
        ("(2,0,'b'", "(2,'b'", "holds no row of 5 values where one should begin,", "(2"),
        ("(2,0,'b'", "(2,0,'b'c'd'", "holds a quote that nothing escapes in 'rd_title'", "b'c"),
        ("(1,0,'a','',''),", "(1,0,'a','','')", "holds no row of 5 values where one should begin,", "(1,0"),
        (");\n/*", ")\n/*", "holds no row of 5 values where one should begin,", "(2"),
        ("INSERT INTO", "INSERF INTO", "holds a line that no dump has", "INSERF"),
        ("` VALUES", "` VALUEX", "holds a line that no dump has", "INSERT"),
    ],
)
def test_damage(tmp_path: Path, old: str, new: str, what: str, where: str):
    good = dump("redirect", ROWS)
    damaged = good.replace(old, new)
    assert damaged != good
    byte = damaged.index(where, damaged.index("DISABLE KEYS"))
    assert refusal(write(tmp_path, damaged)) == f"{what} at byte {byte:,}; fetch it again"


def test_bytes_that_are_no_utf8(tmp_path: Path):
    data = dump("redirect", ROWS).encode().replace(b"'b'", b"'\xff'")
    byte = data.index(b"\xff")
    wanted = f"holds bytes that are not UTF-8 in 'rd_title' at byte {byte:,}; fetch it again"
    assert refusal(write(tmp_path, data)) == wanted


def test_rows_of_another_table(tmp_path: Path):
    text = dump("redirect", ROWS) + dump("page", " (1,2)")
    assert refusal(write(tmp_path, text)).startswith("holds rows of 'page' besides those of 'redirect'; dump each")


def test_no_wikidata_id(tmp_path: Path):
    text = dump("page_props", " (1,'wikibase_item','42',NULL)")
    assert refusal(write(tmp_path, text)).startswith("holds no Wikidata id in 'pp_value' at byte")


@pytest.mark.parametrize("cut", [2, 3, 10, 30])
def test_a_dump_that_ends_inside_a_statement(tmp_path: Path, cut: int):
    text = dump("redirect", ROWS, end=False)[:-cut]
    assert refusal(write(tmp_path, text)) == f"ends inside a statement at byte {len(text):,}; fetch it again"


@pytest.mark.parametrize("cut", [20, 60, 100])
def test_a_dump_that_ends_early(tmp_path: Path, cut: int):
    """Also after a statement, where compressed data, if any, is whole."""
    text = dump("redirect", ROWS, ROWS, end=False)
    assert "rows may be missing, at byte" in refusal(write(tmp_path, text))
    assert "rows may be missing, at byte" in refusal(write(tmp_path, text, "enwiki-20230501-redirect.sql.gz"))
    assert refusal(write(tmp_path, text[:-cut])).endswith("; fetch it again")


def test_every_cut_of_a_compressed_dump_is_an_error(tmp_path: Path):
    data = gzip.compress(dump("redirect", ROWS).encode())
    for length in range(0, len(data) - 1, 7):
        path = tmp_path / "enwiki-20230501-redirect.sql.gz"
        path.write_bytes(data[:length])
        message = refusal(str(path))
        assert "fetch it again" in message or "not an SQL dump" in message
        assert "--on-corrupt" not in message


def test_the_byte_in_a_compressed_dump_is_that_of_the_file(tmp_path: Path):
    path = write(tmp_path, dump("redirect", " (1,0,'a')"), "a.sql.gz")
    assert refusal(path) == "holds no row of 5 values where one should begin, at byte 0; fetch it again"


def test_a_row_without_end(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sql_tables, "MAX_ROW", 1 << 20)
    text = dump("redirect", " (1,0,'" + "a" * (3 << 20))
    assert "holds a row of more than 1 MB at byte" in refusal(write(tmp_path, text))


def test_long_statements_in_many_windows(tmp_path: Path):
    rows = ",".join(f"({n},{n % 3},'T\\'{n}_,(','','')" for n in range(1, 60_000))
    path = write(tmp_path, dump("redirect", " " + rows, " " + rows), "enwiki-20230501-redirect.sql.gz")
    assert facts(path) == [target(n, f"T'{n} ,(") for n in range(3, 60_000, 3)] * 2


@examples(100)
@given(st.sampled_from(sorted(COLUMNS)), st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), max_size=4))
def test_mutated_dumps_are_read_or_refused(tmp_path_factory, table, changes):
    rows = {
        "page": " (10,0,'A\\'b',1,0,0.33,'20230401080435',111,NULL),(12,0,'C',0,0,0.7,'',1,NULL)",
        "redirect": ROWS,
        "page_props": " (1,'wikibase_item','Q42',NULL),(2,'disambiguation','',NULL)",
    }
    data = bytearray(dump(table, rows[table], rows[table]).encode())
    for place, byte in changes:
        data[int(place * len(data))] = byte
    path = write(tmp_path_factory.mktemp("dump"), bytes(data))
    with suppress(UserError):
        assert len(facts(path)) <= 4
