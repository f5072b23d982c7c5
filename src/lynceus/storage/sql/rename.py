"""Another name for a stored study."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from lynceus.storage.sql.audit import AuditEntry, note_change
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, StudyBusyError, StudyExistsError, check_study_name, open_trials
from lynceus.storage.sql.tables import events, jobs, studies
from lynceus.storage.sql.transaction import writing


def rename_study(storage: Storage, name: str, new: str, *, by: str | None = None) -> StudyRecord:
    """Another name for a study; it must be free. Journals that were opened under the old name refuse to go on.

    Recurring jobs to which the study belongs know it by its new name.
    """
    check_study_name(new)
    record = storage.load_study(name)
    document = dict(record.document)
    if "job" in document:
        document["job"] = {**document["job"], "name": new}
    with storage._errors():
        try:
            with writing(storage._engine) as connection:
                now, mine = storage.clock.now(connection), studies.c.id == record.id
                connection.execute(select(studies.c.id).where(mine).with_for_update())
                if count := open_trials(connection, record.id):
                    raise StudyBusyError(f"study {name!r} has open trials ({count}); let them end, then rename it.")
                values = {"name": new, "document": document, "sequence": studies.c.sequence + 1}
                connection.execute(update(studies).where(mine).values(**values))
                detail = {"from": name, "to": new}
                connection.execute(insert(events).values(study_id=record.id, at_s=now, kind="renamed", detail=detail))
                _rename_in_jobs(connection, name, new)
                note_change(connection, AuditEntry(now, by or "", "rename", name, {"to": new}))
        except IntegrityError:
            raise StudyExistsError(
                f"study {new!r} exists already in {storage.shown_url}; choose another name, or delete it with: lynceus delete {new}."
            ) from None
    return storage.load_study(new)


def _rename_in_jobs(connection: Connection, name: str, new: str) -> None:
    """What a job has learnt from its studies must not be lost, nor come from another study that gets the old name."""
    for job_id in [row.id for row in connection.execute(select(jobs.c.id, jobs.c.studies)) if name in row.studies]:
        mine = jobs.c.id == job_id
        row = connection.execute(select(jobs.c.studies).where(mine).with_for_update()).one_or_none()
        if row is not None:
            renamed = [new if one == name else one for one in row.studies]
            connection.execute(update(jobs).where(mine).values(studies=renamed, sequence=jobs.c.sequence + 1))
