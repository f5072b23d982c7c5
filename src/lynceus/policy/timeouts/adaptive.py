"""A timeout whose checks become denser where a stop is likely: future work of the thesis (§4.4.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.models.prediction import run_distribution
from lynceus.models.state import State
from lynceus.policy.timeouts.rules import IncumbentTimeout
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class AdaptiveTimeout:
    """Stop a run as `IncumbentTimeout` does, at the first check after the moment when it can no longer win.

    The next check comes after `every_s` where a stop is improbable, and after `least_s` where it is certain:
    every − (every − least) · P(T > limit | T > now), under the prediction of the order. Without a prediction, every `every_s`.
    """

    every_s: float = 30.0
    least_s: float = 1.0
    first_runs_too: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.least_s <= self.every_s:
            raise ValueError(
                f"checks every {self.least_s:g} to {self.every_s:g} s; give least_s above 0 and at most every_s"
            )

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop."""
        limit_s = IncumbentTimeout(self.first_runs_too)(state, plan)
        if not math.isfinite(limit_s):
            return limit_s
        return self.checks(state, plan, limit_s)[-1] if limit_s > 0 else 0.0

    def checks(self, state: State, plan: Plan, limit_s: float) -> list[float]:
        """When a run is looked at, in seconds, up to the first moment at or after its limit."""
        times = [0.0]
        while times[-1] < limit_s * (1 - 1e-9):
            risk = _risk(state, plan, times[-1], limit_s)
            times.append(times[-1] + self.every_s - (self.every_s - self.least_s) * risk)
        return times[1:]


def _risk(state: State, plan: Plan, now_s: float, limit_s: float) -> float:
    """P(T > limit | T > now) under the prediction of the order; 0 without one."""
    if plan.expected is None:
        return 0.0
    expected = plan.expected
    run = run_distribution(expected.form, np.asarray(expected.mean[0]), np.asarray(expected.std[0]))
    at = [
        seconds if expected.form == "log time" else state.problem.cost(plan.row, seconds)
        for seconds in (now_s, limit_s)
    ]
    still, beyond = (float(run.sf(value)) for value in at)
    # A run that outlives everything the model expected is expected to go on.
    return min(beyond / still, 1.0) if still > 0 else 1.0
