"""Starts that failed: a new study that never ordered a trial leaves neither itself nor its files behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

from lynceus.errors import InputError
from lynceus.jobfile.run_folder import run_root, study_folder
from lynceus.library.open_study import OpenStudy
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.storage import Storage
from lynceus.storage.user import current_user

_OF_USERS = ("studies", "jobs", "budgets", "tokens")
"""Tables whose rows users have made."""


def known_studies(url: str) -> frozenset[str] | None:
    """The identities of all studies of a storage; None where there is no storage yet."""
    try:
        with Storage(url, create=False) as storage:
            return frozenset(record.identity for record in storage.studies())
    except InputError:
        return None  # whoever makes a storage there is told why that is not possible


def discard_unstarted(one: OpenStudy) -> bool:
    """Remove a study that has no trial, and what was made for it on this machine; False, and nothing changes, if it has any."""
    if not one.storage.delete_study(one.name, only_unstarted=True, by=current_user()):
        return False
    shutil.rmtree(study_folder(one.prepared.job, one.study), ignore_errors=True)
    with contextlib.suppress(OSError):  # other studies have runs there
        run_root(one.prepared.job).rmdir()
    return True


def remove_empty_storage(url: str) -> None:
    """Remove the SQLite file of a storage that nobody else has open, and in which there is nothing of users. Tables on a server stay."""
    file = parse_address(url).file
    if file is None or not Path(file).is_file():
        return
    connection = sqlite3.connect(file, timeout=0.0, isolation_level=None)
    try:
        # Leaving the write-ahead log needs the file for ourselves, so that this fails while another process has it open.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        made = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        used = (connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in _OF_USERS if name in made)
        if not any(used):
            os.unlink(file)
    except (sqlite3.Error, OSError):
        pass  # somebody uses it
    finally:
        connection.close()
