"""WordNet's database files: where they are, and the senses and base forms of a word in them.

The files are read directly (their formats: wndb(5WN), cntlist(5WN)): NLTK's reader of the same files takes seconds of
CPU and hundreds of megabytes a process. `tests/augmentation/test_wordnet.py` compares both.

`python -m transforms.augmentation.wordnet` fetches the files where neither NLTK nor Debian has installed them.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from schemas.errors import UserError

NOUN, VERB, ADJECTIVE, ADVERB = "n", "v", "a", "r"

_SUFFIXES = {NOUN: "noun", VERB: "verb", ADJECTIVE: "adj", ADVERB: "adv"}
_NUMBERS = {NOUN: "1", VERB: "2", ADJECTIVE: "3", ADVERB: "4"}
_FILES = (
    "cntlist.rev",
    *(name for each in _SUFFIXES.values() for name in (f"index.{each}", f"data.{each}", f"{each}.exc")),
)
_ENDINGS = {
    NOUN: "s: ses:s xes:x zes:z ches:ch shes:sh men:man ies:y",
    VERB: "s: ies:y es:e es: ed:e ed: ing:e ing:",
    ADJECTIVE: "er: est: er:e est:e",
    ADVERB: "",
}
"""Endings, and what the base form has instead: morphy(7WN)."""

_MARKER = re.compile(r"\((a|p|ip)\)$")


Key = tuple[str, int]
"""A synset: the part of speech and the place in its file."""


class Member(NamedTuple):
    """A word of a synset.

    `place`: "a" if it stands only before a noun, "ip" only after one, "p" only as a predicate. `frames`: the patterns
    of sentences that are those of this verb alone in the synset.
    """

    lemma: str
    place: str = ""
    frames: tuple[str, ...] = ()


class Sense(NamedTuple):
    """A sense of a word: its synset's members, the synsets of contrary, broader and (of an adjective) similar meaning,
    and how often the word has this sense in WordNet's tagged texts.
    """

    synset: Key
    members: tuple[Member, ...]
    antonyms: tuple[Key, ...]
    broader: tuple[Key, ...]
    similar: tuple[Key, ...]
    occurrences: int


class WordNet:
    """The database. Lemmas are in lower case, with spaces."""

    def __init__(self, place: Path) -> None:
        files = read_files(place)
        self._data = {pos: files[f"data.{suffix}"] for pos, suffix in _SUFFIXES.items()}
        self._index = {pos: _index(files[f"index.{suffix}"]) for pos, suffix in _SUFFIXES.items()}
        self._counts = _counts(files["cntlist.rev"])
        self.exceptions = {pos: _exceptions(files[f"{suffix}.exc"]) for pos, suffix in _SUFFIXES.items()}
        """Irregular forms, each with its base forms."""

    def has(self, lemma: str, pos: str) -> bool:
        return lemma in self._index[pos]

    def compounds(self, pos: str) -> list[str]:
        """The lemmas of several words."""
        return [each for each in self._index[pos] if " " in each]

    def tagged(self, pos: str) -> list[str]:
        """The lemmas that are in the tagged texts."""
        return [lemma for lemma, each in self._counts if each == pos]

    def senses(self, lemma: str, pos: str) -> tuple[Sense, ...]:
        """The senses, the commonest first."""
        offsets = self._index[pos].get(lemma, b"").split()
        counts = self._counts.get((lemma, pos), {})
        return tuple(
            Sense((pos, offset), *_synset(self._data[pos], offset), counts.get(number, 0))
            for number, offset in enumerate(map(int, offsets), 1)
        )

    def antonyms(self, synset: Key) -> tuple[Key, ...]:
        """The synsets of contrary meaning."""
        return _synset(self._data[synset[0]], synset[1])[1]

    def members(self, synset: Key) -> tuple[Member, ...]:
        pos, offset = synset
        return _synset(self._data[pos], offset)[0]

    def base_forms(self, word: str, pos: str, *, any_lemma: bool = False) -> list[str]:
        """The lemmas of which a word may be a form, itself first; `any_lemma`: also what is no lemma by itself."""
        found = possible_base_forms(word, pos, self.exceptions[pos])
        return [each for each in found if any_lemma or self.has(each, pos)]


def possible_base_forms(word: str, pos: str, exceptions: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What a word may be a form of, itself first: by the exceptions, and by the rules."""
    found = [word, *exceptions.get(word, ())]
    endings = (each.split(":") for each in _ENDINGS[pos].split())
    found += [word.removesuffix(end) + base for end, base in endings if word.endswith(end)]
    return list(dict.fromkeys(found))


