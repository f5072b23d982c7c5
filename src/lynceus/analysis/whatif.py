"""Other limits and prices, answered from the runs that were already paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lynceus.analysis.at_input import InputAnswer, answer_at_input
from lynceus.analysis.pareto import Point, cost_time_front, without_deadline
from lynceus.analysis.predictions import hypothetical_policy, predict, predicted_objective, predicted_times
from lynceus.analysis.shortfall import shortfall_text
from lynceus.analysis.study_context import StudyContext
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved, BestSeen, confident
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import recommend, runs_decide
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration
from lynceus.space.expression import Expression
from lynceus.space.rules import hourly_price
from lynceus.trial.incumbents import incumbent
from lynceus.trial.limit_change import changed_limits
from lynceus.trial.outcome import End, Observations

LIKELY = 0.8
"""An untried configuration is mentioned from this chance on to meet every constraint."""


@dataclass(frozen=True)
class Choice:
    """A configuration with its numbers, measured or predicted."""

    row: int
    params: Mapping[str, object]
    value: float
    """The objective in its own unit and sign."""
    runtime_s: float
    cost_usd: float
    probability: float
    """Chance to meet every constraint, by the model; NaN without a model."""


@dataclass(frozen=True)
class WhatIf:
    """The answer to a changed problem."""

    label: str
    """What was changed."""
    deadline_s: float
    """The deadline of the changed problem; infinite (null in JSON) without one."""
    constraints: tuple[str, ...]
    """All constraints of the changed problem."""
    measured: Choice | None
    """The best configuration that was run and met the constraints; with a `shortfall`, only the nearest one."""
    shortfall: str | None
    """A sentence when `measured` does not meet the constraints with the confidence that they demand; see `Answer`."""
    predicted: Choice | None
    """An untried configuration that the model predicts to be better."""
    undecided: int
    """Runs that were stopped so early that they might have been the answer."""


@dataclass(frozen=True)
class WhatIfs:
    """`lynceus whatif`: several answers, and the front of cost against time."""

    study: str
    answers: list[WhatIf]
    front: list[Point]
    inputs: list[InputAnswer]
    """The answer for each input that was asked about, run or not."""


@dataclass(frozen=True)
class Case:
    """A problem with one change, and what the change is called."""

    label: str
    problem: Problem


def whatifs(context: StudyContext, cases: Sequence[Case], inputs: Sequence[JobInput] = ()) -> WhatIfs:
    """The answers to several changed problems, and for several inputs."""
    study, known, policy = context.study, context.known, hypothetical_policy(context.study)
    answers = [whatif(case.problem, policy, known, label=case.label, seed=study.seed) for case in cases]
    found = [one for each in inputs if (one := answer_at_input(context, each)) is not None]
    return WhatIfs(study.name, answers, cost_time_front(study.problem, known), found)


def unchanged(problem: Problem) -> Case:
    """The problem as it is."""
    return Case("as it is", problem)


def deadline_case(problem: Problem, deadline_s: float) -> Case:
    """The problem under another deadline."""
    return Case(f"runtime <= {format_duration(deadline_s)}", with_deadline(problem, deadline_s))


def constraint_cases(problem: Problem, changed: Sequence[Constraint]) -> list[Case]:
    """The problem under other limits, all at once; one problem for each where several limit the same quantity."""
    quantities = {(one.metric, one.at_least) for one in changed}
    groups = [list(changed)] if len(quantities) == len(changed) else [[one] for one in changed]
    return [
        Case(", ".join(map(str, group)), problem.with_constraints(changed_limits(problem.constraints, group)))
        for group in groups
        if group
    ]


def price_case(problem: Problem, price: str) -> Case:
    """The problem at other prices, see `with_prices`."""
    return Case(f"price {price}", with_prices(problem, price))


def with_deadline(problem: Problem, deadline_s: float) -> Problem:
    """The same problem under another deadline; other constraints and the confidence of the deadline stay."""
    confidence = next(
        (constraint.confidence for constraint in problem.constraints if constraint.metric == "time"), None
    )
    free = without_deadline(problem)
    return free.with_constraints((Constraint("time", deadline_s, confidence=confidence), *free.constraints))


def with_prices(problem: Problem, price: str) -> Problem:
    """The same problem at other prices: an expression in dollars per hour over the columns; `price` is the present price."""
    space = problem.space
    columns = {**space.columns, "price": space.price_per_second * 3600.0}
    Expression.parse(price, "price").check_names(columns)
    per_second = hourly_price(columns, price, space.parameters) / 3600.0
    return replace(problem, space=replace(space, price_per_second=per_second))


def whatif(problem: Problem, policy: Policy, observations: Observations, *, label: str, seed: int) -> WhatIf:
    """The best answer to a (changed) problem by the observations; nothing is run."""
    prediction = predict(problem, policy, observations, seed)
    if isinstance(policy.answer, BestBelieved) or (
        isinstance(policy.answer, BestSeen) and not runs_decide(problem, policy)
    ):
        measured, reached = _believed(problem, policy, observations, seed)
    else:
        measured, reached = _measured(problem, observations, prediction)
    predicted = None if prediction is None else _predicted(problem, observations, prediction, measured)
    undecided = sum(
        seen.outcome.end is End.TIMEOUT and seen.outcome.seconds < useful_s * (1 - 1e-9)
        for seen, useful_s in zip(observations, _useful_s(problem, observations), strict=True)
    )
    limits = tuple(map(str, problem.constraints))
    short = None if measured is None or reached else shortfall_text(problem, measured.row, measured.probability)
    return WhatIf(label, problem.deadline_s, limits, measured, short, predicted, undecided)


def _useful_s(problem: Problem, observations: Observations) -> list[float]:
    """For each run the seconds after which its configuration can no longer be the answer."""
    rows = np.array([seen.row for seen in observations], dtype=np.int64)
    seconds: list[float] = State.present(problem, observations).timeout_s_of(rows).tolist() if len(rows) else []
    return seconds


def _believed(problem: Problem, policy: Policy, observations: Observations, seed: int) -> tuple[Choice | None, bool]:
    """What the policy itself would recommend, what it believes of that, and whether that reaches the confidence that is demanded."""
    found = recommend(problem, policy, observations, seed=seed)
    if found is None:
        return None, False
    choice = Choice(found.row, found.params, found.value, found.seconds, found.cost_usd, found.probability)
    return choice, found.reaches_confidence


def _measured(
    problem: Problem, observations: Observations, prediction: Prediction | None
) -> tuple[Choice | None, bool]:
    """The best run that met the constraints, and whether its configuration is predicted to do so with the confidence that is demanded."""
    best = incumbent(problem, observations)
    if best is None:
        return None, False
    row, seconds = best.row, best.observation.outcome.seconds
    probability = math.nan if prediction is None else float(prediction.feasible(problem)[0, row])
    reached = problem.deterministic or prediction is None or bool(confident(prediction, problem)[row])
    value = problem.objective.sign * best.value
    return Choice(row, problem.space.point(row), value, seconds, problem.cost(row, seconds), probability), reached


def _predicted(
    problem: Problem, observations: Observations, prediction: Prediction, measured: Choice | None
) -> Choice | None:
    """The best untried configuration, when the model predicts it to be better than what was measured."""
    values, probability = predicted_objective(prediction, problem), prediction.feasible(problem)[0]
    tried = np.zeros(len(problem.space), dtype=bool)
    tried[[seen.row for seen in observations]] = True
    allowed = ~tried & (probability >= LIKELY)
    if problem.answerable is not None:
        allowed &= problem.answerable
    if not allowed.any():
        return None
    sign = problem.objective.sign
    row = int(np.argmin(np.where(allowed, sign * values, np.inf)))
    if measured is not None and sign * values[row] >= sign * measured.value:
        return None
    seconds = float(predicted_times(prediction, problem)[row])
    params, cost_usd = problem.space.point(row), problem.cost(row, seconds)
    return Choice(row, params, float(values[row]), seconds, cost_usd, float(probability[row]))
