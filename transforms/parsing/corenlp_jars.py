"""CoreNLP's jars, and how to fetch them with Maven: `export CORENLP_HOME=$(python -m transforms.parsing.corenlp_jars)`.

CoreNLP is under the GPL: it runs as a separate server and is not a part of phrasemill. Needs a configured `mvn`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from schemas.errors import UserError

VERSION = "4.5.10"

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>phrasemill</groupId>
  <artifactId>corenlp-home</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>edu.stanford.nlp</groupId>
      <artifactId>stanford-corenlp</artifactId>
      <version>{version}</version>{classifier}
    </dependency>"""
_CLASSIFIERS = ("", "<classifier>models</classifier>", "<classifier>models-english</classifier>")


class JarsError(RuntimeError):
    """The jars could not be fetched; the message says what to do."""


def default_home(version: str = VERSION) -> Path:
    """The folder of the jars of a version, for CORENLP_HOME; complete if it exists."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "phrasemill" / "corenlp" / version


def fetch(version: str = VERSION) -> Path:
    """Fetch CoreNLP, its dependencies and its English models (1 GB) unless they are there; returns their folder."""
    home = default_home(version)
    if home.is_dir():
        return home
    if not shutil.which("mvn"):
        raise JarsError("no mvn on the PATH; install Maven, or unpack CoreNLP's own archive and set CORENLP_HOME to it")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        dependencies = "".join(_DEPENDENCY.format(version=version, classifier=each) for each in _CLASSIFIERS)
        Path(folder, "pom.xml").write_text(_POM.format(dependencies=dependencies))
        jars = Path(folder, "jars")
        command = ["mvn", "-B", "-q", "-f", folder, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise JarsError(f"mvn ended with {done.returncode}:\n{done.stdout[-2000:]}")
        try:
            jars.rename(home)  # last, so that the folder is complete if it exists
        except OSError:
            if not home.is_dir():  # otherwise another process was faster
                raise
    return home


def find_home(home: str = "") -> Path:
    """The folder of CoreNLP's jars. Raises UserError with the remedy if there is none."""
    named = home or os.environ.get("CORENLP_HOME", "")
    folder = Path(named) if named else default_home()
    if not any(folder.glob("stanford-corenlp-*.jar")):
        raise UserError(
            f"corenlp: no CoreNLP in {folder}; fetch it with `python -m transforms.parsing.corenlp_jars`, or set "
            "CORENLP_HOME to the folder of its jars, or give the endpoint of a server"
        )
    return folder


def release_of(home: Path) -> str:
    """The version of CoreNLP, by the name of its jar."""
    names = (re.fullmatch(r"stanford-corenlp-([\d.]+)\.jar", jar.name) for jar in sorted(home.glob("*.jar")))
    return next((name[1] for name in names if name), "")


def sha256_of_model(home: Path, model: str) -> str:
    """The sha256 of a model in the jars. Raises UserError if it is in none of them."""
    for jar in sorted(home.glob("*.jar")):
        with zipfile.ZipFile(jar) as archive, contextlib.suppress(KeyError), archive.open(model) as content:
            digest = hashlib.sha256()
            while block := content.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    raise UserError(f"corenlp: no model {model} in the jars of {home}; englishSR is in the jar models-english")


def find_java() -> str:
    """The path of the program `java`. Raises UserError if there is none."""
    if not (java := shutil.which("java")):
        raise UserError("corenlp: no java on the PATH; install Java 11 or later, or give the endpoint of a server")
    return java


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Fetch CoreNLP's jars with Maven and print their folder, CORENLP_HOME."
    )
    parser.add_argument("--version", default=VERSION, help="default: %(default)s")
    try:
        print(fetch(parser.parse_args().version))
    except JarsError as error:
        print(f"corenlp_jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
