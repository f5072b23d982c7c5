"""The two pure functions that think: `decide` (what next?) and `absorb` (what was learnt?).

Both depend on values and a seed only. So a study that was interrupted resumes by reading its history, a live study can be replayed,
and a page can show why a configuration was chosen by asking again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lynceus.history import Because, End, History, Observation, Order, Outcome, Plan, Stopped, Told
from lynceus.policy.policy import Policy
from lynceus.problem import Problem
from lynceus.situation import Situation, is_warm
from lynceus.units import format_duration, format_money

_ROUNDING = 1e-9
"""Share of the budget below which money left over is the error of a sum."""


def decide(
    problem: Problem,
    policy: Policy,
    history: History,
    pending: tuple[Order, ...] = (),
    *,
    seed: int,
    elapsed_s: float = 0.0,
    slots: int = 1,
) -> Order | Stopped:
    """The next run, or the reason why there is none.

    `slots` says how many runs may be started now, this one included. A run that nothing else caps would reserve all the money left;
    of several slots it gets only its fair share, so that the others can be used, too.
    """
    if slots < 1:
        raise ValueError(f"a run was asked for with {slots} slots; it needs one")
    started = len(history) + len(pending)
    if (over := used_up(problem, started, elapsed_s)) is not None:
        return over
    situation = worthwhile(Situation.present(problem, history, pending))
    if isinstance(situation, Stopped):
        return situation
    plan = policy.choose(situation, policy.surrogate, seed)
    reason = policy.stop(situation, plan)
    if reason is not None:
        return Stopped(Because.CONVERGED, reason)
    if plan is None:
        left = format_money(float(situation.left[0]))
        return Stopped(Because.BUDGET, f"no configuration is likely enough to finish within the {left} left")
    return order_of(situation, policy, plan, number=started, slots=slots)


def absorb(problem: Problem, policy: Policy, history: History, order: Order, outcome: Outcome) -> Observation:
    """The order with its outcome and what the model hears of it."""
    told: Told | None = None
    if outcome.end is End.FINISHED:
        told = Told(outcome.seconds, outcome.metrics)
    elif outcome.end is End.CAPPED:
        told = policy.timeout.fill(problem, order, outcome, Situation.present(problem, history))
    return Observation(order, outcome, told)


def used_up(problem: Problem, started: int, elapsed_s: float) -> Stopped | None:
    """Why no run may be started any more, whoever wants it: the trials or the wall clock of the budget are over."""
    budget = problem.budget
    if budget.trials is not None and started >= budget.trials:
        return Stopped(Because.TRIALS, f"all {budget.trials} trials of the budget were used")
    if budget.wall_clock_s is not None and elapsed_s >= budget.wall_clock_s:
        return Stopped(Because.WALL_CLOCK, f"the study's {format_duration(budget.wall_clock_s)} of wall clock are over")
    return None


def worthwhile(situation: Situation) -> Situation | Stopped:
    """The situation with rows closed that cannot even be started, or cannot win; a reason when no row is left."""
    problem = situation.problem
    if not situation.open.any():
        return Stopped(Because.EXHAUSTED, "every configuration has been run")
    could_win = situation.open & (situation.caps_s()[0] > 0)
    if not could_win.any():
        return Stopped(Because.CONVERGED, "no configuration left can beat the incumbent, whatever its speed")
    startable = could_win & (affordable_seconds(situation) > 0)
    if not startable.any():
        left, total = float(situation.left[0]), problem.budget.usd
        return Stopped(
            Because.BUDGET, f"the {format_money(max(left, 0.0))} left of {format_money(total)} buy no further run"
        )
    return situation if startable.all() else replace(situation, open=startable)


def affordable_seconds(situation: Situation, slots: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How long each row may run before the money left is used up `[q]`, or before its fair share for one of several slots is.

    A row whose share does not even pay its start may use all the money left.
    """
    problem = situation.problem
    left = float(situation.left[0])
    # 1.1 − 0.7 − 0.4 is 10⁻¹⁶ dollars: money that is only rounding must not buy a run of no time.
    if math.isfinite(left) and left <= _ROUNDING * problem.budget.usd:
        left = min(left, 0.0)
    boots = ~is_warm(situation)[0]
    whole = problem.tariff.seconds_for(np.full(problem.price.shape, left), problem.price, boots=boots)
    if slots == 1:
        return whole
    share = problem.tariff.seconds_for(np.full(problem.price.shape, left / slots), problem.price, boots=boots)
    return np.where(share > 0, share, whole)


def order_of(situation: Situation, policy: Policy, plan: Plan, number: int, slots: int) -> Order:
    """Turn a plan into an order: its cap, whether it boots, and the money that is set aside for it."""
    problem, row = situation.problem, plan.row
    boots = not is_warm(situation)[0, row]
    wanted_s = policy.timeout.cap(situation, plan)
    cap_s = min(wanted_s, float(affordable_seconds(situation, slots if math.isinf(wanted_s) else 1)[row]))
    if math.isinf(cap_s):
        return Order(number, row, math.inf, math.inf if math.isfinite(problem.budget.usd) else 0.0, plan, boots)
    reserved = problem.tariff.charge(cap_s, float(problem.price[row]), boots=boots)
    # seconds_for rounds in the user's favour by one part in 10⁹; the reservation must not.
    return Order(number, row, cap_s, min(reserved, max(float(situation.left[0]), 0.0)), plan, boots)
