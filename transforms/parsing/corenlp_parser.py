"""Stanford CoreNLP's shift-reduce parser (Zhu et al. 2013), the parser of Phrase-BERT, behind the parser interface.

CoreNLP runs as a server: the user's own, or one started here that ends with this process. Sentences, tokens and tags
are CoreNLP's.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any

import requests
from stanza.server import CoreNLPClient, StartServer

from schemas.errors import UserError
from transforms.activity import noting
from transforms.parsing import identities
from transforms.parsing.corenlp_jars import find_home, find_java
from transforms.parsing.interface import Constituent, ParsedSentence, RefusedSentence, Sentence
from transforms.parsing.trees import constituents_of, error_text

ANNOTATORS = "tokenize,ssplit,pos,parse"
TEXT_LINES = {"ssplit.newlineIsSentenceBreak": "always", "tokenize.options": "untokenizable=noneKeep"}
TOKEN_LINES = {"tokenize.whitespace": "true", "ssplit.eolonly": "true"}

MAX_CHARS = 1_000_000
"""The most characters in a request to a server started here; a user's own may take fewer."""

START_SECONDS = 180
"""Seconds that a server may take to load its models."""

PING_SECONDS = 30
"""Seconds in which a live server answers."""


class CoreNLPParser:
    """A CoreNLP server: at `endpoint` (such as "http://127.0.0.1:9000"), or else one started for the first text.

    `home` is the folder of CoreNLP's jars, by default $CORENLP_HOME or what `python -m transforms.parsing.corenlp_jars`
    fetches. `model` is "englishSR", "englishSR.beam" or a path in the jars. The server has `threads` threads and a heap
    of `memory` (Java's notation; englishSR.beam needs "6G"). Every process starts its own server, so run one worker
    with many threads, or start a server and give its endpoint. A request holds `batch_chars` characters, or up to one
    text more, and may take `timeout` seconds. A sentence of more than `max_tokens` tokens is refused.

    If the server dies, it is started again once (a user's server is asked again once); then `UserError` ends the run.
    """

    def __init__(
        self,
        model: str = identities.CORENLP_MODEL,
        *,
        endpoint: str = "",
        home: str = "",
        memory: str = "4G",
        threads: int = 2,
        timeout: float = 120,
        max_tokens: int = 250,
        batch_chars: int = 10_000,
    ) -> None:
        self.identity = identities.corenlp(model, endpoint=endpoint, home=home)
        path = identities.corenlp_path(model)
        # For longer sentences CoreNLP gives a flat parse at once.
        self._properties = {"parse.model": path, "parse.maxlen": str(max_tokens), "parse.buildgraphs": "false"}
        self._threads = threads
        self._timeout = timeout
        self._max_tokens = max_tokens
        self._batch_chars = batch_chars
        self._deaths = 0
        self._client: CoreNLPClient | None = None
        self._server: _Server | None = None
        self._endpoint = endpoint.rstrip("/")
        if not endpoint:
            self._server = _Server(find_home(home), memory=memory, threads=threads, timeout=timeout)

    def parse_texts(self, texts: Sequence[str]) -> list[list[Sentence]]:
        parsed: list[list[Sentence]] = []
        lines = [re.sub(r"\s", " ", text) for text in texts]  # CoreNLP makes tokens from rare kinds of space
        for batch, result in self._annotate(lines, TEXT_LINES, self._sentences):
            if isinstance(result, Exception):
                result = [[RefusedSentence(0, len(batch[0]), "parser_error", error_text(result))]]
            parsed.extend(result)
        return parsed

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[list[Constituent] | RefusedSentence]:
        """Parse sentences of given tokens, tagged by CoreNLP; whitespace in a token becomes "_"."""
        lines = [" ".join(re.sub(r"\s", "_", word) or "_" for word in words) for words in sentences]
        parsed: list[list[Constituent] | RefusedSentence] = []
        for _, result in self._annotate([line for line in lines if line], TOKEN_LINES, self._spans):
            if isinstance(result, Exception):
                result = [RefusedSentence(0, 0, "parser_error", error_text(result))]
            parsed.extend(result)
        spans = iter(parsed)
        return [next(spans) if line else [] for line in lines]

    def _annotate(self, texts: Sequence[str], properties: dict[str, str], read: Any) -> list[tuple[list[str], Any]]:
        """The texts of each request, with the result of `read` for its answer, or the error. Requests run in parallel.

        A request that fails is repeated text by text, on a live server, so that a fault affects only one text.
        """
        if texts and self._client is None:
            self._connect()

        note = noting(sum(map(len, texts)))

        def attempt(batch: list[str]) -> Any:
            try:
                return read(batch, self._request("\n".join(batch), properties))
            except Exception as error:
                return error
            finally:
                note(sum(map(len, batch)), len(batch))

        batches = batches_by_chars(texts, self._batch_chars)
        with ThreadPoolExecutor(self._threads) as pool:
            results = list(zip(batches, pool.map(attempt, batches), strict=True))
        final: list[tuple[list[str], Any]] = []
        for batch, result in results:
            if not isinstance(result, Exception):
                final.append((batch, result))
                continue
            for text in batch:
                self._ensure_alive(result)
                final.append(([text], attempt([text])))
        return final

    def _request(self, text: str, properties: dict[str, str]) -> Any:
        assert self._client is not None
        limit = {"timeout": str(self._client.timeout)}
        return self._client.annotate(text, properties=self._properties | properties | limit)

    def _connect(self) -> None:
        """Start the server if it is ours, and let it load its models. Raises UserError if it cannot parse."""
        endpoint = self._server.start() if self._server else self._endpoint
        self._client = CoreNLPClient(
            start_server=StartServer.DONT_START,
            endpoint=endpoint,
            timeout=int(max(self._timeout, START_SECONDS) * 1000),
            annotators=ANNOTATORS,
            output_format="serialized",
        )
        try:
            self._request("Hello .", TOKEN_LINES)
        except Exception as error:
            log = self._server.stop() if self._server else ""
            raise UserError(f"corenlp: the server at {endpoint} does not parse: {error_text(error)}{log}") from error
        self._client.timeout = int(self._timeout * 1000)

    def _ensure_alive(self, fault: Exception) -> None:
        """Start a dead server again, once. Raises UserError if it has died before."""
        assert self._client is not None
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"{self._client.endpoint}/ping", timeout=PING_SECONDS).ok:
                return
        log = self._server.stop() if self._server else ""
        self._deaths += 1
        if self._deaths > 1:
            raise UserError(
                f"corenlp: the server at {self._client.endpoint} died twice, the last time with {error_text(fault)}; "
                f"give it more memory, or fewer threads, and resume{log}"
            )
        self._connect()

    def _sentences(self, texts: list[str], document: Any) -> list[list[Sentence]]:
        """The sentences of the texts of a request; each text is a line."""
        joined = "\n".join(texts)
        char = code_points(joined)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        parsed: list[list[Sentence]] = [[] for _ in texts]
        number = 0
        for sentence in document.sentence:
            begins = [char[token.beginChar] for token in sentence.token]
            ends = [char[token.endChar] for token in sentence.token]
            while begins[0] >= starts[number + 1]:
                number += 1
            if ends[-1] >= starts[number + 1]:
                raise ValueError("CoreNLP put two texts into one sentence")
            begins = [begin - starts[number] for begin in begins]
            ends = [end - starts[number] for end in ends]
            if len(begins) > self._max_tokens:
                parsed[number].append(RefusedSentence(begins[0], ends[-1], "too_many_tokens"))
            else:
                tags = [token.pos for token in sentence.token]
                parsed[number].append(
                    ParsedSentence(begins[0], ends[-1], begins, ends, tags, spans_of(sentence.parseTree))
                )
        return parsed

    def _spans(self, lines: list[str], document: Any) -> list[list[Constituent] | RefusedSentence]:
        """The constituents of the sentences of a request of given tokens; each sentence is a line."""
        if [len(sentence.token) for sentence in document.sentence] != [line.count(" ") + 1 for line in lines]:
            raise ValueError("CoreNLP changed the tokens")
        return [
            RefusedSentence(0, 0, "too_many_tokens")
            if len(sentence.token) > self._max_tokens
            else spans_of(sentence.parseTree)
            for sentence in document.sentence
        ]


