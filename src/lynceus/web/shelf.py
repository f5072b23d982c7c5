"""Studies that were rebuilt once and are kept up to date: a request reads what is new, not ten thousand trials again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

from lynceus.cli.opened import Opened, opened
from lynceus.errors import InputError
from lynceus.ledger.sql import Storage, StudyRecord
from lynceus.web.faults import FaultError, not_found

MOST = 64
"""Studies that are kept rebuilt; the one that was looked at longest ago goes first."""


@dataclass
class _Kept:
    """A rebuilt study. Its own ledger reads what is new under the lock; what is handed out is a still of it."""

    live: Opened
    still: Opened
    sequence: int
    lock: threading.Lock


class Shelf:
    """Every study of a storage, rebuilt on demand. May be used by many threads at once."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, name: str) -> StudyRecord:
        """What the storage says of a study now."""
        try:
            return self.storage.load_study(name)
        except InputError as error:
            raise not_found(f"There is no study {name[:200]!r} here.") from error

    def look(self, name: str) -> Opened:
        """A study as it is now. Nothing about it changes any more, so that several threads may read it."""
        record = self.record(name)
        kept = self._at(record)
        with kept.lock:
            if kept.sequence != record.sequence:
                kept.live.study.refresh()
                kept.still = _still(kept.live, record)
                kept.sequence = record.sequence
            return replace(kept.still, record=record)

    def fresh(self, name: str) -> Opened:
        """A study with a ledger of its own, for one who writes."""
        return rebuilt(self.storage, self.record(name))

    def _at(self, record: StudyRecord) -> _Kept:
        with self._lock:
            kept = self._kept.get(record.identity)
            if kept is not None:
                self._kept.move_to_end(record.identity)
                return kept
        # Rebuilt outside the lock: others need not wait for it. Two that come at once both rebuild, one is kept.
        live = rebuilt(self.storage, record)
        new = _Kept(live, _still(live, record), record.sequence, threading.Lock())
        with self._lock:
            kept = self._kept.setdefault(record.identity, new)
            self._kept.move_to_end(record.identity)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return kept


def rebuilt(storage: Storage, record: StudyRecord) -> Opened:
    """The study of a record; where its problem cannot be rebuilt, a sentence."""
    try:
        return opened(storage, record)
    except InputError as error:
        raise FaultError(409, str(error)) from error


def _still(live: Opened, record: StudyRecord) -> Opened:
    return replace(live, record=record, study=live.study.still())
