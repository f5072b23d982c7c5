"""Engines run cells: here in one or several processes, or on a Ray cluster. All give the same traces.

An engine hands back every cell that ended, in whatever order, and a sentence for every one that crashed: a crash loses nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Protocol

from lynceus.errors import InputError, MissingExtraError
from lynceus.lab.cell import Cell, Done, run_cell
from lynceus.replay.pool import pool_of


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
    """Run a cell; what goes wrong inside it is its own matter, but a mistake in the experiment is met by every further cell too."""
    try:
        return run_cell(cell)
    except InputError:
        raise
    except MissingExtraError as error:
        raise InputError(str(error)) from None  # it cannot be pickled on its way out of a process
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
        """Every cell once. Of a process that dies nobody knows the cell, so all that were under way are run again, each alone."""
        coming = iter(cells)
        while suspects := (yield from _pool(coming, self.workers)):
            for cell in suspects:
                if (yield from _pool(iter([cell]), 1)):
                    yield Crashed(cell, "its process died, also when it ran alone (out of memory, or killed)")


def _pool(coming: Iterator[Cell], workers: int) -> Generator[Done | Crashed, None, list[Cell]]:
    """Results until no cells come any more or a process dies; returned are the cells that were under way then."""
    running: dict[Future[Done | Crashed], Cell] = {}
    with pool_of(workers) as pool:
        while True:
            # A short queue: Ctrl-C then has little to throw away, and memory holds few results.
            while len(running) < 2 * workers and (cell := next(coming, None)) is not None:
                try:
                    running[pool.submit(attempt, cell)] = cell
                except BrokenProcessPool:
                    return [*running.values(), cell]
            if not running:
                return []
            lost = []
            for future in pool.ended(running):
                cell = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append(cell)
                else:
                    yield future.result()
            if lost:
                return [*lost, *running.values()]
