"""A cache of studies: a request reads what is new since the last one, not ten thousand trials again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from lynceus.errors import InputError
from lynceus.library.open_study import OpenStudy, OpenStudyView, open_record
from lynceus.server.errors import HttpError, unknown_study
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage

MAX_STUDIES = 64
"""Studies that are kept in memory; the least recently used one is dropped first."""


@dataclass
class _Entry:
    """A study and the latest snapshot of it. Only the thread that holds the lock reads from the storage."""

    live: OpenStudy
    snapshot: OpenStudyView
    sequence: int
    lock: threading.Lock


class StudyCache:
    """The studies of a storage, built on demand. Safe for use by many threads."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, name: str) -> StudyRecord:
        """The stored record of a study as it is now."""
        try:
            return self.storage.load_study(name)
        except InputError as error:
            raise unknown_study(name) from error

    def snapshot(self, name: str) -> OpenStudyView:
        """A study as it is now. The snapshot never changes, so several threads may read it."""
        record = self.record(name)
        entry = self._entry(record)
        with entry.lock:
            if entry.sequence != record.sequence:
                entry.live.study.runs.refresh()
                entry.snapshot = _snapshot(entry.live, record)
                entry.sequence = record.sequence
            return replace(entry.snapshot, record=record)

    def writable(self, name: str) -> OpenStudy:
        """A study with a journal of its own, for a writer."""
        return _open(self.storage, self.record(name))

    def _entry(self, record: StudyRecord) -> _Entry:
        with self._lock:
            entry = self._entries.get(record.identity)
            if entry is not None:
                self._entries.move_to_end(record.identity)
                return entry
        # OpenStudy outside the lock, so that requests for other studies need not wait. Two requests may both open it; one entry is kept.
        live = _open(self.storage, record)
        new = _Entry(live, _snapshot(live, record), record.sequence, threading.Lock())
        with self._lock:
            entry = self._entries.setdefault(record.identity, new)
            self._entries.move_to_end(record.identity)
            while len(self._entries) > MAX_STUDIES:
                self._entries.popitem(last=False)
        return entry


def _open(storage: Storage, record: StudyRecord) -> OpenStudy:
    try:
        return open_record(storage, record)
    except InputError as error:  # its job file no longer describes the problem it began with
        raise HttpError(409, str(error)) from error


def _snapshot(live: OpenStudy, record: StudyRecord) -> OpenStudyView:
    return OpenStudyView(live.storage, record, live.prepared, live.study.snapshot())