def spans_of(tree: Any) -> list[Constituent]:
    return constituents_of(tree, label=lambda node: node.value, children=lambda node: node.child)


def batches_by_chars(texts: Sequence[str], batch_chars: int) -> list[list[str]]:
    """Consecutive texts in batches; a batch ends with the text that reaches `batch_chars` characters."""
    batches: list[list[str]] = []
    chars = batch_chars
    for text in texts:
        if chars >= batch_chars:
            batches.append([])
            chars = 0
        batches[-1].append(text)
        chars += len(text)
    return batches


def code_points(text: str) -> Sequence[int]:
    """The offset in code points for each offset in UTF-16 units, CoreNLP's characters: 0 1 1 2 for "😀a"."""
    if text.isascii() or max(text) <= "\uffff":
        return range(len(text) + 1)
    offsets = [offset for offset, char in enumerate(text) for _ in range(1 + (char > "\uffff"))]
    return [*offsets, len(text)]


class _Server:
    """A CoreNLP server for this process only: on 127.0.0.1, and ended with the process, however that ends."""

    def __init__(self, home: Path, *, memory: str, threads: int, timeout: float) -> None:
        self._command = [
            *[find_java(), f"-Xmx{memory}", "-XX:+ExitOnOutOfMemoryError"],
            *["--add-exports", "jdk.httpserver/sun.net.httpserver=ALL-UNNAMED"],
            "-Dcom.sun.net.httpserver.HttpServerProvider=LocalServers",
            *["-cp", f"{Path(__file__).parent / 'java'}{os.pathsep}{home / '*'}"],
            "edu.stanford.nlp.pipeline.StanfordCoreNLPServer",
            *["-timeout", str(int(max(timeout, START_SECONDS) * 1000)), "-threads", str(threads)],
            *["-maxCharLength", str(MAX_CHARS), "-annotators", ANNOTATORS, "-quiet", "true"],
        ]
        self._end: weakref.finalize | None = None

    def start(self) -> str:
        """The endpoint, when the server answers. Raises UserError with the end of its log if it does not."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the server is stopped
        self._process = subprocess.Popen(
            [*self._command, "-port", str(port)], stdin=subprocess.PIPE, stdout=self._log, stderr=subprocess.STDOUT
        )
        self._end = weakref.finalize(self, _end, self._process)
        endpoint = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(requests.RequestException):
                if requests.get(f"{endpoint}/ping", timeout=PING_SECONDS).ok:
                    return endpoint
            time.sleep(0.1)
        raise UserError(f"corenlp: the server does not start{self.stop()}")

    def stop(self) -> str:
        """End the server if it runs; returns the end of its log, for a message."""
        if self._end is None:
            return ""
        self._end()
        self._end = None
        with self._log as log:
            log.seek(0)
            tail = log.read()[-2000:].decode(errors="replace").strip()
        return f"; its log ends:\n{tail}" if tail else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()
