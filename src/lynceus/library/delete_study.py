"""Delete a stored study with everything that its trials left on this machine, in a queue or in a cloud.

What is outside the storage goes first, the rows of the study last. When a deletion is cut short, the study is still listed, starts no
trial, and says that it is to be deleted again.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError, LynceusError
from lynceus.jobfile.run_folder import run_root, study_folder
from lynceus.jobfile.secrets import known_secrets
from lynceus.library.leftovers import (
    Leftover,
    abandoned_trials,
    end_abandoned,
    remove_leftovers,
    study_resources,
    wait_for_workers,
)
from lynceus.library.open_study import OpenStudy, open_record
from lynceus.library.workers import refuse_busy
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, StudyBusyError
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import Stopped, StopReason

_BEGUN = "its deletion was begun and not finished, so delete it again"


@dataclass(frozen=True)
class Deletion:
    """What was deleted."""

    study: str
    trials: int
    """Trials whose results are gone."""
    removed: tuple[Leftover, ...]
    """What was ended and removed outside the storage."""
    left: str | None = None
    """Why some of it could not be removed, as a sentence."""


def delete_study(storage: Storage, name: str, *, force: bool = False, by: str | None = None) -> Deletion:
    """Delete a study for good: its trials, run directories, and jobs or machines that are left.

    `StudyBusyError` while trials are open or a worker runs it; with `force` they are ended first. An executor that cannot be asked is an
    `InfrastructureError`; with `force`, what it holds stays.
    """
    record = _record(storage, name)
    try:
        one = open_record(storage, record)
    except LynceusError as error:
        if not force:
            raise InputError(
                f"study {name!r} cannot be read, so nobody knows what its trials left behind ({error}); force its deletion to remove it "
                "from the storage alone."
            ) from None
        storage.delete_study(name, by=by)
        return Deletion(name, record.settled, (), f"what its trials left behind is not known: {error}")
    if not force:
        refuse_busy(storage, record, "deleted", ", or force its deletion")
    _close(one, force=force)
    removed, left = _remove_resources(one, force=force)
    storage.delete_study(name, by=by)
    return Deletion(name, len(one.study.observations), removed, left)


def _record(storage: Storage, name: str) -> StudyRecord:
    for record in storage.studies():
        if record.name == name:
            return record
    return storage.load_study(name)  # says which studies there are


def _close(one: OpenStudy, *, force: bool) -> None:
    """Let no worker order a trial from now on, and end open ones."""
    journal, wish = one.study.journal, RequestedState.KILL if force else RequestedState.STOP
    with journal.exclusive():
        if one.study.pending and not force:
            raise StudyBusyError(f"study {one.name!r} has just started a trial, so it was not deleted; stop it first.")
        journal.closed(Stopped(StopReason.USER, _BEGUN), wish)
    if one.study.pending:
        wait_for_workers(one, abandoned_trials(one))


def _remove_resources(one: OpenStudy, *, force: bool) -> tuple[tuple[Leftover, ...], str | None]:
    """Remove what is outside the storage; with `force`, what cannot be removed stays, and a sentence says why."""
    left, found = None, []
    try:
        if abandoned_trials(one):
            end_abandoned(one, known_secrets(one.prepared.job))
        if one.record.trials:
            found = study_resources(one)
            remove_leftovers(found)
    except (LynceusError, OSError) as error:
        left = str(error)
        if not force:
            raise InfrastructureError(
                f"study {one.name!r} was not deleted, because what its trials left behind cannot be removed: {left}"
            ) from None
    if one.record.identity:
        folder = study_folder(one.prepared.job, one.study)
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # other studies have runs there
            run_root(one.prepared.job).rmdir()
    return tuple(each.leftover for each in found), left
