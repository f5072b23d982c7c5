"""The numbers of recurring jobs behind `/metrics`. A scrape looks only at jobs that have changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from lynceus.errors import LynceusError
from lynceus.library.recurring.job_gauges import JobNumbers
from lynceus.library.recurring.job_record import known_job
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.storage import Storage


@dataclass
class JobMetrics:
    """What scrapes have read so far."""

    storage: Storage
    _known: dict[str, tuple[int, JobNumbers]] = field(default_factory=dict)
    """By identity: the last change that was read, and the numbers."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> list[JobNumbers]:
        """All jobs as they are now; one that cannot be read is left out."""
        store, found = JobStore(self.storage), dict[str, tuple[int, JobNumbers]]()
        with self._lock:
            for name in store.names():
                try:
                    head = store.head(name)
                    known = self._known.get(head.identity)
                    same = known is not None and known[0] == head.sequence
                    numbers = known[1] if same and known is not None else JobNumbers.of(known_job(store, head.name))
                except LynceusError:
                    continue
                found[head.identity] = (head.sequence, numbers)
            self._known = found
        return [numbers for _, numbers in found.values()]
