"""A study in numbers, from sums that the database makes: no policy is built, no trial is read whole."""

from __future__ import annotations

from typing import Any

from lynceus.cli.named import check_unchanged
from lynceus.job import Job
from lynceus.job.problem import problem_of
from lynceus.ledger.sql import Storage, StudyRecord
from lynceus.problem import Problem


def glance(storage: Storage, record: StudyRecord) -> dict[str, Any]:
    """Money, trials and the incumbent of a study."""
    problem = problem_of(Job.from_stored(record.document))
    check_unchanged(record, problem)
    totals = storage.totals(record.name)
    best = _incumbent(storage, record.name, problem)
    state, reason = record.state, None if record.stopped is None else record.stopped.reason
    if state == "RUNNING" and not totals.running and _was_left(storage, record):
        state, reason = "INTERRUPTED", f"nobody works on it; continue with: lynceus resume {record.name}"
    return {
        "name": record.name,
        "state": state,
        "reason": reason,
        "objective": str(problem.goal),
        "limits": [str(limit) for limit in problem.limits],
        "spent_usd": totals.spent_usd,
        "reserved_usd": totals.reserved_usd,
        "budget_usd": problem.budget.usd + record.added_usd,
        "trials": totals.settled,
        "running": totals.running,
        "stopped_early": totals.stopped_early,
        "failed": totals.failed,
        "best": None if best is None else (-best[0] if problem.goal.maximise else best[0]),
        "best_trial": None if best is None else best[1],
        "best_params": None if best is None else problem.space.point(best[2]),
        "created_s": record.created_s,
        "worker_seen_s": record.seen_s,
    }


def _was_left(storage: Storage, record: StudyRecord) -> bool:
    """Whether the last thing that happened is that a worker left; one that stayed would have given a sign of life since."""
    since = storage.events(record.name, record.seen_s)
    return bool(since) and since[-1].kind == "released"


def _incumbent(storage: Storage, name: str, problem: Problem) -> tuple[float, int, int] | None:
    """Goal value (smaller is better), number and row of the first run that nothing has beaten."""
    best: tuple[float, int, int] | None = None
    for run in storage.finished(name, problem.metrics):
        value = problem.answer_value(run.row, run.seconds, run.metrics)
        if value is not None and (best is None or value < best[0]):
            best = value, run.number, run.row
    return best
