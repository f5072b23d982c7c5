"""What trials left behind: jobs, processes and machines that should have ended, directories that belong to nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lynceus.cli.opened import Opened
from lynceus.errors import LynceusError
from lynceus.executor import Belonging, Executor
from lynceus.job.execution import executor_of

if TYPE_CHECKING:
    from lynceus.executor import Sweeps

_ATTENDED_S = 60.0
"""A study whose worker gave a sign of life so recently is being worked on."""


@dataclass(frozen=True)
class Leftover:
    """One thing to end or remove."""

    study: str
    kind: str
    """`processes`, `directory`, `job`, `cluster` and so on."""
    where: str
    """What an executor calls it: process numbers, a path, a job's number."""
    why: str
    stranger: bool = False
    """Whether it belongs to a study that this storage does not hold; somebody else's storage may."""


@dataclass(frozen=True)
class Swept:
    """A leftover with the executor that can end it."""

    leftover: Leftover
    belonging: Belonging
    owner: Opened


def find_leftovers(studies: list[Opened], unseen: dict[str, str], *, outputs: bool, strangers: bool) -> list[Swept]:
    """Everything of these studies that no open trial needs; with `outputs`, directories of settled trials; with `strangers`, what
    belongs to studies that are none of these. A study whose executor cannot be asked goes to `unseen`, with the reason."""
    found: dict[tuple[str, str, str], Swept] = {}
    known = {(one.study.name, one.study.identity) for one in studies}
    for one in studies:
        try:
            belongings = list(_belongings(one))
        except LynceusError as error:
            unseen[one.name] = str(error)
            continue
        for belonging in belongings:
            ours = (belonging.study, belonging.identity) == (one.study.name, one.study.identity)
            if ours:
                why = _why(one, belonging, outputs=outputs)
            elif strangers and (belonging.study, belonging.identity) not in known:
                why = "of a study that this storage does not hold"
            else:
                continue
            if why:
                where = belonging.detail or belonging.name
                left = Leftover(belonging.study, belonging.kind, where, why, stranger=not ours)
                found.setdefault((belonging.kind, belonging.name, belonging.study), Swept(left, belonging, one))
    return list(found.values())


def remove_leftovers(swept: list[Swept]) -> None:
    """End and remove, first what runs, then what lies about; each study's executor is joined once."""
    for name in dict.fromkeys(one.owner.name for one in swept):
        mine = [one for one in swept if one.owner.name == name]
        with executor_of(mine[0].owner.prepared, {}) as executor:
            for one in sorted(mine, key=lambda one: one.belonging.kind == "directory"):
                _sweeping(executor).end(one.belonging)


def abandoned(one: Opened) -> list[int]:
    """Open trials of a study that nobody works on."""
    one.study.refresh()
    return [] if _attended(one) else sorted(order.number for order in one.study.pending)


def end_abandoned(one: Opened, secrets: dict[str, str]) -> None:
    """Take over the open trials of a study, end them, and settle what they cost."""
    from lynceus.engine import explore
    from lynceus.executor import WallClock
    from lynceus.ledger import Wish

    with executor_of(one.prepared, secrets) as executor:
        explore(one.study, executor, WallClock(), wish=lambda: Wish.KILL)
    one.study.release()


def _belongings(one: Opened) -> Iterator[Belonging]:
    one.study.refresh()
    with executor_of(one.prepared, {}) as executor:
        if hasattr(executor, "belongings"):
            yield from _sweeping(executor).belongings()


def _why(one: Opened, belonging: Belonging, *, outputs: bool) -> str:
    """Why something is not needed any more; empty when it is."""
    number = belonging.number
    if number is None:
        needed = bool(one.study.pending) or _attended(one)
        return "" if needed else "kept for the study, which has no open trial and no worker"
    if number in {order.number for order in one.study.pending}:
        return ""
    settled = number in {seen.order.number for seen in one.study.history}
    if settled and belonging.kind == "directory" and not outputs:
        return ""
    return f"of trial {number}, which {'has settled' if settled else 'is not part of the study'}"


def _attended(one: Opened) -> bool:
    from lynceus.cli.glance import was_left
    from lynceus.ledger.worker import lives

    workers = {trial.worker for trial in one.storage.trials(one.name) if trial.outcome is None}
    if workers and all(worker is None or lives(worker) is False for worker in workers):
        return False  # they died on this machine, which can be seen at once
    record = one.storage.load_study(one.name)
    seen = record.seen_s
    return seen is not None and time.time() - seen < _ATTENDED_S and not was_left(one.storage, record)


def _sweeping(executor: Executor) -> Sweeps:
    return executor  # type: ignore[return-value]
