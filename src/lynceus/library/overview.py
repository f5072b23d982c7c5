"""The overview of a stored study from sums that the database computes: no policy is built, and trials are not read whole."""

from __future__ import annotations

from typing import Any

from lynceus.analysis.overview import StudyOverview, interrupted_reason, problem_fields
from lynceus.errors import LynceusError
from lynceus.jobfile.stored_study import job_and_problem
from lynceus.library.find import check_unchanged
from lynceus.library.workers import worker_left
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage


def stored_overview(storage: Storage, record: StudyRecord) -> StudyOverview:
    """The overview of a study. The saving is known only when the baseline was measured."""
    job, problem = job_and_problem(record)
    check_unchanged(record, problem)
    baseline = None if job.spec.baseline is None else problem.space.row(job.spec.baseline)
    runs = storage.comparable_runs(record.name, problem.metrics)
    return StudyOverview(
        **_stored_fields(storage, record),
        budget_usd=problem.budget.usd + record.added_usd,
        **problem_fields(problem, runs, baseline),
    )


def overview_or_note(storage: Storage, record: StudyRecord) -> StudyOverview:
    """The overview of a study; when its problem cannot be restored, what the storage knows, and a note that says why."""
    try:
        return stored_overview(storage, record)
    except LynceusError as error:
        return StudyOverview(**_stored_fields(storage, record), note=str(error))


def _stored_fields(storage: Storage, record: StudyRecord) -> dict[str, Any]:
    """The fields that the storage knows by itself."""
    totals = storage.totals(record.name)
    state, reason = record.state, None if record.stopped is None else record.stopped.reason
    if state == "RUNNING" and not totals.running and worker_left(storage, record):
        state, reason = "INTERRUPTED", interrupted_reason(record.name)
    return {
        "name": record.name,
        "state": state,
        "reason": reason,
        "policy": str(record.policy.get("name", "")),
        "seed": record.seed,
        "spent_usd": totals.spent_usd,
        "reserved_usd": totals.reserved_usd,
        "trials": totals.settled,
        "running": totals.running,
        "stopped_early": totals.stopped_early,
        "failed": totals.failed,
        "created_s": record.created_s,
        "worker_seen_s": record.seen_s,
    }
