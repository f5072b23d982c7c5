"""Give a stored study another name."""

from __future__ import annotations

from lynceus.errors import InputError
from lynceus.jobfile.sections.values import study_name
from lynceus.library.workers import refuse_busy
from lynceus.storage.sql.rename import rename_study as rename_stored
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage


def rename_study(storage: Storage, name: str, new: str, *, by: str | None = None) -> StudyRecord:
    """Give a study another name; its trials, outputs and identity stay. `StudyBusyError` while trials are open or a worker runs it.

    A program that has the study open under its old name gets an error at its next call.
    """
    record = storage.load_study(name)
    if new == name:
        raise InputError(f"study {name!r} has that name already; give another one.")
    if "job" in record.document:  # the job file carries the name, and would no longer be read with another one
        try:
            study_name(new)
        except ValueError as error:
            raise InputError(f"name: {error}") from None
    refuse_busy(storage, record, "renamed", "")
    return rename_stored(storage, name, new, by=by)
