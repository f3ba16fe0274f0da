"""Seeded mistakes, and the tests that notice them: shows whether a change of the tests loses anything.

    make mutants                                                     # all of them: an hour or two
    python scripts/mutants.py --only window --output found.json

Each mistake is made alone in a copy of the tree, and the tests that should notice it are run there; without a mistake
they must pass. Exit status: 0, or 1 if a mistake went unnoticed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# "@ FILE TESTS...", then the mistakes in that file: "# what is wrong", text that the file has once, " =>", and the text
# to replace it with. Both texts may have several lines; the first text may begin inside a line.
TABLE = r"""
@ pipelines/engine/task_writer.py tests/pipelines/test_stages.py tests/storage/test_disk_faults.py
# a unit's completion record is written before its files
stage.process(work.unit(stage, unit), write)
        completion =>
folder.write(record_name(unit), write.completion().to_json().encode())
        stage.process(work.unit(stage, unit), write)
        completion
# a unit whose ledger does not add up is taken
if self._stage.counts and self.ledger.lost: => if self._stage.counts and self.ledger.lost > 1:
# a failed attempt leaves its files behind
write.discard() => pass
# an attempt that goes on from a checkpoint forgets the ledger of what was before it
self.ledger = done.ledger or self.ledger => pass
@ pipelines/engine/stage.py tests/pipelines/test_stages.py tests/storage/test_disk_faults.py
# a stage is closed though units are missing
missing = [unit for unit in range(len(work.units(stage.name))) if unit not in done] => missing = []
# a resumed run does the finished units again
len(_plan(folder.uri))) if unit not in done] => len(_plan(folder.uri)))]
# a resumed run trusts records whose files were cut short
if any(sizes.get(file.path) != file.bytes for file in files): => if False:
@ pipelines/engine/stage.py tests/pipelines/test_units.py
# the units of an array job's task begin one too late
range(self.number - 1, total, self.of) => range(self.number, total, self.of)
@ pipelines/engine/stage.py tests/pipelines/test_workers.py tests/pipelines/test_monitor.py
# the limit on rejects is not looked at when a stage is closed
check_rejects(work, stage, total, rate=max_reject_rate, expected=total.read) => pass
@ pipelines/engine/stage.py tests/pipelines/test_mining.py
# the fingerprint leaves out the options that are grouped in rules
found |= _values(value) if => found |= {} if
@ schemas/options.py tests/schemas/test_options.py
# a blank is taken for the value of an option
if not text.strip(): => if not text:
# the terms of a list come in the order in which they are typed
each for each in terms if each.casefold() in wanted => each for each in wanted
# a command that is shown leaves out what differs from the class, not from the command's own defaults
self.options(type(chosen)) => options_of(type(chosen))
@ pipelines/cli.py tests/pipelines/test_command_line.py
# the classes of a command's module are those of the program, which other processes do not find
if command is getattr( => if None is getattr(
@ pipelines/engine/monitor.py tests/pipelines/test_monitor.py
# the limit on rejects is not looked at while units are done
check_rejects(work, stage, self._total, rate=run.max_reject_rate, expected=expected, part=run.part) => pass
@ pipelines/engine/dataset_build.py tests/pipelines/test_stages.py
# the ledgers of a dataset are not held against its rows
(published and rows != report.ledger.written) => False
# a finished dataset of other settings is reused
if same and (reuse or => if (reuse or
# the fingerprint leaves out the models
"models": [dict(each) for each in self.models], => "models": [],
# the manifest is published before the card and the report
self._write_report(manifest) => self.output.write(MANIFEST, manifest.to_json().encode()); self._write_report(manifest)
# the work is deleted before the manifest is there
self._write_report(manifest) => self.output.delete(WORK); self._write_report(manifest)
# an interrupted publication starts again with files that were moved
if self.output.exists(file.path): => if True:
@ pipelines/engine/dataset_build.py tests/pipelines/test_extract.py
# a shard that takes the place of another is published beside it
if file.supersedes: => if False:
@ pipelines/engine/exchange.py tests/pipelines/test_exchange.py
# the lowest key of a range falls into the range before it
range_starts(ranges), side="left") => range_starts(ranges), side="right")
# rows of one key come in the reverse order of the files
for file in files: => for file in reversed(files):
# a merge goes on from a file's first row instead of its last
(key(new, new.num_rows - 1), number) => (key(new, 0), number)
@ pipelines/engine/attempts.py tests/pipelines/test_workers.py
# a unit is tried once less
if fault.attempt < ATTEMPTS: => if fault.attempt < ATTEMPTS - 1:
@ pipelines/engine/worker_pool.py tests/pipelines/test_workers.py
# a worker that was stopped is waited for
if now - self.beaten > limits.silent: => if False:
# the unit of a worker that died is forgotten
yield worker, _end_of(code) => pass
@ pipelines/engine/lease.py tests/pipelines/test_monitor.py tests/pipelines/test_units.py
# the lease refuses nobody
mark["run"] != own and is_alive(mark)] => mark["run"] != own and is_alive(mark) and False]
# a job goes on though its run was stopped
if lease is None or (lease["run"] == run and lease["state"] == "running"): => if True:
@ pipelines/stages/extract.py tests/pipelines/test_extract.py
@ pipelines/stages/duplicates.py tests/pipelines/test_extract.py
# duplicates are looked for by the numbers of another shard
int(places.first[shard]) => int(places.first[0])
@ pipelines/stages/contexts.py tests/pipelines/test_mining.py
# contexts of the validation split are written to train
(pc.invert(validation), validation), strict=True) => (validation, pc.invert(validation)), strict=True)
@ pipelines/stages/parse.py tests/pipelines/test_parse.py
# a document on which workers died is left out without a word
write.reject(fault.reason, source=doc_id, position="the whole document", excerpt=text, exception=fault.what) => pass
@ schemas/storage/folder.py tests/storage/test_disk_faults.py tests/storage/test_object_storage.py
# a file is written in place instead of moved there whole
self._part = f"{name}.{uuid.uuid4().hex}.part" => self._part = name
# a file is not brought to the disk before it is moved
os.fsync(self._stream.fileno()) => pass
# the name of a moved file is not brought to the disk
os.fsync(descriptor) => pass
@ schemas/dataset_checks.py tests/schemas/test_check.py
# the hashes of shards are not checked
elif not quick and (found => elif quick and (found
# the bytes of shards are not checked
if size != shard.bytes: => if False:
# the rows of shards are not counted
if rows != shard.rows: => if False:
# a ledger that accounts for more than was read passes
if ledger.lost: => if ledger.lost > 0:
# rejects without a row in the side table pass
if rows != ledger: => if rows > ledger:
@ schemas/kinds/contexts.py tests/schemas/test_check.py
# a negative that is another row's context passes
where(pc.not_equal(own.column("negative"), pa.array(expected, pa.string()))) => where([])
# a surface that does not stand in its document passes
if text[start:end] != surface and => if False and
@ schemas/checks.py tests/schemas/test_check_mentions.py tests/schemas/test_check.py
# a document or entity in both splits passes
if wanted[owner] != split: => if False:
@ schemas/keys.py tests/contexts/test_windows.py tests/pipelines/test_exchange.py
# the order of contexts ignores the seed
f"{doc_id}\0{start_char}\0{phrase}".encode(), seed=seed) => f"{doc_id}\0{start_char}\0{phrase}".encode(), seed=0)
# the validation split is what is not in it
< rate * 2.0**64 => >= rate * 2.0**64
# keys that agree in their first half are not ordered
several[run[1:][same & differs]] = True => pass
@ schemas/manifest.py tests/pipelines/test_workers.py tests/pipelines/test_parse.py tests/pipelines/test_rejects.py
# the rejects of later units are missing in a stage's ledger
self.rejected + other.rejected, => self.rejected,
@ transforms/contexts/windows.py tests/contexts/test_windows.py
# the window is one token short
last = np.minimum(first + rules.window, high) => last = np.minimum(first + rules.window - 1, high)
# the phrase stands in the middle where chance should decide
rules.placement == "centre" => rules.placement != "centre"
# the phrase never stands at the end of its window
chance % (room + 1) => chance % np.maximum(room, 1)
# mask_start is off by one
mask_start=before[own + 1] - before[edges[:-1]], => mask_start=before[own + 1] - before[edges[:-1]] + 1,
# a window goes over the text of a rejected sentence
(tokens.document[1:] != tokens.document[:-1]) | (between > 0) => tokens.document[1:] != tokens.document[:-1]
# text after an unknown word is one byte off
len(_UNKNOWN) - len(token) => len(_UNKNOWN) - len(token) + 1
@ transforms/contexts/choosing.py tests/contexts/test_choosing.py
# the occurrences of highest hash are kept
np.lexsort((*ties, priority, index)) => np.lexsort((*ties, ~priority, index))
@ schemas/negatives.py tests/schemas/test_negatives.py
# the search for a negative does not come round to the rows before
range(self._circle.ranges + 1) => range(self._circle.ranges)
# a negative may be of the same document
[keys.phrase, keys.document] if => [keys.phrase] if
# the words of a phrase are found within longer words
if re.match(r"\w", words) else => if not re.match(r"\w", words) else
# the search goes on for ever
left = left - (n - start) => left = left - 0
@ transforms/phrases/counting.py tests/phrases/test_counting.py
# of labels with equal counts the last is taken
by_label.argmax(axis=0) if => len(PHRASE_LABELS) - 1 - by_label[::-1].argmax(axis=0) if
@ transforms/phrases/counting.py tests/pipelines/test_mining.py
# phrases of equal frequency come in reverse order
("key_hi", "ascending"), => ("key_hi", "descending"),
@ transforms/phrases/occurrences.py tests/phrases
# phrases may be longer by one token than --max-tokens
found.end - found.start <= rules.max_tokens => found.end - found.start <= rules.max_tokens + 1
# a phrase of a determiner and a pronoun stays
Class.PRONOUN | Class.DETERMINER | Class.PUNCTUATION => Class.PRONOUN | Class.PUNCTUATION
# of constituents over the same words the last label counts
words * len(PHRASE_LABELS) + self.label => words * len(PHRASE_LABELS) - self.label
@ transforms/mentions/redirects.py tests/mentions/test_redirects.py
# long chains of redirects count as loops
len(under_way).bit_length() + 1 => len(under_way).bit_length() - 1
@ transforms/mentions/titles.py tests/mentions/test_titles.py
# a title keeps the colon that it was linked with
.removeprefix(":").lstrip() => .lstrip()
@ transforms/mentions/finding.py tests/mentions/test_finding.py
# a mention at the end of its sentence is lost
span.end <= end else None => span.end < end else None
@ transforms/mentions/pairs.py tests/mentions/test_choosing_pairs.py
# one mention more of each key takes part
places_in_runs(new_key) < rules => places_in_runs(new_key) <= rules
@ transforms/mentions/masking.py tests/mentions/test_masking.py
# the sub-token after a mention counts as one of it
first < end and last > start => first <= end and last > start
@ transforms/parsing/sentence_ends.py tests/parsing/test_sentences.py
# a sentence ends after Mr.
if last in TITLES or => if last in () or
@ transforms/parsing/sentences.py tests/parsing/test_sentences.py
# the first token of a sentence goes to the one before
bisect_left(starts, start, bounds[-1]) => bisect_left(starts, start + 1, bounds[-1])
@ transforms/parsing/phrasemill_parser.py tests/parsing/test_phrasemill_parser.py
# a sentence of just as many tokens as allowed is refused
len(sentence) > max_tokens: => len(sentence) >= max_tokens:
@ transforms/parsing/phrasemill/decode.py tests/parsing/test_phrasemill_decode.py
# a constituent that crosses a better one stays
if max(latest_end[inside], default=0) <= end and min => if min
@ transforms/sources/bzip2.py tests/sources/test_bzip2.py tests/sources/test_wikipedia.py
# every second block of bzip2 is overlooked
for before in (1, 2): => for before in (1,):
@ transforms/sources/streams.py tests/sources/test_streams.py tests/sources/test_bzip2.py
# a block that begins after a segment is read with it
if self._marks[index].bit < 8 * before else None => if self._marks[index].bit < 8 * before + 8 else None
@ transforms/sources/duplicates.py tests/sources/test_duplicates.py
# of duplicates the last stays
~run_begins(hi, lo, kind) => ~np.append(run_begins(hi, lo, kind)[1:], True)[: len(hi)]
@ transforms/sources/jsonlines.py tests/sources/test_jsonlines.py
# a line that is no JSON object is left out without a word
if not isinstance(record, dict):
        return record
    excerpt =>
