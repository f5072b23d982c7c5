"""Which of several jobs gets the next trial under one budget: the one that is expected to save most for each dollar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.problem.problem import Problem
from lynceus.trial.order import Order, Purpose

_WORTHWHILE = 1.0
"""A trial that is expected to save less than this for each dollar teaches the job itself nothing more."""
_LESSONS = 4.0
"""A job waits for a relative until that one has spent so many times what a trial of its own costs."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a job would run next, and what that is worth."""

    job: int
    """Position in the fleet."""
    order: Order
    saving_per_usd: float
    """Dollars that all future runs of the job are expected to save for each dollar of this trial; NaN before anything is known of it."""
    spent_usd: float
    """What its search has cost so far."""
    trial_usd: float
    """About what one of its trials costs: the price of a run at the deadline."""
    trials: int
    """Trials so far."""
    family: str = ""
    """Jobs of the same family learn from each other."""


def trial_scale(problem: Problem, usual_s: float = 3600.0) -> float:
    """About what a trial costs before any has run: the median price until the deadline, or for an hour without one."""
    seconds = problem.deadline_s if math.isfinite(problem.deadline_s) else usual_s
    return float(np.median(problem.run_costs.of(np.full(len(problem.space), seconds))))


def expected_saving(problem: Problem, order: Order, uses: float, best: float | None) -> float:
    """Dollars saved over all future runs for each dollar of a trial; NaN where the policy does not say, as before the first results.

    `best` is the objective of the best run. An objective in another unit than dollars counts by its share: 1 % better is worth 1 % of the
    price of the trial in each future run.
    """
    plan = order.plan
    if plan.purpose is Purpose.CONFIRM:
        return 0.0  # it tells how good the answer is, and finds no better one
    if not plan.usd > 0 or math.isnan(plan.gain):
        return math.nan
    if problem.kind == "cost":
        return uses * plan.gain / plan.usd
    return uses * plan.gain / abs(best) if best else math.nan


def next_turn(turns: Sequence[Turn]) -> Turn | None:
    """The turn to take; None when no job has one.

    The largest expected saving per dollar. Of a job whose saving cannot be told yet it is unknown and may be large, so it comes first;
    but its first trial waits while a relative with cheaper trials still learns what it could learn from it.
    """
    ready = [turn for turn in turns if turn.trials or not any(_teaches(other, turn) for other in turns)]
    unknown = [turn for turn in ready if math.isnan(turn.saving_per_usd)]
    if unknown:
        return min(unknown, key=lambda turn: (turn.trial_usd, turn.job))
    return max(ready, key=lambda turn: (turn.saving_per_usd, -turn.job), default=None)


def _teaches(other: Turn, turn: Turn) -> bool:
    """Whether a job is worth waiting for."""
    relative = other.job != turn.job and other.family == turn.family
    cheaper = (other.trial_usd, other.job) < (turn.trial_usd, turn.job) and other.spent_usd < _LESSONS * turn.trial_usd
    return relative and cheaper and not other.saving_per_usd < _WORTHWHILE
