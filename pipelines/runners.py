"""Placing units of work: on this machine's cores, or on whatever runner Beam knows.

A pipeline is one Beam job. Each stage is planned when the one before is closed; only numbers of units cross a
shuffle, all else lies on storage. `DirectRunner` means Beam's in-process runner (FnApiRunner): Beam's own
DirectRunner may download another engine, and its multi-process mode hangs when a worker dies. So on one machine the
units run in a pool of processes of ours, which notices.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from pipelines.progress import Progress
from pipelines.stages import Build, Completion, Stage, StageError, Work, close_stage, open_stage, run_unit
from schemas.errors import UserError

ATTEMPTS = 3
"""How often a unit is tried before the run stops."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM")


def run(builds: Sequence[Build], *, runner: str, workers: int, beam_args: Sequence[str], progress: Progress) -> None:
    """Build the datasets in order, as one Beam job. Raises what stopped it, UserError for what a user can mend."""
    if runner == "DirectRunner":
        with LocalPool(workers, progress) as pool:
            _run_job(builds, "FnApiRunner", beam_args, pool)
    else:
        _run_job(builds, runner, beam_args, None)


def _run_job(builds: Sequence[Build], runner: str, beam_args: Sequence[str], pool: LocalPool | None) -> None:
    # Beam takes two seconds to import: not for --help, not in the worker processes.
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.graph import build_graph

    options = PipelineOptions([*beam_args, f"--runner={runner}"])
    pipeline = build_graph(builds, options)
    try:
        pipeline.run().wait_until_finish()
    except BaseException:
        # Beam wraps an error of a stage in text of its own; the pool kept the error itself.
        if pool is not None and pool.failure is not None:
            raise pool.failure from None
        raise


class LocalPool:
    """Worker processes on this machine. One pool serves all stages of a run, so that models are loaded once."""

    current: LocalPool | None = None

    def __init__(self, workers: int, progress: Progress) -> None:
        self.workers = workers
        self.failure: BaseException | None = None
        self._progress = progress
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> LocalPool:
        LocalPool.current = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LocalPool.current = None
        self._stop(kill=kind is not None)

    def open(self, work: Work, stage: Stage) -> list[int]:
        try:
            todo = open_stage(work, stage)
            self._progress.begin(stage, len(todo))
            return todo
        except BaseException as error:
            self.failure = error
            raise

    def close(self, work: Work, stage: Stage) -> None:
        try:
            self._progress.end(stage, close_stage(work, stage))
        except BaseException as error:
            self.failure = error
            raise

    def finish(self, build: Build) -> None:
        try:
            build.finish()
        except BaseException as error:
            self.failure = error
            raise

    def run_units(self, work: Work, stage: Stage, units: Iterable[int]) -> None:
        """Do the units; each is tried up to ATTEMPTS times."""
        try:
            todo = sorted(units)
            attempts = dict.fromkeys(todo, 0)
            while todo:
                todo = self._round(work, stage, todo, attempts)
        except BaseException as error:
            self.failure = error
            raise

    def _round(self, work: Work, stage: Stage, todo: Sequence[int], attempts: dict[int, int]) -> list[int]:
        """Try each unit once; returns those to try again."""
        again = []
        with _deaf_to_interrupts():
            futures = {self._pool().submit(_work, work, stage, unit): unit for unit in todo}
        try:
            for future in as_completed(futures):
                unit = futures[future]
                try:
                    self._progress.advance(stage, future.result())
                except UserError:
                    raise
                except Exception as error:
                    if isinstance(error, BrokenProcessPool):
                        self._stop(kill=True)
                    attempts[unit] += 1
                    if attempts[unit] >= ATTEMPTS:
                        raise _given_up(stage, unit, error) from error
                    again.append(unit)
        finally:
            for future in futures:
                future.cancel()
        return again

    def _pool(self) -> ProcessPoolExecutor:
        if self._executor is None:
            # A worker is one core: more threads would change the order of sums in models, and fight each other.
            for name in _THREADS:
                os.environ[name] = "false" if name == "TOKENIZERS_PARALLELISM" else "1"
            # Threads of Beam and Arrow do not survive a fork.
            context = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_start_worker)
        return self._executor

    def _stop(self, *, kill: bool) -> None:
        if self._executor is None:
            return
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        self._executor.shutdown(wait=not kill, cancel_futures=True)
        if kill:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
        self._executor = None


def _given_up(stage: Stage, unit: int, error: Exception) -> Exception:
    """The error that ends the run after the last attempt at a unit."""
    if isinstance(error, BrokenProcessPool):
        return UserError(
            f"{stage.name}: a worker process died {ATTEMPTS} times on unit {unit} or beside it, most likely out of "
            "memory: use fewer --workers; --resume goes on with what is done"
        )
    what = f"{type(error).__name__}: {error}"
    return StageError(f"{stage.name}: unit {unit} failed {ATTEMPTS} times: {what}; --resume goes on with what is done")


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C from their first instruction; the parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_worker() -> None:
    import pyarrow as pa

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(2)
    silence()


def _end_with_parent() -> None:
    """A worker whose parent was killed has nobody to work for."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(work: Work, stage: Stage, unit: int) -> Completion:
    return run_unit(work, stage, unit)


def silence() -> None:
    """Keep the screen for our own lines: libraries log and warn much. What goes wrong comes as an exception."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)


def known_beam_flags() -> Iterator[str]:
    """All flags that Beam knows, with their dashes."""
    import argparse

    from apache_beam.options.pipeline_options import PipelineOptions

    parser: Any = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(parser)
    for action in parser._actions:
        yield from action.option_strings
