"""Run what is missing of experiments and keep every cell as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lynceus.lab.cell import Cell, Done
from lynceus.lab.engines import Crashed, Engine
from lynceus.lab.store import Store


@dataclass(frozen=True)
class Ran:
    """What a campaign did."""

    asked: int
    """Cells of the experiments, equal ones counted once."""
    found: int
    """Those that had been run before."""
    made: int
    crashed: tuple[Crashed, ...]


def run_cells(
    cells: Sequence[Cell], engine: Engine, store: Store, progress: Callable[[Done | Crashed], None] | None = None
) -> Ran:
    """Run the cells that the store lacks. Interrupt it at any time; the next call goes on."""
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
