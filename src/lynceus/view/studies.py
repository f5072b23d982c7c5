"""Every study of a storage in a line each."""

from __future__ import annotations

import time
from collections.abc import Callable

from lynceus.cli.glance import glance
from lynceus.cli.opened import opened
from lynceus.errors import LynceusError
from lynceus.ledger.sql import Storage, StudyRecord
from lynceus.plain import Document, finite
from lynceus.view.insight import answer
from lynceus.view.study import VERSION
from lynceus.view.subject import subject_of

MOST_ASKED = 300
"""Runs up to which a model is asked what the baseline would cost; a list of studies should not wait for large ones."""


def studies_view(storage: Storage, line: Callable[[Storage, StudyRecord], Document] | None = None) -> Document:
    """All studies, newest first. A server that is asked often gives a `line` that remembers, see `study_line`."""
    each = study_line if line is None else line
    records = reversed(storage.studies())
    return {
        "v": VERSION,
        "kind": "studies",
        "now_s": time.time(),
        "storage": storage.shown_url,
        "studies": [each(storage, record) for record in records],
    }


def study_line(storage: Storage, record: StudyRecord) -> Document:
    """One study; where its problem cannot be rebuilt, what the storage alone knows, and a note."""
    try:
        facts: Document = finite(glance(storage, record) | {"note": None})
        return facts | _saving(storage, record, facts)
    except (LynceusError, KeyError) as error:
        note = str(error) if isinstance(error, LynceusError) else "it was made by a program, not from a job file"
        return finite(_bare(storage, record) | {"note": note})  # type: ignore[no-any-return]


def _saving(storage: Storage, record: StudyRecord, facts: Document) -> Document:
    """The saving against the baseline; where it was never run, against what a model believes of it, as on the study's page."""
    asked = facts["saving"] is None and facts["best"] is not None and record.settled <= MOST_ASKED
    if not asked or "baseline" not in record.document.get("job", {}):
        return {"saving_measured": facts["saving"] is not None}
    found = answer(subject_of(opened(storage, record)))
    return {"saving": None if found is None else found["saving"], "saving_measured": False}


def _bare(storage: Storage, record: StudyRecord) -> Document:
    totals = storage.totals(record.name)
    unknown = (
        "saving_measured",
        "objective",
        "budget_usd",
        "best",
        "best_trial",
        "best_params",
        "best_cost_usd",
        "saving",
    )
    return dict.fromkeys(unknown) | {
        "name": record.name,
        "state": record.state,
        "reason": None if record.stopped is None else record.stopped.reason,
        "limits": [],
        "spent_usd": totals.spent_usd,
        "reserved_usd": totals.reserved_usd,
        "trials": totals.settled,
        "running": totals.running,
        "stopped_early": totals.stopped_early,
        "failed": totals.failed,
        "created_s": record.created_s,
        "worker_seen_s": record.seen_s,
    }
