"""Run the missing cells of experiments, and store each as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lynceus_lab.cell import Cell, Done
from lynceus_lab.engines import Crashed, Engine
from lynceus_lab.trace_store import Store


@dataclass(frozen=True)
class Ran:
    """The cells of a campaign, counted."""

    asked: int
    """Cells of the experiments; equal ones count once."""
    found: int
    """Cells that were stored already."""
    made: int
    crashed: tuple[Crashed, ...]


def run_cells(
    cells: Sequence[Cell], engine: Engine, store: Store, progress: Callable[[Done | Crashed], None] | None = None
) -> Ran:
    """Run the cells that the store lacks. After an interruption, the next call continues."""
    every = list(dict.fromkeys(cells))
    missing = store.missing(every)
    made, crashed = 0, []
    for result in engine(missing):
        if isinstance(result, Done):
            store.keep(result)
            made += 1
        else:
            crashed.append(result)
        if progress is not None:
            progress(result)
    return Ran(len(every), len(every) - len(missing), made, tuple(crashed))
