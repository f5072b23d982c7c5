"""Engines run cells: in one or several local processes, or on a Ray cluster. All give the same traces.

An engine yields every cell that has run, in any order, and a message for every one that crashed; a crash does not affect other cells.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol

from lynceus.errors import InputError, MissingExtraError
from lynceus.replay.process_pool import process_pool
from lynceus_lab.cell import Cell, Done, run_cell


@dataclass(frozen=True)
class Crashed:
    """A cell that failed."""

    cell: Cell
    reason: str


class Engine(Protocol):
    """Runs cells."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Run every cell once, and yield results as they come."""


def engine_named(name: str, workers: int) -> Engine:
    """The engine `local`, `ray` (start or join a cluster on this machine), or `ray://HOST:PORT`."""
    if workers < 1:
        raise InputError(f"workers: got {workers}; give at least 1 process.")
    if name == "local":
        return InProcess() if workers == 1 else Processes(workers)
    if name == "ray" or name.startswith("ray://"):
        from lynceus_lab.ray_engine import RayEngine

        return RayEngine(None if name == "ray" else name)
    raise InputError(f"engine: got {name!r}; choose local, ray, or ray://HOST:PORT.")


def attempt(cell: Cell) -> Done | Crashed:
    """Run a cell; an exception becomes `Crashed`, but an input error is raised, because every other cell would meet it, too."""
    try:
        return run_cell(cell)
    except InputError:
        raise
    except MissingExtraError as error:
        raise InputError(str(error)) from None  # it cannot be pickled
    except Exception as error:
        return Crashed(cell, f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class InProcess:
    """Runs one cell after the other in this process."""

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Run every cell once, in order."""
        return map(attempt, cells)


@dataclass(frozen=True)
class Processes:
    """Runs cells in several processes of this machine, one thread each."""

    workers: int

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        """Run every cell once. When a process dies, its cell is unknown, so all running cells run again, each alone."""
        remaining = iter(cells)
        while suspects := (yield from _run_in_pool(remaining, self.workers)):
            for cell in suspects:
                if (yield from _run_in_pool(iter([cell]), 1)):
                    yield Crashed(cell, "its process died, even when it ran alone (out of memory, or killed)")


def _run_in_pool(remaining: Iterator[Cell], workers: int) -> Generator[Done | Crashed, None, list[Cell]]:
    """Yield results until no cells are left or a process dies; returns the cells that were running then."""
    running: dict[Future[Done | Crashed], Cell] = {}
    with process_pool(workers) as pool:
        while True:
            # A short queue: Ctrl-C discards little, and few results are in memory.
            while len(running) < 2 * workers and (cell := next(remaining, None)) is not None:
                try:
                    running[pool.submit(attempt, cell)] = cell
                except BrokenProcessPool:
                    return [*running.values(), cell]
            if not running:
                return []
            lost = []
            for future in pool.finished(running):
                cell = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append(cell)
                else:
                    yield future.result()
            if lost:
                return [*lost, *running.values()]
