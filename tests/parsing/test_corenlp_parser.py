from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import UserError
from transforms.parsing import corenlp_jars
from transforms.parsing.corenlp_jars import find_home, release_of
from transforms.parsing.evaluation import evaluate
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence
from transforms.parsing.treebank import read_treebank

TEXTS = [
    "The old dog sleeps  in the house (it is cold).\u00a0 I \U0001f600\U0001d54f don't know.",
    "",
    " \u200b \u0085 ",
    "\U0001d54f \U0001f600\U0001f600 is 100% of a +time %20 & <b>x</b>.\u2028 He went to the U.S. for $5 \u2013 why?",
    "It rains.",
]


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """What takes seconds to import, when a test here runs and not when all are collected."""
    pytest.importorskip("stanza", reason="needs the extra 'corenlp'")
    global CoreNLPParser, batches_by_chars, code_points
    from transforms.parsing.corenlp_parser import CoreNLPParser, batches_by_chars, code_points


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_offsets_in_code_points(text):
    units = text.encode("utf-16-le")
    offsets = code_points(text)
    for offset in range(len(text) + 1):
        assert offsets[len(text[:offset].encode("utf-16-le")) // 2] == offset
    assert len(offsets) == len(units) // 2 + 1


@given(st.lists(st.text(max_size=9)), st.integers(1, 20))
def test_batches_keep_the_order_and_are_full(texts, batch_chars):
    batches = batches_by_chars(texts, batch_chars)
    assert list(itertools.chain(*batches)) == texts
    assert all(sum(map(len, batch)) >= batch_chars > sum(map(len, batch[:-1])) for batch in batches[:-1])


def test_no_jars(tmp_path, monkeypatch):
    monkeypatch.setenv("CORENLP_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"corenlp_jars.*CORENLP_HOME.*endpoint"):
        CoreNLPParser()


def test_no_such_model(tmp_path):
    (tmp_path / "stanford-corenlp-9.8.7.jar").write_bytes(b"PK\5\6" + bytes(18))
    assert find_home(str(tmp_path)) == tmp_path
    assert release_of(tmp_path) == "9.8.7"
    with pytest.raises(UserError, match=r"no model edu/stanford/nlp/models/srparser/welsh\.ser\.gz"):
        CoreNLPParser("welsh", home=str(tmp_path))


def test_no_server_at_the_endpoint():
    parser = CoreNLPParser(endpoint="http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"server at http://127\.0\.0\.1:9 does not parse"):
        parser.parse_texts(["It rains."])


def test_jars_are_fetched_once_or_the_remedy_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["corenlp_jars"])
    assert corenlp_jars.main() == 1
    assert "no mvn on the PATH" in capsys.readouterr().err
    corenlp_jars.default_home().mkdir(parents=True)
    assert corenlp_jars.main() == 0
    assert capsys.readouterr().out == f"{tmp_path}/phrasemill/corenlp/{corenlp_jars.VERSION}\n"


@pytest.fixture(scope="module")
def home() -> str:
    if not shutil.which("java"):
        pytest.skip("no java on the PATH")
    try:
        return str(find_home())
    except UserError:
        try:
            return str(corenlp_jars.fetch())
        except corenlp_jars.JarsError as error:
            pytest.skip(f"no CoreNLP: {error}")


@pytest.fixture(scope="module")
def parser(home):
    parser = CoreNLPParser(home=home)
    yield parser
    if parser._server:
        parser._server.stop()


def java_of(parser) -> psutil.Process:
    return psutil.Process(parser._server._process.pid)


def words_of(text, sentence):
    return [text[start:end] for start, end in zip(sentence.token_starts, sentence.token_ends, strict=True)]


@pytest.mark.heavy
def test_spans_of_texts(parser):
    (first, second), nothing, odd, (third, fourth), (fifth,) = parser.parse_texts(TEXTS)
    assert [nothing, odd] == [[], []]
    assert words_of(TEXTS[0], first) == "The old dog sleeps in the house ( it is cold ) .".split()
    assert first.tags == "DT JJ NN VBZ IN DT NN -LRB- PRP VBZ JJ -RRB- .".split()
    spans = "S,0,13 NP,0,3 VP,3,12 PP,4,7 NP,5,7 PRN,7,12 S,8,11 NP,8,9 VP,9,11 ADJP,10,11"
    assert [f"{label},{start},{end}" for label, start, end in first.constituents] == spans.split()
    assert words_of(TEXTS[0], second) == "I \U0001f600 \U0001d54f do n't know .".split()
    assert (second.start_char, second.end_char) == (TEXTS[0].index("I \U0001f600"), len(TEXTS[0]))
    assert words_of(TEXTS[3], third)[:6] == ["\U0001d54f", "\U0001f600", "\U0001f600", "is", "100", "%"]
    assert words_of(TEXTS[3], fourth) == "He went to the U.S. for $ 5 \u2013 why ?".split()
    assert fifth.constituents == [Constituent("S", 0, 3), Constituent("NP", 0, 1), Constituent("VP", 1, 2)]


@pytest.mark.heavy
def test_spans_of_tokens(parser):
    sentences = [["He", "ate", "(", "a b", ")", "."], [], ["dog"] * 250, ["dog"] * 251, [""], ["It", "rains", "."]]
    with_brackets, nothing, long, too_long, empty, short = parser.parse_tokens(sentences)
    assert nothing == []
    assert isinstance(long, list)
    assert too_long == RefusedSentence(0, 0, "too_many_tokens")
    assert with_brackets[0] == ("S", 0, 6)
    assert ("PRN", 2, 5) in with_brackets
    assert all(span[1:] == (0, 1) for span in empty)
    assert short == [Constituent("S", 0, 3), Constituent("NP", 0, 1), Constituent("VP", 1, 2)]


@pytest.mark.heavy
def test_agreement_with_a_treebank(parser, test_data):
    gold = list(itertools.islice(read_treebank(test_data / "treebanks" / "gum" / "dev.ptb"), 0, None, 6))
    predicted = parser.parse_tokens([sentence.words for sentence in gold])
    assert evaluate([sentence.constituents for sentence in gold], predicted).total.f1 > 0.78


@pytest.mark.heavy
def test_offsets_in_real_books(parser, test_data):
    lines = [
        line
        for book in sorted((test_data / "corpora" / "books").glob("*.txt"))
        for line in book.read_text(encoding="utf-8", errors="replace").splitlines()[500:520]
    ]
    for text, sentences in zip(lines, parser.parse_texts(lines), strict=True):
        previous = 0
        for sentence in sentences:
            assert isinstance(sentence, ParsedSentence)
            assert len(sentence.tags) == len(sentence.token_starts)
            for start, end in zip(sentence.token_starts, sentence.token_ends, strict=True):
                assert previous <= start < end
                assert text[start:end] == text[start:end].strip()
                assert not text[previous:start].strip()
                previous = end


@pytest.mark.heavy
def test_a_server_of_the_user_gives_the_same(parser):
    parser.parse_texts(TEXTS)
    other = CoreNLPParser(endpoint=parser._client.endpoint)
    assert other.parse_texts(TEXTS) == parser.parse_texts(TEXTS)
    assert (other.identity.model_version, other.identity.model_sha256) == ("", "")
    one_by_one = CoreNLPParser(endpoint=parser._client.endpoint, batch_chars=1, threads=1)
    assert one_by_one.parse_texts(TEXTS) == parser.parse_texts(TEXTS)


@pytest.mark.heavy
def test_a_request_out_of_time_refuses_its_text(parser):
    parser.parse_texts(TEXTS)
    hasty = CoreNLPParser(endpoint=parser._client.endpoint)
    hasty._connect()
    hasty._client.timeout = 1
    (refused,) = hasty.parse_texts(["It rains. " * 2000])[0]
    assert refused[:3] == (0, 20_000, "parser_error")
    assert "time" in refused.exception.lower()


@pytest.mark.heavy
def test_one_failing_text_is_refused_and_the_others_of_its_request_are_kept(parser, monkeypatch):
    expected = parser.parse_texts(TEXTS)
    request = CoreNLPParser._request

    def fails(self, text, properties):
        if "U.S." in text:
            raise ValueError("out of luck")
        return request(self, text, properties)

    monkeypatch.setattr(CoreNLPParser, "_request", fails)
    refused = RefusedSentence(0, len(TEXTS[3]), "parser_error", "ValueError: out of luck")
    assert parser.parse_texts(TEXTS) == [*expected[:3], [refused], expected[4]]


@pytest.mark.heavy
def test_the_server_listens_on_this_machine_only(parser):
    parser.parse_texts(["It rains."])
    (listening,) = [each for each in java_of(parser).net_connections() if each.status == psutil.CONN_LISTEN]
    assert listening.laddr.ip in ("127.0.0.1", "::ffff:127.0.0.1")


@pytest.mark.heavy
def test_a_dead_server_is_started_again_once(home):
    def kill():
        java = java_of(parser)
        java.kill()
        java.wait(30)

    parser = CoreNLPParser(home=home)
    expected = parser.parse_texts(TEXTS)
    kill()
    assert parser.parse_texts(TEXTS) == expected
    kill()
    with pytest.raises(UserError, match="died twice"):
        parser.parse_texts(TEXTS)


@pytest.mark.heavy
def test_the_server_ends_with_its_process_however_that_ends(home):
    code = (
        "import sys, time\n"
        "from transforms.parsing.corenlp_parser import CoreNLPParser\n"
        f"parser = CoreNLPParser(home={home!r})\n"
        "parser._server.start()\n"
        "print(parser._server._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    java = psutil.Process(int(process.stdout.readline()))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 30
    while java.is_running() and java.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not java.is_running() or java.status() == psutil.STATUS_ZOMBIE
