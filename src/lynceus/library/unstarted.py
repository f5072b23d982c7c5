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


def known_studies(url: str) -> frozenset[str] | None:
    """The identities of all studies of a storage; None where there is no storage yet."""
    try:
        with Storage(url, create=False) as storage:
            return frozenset(record.identity for record in storage.studies())
    except InputError:
        return None  # whoever makes a storage there is told why that is not possible


def discard_unstarted(one: OpenStudy) -> bool:
    """Remove a study that has no trial, and what was made for it on this machine; False, and nothing changes, if it has any."""
    if not one.storage.delete_study(one.name, only_unstarted=True):
        return False
    shutil.rmtree(study_folder(one.prepared.job, one.study), ignore_errors=True)
    with contextlib.suppress(OSError):  # other studies have runs there
        run_root(one.prepared.job).rmdir()
    return True


def remove_empty_storage(url: str) -> None:
    """Remove the SQLite file of a storage without studies that nobody else has open. Tables on a server stay."""
    file = parse_address(url).file
    if file is None or not Path(file).is_file():
        return
    connection = sqlite3.connect(file, timeout=0.0, isolation_level=None)
    try:
        # Leaving the write-ahead log needs the file for ourselves, so that this fails while another process has it open.
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        made = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'studies'").fetchone() == (1,)
        if not made or connection.execute("SELECT count(*) FROM studies").fetchone() == (0,):
            os.unlink(file)
    except (sqlite3.Error, OSError):
        pass  # somebody uses it
    finally:
        connection.close()