if not isinstance(record, dict):
        return Filtered("no_text")
    excerpt
@ transforms/sources/lines.py tests/sources/test_jsonlines.py tests/sources/test_inputs.py
# the line that begins with a segment is lost
begin = max(0, start - 1) => begin = start
@ transforms/sources/prose.py tests/sources/test_wikitext.py tests/sources/test_html.py
# a link is one character long too much
start + len(anchor), title => start + len(anchor) + 1, title
@ transforms/sources/wikipedia.py tests/sources/test_wikipedia.py
# pages that begin after a segment are read with it
if begin < 0 or (self._last is not None and self._position + begin >= self._last): => if begin < 0:
@ trainers/loading/order.py tests/trainers/test_loader_order.py
# the lanes of the loader's order do not begin where the one before ends
place = lane * self._lane_rows + turn * run + within => place = lane * self._lane_rows + turn * run
# each epoch has the same order
self._rules.seed, self._source, self._epoch, *what => self._rules.seed, self._source, *what
# a mixture forgets which rows of a block came before
starts = [first * quota + int(n) for => starts = [first * quota for
# the last step is not shared out evenly
yield first + rest * turn.rank // turn.ranks, first + rest => yield first, first + rest
# a worker gives the batches of another turn
for batch in range(turn.worker, number, turn.workers): => for batch in range(turn.worker % 2, number, turn.workers):
# a rank has a batch more than another
return whole + (rest > 0 and last != "drop") => return whole + (rest >= batch_size and last != "drop")
@ trainers/data.py tests/trainers/test_loader_order.py
# a step that is done counts as that of one rank
rows = min(rows + self.batch_size * self.ranks, self.rows) => rows = min(rows + self.batch_size, self.rows)
# set_epoch goes back to the first row of the epoch where the loader is
if epoch != self.position.epoch: => if True:
# the step that is filled up goes on after the epoch
part = self._mix.part(epoch * self.rows + first, => part = self._mix.part(epoch * self.rows + start,
@ trainers/loading/reader.py tests/trainers/test_loader_files.py
# windows are kept when the last lane has left them
if not self._users[before]: => if False:
# a window is dropped though another lane is in it
self._users[before] -= 1 => self._users[before] = 0
# the rows of a mixture come source by source
return table.take(_numbers(places)) => return table
@ trainers/loading/sources.py tests/trainers/test_loader_files.py
# a shard of another size is read
if sizes[shard.path] != shard.bytes: => if False:
# a state goes on with files whose row groups differ
[file.shard.sha256 if file.shard else [file.name, footer.bytes], footer.rows] => [file.name]
"""


class Mutant(NamedTuple):
    """A mistake in a file: `text`, which the file has once, is replaced; with the arguments of pytest for it."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]

    def made_in(self, source: str) -> str:
        return source.replace(self.text, self.instead)


def parse(table: str) -> Iterator[Mutant]:
    for part in re.split(r"^@ ", table, flags=re.MULTILINE)[1:]:
        head, *mistakes = re.split(r"^# ", part, flags=re.MULTILINE)
        file, *tests = head.split()
        for mistake in mistakes:
            name, _, change = mistake.partition("\n")
            text, _, instead = change.partition(" =>")
            yield Mutant(name, file, text.strip(), instead.strip(), tuple(tests))


class Tree:
    """A copy of the working tree in which the tests run."""

    def __init__(self, root: Path, folder: Path) -> None:
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listing, cwd=root, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
        for name in filter(None, names):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # deleted, but not yet in git
                shutil.copy2(root / name, folder / name)
        self.root = folder
        # The copy comes before the installed package; messages name the "python" of the path.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PYTHONPATH": str(folder), "PATH": path}
        self.env.setdefault("PHRASEMILL_TEST_DATA", str(root.parent / "shared" / "data"))
        self._seconds: dict[str, float] = {}

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        # Python recognises compiled files by time (seconds) and size, which a mistake may not change.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def limit(self, tests: Sequence[str]) -> float:
        """How long tests may take, in seconds. The program ends if they fail without a mistake."""
        for path in tests:
            if path not in self._seconds:
                began = time.monotonic()
                # Twice, because a busy machine may be too slow the first time.
                if failed := self.failing([path], 1800) and self.failing([path], 1800):
                    sys.exit(f"{path}: fails without a mistake: {failed}")
                self._seconds[path] = time.monotonic() - began
        return 60 + 3 * sum(self._seconds[path] for path in tests)

    def failing(self, tests: Sequence[str], limit: float) -> str:
        """The first test that fails, or why there is no result; "" if all pass. Their processes are ended with them."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=no", *tests]
        with tempfile.TemporaryFile() as out:
            run = subprocess.Popen(command, cwd=self.root, env=self.env, stdout=out, stderr=out, start_new_session=True)
            try:
                status = run.wait(limit)
            except subprocess.TimeoutExpired:
                return f"no end within {limit:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
                run.wait()
            out.seek(0)
            said = out.read().decode(errors="replace")
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
        return "" if status == 0 else found[1] if found else f"pytest: exit status {status}: {said[-300:]}"


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT, table: str = TABLE) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="TEXT", action="append", help="only mistakes with this in their name or file")
    parser.add_argument("--tests", metavar="PATH", nargs="+", help="run these tests, not those in the table")
    parser.add_argument("--list", action="store_true", help="name the mistakes, and the tests that should notice them")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the results there, as JSON")
    chosen = parser.parse_args(arguments)
    mutants = [each for each in parse(table) if any(x in each.name + each.file for x in chosen.only or [""])]
    right = {each.file: (root / each.file).read_text(encoding="utf-8") for each in mutants}
    for each in mutants:
        if (times := right[each.file].count(each.text)) != 1:
            sys.exit(f"{each.name}: its text occurs {times} times in {each.file}, not once:\n{each.text}")
        compile(each.made_in(right[each.file]), each.file, "exec")
    if chosen.list:
        print("\n".join(f"{each.name}: {each.file}: {' '.join(each.tests)}" for each in mutants))
        return 0
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Tree(root, Path(folder) / "tree")
        for each in mutants:
            tests = tuple(chosen.tests or each.tests)
            limit = tree.limit(tests)
            tree.write(each.file, each.made_in(right[each.file]))
            began = time.monotonic()
            failed = tree.failing(tests, limit)
            seconds = round(time.monotonic() - began)
            tree.write(each.file, right[each.file])
            found[each.name] = {"file": each.file, "tests": tests, "caught_by": failed, "seconds": seconds}
            print(f"{each.name}: {failed or 'NOT CAUGHT'} ({seconds} s)", flush=True)
            if chosen.output:
                chosen.output.write_text(json.dumps(found, indent=1) + "\n")
    caught = sum(bool(each["caught_by"]) for each in found.values())
    print(f"{caught} of {len(found)} caught")
    return 0 if caught == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
