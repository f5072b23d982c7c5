"""Why no configuration is recommended: which limit fails, by how much, what comes closest, and what to do about it."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.analysis.infeasibility_text import advice, summary
from lynceus.analysis.predictions import explaining_policy, predict, predicted_times
from lynceus.analysis.study_context import StudyContext
from lynceus.models.prediction import Prediction
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, FloatArray
from lynceus.trial.outcome import End, FailureReason, Observation, Observations
from lynceus.trial.stop import StopReason

LIKELY = 0.5
"""The search is worth more money where so many of the configurations that are left are expected to meet every limit."""
_USED_UP = (StopReason.BUDGET, StopReason.TRIALS, StopReason.WALL_CLOCK)


class Cause(enum.StrEnum):
    """Why no configuration is known to meet every constraint."""

    NO_TRIALS = "no trials"
    """No trial has ended yet."""
    FAILED = "failed"
    """Every trial failed by itself: the limits are not to blame."""
    TIMEOUT = "timeout"
    """Trials were stopped before their limits, by `trial.max_duration`."""
    BUDGET = "budget"
    """The budget ended the search, or its trials, too early: some configuration that is left may do, or trials were stopped before
    their limits."""
    OPEN = "open"
    """The search goes on, and some configuration that is left may do."""
    LIMIT = "limit"
    """No run meets one of the limits."""
    TOGETHER = "together"
    """Each limit is met by some run, but no run meets all of them."""


@dataclass(frozen=True)
class LimitValue:
    """The best value of a limited quantity: the fastest, cheapest, smallest or largest."""

    value: float
    """In the unit of the limit: seconds, dollars, or that of the metric."""
    misses_by: float
    """How far it lies on the wrong side of the limit; 0 or less: it meets the limit."""
    misses_by_share: float
    """The same as a share of the limit; infinite (null in JSON) for a limit of 0."""
    row: int
    params: Mapping[str, object]
    trial: int | None
    """The run that measured it; None: it is predicted."""


@dataclass(frozen=True)
class LimitFacts:
    """One constraint, and how near runs and predictions come to it."""

    constraint: str
    metric: str
    """`time`, `cost`, or a metric."""
    bound: float
    at_least: bool
    fails: bool
    """No finished run meets it; false for a metric that no run has reported yet."""
    finished: int
    """Finished runs that tell the quantity."""
    kept: int
    """Those of them that meet the limit."""
    measured: LimitValue | None
    """The best finished run; None without one."""
    believed: LimitValue | None
    """The best of all configurations: measured where they ran, predicted elsewhere; None while there are too few runs for a model, and for
    a metric that no run has reported yet."""
    chance: float
    """Largest predicted chance of any configuration that did not finish to meet this limit alone; NaN without a model."""
    unit: str = ""
    """The declared unit of a metric; empty: none is declared."""


@dataclass(frozen=True)
class Infeasibility:
    """Why there is no answer."""

    cause: Cause
    summary: str
    """One sentence: what fails, and by how much."""
    advice: str
    """One sentence: what to do."""
    limits: list[LimitFacts]
    """Limits that fail come first, those that are missed by most before others."""
    likeliest: Mapping[str, object] | None
    """The configuration that did not finish and most probably meets every limit; None without a model."""
    chance: float
    """Its predicted chance; NaN without a model."""
    charge_usd: float
    """What a run of it is expected to be charged, up to its limits; NaN without a model."""


def infeasibility(context: StudyContext, problem: Problem | None = None) -> Infeasibility:
    """Why a study has no answer; `problem` replaces its own, for example with another deadline. Ask only when it has none."""
    study, known = context.study, context.known
    problem = study.problem if problem is None else problem
    prediction = predict(problem, explaining_policy(study), known, study.seed)
    limits = [limit_facts(problem, known, prediction, one) for one in problem.constraints]
    limits.sort(key=lambda one: (not one.fails, -_miss(one)))
    row, chance, expected = _likeliest(problem, known, prediction)
    usd = math.nan if prediction is None or row is None else _charge(problem, prediction, row)
    cause = _cause(context, problem, limits, expected)
    likeliest = None if row is None else problem.space.point(row)
    asked = [one for one in problem.constraints if one not in study.problem.constraints]
    return Infeasibility(
        cause,
        summary(cause, limits, study.observations),
        advice(cause, limits, study, (likeliest, chance, usd), _nearest(problem, known, limits), asked),
        limits,
        likeliest,
        chance,
        usd,
    )


def _nearest(
    problem: Problem, known: Observations, limits: Sequence[LimitFacts]
) -> tuple[LimitFacts, LimitValue] | None:
    """The one limit that has to change least for a finished run to meet them all, and that run; None where none has."""
    facts = {one.constraint: one for one in limits}
    found = []
    for constraint in problem.constraints:
        others = [one for one in problem.constraints if one != constraint]
        for seen in known:
            value = _value(problem, constraint, seen)
            rest = [(one, _value(problem, one, seen)) for one in others]
            if value is not None and all(other is not None and one.holds(other) for one, other in rest):
                number = seen.order.number
                found.append((facts[str(constraint)], _limit_value(problem, constraint, value, seen.row, number)))
    return min(found, key=lambda pair: pair[1].misses_by_share, default=None)


def limit_facts(
    problem: Problem, known: Observations, prediction: Prediction | None, constraint: Constraint
) -> LimitFacts:
    """How near runs and predictions come to one constraint."""
    measured = [(seen, value) for seen in known if (value := _value(problem, constraint, seen)) is not None]
    sign = -1.0 if constraint.at_least else 1.0
    best = min(measured, key=lambda pair: sign * pair[1], default=None)
    kept = sum(constraint.holds(value) for _, value in measured)
    believed, chance = None, math.nan
    unknown = not measured and constraint.metric not in (
        "time",
        "cost",
    )  # a metric that no run reported, for example because all were stopped
    if prediction is not None and not unknown:
        believed = _believed(problem, constraint, known, prediction, {one.row: (one, value) for one, value in measured})
        untried = _answerable(problem) & ~_decided(problem, known, constraint)
        chance = float(np.max(prediction.meets(constraint, problem)[0], where=untried, initial=0.0))
    return LimitFacts(
        constraint=str(constraint),
        metric=constraint.metric,
        bound=constraint.bound,
        at_least=constraint.at_least,
        fails=not kept and not unknown,
        finished=len(measured),
        kept=kept,
        measured=None
        if best is None
        else _limit_value(problem, constraint, best[1], best[0].row, best[0].order.number),
        believed=believed,
        chance=chance,
        unit=constraint.unit,
    )


def _believed(
    problem: Problem,
    constraint: Constraint,
    known: Observations,
    prediction: Prediction,
    measured: Mapping[int, tuple[Observation, float]],
) -> LimitValue | None:
    """The best value of any configuration: as measured, else as predicted, and never faster than it is known to be slow."""
    values = _predicted(problem, constraint, known, prediction)
    for row, (_, value) in measured.items():
        values[row] = value
    allowed = _answerable(problem) & ~_broken(problem, known) & np.isfinite(values)
    if not allowed.any():
        return None
    sign = -1.0 if constraint.at_least else 1.0
    row = int(np.argmin(np.where(allowed, sign * values, np.inf)))
    trial = measured[row][0].order.number if row in measured else None
    return _limit_value(problem, constraint, float(values[row]), row, trial)


def _predicted(problem: Problem, constraint: Constraint, known: Observations, prediction: Prediction) -> FloatArray:
    """The predicted quantity of every configuration `[q]`."""
    if constraint.metric not in ("time", "cost"):
        return np.array(prediction.metric(problem.metrics.index(constraint.metric)).quantile(0.5)[0])
    seconds = np.asarray(predicted_times(prediction, problem), dtype=np.float64).copy()
    for seen in known:
        if seen.outcome.end is End.TIMEOUT:
            seconds[seen.row] = max(seconds[seen.row], seen.outcome.seconds)
    return seconds if constraint.metric == "time" else np.asarray(problem.run_costs.of(seconds), dtype=np.float64)


def _limit_value(problem: Problem, constraint: Constraint, value: float, row: int, trial: int | None) -> LimitValue:
    misses_by = constraint.bound - value if constraint.at_least else value - constraint.bound
    share = misses_by / abs(constraint.bound) if constraint.bound else math.copysign(math.inf, misses_by)
    return LimitValue(value, misses_by, share, row, problem.space.point(row), trial)


def _value(problem: Problem, constraint: Constraint, seen: Observation) -> float | None:
    """The limited quantity of a finished run; None where it is not known."""
    outcome = seen.outcome
    if outcome.end is not End.FINISHED or not _answerable(problem)[seen.row]:
        return None
    if constraint.metric == "time":
        return outcome.seconds
    return (
        problem.cost(seen.row, outcome.seconds)
        if constraint.metric == "cost"
        else outcome.metrics.get(constraint.metric)
    )


def _likeliest(problem: Problem, known: Observations, prediction: Prediction | None) -> tuple[int | None, float, float]:
    """The configuration that most probably meets every limit, its chance, and how many are expected to meet them all: among those of
    which that is not known."""
    if prediction is None:
        return None, math.nan, math.inf  # too little is known to give up hope
    left = _answerable(problem) & ~_broken(problem, known)
    for constraint in problem.constraints:
        left &= ~_decided(problem, known, constraint)
    if not left.any():
        return None, 0.0, 0.0
    chance = np.where(left, prediction.feasible(problem)[0], 0.0)
    return int(np.argmax(np.where(left, chance, -1.0))), float(chance.max()), float(chance.sum())


def _charge(problem: Problem, prediction: Prediction, row: int) -> float:
    """Expected dollars of a run, stopped at its limits."""
    seconds = min(float(predicted_times(prediction, problem)[row]), float(problem.ceiling_s[row]))
    return problem.billing.charge(max(seconds, 0.0), float(problem.price[row]))


def _decided(problem: Problem, known: Observations, constraint: Constraint) -> BoolArray:
    """Configurations of which runs have told whether they meet a limit `[q]`."""
    decided = np.zeros(len(problem.space), dtype=bool)
    for seen in known:
        late = seen.outcome.end is End.TIMEOUT and constraint.metric in ("time", "cost")
        limit = problem.with_constraints((constraint,)) if late else problem
        if seen.outcome.end is End.FINISHED or (
            late and seen.outcome.seconds >= limit.ceiling_s[seen.row] * (1 - 1e-9)
        ):
            decided[seen.row] = True
    return decided


def _broken(problem: Problem, known: Observations) -> BoolArray:
    """Configurations that failed by their own fault `[q]`."""
    broken = np.zeros(len(problem.space), dtype=bool)
    broken[
        [seen.row for seen in known if seen.outcome.reason is not None and seen.outcome.reason.blames_configuration]
    ] = True
    return broken


def _answerable(problem: Problem) -> BoolArray:
    return np.ones(len(problem.space), dtype=bool) if problem.answerable is None else problem.answerable


def _miss(limit: LimitFacts) -> float:
    best = limit.measured or limit.believed
    return math.inf if best is None else best.misses_by_share


def _cause(context: StudyContext, problem: Problem, limits: list[LimitFacts], expected: float) -> Cause:
    study = context.study
    seen = [one for one in study.observations if one.outcome.reason is not FailureReason.USER]
    if not seen:
        return Cause.NO_TRIALS
    if all(one.outcome.end is End.FAILED for one in seen):
        return Cause.FAILED
    if not any(one.outcome.end is End.FINISHED for one in seen) and _stopped_short(problem, study.observations):
        return Cause.TIMEOUT if isinstance(study.policy.timeout.rule, AtMost) else Cause.BUDGET
    used_up = study.stopped is not None and study.stopped.kind in _USED_UP
    if expected >= LIKELY and (used_up or not study.over):
        return Cause.BUDGET if used_up else Cause.OPEN
    return Cause.LIMIT if any(one.fails for one in limits) else Cause.TOGETHER


def _stopped_short(problem: Problem, observations: Observations) -> bool:
    """Whether most stopped runs were stopped before a limit on time or cost could end them."""
    stopped = [one for one in observations if one.outcome.end is End.TIMEOUT]
    short = [one for one in stopped if one.outcome.seconds < problem.ceiling_s[one.row] * (1 - 1e-6)]
    return 2 * len(short) > len(stopped)
