"""Treebanks in Penn Treebank brackets, for the evaluation and the training of parsers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from schemas.errors import UserError
from transforms.parsing.interface import Constituent

ROOTS = frozenset({"", "ROOT", "TOP", "S1"})
"""Labels of the node above a sentence, which is not a constituent."""

ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", r"\/": "/", r"\*": "*"}

_ESCAPED = re.compile("|".join(map(re.escape, ESCAPES)))
_BRACKETS = re.compile(r"[()]|[^()\s]+")


class TreebankError(UserError):
    """A treebank that cannot be read; the message names the file and the line."""


class TreebankSentence(NamedTuple):
    """A gold sentence: n words, n tags, and labelled spans in the order of a `ParsedSentence`."""

    words: list[str]
    tags: list[str]
    constituents: list[Constituent]


@dataclass
class _Node:
    line: int
    first_word: int
    label: str = ""
    word: str | None = None
    has_nodes: bool = False


def read_treebank(path: str | Path) -> Iterator[TreebankSentence]:
    """The sentences of a UTF-8 file in PTB brackets; a tree takes one line or many. Raises `TreebankError`."""
    with open(path, "rb") as file:
        yield from sentences_of(_decoded(file, str(path)), name=str(path))


def read_trees(path: str | Path, faults: list[TreebankError]) -> Iterator[TreebankSentence]:
    """Like `read_treebank`, but a tree that cannot be read is left out and its error added to `faults`.

    A tree begins on a line that begins with "(", as in the Penn Treebank's own files.
    """
    with open(path, "rb") as file:
        for first, lines in _trees(_decoded(file, str(path))):
            try:
                yield from sentences_of(lines, name=str(path), first_line=first)
            except TreebankError as error:
                faults.append(error)


def _trees(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The lines of each tree, with the number of its first."""
    first = 1
    tree: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("(") and tree:
            yield first, tree
            first, tree = number, []
        tree.append(line)
    if tree:
        yield first, tree


def sentences_of(lines: Iterable[str], *, name: str = "brackets", first_line: int = 1) -> Iterator[TreebankSentence]:
    """The sentences of trees in PTB brackets, without traces and the phrases that they leave empty.

    Function tags and indices of labels are removed ("NP-SBJ-1" gives "NP"), words unescaped ("-LRB-" gives "("). A tree
    of traces only is not a sentence. Raises `TreebankError` with `name` and the line, counted from `first_line`.

    `path` holds the open nodes. A "(" adds one, the next string is its label, another one its word, and ")" removes it:
    then a node with a word adds a word and a tag, and another node a phrase from its first word to the last so far.

    >>> (sentence,) = sentences_of(["(S (NP (DT The) (NN cat)) (VP (VBD sat)))"])
    >>> sentence.words, sentence.tags
    (['The', 'cat', 'sat'], ['DT', 'NN', 'VBD'])
    >>> [tuple(each) for each in sentence.constituents]
    [('S', 0, 3), ('NP', 0, 2), ('VP', 2, 3)]
    """
    words: list[str] = []
    tags: list[str] = []
    phrases: list[Constituent] = []  # by their ends, a child before its parent
    path: list[_Node] = []  # from the root to the current node

    for number, line in enumerate(lines, first_line):
        previous = ""
        for token in _BRACKETS.findall(line):
            if token == "(":
                if path:
                    path[-1].has_nodes = True
                path.append(_Node(number, len(words)))
            elif not path:
                raise TreebankError(f"{name}:{number}: {token!r} stands outside a tree; a tree begins with '('")
            elif token != ")":
                node = path[-1]
                if previous == "(":
                    node.label = token
                elif node.word is None:
                    node.word = token
                else:
                    raise TreebankError(
                        f"{name}:{number}: two words, {node.word!r} and {token!r}, under {node.label!r}"
                    )
            else:
                node = path.pop()
                if (node.word is None) != node.has_nodes:
                    fault = "is empty" if node.word is None else f"holds the word {node.word!r} and phrases"
                    raise TreebankError(
                        f"{name}:{number}: the node {node.label!r} {fault}; expected (TAG word) or (LABEL (...))"
                    )
                if node.word is None:
                    if len(words) > node.first_word and node.label not in ROOTS:
                        phrases.append(Constituent(bare_label(node.label), node.first_word, len(words)))
                elif node.label != "-NONE-":
                    words.append(unescape(node.word))
                    tags.append(node.label)
                if not path:
                    if words:
                        yield TreebankSentence(words, tags, in_order(phrases))
                    words, tags, phrases = [], [], []
            previous = token
    if path:
        raise TreebankError(f"{name}:{path[0].line}: {len(path)} ')' are missing from the tree that begins here")


def in_order(phrases: Iterable[Constituent]) -> list[Constituent]:
    """Each span once, by start, longest first, the outermost of a unary chain first; `phrases` has children first."""
    outermost_first = list(phrases)[::-1]
    outermost_first.sort(key=lambda phrase: (phrase.start_token, -phrase.end_token))
    return list(dict.fromkeys(outermost_first))


def bare_label(label: str) -> str:
    """The label without function tags and indices; "-LRB-" and the like are kept."""
    return label if label.startswith("-") else re.split(r"[-=|]", label, maxsplit=1)[0]


def unescape(word: str) -> str:
    """A word as in the text."""
    return _ESCAPED.sub(lambda escape: ESCAPES[escape[0]], word)


def _decoded(file: BinaryIO, name: str) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TreebankError(
                f"{name}:{number}: not UTF-8 at byte {error.start} of the line; convert the file"
            ) from error
