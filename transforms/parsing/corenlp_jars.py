"""Fetch CoreNLP's jars with Maven: `export CORENLP_HOME=$(python -m transforms.parsing.corenlp_jars)`.

CoreNLP is under the GPL: it runs as a server beside phrasemill and is no part of it. Needs `mvn`, configured as ever.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

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
    """Where the jars of a version are kept: a folder for CORENLP_HOME, whole if it is there at all."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "phrasemill" / "corenlp" / version


def fetch(version: str = VERSION) -> Path:
    """Fetch CoreNLP, what it depends on and its English models (1 GB) unless they are there; returns their folder."""
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
            jars.rename(home)  # last and at once: a folder is whole or not there
        except OSError:
            if not home.is_dir():  # not another process that was faster
                raise
    return home


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
