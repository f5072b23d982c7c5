"""A cache of studies: a request reads what is new since the last one, not ten thousand trials again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from lynceus.analysis.progress import Progress, ProgressTrail
from lynceus.analysis.study_context import StudyContext
from lynceus.errors import InputError
from lynceus.library.open_study import OpenStudy, OpenStudyView, open_record
from lynceus.library.study_context import study_context
from lynceus.server.errors import HttpError, unknown_study
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage

MAX_STUDIES = 64
"""Studies that are kept in memory; the least recently used one is dropped first."""


@dataclass(frozen=True)
class Snapshot(OpenStudyView):
    """A study at one moment, with its progress until then."""

    progress: Progress | None = None

    def context(self) -> StudyContext:
        """What answers about the study rest on."""
        return replace(study_context(self), tracked=self.progress)


class _Entry:
    """A study and the latest snapshot of it. Only the thread that holds the lock reads from the storage."""

    _snapshot: Snapshot

    def __init__(self, live: OpenStudy, record: StudyRecord) -> None:
        self.live, self.lock = live, threading.Lock()
        self._trail = ProgressTrail(live.study.problem)
        self._take(record)

    def at(self, record: StudyRecord) -> Snapshot:
        """The study as its record says, which is read again only when it has changed, or what is left of the budgets that it shares."""
        with self.lock:
            if self.sequence != record.sequence:
                self.live.study.runs.refresh()
                self._take(record)
            elif (shared := self.live.study.journal.shared_budgets()) != self._snapshot.study.record.shared_budgets:
                self._snapshot = replace(self._snapshot, study=self.live.study.snapshot(shared_budgets=shared))
            return replace(self._snapshot, record=record)

    def _take(self, record: StudyRecord) -> None:
        live, study = self.live, self.live.study.snapshot()
        if (
            self._trail.problem.constraints != study.problem.constraints
        ):  # a limit has changed, and with it the incumbents
            self._trail = ProgressTrail(study.problem)
        progress = self._trail.after(study.observations)
        self._snapshot = Snapshot(live.storage, record, live.prepared, study, progress=progress)
        self.sequence = record.sequence


class StudyCache:
    """The studies of a storage, built on demand. Safe for use by many threads."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, name: str) -> StudyRecord:
        """The stored record of a study as it is now."""
        try:
            return self.storage.load_study(name)
        except InputError as error:
            raise unknown_study(name) from error

    def snapshot(self, name: str) -> Snapshot:
        """A study as it is now. The snapshot never changes, so several threads may read it."""
        record = self.record(name)
        return self._entry(record).at(record)

    def writable(self, name: str) -> OpenStudy:
        """A study with a journal of its own, for a writer."""
        return _open(self.storage, self.record(name))

    def _entry(self, record: StudyRecord) -> _Entry:
        key = (record.identity, record.name)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                return entry
        # OpenStudy outside the lock, so that requests for other studies need not wait. Two requests may both open it; one entry is kept.
        new = _Entry(_open(self.storage, record), record)
        with self._lock:
            entry = self._entries.setdefault(key, new)
            self._entries.move_to_end(key)
            while len(self._entries) > MAX_STUDIES:
                self._entries.popitem(last=False)
        return entry


def _open(storage: Storage, record: StudyRecord) -> OpenStudy:
    try:
        return open_record(storage, record)
    except InputError as error:  # its job file no longer describes the problem it began with
        raise HttpError(409, str(error)) from error
