"""The first run of a study whose baseline is to be measured: savings then rest on a run, not on a prediction."""

from __future__ import annotations

import math

from lynceus.models.state import State
from lynceus.policy.orders import affordable_seconds, order_for
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Observation

_SLOTS = 2
"""The run may use one share of so many of the money left: the search keeps the other."""


def baseline_order(state: State, policy: Policy, slots: int) -> Order | None:
    """The run of the baseline; None when it is not to be measured, has been, or cannot be paid.

    Neither deadline nor incumbent stops it, because its whole time is the answer; only the longest time of every run and half of the money
    left do.
    """
    baseline = state.problem.baseline
    if baseline is None or not baseline.measure or any(order.row == baseline.row for order in state.pending):
        return None
    if any(_settles(seen) for seen in state.observations if seen.row == baseline.row):
        return None
    affordable_s = float(affordable_seconds(state, max(slots, _SLOTS))[baseline.row])
    if not affordable_s > 0:
        return None
    rule = policy.timeout.rule
    longest_s = rule.seconds if isinstance(rule, AtMost) else math.inf
    plan = Plan(baseline.row, why="measures the baseline", stoppable=False, purpose=Purpose.BASELINE)
    return order_for(state, plan, min(affordable_s, longest_s))


def _settles(seen: Observation) -> bool:
    """Whether a run tells the cost of the baseline, or that it cannot be had; `seen` is read by the retry rules."""
    if seen.outcome.end is End.TIMEOUT:
        return seen.order.plan.purpose is Purpose.BASELINE  # the search stops runs early
    return seen.outcome.reason is not FailureReason.INFRA
