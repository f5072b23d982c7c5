"""Whether a worker runs a study."""

from __future__ import annotations

from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage
from lynceus.storage.worker import lives

_ALIVE_S = 60.0
"""A worker that gave a heartbeat within the last so many seconds is alive."""


def worker_left(storage: Storage, record: StudyRecord) -> bool:
    """Whether the last worker left on purpose: nothing has happened since it released its trials."""
    since = storage.events(record.name, record.seen_s)
    return bool(since) and since[-1].kind == "released"


def has_worker(storage: Storage, name: str) -> bool:
    """Whether a worker runs the study, by its heartbeats and the storage's clock."""
    workers = {trial.worker for trial in storage.trials(name) if trial.outcome is None}
    if workers and all(worker is None or lives(worker) is False for worker in workers):
        return False  # they died on this machine, which shows at once
    record = storage.load_study(name)
    seen = record.seen_s
    return seen is not None and storage.clock.now() - seen < _ALIVE_S and not worker_left(storage, record)
