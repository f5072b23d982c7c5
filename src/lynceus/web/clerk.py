"""Whoever writes to a study through this server goes through its clerk: one thread at a time per study, several deeds per transaction.

Deeds of one study wait for each other anyway, for the study's lock. So those that wait are done together: one lock, one commit, and
nobody is answered before what was done for him is on disk.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lynceus.cli.opened import Opened
from lynceus.errors import InputError, LynceusError
from lynceus.ledger.answers import Answer, Once
from lynceus.ledger.sql_ledger import SqlLedger
from lynceus.web.shelf import Shelf

MOST_TOGETHER = 64
"""Deeds in one transaction."""
THREADS = 8
"""Studies that are written at the same time."""


@dataclass(frozen=True)
class Result:
    """What a deed answers."""

    answer: dict[str, Any]
    """JSON values."""
    kept: bool = True
    """Whether a repetition of the request is given this answer; not so when nothing was done and a repetition may do more."""


Deed = Callable[[Opened], Result]
"""Does something inside the study's lock."""


@dataclass(frozen=True)
class Done:
    """What came of a deed."""

    answer: dict[str, Any]
    repeated: bool
    """The request had been done before; this is its first answer."""
    waited_s: float
    """From asking to the answer."""
    decided_s: float
    """How much of it somebody was deciding, for this deed or for one before it."""


_Result = tuple[dict[str, Any], bool] | LynceusError
"""An answer and whether it had been given before, or the mistake of whoever asked."""


@dataclass
class _Task:
    deed: Deed
    worker: str
    once: Once | None
    asked: float
    future: Future[Done] = field(default_factory=Future)


class Clerks:
    """The clerks of all studies of a shelf."""

    def __init__(self, shelf: Shelf, noticed: Callable[[str, Opened], None] | None = None) -> None:
        """`noticed` hears, in the clerk's thread, of every study in which something was done."""
        self._shelf, self._noticed = shelf, noticed
        self._desks: dict[str, _Desk] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lynceus-clerk")

    def submit(self, study: str, deed: Deed, *, worker: str, once: Once | None = None) -> Future[Done]:
        """Have something done; the future holds what came of it, or the error."""
        task = _Task(deed, worker, once, time.perf_counter())
        with self._lock:
            desk = self._desks.setdefault(study, _Desk(study))
            desk.waiting.append(task)
            if not desk.busy:
                desk.busy = True
                self._threads.submit(self._work, desk)
        return task.future

    def close(self) -> None:
        """Finish what was asked for."""
        self._threads.shutdown()

    def _work(self, desk: _Desk) -> None:
        while True:
            with self._lock:
                tasks = [desk.waiting.popleft() for _ in range(min(len(desk.waiting), MOST_TOGETHER))]
                if not tasks:
                    desk.busy = False
                    if desk.opened is None:  # a name that no study has
                        del self._desks[desk.study]
                    return
            try:
                desk.do(tasks, self._shelf)
            except BaseException as error:
                for task in tasks:
                    task.future.set_exception(error)
            if self._noticed is not None and desk.opened is not None:
                self._noticed(desk.study, desk.opened)


@dataclass
class _Desk:
    """One study, its own ledger, and who waits."""

    study: str
    opened: Opened | None = None
    waiting: deque[_Task] = field(default_factory=deque)
    busy: bool = False
    decisions: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=1024))
    """When decisions began and ended."""

    def do(self, tasks: list[_Task], shelf: Shelf) -> None:
        """All of them in one transaction. A mistake of one asker is his alone; trouble with the storage is everybody's."""
        if self.opened is None:
            self.opened = shelf.fresh(self.study)
        try:
            results = self._together(self.opened, tasks)
        except InputError:  # the study was deleted; perhaps there is a new one of that name
            self.opened = None
            self.opened = shelf.fresh(self.study)
            results = self._together(self.opened, tasks)
        now = time.perf_counter()
        for task, result in zip(tasks, results, strict=True):
            if isinstance(result, LynceusError):
                task.future.set_exception(result)
            else:
                answer, repeated = result
                decided = sum(max(0.0, end - max(began, task.asked)) for began, end in self.decisions)
                task.future.set_result(Done(answer, repeated, now - task.asked, decided))

    def _together(self, one: Opened, tasks: list[_Task]) -> list[_Result]:
        ledger = one.study.ledger
        if not isinstance(ledger, SqlLedger):
            raise TypeError(f"study {one.name!r} is written without a database")
        results: list[_Result] = []
        with one.study.together():
            known = ledger.given_answers([task.once for task in tasks if task.once is not None])
            new: list[Answer] = []
            for task in tasks:
                ledger.worker = task.worker
                try:
                    results.append(self._one(one, task, known, new))
                except LynceusError as error:
                    results.append(error)
            ledger.keep_answers(new)
        return results

    def _one(self, one: Opened, task: _Task, known: dict[str, Answer], new: list[Answer]) -> _Result:
        once = task.once
        if once is not None and once.key in known:
            return dict(known[once.key].to(once)), True
        began, one.study.decision_s = time.perf_counter(), 0.0
        result = task.deed(one)
        if one.study.decision_s:
            self.decisions.append((began, began + one.study.decision_s))
        if once is not None and result.kept:
            known[once.key] = Answer(once, result.answer)
            new.append(known[once.key])
        return result.answer, False
