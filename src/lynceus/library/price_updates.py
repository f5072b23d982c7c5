"""Stored studies whose prices have changed since they began."""

from __future__ import annotations

from lynceus.errors import LynceusError
from lynceus.jobfile.price_updates import Repriced, at_todays_prices, repriced_problem
from lynceus.library.find import named_job
from lynceus.library.job_edits import changes_besides_prices, refuse_changes
from lynceus.library.open_study import OpenStudy, open_record
from lynceus.storage.sql.storage import fingerprint

_SHOWN = 3


def price_note(one: OpenStudy) -> str | None:
    """What to tell the user when today's prices differ from those of the study; None when they agree.

    A study that keeps its prices needs no catalog, so a catalog that cannot be read is not an error here.
    """
    try:
        changes = at_todays_prices(one.prepared.job).changes
    except LynceusError:
        return None
    if not changes:
        return None
    shown = "; ".join(changes[:_SHOWN]) + (f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else "")
    return f"{one.name}: prices have changed: {shown}. The study keeps its own until: lynceus prices apply {one.name}"


def apply_prices(one: OpenStudy, named: str | None = None) -> tuple[OpenStudy, Repriced]:
    """The study at today's prices, for good; at those of its job file, if `named` is one."""
    stored, file = one.prepared.job, named_job(named)
    repriced = at_todays_prices(stored, file)
    problem = repriced_problem(stored, repriced)
    if not repriced.changes:
        return one, repriced
    if file is not None:
        refuse_changes(file, one.record, changes_besides_prices(file, one.record))
    record = one.storage.revise(
        one.name, document=repriced.job.stored(), fingerprint=fingerprint(problem), changes=repriced.changes
    )
    return open_record(one.storage, record), repriced
