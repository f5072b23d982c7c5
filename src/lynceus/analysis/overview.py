"""The status of a study in one line: state, money, trials, and the best configuration so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import incumbent, median_runs
from lynceus.trial.outcome import End, Observations

if TYPE_CHECKING:
    from lynceus.analysis.study_context import StudyContext  # it loads policies, which `lynceus status` does without


@dataclass(frozen=True, kw_only=True)
class StudyOverview:
    """`lynceus status`, the list of studies, and the head of a study's page. NaN and infinite numbers are null in JSON."""

    name: str
    state: str
    """`RUNNING`, `INTERRUPTED` (no worker runs it), `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
    reason: str | None
    """Why it does not run."""
    objective: str | None = None
    """Such as `minimize cost`; None when the problem cannot be restored, see `note`. So are the other fields with a default."""
    constraints: tuple[str, ...] = ()
    deadline_s: float = math.nan
    """Infinite without a constraint on time."""
    configurations: int | None = None
    """Size of the space."""
    policy: str
    seed: int
    budget_usd: float = math.nan
    """Added money included; infinite without a budget in dollars."""
    budget_trials: int | None = None
    spent_usd: float
    """What settled trials were charged."""
    reserved_usd: float
    """What open trials may still be charged at most."""
    trials: int
    """Settled trials."""
    running: int
    """Open trials."""
    stopped_early: int
    failed: int
    best_value: float | None = None
    """The objective of the incumbent in its own unit and sign."""
    best_trial: int | None = None
    """The run that represents the incumbent: its only one, or the median of several."""
    best_params: Mapping[str, object] | None = None
    best_cost_usd: float | None = None
    """Dollars of a production run of it."""
    saving: float = math.nan
    """Share of the baseline's cost that a run of the incumbent saves; NaN when either is unknown."""
    saving_measured: bool = False
    """Whether the baseline was measured; otherwise its cost is predicted."""
    created_s: float | None
    """Seconds since the epoch, like the next field."""
    worker_seen_s: float | None
    note: str | None = None
    """Why only little is known about the study."""


def overview(context: StudyContext) -> StudyOverview:
    """The overview of a study whose observations are in memory."""
    study = context.study
    observations = study.observations
    state, reason = context.state()
    return StudyOverview(
        name=study.name,
        state=state,
        reason=reason,
        policy=study.policy.name,
        seed=study.seed,
        budget_usd=study.budget_usd,
        spent_usd=study.spent_usd,
        reserved_usd=study.reserved_usd,
        trials=len(observations),
        running=len(study.pending),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in observations),
        failed=sum(seen.outcome.end is End.FAILED for seen in observations),
        created_s=context.created_s,
        worker_seen_s=context.worker_seen_s,
        **problem_fields(study.problem, observations, context.baseline),
    )


def problem_fields(problem: Problem, observations: Observations, baseline: int | None) -> dict[str, Any]:
    """The fields of an overview that follow from the problem and its runs; failed runs may be left out of `observations`."""
    best = incumbent(problem, observations)
    fields: dict[str, Any] = {
        "objective": str(problem.objective),
        "constraints": tuple(str(constraint) for constraint in problem.constraints),
        "deadline_s": problem.deadline_s,
        "configurations": len(problem.space),
        "budget_trials": problem.budget.trials,
    }
    if best is None:
        return fields
    cost_usd = problem.cost(best.row, best.observation.outcome.seconds)
    baseline_usd = math.nan if baseline is None else measured_cost(problem, observations, baseline)
    saving = 1.0 - cost_usd / baseline_usd if baseline_usd > 0 else math.nan
    return fields | {
        "best_value": problem.objective.sign * best.value,
        "best_trial": best.number,
        "best_params": problem.space.point(best.row),
        "best_cost_usd": cost_usd,
        "saving": saving,
        "saving_measured": not math.isnan(saving),
    }


def measured_cost(problem: Problem, observations: Observations, row: int) -> float:
    """Dollars of a production run of a configuration by its median run; NaN when no run of it finished."""
    own = tuple(seen for seen in observations if seen.row == row)
    for seen in median_runs(own):
        if seen.outcome.end is End.FINISHED:
            return problem.cost(row, seen.outcome.seconds)
    return math.nan


def interrupted_reason(name: str) -> str:
    """The reason of a study whose last worker left before the search ended."""
    return f"no worker runs it; continue with: lynceus resume {name}"
