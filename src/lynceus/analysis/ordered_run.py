"""An order in the user's terms: the configuration, its timeout, and what was expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lynceus.analysis.calibration import intervals
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order


@dataclass(frozen=True)
class PlannedRun:
    """Why a configuration was chosen, and what the model expected of it. Numbers are NaN (null in JSON) without a model."""

    why: str
    gain: float
    """Expected improvement over the incumbent, in the unit of the objective."""
    charge_usd: float
    """Dollars that the run is expected to be charged."""
    probability: float
    """Chance to meet every constraint."""
    path: tuple[Mapping[str, object], ...]
    """Configurations that a look-ahead expects to run next."""
    low_s: float
    """The ends and the median of the predicted 80 % interval of its time."""
    middle_s: float
    high_s: float


@dataclass(frozen=True)
class OrderedRun:
    """A run that was ordered, or would be ordered next."""

    number: int
    params: Mapping[str, object]
    price_usd_per_hour: float
    timeout_s: float
    """It is stopped after so many seconds; infinite (null in JSON) for none."""
    reserved_usd: float
    """The most that it can be charged; infinite (null in JSON) without a timeout."""
    plan: PlannedRun


def ordered_run(problem: Problem, order: Order) -> OrderedRun:
    """An order with its plan."""
    plan, space = order.plan, problem.space
    low, middle, high = intervals(problem, [order])[0].tolist()
    path = tuple(space.point(row) for row in plan.path)
    return OrderedRun(
        order.number,
        space.point(order.row),
        float(problem.price[order.row]) * 3600,
        order.timeout_s,
        order.reserved_usd,
        PlannedRun(plan.why, plan.gain, plan.usd, plan.probability, path, low, middle, high),
    )
