"""Helpers of the lab's tests."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lynceus.lab.cell import Cell, Done
from lynceus.lab.engines import Crashed, InProcess
from lynceus.replay import Replay


def changed(path: Path, old: str, new: str) -> None:
    """Replace a text in a file; it must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


class Counting:
    """An engine that runs cells here, counts them, and may crash some."""

    def __init__(self, crash: Sequence[int] = (), stop_after: int | None = None) -> None:
        self.ran: list[Cell] = []
        self.crash, self.stop_after = crash, stop_after

    def __call__(self, cells: Sequence[Cell]) -> Iterator[Done | Crashed]:
        for place, cell in enumerate(cells):
            if place == self.stop_after:
                raise KeyboardInterrupt
            self.ran.append(cell)
            yield Crashed(cell, "it was asked to") if place in self.crash else next(iter(InProcess()([cell])))


def timeless(replay: Replay) -> tuple[object, ...]:
    """Everything of a replay but how long its decisions took."""
    steps = tuple(
        (
            step.row,
            step.state,
            step.charged_usd,
            step.spent_usd,
            step.cno,
            step.seconds,
            repr(step.told_s),
            step.modelled,
        )
        for step in replay.steps
    )
    return replay.policy, replay.seed, steps, replay.reason, replay.cno_at_stop
