"""Engines run cells: here in one or several processes, or on a Ray cluster. All give the same traces.

An engine hands back every cell that ended, in whatever order, and a sentence for every one that crashed: a crash loses nothing else.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol

from lynceus.errors import InputError, LynceusError
from lynceus.lab.cell import Cell, Done, run_cell
from lynceus.replay.campaign import one_thread_each


@dataclass(frozen=True)
class Crashed:
    """A cell that could not be run to its end."""

    cell: Cell
    reason: str


class Engine(Protocol):
    """Runs cells."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Every cell once, as it ends."""


def engine_named(name: str, workers: int) -> Engine:
    """`local`, `ray` (start or join a cluster of this machine), or `ray://HOST:PORT`."""
    if workers < 1:
        raise InputError(f"workers: {workers} came; give at least 1 process.")
    if name == "local":
        return InProcess() if workers == 1 else Processes(workers)
    if name == "ray" or name.startswith("ray://"):
        from lynceus.lab.on_ray import OnRay

        return OnRay(None if name == "ray" else name)
    raise InputError(f"engine: {name!r} came; choose local, ray, or ray://HOST:PORT.")


def attempt(cell: Cell) -> Done | Crashed:
    """Run a cell; what goes wrong inside it is its own matter."""
    try:
        return run_cell(cell)
    except LynceusError:
        raise  # a mistake in the experiment: every further cell would meet it too
    except Exception as error:
        return Crashed(cell, f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class InProcess:
    """One cell after the other, here."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Every cell once, in order."""
        return map(attempt, cells)


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, one thread each."""

    workers: int

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Every cell once. A process that dies takes its own cell along; the others go on in a new pool."""
        waiting = list(cells)
        tried: dict[Cell, int] = {}
        while waiting:
            ended: set[Cell] = set()
            for result in self._one_pool(waiting):
                ended.add(result.cell)
                yield result
            waiting = [cell for cell in waiting if cell not in ended]
            # Of a broken pool nobody knows which cell broke it: the first that was under way gets one more chance, alone.
            for cell in waiting[:1]:
                tried[cell] = tried.get(cell, 0) + 1
                if tried[cell] > 1:
                    waiting.remove(cell)
                    yield Crashed(cell, "its process died twice (out of memory, or killed)")

    def _one_pool(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Results until all are there or the pool breaks."""
        before = set(multiprocessing.active_children())
        with one_thread_each():
            pool = ProcessPoolExecutor(self.workers, multiprocessing.get_context("spawn"), initializer=_quiet)
            running: dict[Future[Done | Crashed], Cell] = {}
            coming = iter(cells)
            try:
                while True:
                    # A short queue: Ctrl-C then has little to throw away, and memory holds few results.
                    while len(running) < 2 * self.workers and (cell := next(coming, None)) is not None:
                        running[pool.submit(attempt, cell)] = cell
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        yield future.result()
            except BrokenProcessPool:
                return
            except BaseException:
                for child in set(multiprocessing.active_children()) - before:
                    child.terminate()
                raise
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _quiet() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once; its parent speaks for it
