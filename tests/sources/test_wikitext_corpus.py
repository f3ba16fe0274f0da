"""WikiText: tokens made readable again, and articles however the file is split."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import fs

from schemas.terms import UNKNOWN_TOKEN
from transforms.sources.formats import InputFile
from transforms.sources.items import Corrupt, Document, Filtered, Item, Rejected
from transforms.sources.options import ReadOptions
from transforms.sources.wikitext_corpus import WIKITEXT_CORPUS, natural

LOCAL = fs.LocalFileSystem()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" red @-@ tipped , 1 @.@ 5 – 4 @.@ 9 lb or 1 @,@ 000 . ", "red-tipped, 1.5–4.9 lb or 1,000."),
        ('only becoming " lobster red " on cooking .', 'only becoming "lobster red" on cooking.'),
        ('( the " cutter " ) , " he said . "', '(the "cutter"), "he said."'),
        ("Bergman 's men 's team did n't , don 't , we 've", "Bergman's men's team did n't, don't, we've"),
        ("the Knights ' coach and the 1960s and ' 70s", "the Knights' coach and the 1960s and '70s"),
        ("defined the ' anti @-@ war ' concept", "defined the 'anti-war' concept"),
        ("a <unk> of <unk> , e.g. <unk> .", "a \ufffd of \ufffd, e.g. \ufffd."),
        ("57 ° 53 ′ N ( 32 ° C ) , − 80 ° F", "57°53′ N (32°C), −80°F"),
        ("US 131 / M ‑ 46 at 90 km / h", "US 131/M-46 at 90 km/h"),
        ("$ 25 @,@ 000 ( $ 4 million ) and £ 3", "$25,000 ($4 million) and £3"),
        ("a [ ... ] b ... c ?", "a [...] b... c?"),
        ("It isn ’ t ‘ so ’ , “ he said ” .", "It isn't 'so', \"he said\"."),
        ("A – B — Cod & Dab , J. C. W.", "A – B — Cod & Dab, J. C. W."),
        ("at 08 : 00 , 2 @.@ 39 : 1 and 1 : 10 ; <unk> 1994 : 169", "at 08:00, 2.39:1 and 1:10; \ufffd 1994: 169"),
        ("Chang 'an , K 'awiil , O 'Neil , d 'état , '80s", "Chang'an, K'awiil, O'Neil, d'état, '80s"),
        ("let 'em in , <unk> 'in", "let 'em in, \ufffd'in"),
        ("The U.S. ' s rock ' n ' roll of ' 91 and ' 80s", "The U.S.'s rock 'n' roll of '91 and '80s"),
        ("called ‘ <unk> ’ , I ’ m on K ’ <unk> , D ’ Arcy ’ s", "called '\ufffd', I'm on K' \ufffd, D'Arcy's"),
        ("said , ' Okay , go . ' I did", "said, 'Okay, go.' I did"),
        ("known as ' <unk> ' . He is ' James ' ,", "known as '\ufffd'. He is 'James',"),
        (
            "the <unk> ' final record ; <unk> ' Angel of Death ' , one",
            "the \ufffd' final record; \ufffd 'Angel of Death', one",
        ),
        ('they said " \' <unk> Mouth \' just " " \' 65 "', 'they said "\'\ufffd Mouth\' just" "\'65"'),
        ("' A ' Company ; ' U ' , a dog ' s", "'A' Company; 'U', a dog's"),
        ('was a " slow match . It was a " good match , " he said', 'was a "slow match. It was a "good match," he said'),
        ('<unk> ! "', '\ufffd!"'),
        ("R & B , A & M at M & T Bank , US $ 5 ( ~ US $ 3 )", "R&B, A&M at M&T Bank, US$5 (~US$3)"),
        (
            'a " C + " , A + in a Grade II * mill , 1 1 ⁄ 4 , 1 ½ ° , 1985 - 87',
            'a "C+", A+ in a Grade II* mill, 1 1⁄4, 1 ½°, 1985-87',
        ),
        ("", ""),
    ],
)
def test_natural(line: str, expected: str) -> None:
    assert natural(line) == expected


CORPUS = (
    b" \n = First = \n \n One , two . \n \n = = A heading = = \n \n = = = Deeper = = = \n \n Three . \n Four . \n \n"
    b" = Second ( 2011 ) = \n \n Five <unk> . \n = not a title = \n \n = Third = \n \n \n = = Only a heading = = \n \n"
    b" = Empty = \n"
)
EXPECTED = [
    ("First", "One, two.\n\nA heading\n\nDeeper\n\nThree.\nFour."),
    ("Second (2011)", f"Five {UNKNOWN_TOKEN}.\n\nnot a title"),
    ("Third", "Only a heading"),
]


def read(path: Path, *, target_bytes: int = 1 << 30, options: ReadOptions | None = None) -> list[Item]:
    file = InputFile(str(path), path.name, path.stat().st_size)
    segments = WIKITEXT_CORPUS.split(LOCAL, file, target_bytes=target_bytes)
    options = options or ReadOptions()
    return [item for each in segments for item in WIKITEXT_CORPUS.read(LOCAL, file, each, options=options)]


def written(folder: Path, data: bytes) -> Path:
    path = folder / "wiki.test.tokens"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("target_bytes", [1, 2, 3, 5, 17, 100, 1 << 30])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_articles_however_split(tmp_path: Path, target_bytes: int, newline: bytes) -> None:
    items = read(written(tmp_path, CORPUS.replace(b"\n", newline)), target_bytes=target_bytes)
    assert [(item.title, item.text) for item in items if isinstance(item, Document)] == EXPECTED
    assert items[-1] == Filtered("no_text")
    assert isinstance(items[0], Document)
    assert items[0][:5] == (f"wiki.test.tokens:{1 + len(newline)}", "wiki.test.tokens", "First", "", "CC BY-SA 3.0")


def test_text_before_the_first_title_is_kept(tmp_path: Path) -> None:
    items = read(written(tmp_path, b"the end of an article .\n" + CORPUS))
    assert isinstance(items[0], Document)
    assert (items[0].title, items[0].text) == ("", "the end of an article.")
    assert len(items) == 5


def test_faults(tmp_path: Path) -> None:
    items = read(written(tmp_path, CORPUS.replace(b"Four", b"F\xffur")))
    assert [type(item) for item in items] == [Corrupt, Document, Document, Filtered]
    assert items[0] == items[0]._replace(reason="bad_utf8", byte=CORPUS.index(b"Four") + 1)
    items = read(written(tmp_path, CORPUS), options=ReadOptions(max_document_bytes=60))
    assert [type(item) for item in items] == [Rejected, Document, Document, Filtered]
    (item,) = read(written(tmp_path, b""))
    assert isinstance(item, Corrupt)
    assert item.reason == "empty_file"


@pytest.mark.parametrize(
    ("path", "head", "expected"),
    [
        ("valid.txt", b" \n = Homarus gammarus = \n \n Homarus", True),
        ("wiki.train.tokens", b"= A =\n", True),
        ("valid.txt", b" \n = = Heading = = \n", False),
        ("book.txt", b"A book\n\n = Title = \n", False),
        ("a.jsonl", b" = A = \n", False),
    ],
)
def test_recognises(path: str, head: bytes, expected: bool) -> None:
    assert WIKITEXT_CORPUS.recognises(path, head) is expected


def test_real_corpus(test_data: Path) -> None:
    path = test_data / "corpora" / "wikitext2" / "valid.txt"
    items = read(path)
    documents = [item for item in items if isinstance(item, Document)]
    assert len(items) == len(documents) == 60
    assert documents[-1].title == UNKNOWN_TOKEN + " " + UNKNOWN_TOKEN
    assert read(path, target_bytes=70_001) == items
    text = "\n".join(document.text for document in documents)
    assert "lobster red" in text
    for token in ("@-@", "<unk>", " ,", " .", "= =", "( ", " )", " ;", "  "):
        assert text.count(token) <= (2 if token == " ." else 0), token


@pytest.mark.parametrize("data", [b" =  \n" * 6 + CORPUS, b"      \n" + CORPUS, b"a" * 50 + b"\n" + CORPUS])
def test_a_title_follows_a_short_blank_line_for_any_split(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    for target_bytes in range(1, 20):
        assert read(path, target_bytes=target_bytes) == read(path)
