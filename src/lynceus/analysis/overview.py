"""The status of a study in one line: state, money, trials, and the best configuration so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lynceus.analysis.savings import Interval, Uses, counted_uses, known_baseline, use_cost
from lynceus.analysis.shared_budgets import SharedBudgetUse
from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import Incumbent
from lynceus.trial.nan_equality import NanEquality
from lynceus.trial.outcome import Observations

if TYPE_CHECKING:
    from lynceus.analysis.study_context import StudyContext  # it loads policies, which `lynceus status` does without


@dataclass(frozen=True, slots=True)
class Best:
    """The best configuration of a study, as `lynceus best` names it."""

    row: int
    value: float
    """The objective in its own unit and sign."""
    cost_usd: float
    trial: int | None
    """The run that represents it; None when it was not run."""
    shortfall: str | None = None
    """A sentence when it does not meet the constraints with the confidence that they demand; see `Answer`."""

    @classmethod
    def seen(cls, problem: Problem, best: Incumbent) -> Best:
        """The best run, for policies that take runs at their word."""
        cost_usd = problem.cost(best.row, best.observation.outcome.seconds)
        return cls(best.row, problem.objective.sign * best.value, cost_usd, best.number)


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyOverview(NanEquality):
    """`lynceus status`, the list of studies, and the head of a study's page. NaN and infinite numbers are null in JSON."""

    name: str
    state: str
    """`RUNNING`, `INTERRUPTED` (no worker runs it), `PAUSED`, `STOPPED` (by the user) or `FINISHED`."""
    reason: str | None
    """Why it does not run."""
    objective: str | None = None
    """Such as `minimize cost`; None when the problem cannot be restored, see `note`. So are the other fields with a default."""
    constraints: tuple[str, ...] = ()
    """Those that hold now."""
    limit_changes: tuple[str, ...] = ()
    """Every change of the constraints since the study began, oldest first: which before, which after, and before which trial."""
    deadline_s: float = math.nan
    """Infinite without a constraint on time."""
    configurations: int | None = None
    """Size of the space."""
    policy: str
    seed: int
    budget_usd: float = math.nan
    """Added money included; infinite without a budget in dollars."""
    budget_trials: int | None = None
    counted_trials: int
    """Settled trials that count against `budget_trials`: imported ones and further rows of a trial do not."""
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
    """The objective of the best configuration in its own unit and sign: what `lynceus best` says."""
    best_trial: int | None = None
    """The run that represents the best configuration: its only one, or the median of several; None also when it was not run."""
    best_params: Mapping[str, object] | None = None
    best_cost_usd: float | None = None
    """Dollars of a production run of it."""
    best_reaches_confidence: bool | None = None
    """Whether the best configuration meets the constraints with the confidence that they demand; otherwise it is only the nearest one."""
    shortfall: str | None = None
    """A sentence when it does not; see `Answer`."""
    saving: float = math.nan
    """Share of the baseline's cost that a use of the incumbent saves (see `Answer`); NaN when either is unknown."""
    saving_measured: bool = False
    """Whether the baseline's cost was measured or given; otherwise it is predicted."""
    saving_interval: Interval | None = None
    """Where the saving lies with a probability of 80 %, when it is predicted."""
    future: Uses | None = None
    """How often the result will be used; None when the user did not say it."""
    created_s: float | None
    """Seconds since the epoch, like the next field."""
    worker_seen_s: float | None
    project: str | None = None
    owner: str | None = None
    """Who pays for it; see docs/teams.md."""
    shared_budgets: tuple[SharedBudgetUse, ...] = ()
    """Those of its project and its owner."""
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
        counted_trials=study.record.ordered - len(study.pending),
        running=len(study.pending),
        stopped_early=context.progress.stopped_early,
        failed=context.progress.failed,
        limit_changes=tuple(map(str, study.record.limit_changes)),
        created_s=context.created_s,
        worker_seen_s=context.worker_seen_s,
        project=context.payer.project,
        owner=context.payer.owner,
        shared_budgets=tuple(map(SharedBudgetUse.of, study.record.shared_budgets)),
        **problem_fields(
            study.problem.with_budget(study.budget_usd, study.record.added_trials), observations, context.best
        ),
    )


def problem_fields(problem: Problem, observations: Observations, best: Best | None) -> dict[str, Any]:
    """The fields of an overview that follow from the problem, its runs and its best one; failed runs may be left out of `observations`."""
    fields: dict[str, Any] = {
        "objective": str(problem.objective),
        "constraints": tuple(str(constraint) for constraint in problem.constraints),
        "deadline_s": problem.deadline_s,
        "configurations": len(problem.space),
        "budget_trials": problem.budget.trials,
        "future": None if problem.future is None else counted_uses(problem, problem.future),
    }
    if best is None:
        return fields
    baseline_usd = known_baseline(problem, observations).usd
    saving = 1.0 - use_cost(problem, best.cost_usd, best.value) / baseline_usd if baseline_usd > 0 else math.nan
    return fields | {
        "best_value": best.value,
        "best_trial": best.trial,
        "best_params": problem.space.point(best.row),
        "best_cost_usd": best.cost_usd,
        "best_reaches_confidence": best.shortfall is None,
        "shortfall": best.shortfall,
        "saving": saving,
        "saving_measured": not math.isnan(saving),
    }


def interrupted_reason(name: str, *, has_command: bool) -> str:
    """The reason of a study whose last worker left before the search ended.

    >>> interrupted_reason("etl", has_command=False)
    'no worker runs it; continue with the program that runs its trials'
    """
    continued = (
        f"continue with: lynceus resume {name}" if has_command else "continue with the program that runs its trials"
    )
    return f"no worker runs it; {continued}"