def _index(content: bytes) -> dict[str, bytes]:
    """The offsets of the synsets of each lemma, undivided."""
    found = {}
    for line in content.splitlines():
        if line and not line.startswith(b" "):
            lemma, _, rest = line.partition(b" ")
            fields = rest.split(b" ", 2)
            found[lemma.decode().replace("_", " ")] = b" ".join(rest.split()[-int(fields[1]) :])
    return found


def _counts(content: bytes) -> dict[tuple[str, str], dict[int, int]]:
    """How often each sense, by its number, is in the tagged texts."""
    pos_of = {number: pos for pos, number in _NUMBERS.items()} | {"5": ADJECTIVE}
    found: dict[tuple[str, str], dict[int, int]] = {}
    for line in content.decode().splitlines():
        key, number, count = line.split()
        lemma, _, rest = key.partition("%")
        found.setdefault((lemma.replace("_", " "), pos_of[rest[0]]), {})[int(number)] = int(count)
    return found


def _exceptions(content: bytes) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in content.decode().splitlines():
        form, *bases = (each.replace("_", " ") for each in line.split())
        found[form] = (*found.get(form, ()), *bases)
    return found


def _synset(data: bytes, offset: int) -> tuple[tuple[Member, ...], tuple[Key, ...], tuple[Key, ...], tuple[Key, ...]]:
    """The members of the synset there, its antonyms, the broader ones and those of similar meaning."""
    fields = data[offset : data.index(b"|", offset)].decode().split()
    after = 4 + 2 * int(fields[3], 16)
    pointers_end = after + 1 + 4 * int(fields[after])
    frames: dict[int, tuple[str, ...]] = {}
    for frame, number in zip(fields[pointers_end + 2 :: 3], fields[pointers_end + 3 :: 3], strict=True):
        if number != "00":
            frames[int(number, 16)] = (*frames.get(int(number, 16), ()), frame)
    members = []
    for place, each in enumerate(fields[4:after:2], 1):
        marker = _MARKER.search(each)
        lemma = _MARKER.sub("", each).replace("_", " ")
        members.append(Member(lemma, marker[1] if marker else "", frames.get(place, ())))
    pointers: dict[str, list[Key]] = {"!": [], "@": [], "&": []}
    for symbol, target, pos in (fields[each : each + 3] for each in range(after + 1, pointers_end, 4)):
        pointers.setdefault(symbol, []).append((ADJECTIVE if pos == "s" else pos, int(target)))
    return tuple(members), tuple(pointers["!"]), tuple(pointers["@"]), tuple(pointers["&"])


# ---- Where the files are


def find_wordnet(instead: str = "leave synonym out of --operations") -> Path:
    """The folder or zip file of the database. UserError if there is none, with the remedy: to get it, or `instead`."""
    for place in _places():
        if place.suffix == ".zip" and place.is_file():
            return place
        if all((place / name).is_file() for name in _FILES):
            return place
    raise UserError(
        "wordnet: no WordNet in NLTK's data (NLTK_DATA), in /usr/share/wordnet or in phrasemill's cache; fetch it with "
        "`python -m transforms.augmentation.wordnet`, or copy its folder `dict` and set WNSEARCHDIR to it "
        f"(docs/augmentation.md), or {instead}"
    )


