"""The note on a study: text of its users, kept with its events, so that earlier versions stay readable there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select, update

from lynceus.errors import InputError
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tables import events, studies

KIND = "note"
MAX_NOTE = 10_000
"""Characters of a note."""


@dataclass(frozen=True, slots=True)
class Note:
    """What users have written about a study."""

    text: str = ""
    version: int = 0
    """How often it was written: a writer names the version that it has seen."""
    written_s: float | None = None
    """Seconds since the epoch; None while nothing was written."""


def read_note(storage: Storage, name: str) -> Note:
    """The note on a study; empty while nobody has written one."""
    return _latest([(event.at_s, event.detail) for event in storage.events(name, kinds=[KIND])])


def _latest(written: Sequence[tuple[float, Mapping[str, Any] | None]]) -> Note:
    if not written:
        return Note()
    at_s, detail = written[-1]
    return Note(str((detail or {}).get("text", "")), len(written), at_s)


def latest_note(connection: Connection, study_id: int) -> Note:
    """The note on a study, inside a transaction."""
    mine = select(events.c.at_s, events.c.detail).where(events.c.study_id == study_id, events.c.kind == KIND)
    written = connection.execute(mine.order_by(events.c.id)).all()
    return _latest([(row.at_s, row.detail) for row in written])


def add_note(connection: Connection, study_id: int, text: str, *, now_s: float, worker: str) -> None:
    """Replace the note on a study, in a transaction of its journal; readers of the study notice the change."""
    if len(text) > MAX_NOTE:
        raise InputError(f"note: got {len(text):,} characters; write at most {MAX_NOTE:,}.")
    event = {"study_id": study_id, "at_s": now_s, "kind": KIND, "worker": worker, "detail": {"text": text}}
    connection.execute(insert(events).values(event))
    connection.execute(update(studies).where(studies.c.id == study_id).values(sequence=studies.c.sequence + 1))
