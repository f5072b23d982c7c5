"""A study in numbers, from sums that the database makes: no policy is built, no trial is read whole."""

from __future__ import annotations

import math
from statistics import median_high
from typing import Any

from lynceus.cli.named import check_unchanged
from lynceus.job.stored import job_and_problem
from lynceus.ledger.sql import Storage, StudyRecord
from lynceus.ledger.totals import FinishedRun
from lynceus.problem import Problem


def glance(storage: Storage, record: StudyRecord) -> dict[str, Any]:
    """Money, trials, the incumbent of a study, and what it saves against a baseline that was measured."""
    job, problem = job_and_problem(record)
    check_unchanged(record, problem)
    totals = storage.totals(record.name)
    finished = storage.finished(record.name, problem.metrics)
    best = _incumbent(finished, problem)
    state, reason = record.state, None if record.stopped is None else record.stopped.reason
    if state == "RUNNING" and not totals.running and was_left(storage, record):
        state, reason = "INTERRUPTED", left_reason(record.name)
    cost_usd = None if best is None else problem.cost(best[1].row, best[1].seconds)
    baseline = None if job.spec.baseline is None else problem.space.row(job.spec.baseline)
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
        "best_trial": None if best is None else best[1].number,
        "best_params": None if best is None else problem.space.point(best[1].row),
        "best_cost_usd": cost_usd,
        "saving": _saving(problem, finished, baseline, cost_usd),
        "created_s": record.created_s,
        "worker_seen_s": record.seen_s,
    }


def left_reason(name: str) -> str:
    """What to say of a study whose last worker has left."""
    return f"nobody works on it; continue with: lynceus resume {name}"


def was_left(storage: Storage, record: StudyRecord) -> bool:
    """Whether the last thing that happened is that a worker left; one that stayed would have given a sign of life since."""
    since = storage.events(record.name, record.seen_s)
    return bool(since) and since[-1].kind == "released"


def _incumbent(finished: list[FinishedRun], problem: Problem) -> tuple[float, FinishedRun] | None:
    """Goal value (smaller is better) of the first run that nothing has beaten, with that run."""
    best: tuple[float, FinishedRun] | None = None
    for run in finished:
        value = problem.answer_value(run.row, run.seconds, run.metrics)
        if value is not None and (best is None or value < best[0]):
            best = value, run
    return best


def _saving(problem: Problem, finished: list[FinishedRun], baseline: int | None, cost_usd: float | None) -> float:
    """Share of the baseline's measured cost that a run of the incumbent saves; NaN when either is not known."""
    times = [run.seconds for run in finished if run.row == baseline]
    if cost_usd is None or baseline is None or not times:
        return math.nan
    return 1.0 - cost_usd / problem.cost(baseline, median_high(times))