_NLTK = (
    *(Path(sys.prefix, each) for each in ("nltk_data", "share/nltk_data", "lib/nltk_data")),
    *(
        Path(each, "nltk_data")
        for each in (Path.home(), "/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
    ),
)
_USUAL = (
    *(root / "corpora" / name for root in _NLTK for name in ("wordnet", "wordnet.zip")),
    Path("/usr/share/wordnet"),
)
"""Where NLTK and Debian put the files."""


def _places() -> list[Path]:
    """Where the files may be: where the user says (to WordNet's own programs, or to NLTK), the usual, our cache."""
    own, named = os.environ.get("WNSEARCHDIR", ""), os.environ.get("NLTK_DATA", "")
    roots = [Path(each) for each in named.split(os.pathsep) if each]
    found = [root / "corpora" / name for root in roots for name in ("wordnet", "wordnet.zip")]
    return [*([Path(own)] if own else []), *found, *_USUAL, cached()]


def cached() -> Path:
    """The folder for the files that we fetch; complete if it exists."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "phrasemill" / "wordnet"


def read_files(place: Path) -> dict[str, bytes]:
    if place.suffix != ".zip":
        return {name: (place / name).read_bytes() for name in _FILES}
    try:
        with zipfile.ZipFile(place) as archive:
            return {name: archive.read(f"wordnet/{name}") for name in _FILES}
    except (KeyError, zipfile.BadZipFile) as error:
        raise UserError(f"wordnet: {place} is not NLTK's zip of WordNet: {error}; fetch it again") from error


@functools.cache
def identify(place: Path) -> tuple[str, str]:
    """The version of the database there, as its licence says (empty without one), and a sha256 of its files."""
    files = read_files(place)
    digest = hashlib.sha256()
    for name in _FILES:
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    found = re.search(rb"WordNet ([\d.]+) Copyright", files["data.adj"][:4000])
    return (found[1].decode() if found else ""), digest.hexdigest()


@functools.cache
def wordnet() -> WordNet:
    """The database, read once a process."""
    return WordNet(find_wordnet())


# ---- Fetching them


class FetchError(RuntimeError):
    """The files could not be fetched; the message says what to do."""


def fetch() -> Path:
    """Fetch the files into our cache, from Debian's packages or as NLTK does, unless they are there."""
    if (home := cached()).is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    faults = []
    for way in (_from_debian, _from_nltk):
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            try:
                files = read_files(way(Path(scratch)))
            except (OSError, subprocess.SubprocessError, UserError) as error:
                said = getattr(error, "stderr", "") or str(error)
                faults.append(" ".join(said.replace("[nltk_data]", "").split())[:200])
                continue
            folder = Path(scratch, "complete")
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)
            try:
                folder.rename(home)  # last, so that the folder is complete if it exists
            except OSError:
                if not home.is_dir():  # otherwise another process was faster
                    raise
            return home
    raise FetchError(f"not fetched from Debian ({faults[0]}) nor with NLTK ({faults[1]})")


def _from_debian(scratch: Path) -> Path:
    _run("apt-get", "download", "wordnet-base", cwd=scratch)
    _run("dpkg-deb", "-x", str(next(scratch.glob("*.deb"))), str(scratch), cwd=scratch)
    return scratch / "usr" / "share" / "wordnet"


def _from_nltk(scratch: Path) -> Path:
    program = f"import nltk, sys; sys.exit(not nltk.download('wordnet', download_dir={str(scratch)!r}))"
    _run(sys.executable, "-c", program, cwd=scratch)
    return scratch / "corpora" / "wordnet.zip"


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=300)


def main() -> int:
    argparse.ArgumentParser(description="Fetch WordNet's files and print their folder.").parse_args()
    try:
        print(fetch())
    except FetchError as error:
        print(f"wordnet: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
