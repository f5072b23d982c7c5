"""The overview of a stored study from sums that the database computes: trials are not read whole unless models choose the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lynceus.analysis.overview import Best, StudyOverview, interrupted_reason, problem_fields
from lynceus.analysis.shared_budgets import SharedBudgetUse
from lynceus.errors import LynceusError
from lynceus.jobfile.stored_study import job_and_problem
from lynceus.library.find import check_unchanged
from lynceus.library.outages import noted_outage
from lynceus.library.workers import worker_left
from lynceus.problem.problem import Problem
from lynceus.storage.serialization import DamagedRecordError, reading
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.totals import Totals
from lynceus.trial.incumbents import incumbent
from lynceus.trial.outcome import End, Observations
from lynceus.trial.shared_budget import SharedBudget

_NOTHING = Totals(settled=0, counted=0, stopped_early=0, failed=0, running=0, spent_usd=0.0, reserved_usd=0.0)
"""Of a study that cannot be read."""


def stored_overview(storage: Storage, record: StudyRecord, budgets: Sequence[SharedBudget]) -> StudyOverview:
    """The overview of a study; `budgets` are the shared ones of the storage, read once for all studies.

    The saving is known only when the baseline's cost was measured or given.
    """
    if record.damage is not None:
        raise DamagedRecordError(record.damage)
    _, problem = job_and_problem(record)
    check_unchanged(record, problem)
    problem = problem.with_budget(problem.budget.usd + record.added_usd, record.added_trials)
    runs = storage.comparable_runs(record.name, problem.metrics)
    return StudyOverview(
        **_stored_fields(storage, record, budgets),
        budget_usd=problem.budget.usd,
        **problem_fields(problem, runs, _best(storage, record, problem, runs)),
        note=noted_outage(storage, record),
    )


def _best(storage: Storage, record: StudyRecord, problem: Problem, runs: Observations) -> Best | None:
    """The best configuration. The policy is loaded only if it weighs runs against each other, or predicts."""
    seen, kind = incumbent(problem, runs), _kind(record.policy.get("answer", "best-seen"))
    confident = any(constraint.confidence is not None for constraint in problem.constraints)
    if kind == "best-seen" and (seen is None or not confident):
        return None if seen is None else Best.seen(problem, seen)
    if kind == "best-believed" and not _kept_once(problem, runs):
        return None
    from lynceus.library.open_study import open_record  # these load policies and models
    from lynceus.library.study_context import study_context

    return study_context(open_record(storage, record)).best


def _kept_once(problem: Problem, runs: Observations) -> bool:
    """Whether a finished run has kept every constraint: then a policy that weighs runs has something to name."""
    ended = (one for one in runs if one.outcome.end is End.FINISHED)
    return any(problem.answer_value(one.row, one.outcome.seconds, one.outcome.metrics) is not None for one in ended)


def _kind(part: object) -> object:
    """The kind of a policy's part as it is stored: alone, or with fields."""
    return part.get("kind") if isinstance(part, Mapping) else part


def overview_or_note(storage: Storage, record: StudyRecord, budgets: Sequence[SharedBudget]) -> StudyOverview:
    """The overview of a study; when its problem cannot be restored, what the storage knows, and a note that says why.

    A study whose rows make no sense has the state `DAMAGED`.
    """
    try:
        with reading(f"study {record.name!r}", storage.shown_url):
            return stored_overview(storage, record, budgets)
    except LynceusError as error:
        note, damaged = str(error), isinstance(error, DamagedRecordError)
    try:
        fields = _stored_fields(storage, record, budgets)
    except DamagedRecordError as error:
        fields, note, damaged = _known_fields(record) | _total_fields(_NOTHING), str(error), True
    return StudyOverview(**fields | ({"state": "DAMAGED", "reason": None} if damaged else {}), note=note)


def _stored_fields(storage: Storage, record: StudyRecord, budgets: Sequence[SharedBudget]) -> dict[str, Any]:
    """The fields that the storage knows by itself."""
    totals = storage.totals(record.name)
    state, reason = record.state, None if record.stopped is None else record.stopped.reason
    if state == "RUNNING" and not totals.running and worker_left(storage, record):
        state, reason = "INTERRUPTED", interrupted_reason(record.name, has_command=record.has_command)
    shared = tuple(map(SharedBudgetUse.of, record.payer.draws_on(budgets)))
    fields = {"state": state, "reason": reason, "shared_budgets": shared}
    return _known_fields(record) | _total_fields(totals) | fields


def _known_fields(record: StudyRecord) -> dict[str, Any]:
    """The fields that the row of a study tells."""
    return {
        "name": record.name,
        "state": record.state,
        "reason": None if record.stopped is None else record.stopped.reason,
        "policy": str(record.policy.get("name", "")),
        "seed": record.seed,
        "limit_changes": tuple(map(str, record.limit_changes)),
        "created_s": record.created_s,
        "worker_seen_s": record.seen_s,
        "project": record.payer.project,
        "owner": record.payer.owner,
    }


def _total_fields(totals: Totals) -> dict[str, Any]:
    return {
        "spent_usd": totals.spent_usd,
        "reserved_usd": totals.reserved_usd,
        "trials": totals.settled,
        "counted_trials": totals.counted,
        "running": totals.running,
        "stopped_early": totals.stopped_early,
        "failed": totals.failed,
    }
