"""Vectors of words: word2vec's, GloVe's and fastText's files, gensim's KeyedVectors, NumPy pairs, spaCy pipelines."""

from __future__ import annotations

import functools
import gzip
import hashlib
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.errors import UserError
from transforms.parsing.identities import sha256_of
from transforms.parsing.spacy_files import find_spacy

F32 = npt.NDArray[np.float32]

SUFFIXES = (".txt", ".vec", ".bin", ".txt.gz", ".vec.gz", ".bin.gz", ".kv", ".npy")
"""The names of files of vectors; one with another suffix is read as text."""

_HEADER = re.compile(rb"(\d+) (\d+)\s*")


class WordVectors(NamedTuple):
    """Words, in the order of the file, with the rows of their vectors in `matrix` [n, dimension].

    Several words may share a row (spaCy's rare words).
    """

    rows: dict[str, int]
    matrix: F32


def locate_vectors(name: str) -> Path:
    """A file, or the folder of a spaCy pipeline with that name or path. OSError if it is neither."""
    return Path(name) if Path(name).is_file() else find_spacy(name).folder


@functools.cache
def sha256_of_vectors(place: Path) -> str:
    """The sha256 of what is read: the file with its parts, or a pipeline's vocabulary.

    UserError if a part is missing.
    """
    if place.is_dir():
        return sha256_of(place / "vocab")
    parts = [place, *_parts(place)]
    if len(parts) == 1:
        return sha256_of(place)
    return hashlib.sha256("".join(f"{each.name} {sha256_of(each)}\n" for each in parts).encode()).hexdigest()


def _parts(path: Path) -> list[Path]:
    """The files beside a file that belong to it. UserError if one is missing."""
    if path.suffix == ".npy":
        words = path.with_suffix(".txt")
        if not words.is_file():
            raise UserError(f"{path}: has no {words.name} beside it; it holds the words of the rows, a word a line")
        return [words]
    return sorted(path.parent.glob(f"{path.name}.*.npy")) if path.suffix == ".kv" else []


def read_word_vectors(
    place: Path, *, most: int | None = None, wanted: Callable[[str], object] = lambda word: True
) -> WordVectors:
    """The vectors in a file or a spaCy pipeline: of the first `most` wanted words. UserError if it is malformed.

    NAME.kv is a pickle, as gensim saves it: reading it runs what is in it. NAME.npy has beside it NAME.txt with a word
    a line.
    """
    try:
        if place.is_dir():
            words, matrix = _of_spacy(place)
        elif place.suffix == ".kv":
            words, matrix = _of_gensim(place)
        elif place.suffix == ".npy":
            words, matrix = _of_numpy(place)
        else:
            return _of_file(place, most, wanted)
    except (OSError, EOFError) as error:
        raise UserError(f"{place}: cannot be read ({error}); fetch it again") from error
    rows: dict[str, int] = {}
    for word, row in words:
        if most is not None and len(rows) >= most:
            break
        if wanted(word):
            rows.setdefault(word, row)
    return WordVectors(rows, matrix)


Indexed = tuple[Iterator[tuple[str, int]], F32]


def _of_spacy(folder: Path) -> Indexed:
    from spacy.strings import StringStore
    from spacy.vectors import Vectors

    strings = StringStore().from_disk(folder / "vocab" / "strings.json")
    table = Vectors(strings=strings).from_disk(folder / "vocab")
    return ((strings[key], row) for key, row in table.key2row.items()), table.data


def _of_gensim(path: Path) -> Indexed:
    try:
        from gensim.models import KeyedVectors
    except ModuleNotFoundError as error:
        raise UserError(f"{path}: gensim's KeyedVectors need gensim: pip install gensim") from error
    try:
        found: Any = KeyedVectors.load(str(path), mmap="r")
    except (pickle.UnpicklingError, AttributeError, ImportError) as error:
        raise UserError(f"{path}: cannot be read ({error}); save it with gensim again") from error
    table = getattr(found, "wv", found)  # a whole model has its vectors there
    return iter(table.key_to_index.items()), table.vectors


def _of_numpy(path: Path) -> Indexed:
    (beside,) = _parts(path)
    try:
        matrix = np.load(path, mmap_mode="r")
        words = beside.read_text(encoding="utf-8").splitlines()
    except ValueError as error:
        raise UserError(f"{path}: cannot be read ({error}); write it with numpy.save") from error
    if matrix.ndim != 2 or len(matrix) != len(words):
        raise UserError(f"{path}: has the shape {matrix.shape} for the {len(words):,} words of {beside.name}")
    return ((word, row) for row, word in enumerate(words)), matrix


def _of_file(path: Path, most: int | None, wanted: Callable[[str], object]) -> WordVectors:
    rows: dict[str, int] = {}
    vectors: list[F32] = []
    size = 0
    for line, word, raw in entries(path):
        if most is not None and len(rows) >= most:
            break
        if is_binary(path):
            vector: F32 = np.frombuffer(raw, "<f4")
        else:
            numbers = raw.split()
            size = size or len(numbers)
            if len(numbers) > size:  # a word with blanks in it, as GloVe has
                word = " ".join([word, *(each.decode("utf-8", "replace") for each in numbers[:-size])])
                numbers = numbers[-size:]
            try:
                vector = np.array(numbers, np.float32)
            except ValueError as error:
                raise UserError(f"{path}, line {line}: is no word with numbers: {error}") from error
            if len(vector) != size:
                raise UserError(f"{path}, line {line}: has {len(vector)} numbers, not {size}; fetch it again")
        if word not in rows and wanted(word):
            rows[word] = len(vectors)
            vectors.append(vector)
    return WordVectors(rows, np.array(vectors, np.float32))


def is_binary(path: Path) -> bool:
    """Whether a file is one of word2vec's binary ones, by its name."""
    return path.name.removesuffix(".gz").endswith(".bin")


def entries(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """The lines of a file (from 1; 0 in a binary one), each a word and what follows it.

    A word a line, word2vec's (GloVe's, fastText's) text format, or word2vec's binary one, plain or gzipped. UserError
    if it is damaged, OSError or EOFError if it cannot be read.
    """
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        first = file.readline(1 << 20)
        header = _HEADER.fullmatch(first)
        if is_binary(path):
            if header is None:
                raise UserError(f"{path}: is no binary file of word2vec; of fastText's models, give the .vec")
            size = 4 * int(header[2])
            for _ in range(int(header[1])):
                letters = bytearray()
                while (byte := file.read(1)) not in (b" ", b""):
                    letters += byte
                if len(raw := file.read(size)) < size:
                    raise UserError(f"{path}: ends inside a vector; fetch it again")
                yield 0, letters.decode("utf-8", "replace").lstrip("\n"), raw
            return
        number = 1
        if header is None and first:
            yield from _entry(number, first)
        for number, line in enumerate(file, 2):
            yield from _entry(number, line)


def _entry(number: int, line: bytes) -> Iterator[tuple[int, str, bytes]]:
    word, _, rest = line.strip(b" \t\r\n").replace(b"\t", b" ").partition(b" ")
    if word:
        yield number, word.decode("utf-8", "replace"), rest
