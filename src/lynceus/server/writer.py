"""Writers: commands that change a study run one at a time, several in one transaction.

Commands on one study have to wait for the study's lock anyway, so those that wait run together: one lock, one commit. A request is
answered after the commit, so an answer is never lost with a crash.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lynceus.errors import InputError, LynceusError
from lynceus.library.open_study import OpenStudy
from lynceus.server.study_cache import StudyCache
from lynceus.storage.sql.idempotency import Answer, Once, given_answers, keep_answers
from lynceus.storage.sql.journal import SqlJournal

MAX_BATCH = 64
"""Commands in one transaction."""
THREADS = 8
"""Studies that are written at the same time."""


@dataclass(frozen=True)
class CommandResult:
    """What a command returns."""

    answer: dict[str, Any]
    """JSON values."""
    kept: bool = True
    """Whether a repeated request gets this answer; False when nothing changed, so that a repeated request may do more."""


Command = Callable[[OpenStudy], CommandResult]
"""Changes a study; runs inside the study's lock."""


@dataclass(frozen=True)
class Completed:
    """A command that was run."""

    answer: dict[str, Any]
    repeated: bool
    """The request was made before; this is its first answer."""
    waited_s: float
    """From the request to the answer."""
    decided_s: float
    """The part of it that was spent on choosing trials, for this command or for one before it."""


_Outcome = tuple[dict[str, Any], bool] | LynceusError
"""An answer and whether it had been given before, or an error in the request."""


@dataclass
class _Task:
    command: Command
    worker: str
    once: Once | None
    requested: float
    future: Future[Completed] = field(default_factory=Future)


class Writers:
    """One writer per study."""

    def __init__(self, cache: StudyCache, written: Callable[[OpenStudy], None] | None = None) -> None:
        """`written` is called in the writer's thread after every batch of commands."""
        self._cache, self._written = cache, written
        self._writers: dict[str, _Writer] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lynceus-writer")

    def submit(self, study: str, command: Command, *, worker: str, once: Once | None = None) -> Future[Completed]:
        """Run a command; the future holds its result or its error."""
        task = _Task(command, worker, once, time.perf_counter())
        with self._lock:
            writer = self._writers.setdefault(study, _Writer(study))
            writer.waiting.append(task)
            if not writer.busy:
                writer.busy = True
                self._threads.submit(self._work, writer)
        return task.future

    def close(self) -> None:
        """Wait for all commands to finish."""
        self._threads.shutdown()

    def _work(self, writer: _Writer) -> None:
        while True:
            with self._lock:
                tasks = [writer.waiting.popleft() for _ in range(min(len(writer.waiting), MAX_BATCH))]
                if not tasks:
                    writer.busy = False
                    if writer.opened is None:  # no study has this name
                        del self._writers[writer.study]
                    return
            try:
                writer.run(tasks, self._cache)
            except BaseException as error:
                for task in tasks:
                    task.future.set_exception(error)
            if self._written is not None and writer.opened is not None:
                self._written(writer.opened)


@dataclass
class _Writer:
    """One study with a journal of its own, and the commands that wait for it."""

    study: str
    opened: OpenStudy | None = None
    waiting: deque[_Task] = field(default_factory=deque)
    busy: bool = False
    decisions: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=1024))
    """When decisions began and ended."""

    def run(self, tasks: list[_Task], cache: StudyCache) -> None:
        """Run all tasks in one transaction. An error in one request fails that request; an error of the storage fails all."""
        if self.opened is None:
            self.opened = cache.writable(self.study)
        try:
            outcomes = self._transaction(self.opened, tasks)
        except InputError:  # the study was deleted; there may be a new one of that name
            self.opened = None
            self.opened = cache.writable(self.study)
            outcomes = self._transaction(self.opened, tasks)
        now = time.perf_counter()
        for task, outcome in zip(tasks, outcomes, strict=True):
            if isinstance(outcome, LynceusError):
                task.future.set_exception(outcome)
            else:
                answer, repeated = outcome
                decided = sum(max(0.0, end - max(began, task.requested)) for began, end in self.decisions)
                task.future.set_result(Completed(answer, repeated, now - task.requested, decided))

    def _transaction(self, one: OpenStudy, tasks: list[_Task]) -> list[_Outcome]:
        journal = one.study.journal
        if not isinstance(journal, SqlJournal):
            raise TypeError(f"study {one.name!r} is not stored in a database")
        outcomes: list[_Outcome] = []
        with journal.exclusive() as connection:
            known = given_answers(connection, [task.once for task in tasks if task.once is not None])
            new: list[Answer] = []
            for task in tasks:
                try:
                    with journal.exclusive(task.worker):
                        outcomes.append(self._run_one(one, task, known, new))
                except LynceusError as error:
                    outcomes.append(error)
            keep_answers(connection, journal.study_id, new, time.time())
        return outcomes

    def _run_one(self, one: OpenStudy, task: _Task, known: dict[str, Answer], new: list[Answer]) -> _Outcome:
        once = task.once
        if once is not None and once.key in known:
            return dict(known[once.key].to(once)), True
        began, decided_before = time.perf_counter(), one.study.deciding_s
        result = task.command(one)
        if (decided := one.study.deciding_s - decided_before) > 0:
            self.decisions.append((began, began + decided))
        if once is not None and result.kept:
            known[once.key] = Answer(once, result.answer)
            new.append(known[once.key])
        return result.answer, False
