"""Whether a worker runs a study."""

from __future__ import annotations

from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, StudyBusyError
from lynceus.storage.worker import lives

_ALIVE_S = 60.0
"""A worker that gave a heartbeat within the last so many seconds is alive."""
_OF_USERS = ("note", "renamed")
"""Events that say nothing about workers."""


def worker_left(storage: Storage, record: StudyRecord) -> bool:
    """Whether the study of a job file has no worker although nothing stopped it: nothing has happened since the last one released its
    trials, or trials were imported and none was ordered ever."""
    since = [event.kind for event in storage.events(record.name, record.seen_s) if event.kind not in _OF_USERS]
    if since and since[-1] == "imported" and "job" in record.document:
        return not storage.events(record.name, kinds=["ordered"])
    return bool(since) and since[-1] == "released"


def has_worker(storage: Storage, name: str) -> bool:
    """Whether a worker runs the study, by its heartbeats and the storage's clock."""
    workers = {trial.worker for trial in storage.trials(name) if trial.outcome is None}
    if workers and all(worker is None or lives(worker) is False for worker in workers):
        return False  # they died on this machine, which shows at once
    record = storage.load_study(name)
    seen = record.seen_s
    return seen is not None and storage.clock.now() - seen < _ALIVE_S and not worker_left(storage, record)


def refuse_busy(storage: Storage, record: StudyRecord, action: str, advice: str) -> None:
    """Raise `StudyBusyError` while a study has open trials, or a worker runs it."""
    count = storage.totals(record.name).running
    if count:
        what = f"has {count} open {'trial' if count == 1 else 'trials'}"
    elif record.stopped is None and has_worker(storage, record.name) and _worker_lives(storage, record):
        what = "is being run by a worker"
    else:
        return
    raise StudyBusyError(
        f"study {record.name!r} {what}, so it cannot be {action}; stop it with: lynceus stop {record.name} --kill{advice}."
    )


def _worker_lives(storage: Storage, record: StudyRecord) -> bool:
    """Whether any worker that wrote to the study of late may be alive: those of this machine show whether they are."""
    recent = {
        event.worker for event in storage.events(record.name, record.seen_s - _ALIVE_S) if event.kind not in _OF_USERS
    }
    return any(worker is not None and lives(worker) is not False for worker in recent)
