"""Other deadlines and other prices, answered from runs that are already paid for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lynceus.history import End, History
from lynceus.policy import Policy
from lynceus.policy.belief import belief_of, believed_seconds, believed_values
from lynceus.problem import Limit, Problem
from lynceus.situation import Belief, Situation, feasible_runs
from lynceus.space import Expression
from lynceus.space.rules import hourly_price

SURE = 0.8
"""The chance to keep every limit from which on an untried configuration is mentioned."""


@dataclass(frozen=True)
class Choice:
    """A configuration with its numbers, measured or predicted."""

    row: int
    params: Mapping[str, object]
    value: float
    """The goal in its own unit and sign."""
    seconds: float
    cost_usd: float
    probability: float
    """Chance to keep every limit as the model sees it; NaN when there is no model."""


@dataclass(frozen=True)
class WhatIf:
    """The answer under changed circumstances."""

    label: str
    measured: Choice | None
    """The best configuration seen to keep the limits; nothing: none was."""
    predicted: Choice | None
    """An untried configuration that the model believes better; nothing: none."""
    undecided: int
    """Runs that were stopped so early that they might have been the answer under these circumstances."""


def whatif(problem: Problem, policy: Policy, history: History, *, label: str, seed: int) -> WhatIf:
    """The best answer to a (changed) problem from what the history holds; nothing is run."""
    believed = belief_of(problem, policy, history, seed)
    measured = _measured(problem, history, believed)
    predicted = None
    if believed is not None:
        predicted = _predicted(problem, history, believed, measured)
    undecided = sum(
        seen.outcome.end is End.CAPPED and seen.outcome.seconds < limit * (1 - 1e-9)
        for seen, limit in zip(history, _useful_s(problem, history), strict=True)
    )
    return WhatIf(label, measured, predicted, undecided)


def deadline_limits(problem: Problem, deadline_s: float) -> Problem:
    """The same problem under another deadline; other limits stay, and so does the confidence that was asked for."""
    confidence = next((limit.confidence for limit in problem.limits if limit.metric == "time"), None)
    others = tuple(limit for limit in problem.limits if limit.metric != "time")
    return problem.with_limits((Limit("time", deadline_s, confidence=confidence), *others))


def repriced(problem: Problem, price: str) -> Problem:
    """The same problem at other prices: an expression in dollars per hour over the columns; `price` is today's."""
    space = problem.space
    columns = {**space.columns, "price": space.price_per_second * 3600.0}
    Expression.parse(price, "price").check_names(columns)
    per_second = hourly_price(columns, price, space.parameters) / 3600.0
    return replace(problem, space=replace(space, price_per_second=per_second))


def _useful_s(problem: Problem, history: History) -> list[float]:
    """For each run, the seconds after which its configuration can no longer be the answer."""
    rows = np.array([seen.row for seen in history], dtype=np.int64)
    limits: list[float] = Situation.present(problem, history).cap_s_of(rows).tolist() if len(rows) else []
    return limits


def _measured(problem: Problem, history: History, believed: tuple[Belief, Situation] | None) -> Choice | None:
    runs = feasible_runs(problem, history)
    if not runs:
        return None
    row, value = min(runs, key=lambda run: run[1])
    seconds = float(
        np.median([seen.outcome.seconds for seen in history if seen.row == row and seen.outcome.end is End.FINISHED])
    )
    probability = float("nan") if believed is None else float(believed[0].feasible(problem)[0, row])
    value = -value if problem.goal.maximise else value
    return Choice(row, problem.space.point(row), value, seconds, problem.cost(row, seconds), probability)


def _predicted(
    problem: Problem, history: History, believed: tuple[Belief, Situation], best: Choice | None
) -> Choice | None:
    belief, situation = believed
    values, probability = believed_values(belief, situation), belief.feasible(problem)[0]
    tried = np.zeros(len(problem.space), dtype=bool)
    tried[[seen.row for seen in history]] = True
    allowed = ~tried & (probability >= SURE)
    if problem.answerable is not None:
        allowed &= problem.answerable
    if not allowed.any():
        return None
    smaller = -values if problem.goal.maximise else values
    row = int(np.argmin(np.where(allowed, smaller, np.inf)))
    if best is not None and smaller[row] >= (-best.value if problem.goal.maximise else best.value):
        return None
    seconds = float(believed_seconds(belief, problem)[row])
    return Choice(
        row, problem.space.point(row), float(values[row]), seconds, problem.cost(row, seconds), float(probability[row])
    )
