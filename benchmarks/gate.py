"""The sha256 of every file of every kind of dataset, made in every way that phrasemill has.

    python -m benchmarks.gate --data ../shared/data --output /tmp/gate --write gate.json    # before a change
    python -m benchmarks.gate --data ../shared/data --output /tmp/gate --compare gate.json  # after it

Documents, sentences, phrases and contexts of two Wikipedia fragments and two books, the entities and typed phrases of
their sentences, the augmentations, neighbours and (of a few) paraphrases of these, and mentions, aliases and pairs
(plain, masked, all pairs) of the fragments: by one and two workers, by `--units`, by Prism with workers in the
submitting process and in a worker pool, and after a kill with `--resume`. All ways must give the same files, and with
`--compare` those of the table.
Hashes of sentences, and of datasets made from them, hold for one kind of CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import harness
from transforms.paraphrase.generators.identities import EMBEDDED
from transforms.sources.sample import sample_inputs

WIKIPEDIA = ("corpora/wikipedia/enwiki-fragment.xml.bz2", "corpora/wikipedia/enwiki-minidump.xml.bz2")
BOOKS = ("corpora/books/mary-shelley_frankenstein.txt", "corpora/books/h-g-wells_the-war-of-the-worlds.txt")


class Job(NamedTuple):
    """A command, the datasets it writes next to its output, and the commands that make them one by one."""

    module: str
    suffixes: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]  # (module, suffix of its output), for `--units`
    flags: tuple[str, ...] = ()


CONTEXTS = Job(
    "mine_contexts",
    ("-documents", "-sentences", "-phrases", ""),
    (
        ("extract_documents", "-documents"),
        ("parse_sentences", "-sentences"),
        ("count_phrases", "-phrases"),
        ("mine_contexts", ""),
    ),
    ("--max-phrases", "60000", "--contexts-per-phrase", "2", "--validation-rate", "0.1"),
)
MENTIONS = Job(
    "mine_mentions",
    ("-documents", "-mentions", "-aliases", ""),
    (("extract_documents", "-documents"), ("find_mentions", "-mentions"), ("mine_mentions", "")),
    ("--validation-rate", "0.1"),
)
MASKED = Job("mine_mentions", ("",), (("mine_mentions", ""),), ("--masked",))
ALL_PAIRS = Job("mine_mentions", ("",), (("mine_mentions", ""),), ("--all-pairs",))
TYPED = Job("mine_phrases", ("-entities", ""), (("find_entities", "-entities"), ("mine_phrases", "")))
AUGMENTED = Job("augment", ("",), (("augment", ""),), ("--operations", "character,swap_tokens"))
NEIGHBOURS = Job("find_neighbours", ("",), (("find_neighbours", ""),))
FEW = Job("mine_phrases", ("",), (("mine_phrases", ""),), ("--max-phrases", "600"))
PARAPHRASES = Job(
    "paraphrase",
    ("-candidates", ""),
    (("generate_paraphrases", "-candidates"), ("paraphrase", "")),
    ("--preset", "paper"),
)


def run(module: str, *arguments: str) -> None:
    harness.run("-m", f"pipelines.{module}", *arguments)


def whole(*flags: str) -> Callable[[Job, list[str], str], None]:
    def make(job: Job, inputs: list[str], output: str) -> None:
        run(job.module, *inputs, *job.flags, "--output", output, *flags)

    return make


def by_units(job: Job, inputs: list[str], output: str) -> None:
    """Run two tasks of an array job for each stage, and then the command that publishes it."""
    for module, suffix in job.steps:
        own = [*inputs, "--output", f"{output}{suffix}"]
        if module in (job.module, "generate_paraphrases"):
            own += job.flags
        elif module == "count_phrases":
            own += job.flags[:2]
        if module == "mine_contexts":
            own = ["--input", f"{output}-sentences", *job.flags, "--output", output]
        run(module, *own, "--units=1/2")
        run(module, *own, "--units=2/2")
        run(module, *own, "--resume")
        inputs = ["--input", f"{output}{suffix}"]


def killed(job: Job, inputs: list[str], output: str) -> None:
    """Send SIGKILL to a run and its workers when some units are done, then run again with `--resume`."""
    arguments = [*inputs, *job.flags, "--output", output]
    process = subprocess.Popen(
        [sys.executable, "-m", f"pipelines.{job.module}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    steps = (
        "parse",
        "find_mentions",
        "group",
        "pair",
        "find_entities",
        "augment",
        "find_neighbours",
        "generate_paraphrases",
    )
    while process.poll() is None and not any(
        list(Path(f"{output}{suffix}").glob(f"_work/{step}/done/*")) for suffix in job.suffixes for step in steps
    ):
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)
    run(job.module, *arguments, "--resume")


@contextlib.contextmanager
def server(command: Sequence[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(
        ["timeout", "5400", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def clusters(prism: str | None) -> Iterator[dict[str, list[str]]]:
    """The flags of the ways that need servers; without the program `prism` there are none."""
    if not prism:
        yield {}
        return
    job, web, pool = free_port(), free_port(), free_port()
    pool_command = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", "--service_port", str(pool)]
    with server([prism, "--job_port", str(job), "--web_port", str(web)], job), server(pool_command, pool):
        portable = ["--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{job}"]
        external = ["--environment_type=EXTERNAL", f"--environment_config=127.0.0.1:{pool}"]
        yield {"loopback": [*portable, "--environment_type=LOOPBACK"], "pool": [*portable, *external]}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of test data (default: the sample that is shipped)")
    parser.add_argument("--output", type=Path, required=True, help="for the datasets; its content is replaced")
    parser.add_argument("--prism", default=shutil.which("prism"), help="the program of Beam's Prism runner")
    parser.add_argument("--only", default="", metavar="WAY,WAY", help="only these ways")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with a table")
    chosen, rest = parser.parse_known_args(arguments)
    sample = [[str(path)] for path in sample_inputs()]
    wikipedia, books = (
        [each for name in names for each in ("--input", str((chosen.data / name).resolve() if chosen.data else name))]
        for names in ((WIKIPEDIA, BOOKS) if chosen.data else sample)
    )
    small = rest or ["--shard-bytes", "500000"]
    table: dict[str, dict[str, str]] = json.loads(chosen.compare.read_text()) if chosen.compare else {}
    wrong = 0
    with clusters(chosen.prism) as flags:
        ways = {
            "one worker": whole("--workers", "1"),
            "two workers": whole("--workers", "2"),
            "units": by_units,
            **{name: whole(*each) for name, each in flags.items()},
            "killed": killed,
        }
        for way, make in ways.items():
            if chosen.only and way not in chosen.only.split(","):
                continue
            folder = (chosen.output / way.replace(" ", "-")).resolve()
            shutil.rmtree(folder, ignore_errors=True)
            mentions, sentences, typed, entities, few = (
                ["--input", str(folder / name)]
                for name in ("pairs-mentions", "contexts-sentences", "typed", "typed-entities", "few")
            )
            for name, job, inputs in (
                ("contexts", CONTEXTS, [*wikipedia, *books, *small]),
                ("pairs", MENTIONS, [*wikipedia, *small]),
                ("masked", MASKED, mentions),
                ("all-pairs", ALL_PAIRS, mentions),
                ("typed", TYPED, sentences),
                ("augmented", AUGMENTED, typed),
                ("neighbours", NEIGHBOURS, typed),
                ("few", FEW, entities),
                ("paraphrases", PARAPHRASES, few),
            ):
                if job is PARAPHRASES and not (EMBEDDED / "config.json").is_file():
                    print(f"{way}, {name}: skipped: the package comes without its paraphraser", flush=True)
                    continue
                began = time.monotonic()
                make(job, inputs, str(folder / name))
                found = harness.published(folder / name, job.suffixes)
                expected = table.setdefault(name, found)
                differ = sorted(each for each in {*found} if found[each] != expected.get(each))
                wrong += bool(differ)
                said = f"differ: {differ}" if differ else "the same"
                print(f"{way}, {name}: {len(found)} files, {time.monotonic() - began:.0f} s, {said}", flush=True)
    if chosen.write:
        chosen.write.write_text(json.dumps(table, indent=1, sort_keys=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
