"""Which configuration is recommended at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.parts import Careful, Surrogate
from lynceus.situation import Belief, FloatArray, Situation, feasible_runs


@dataclass(frozen=True, slots=True)
class BestSeen:
    """The best finished run that kept every limit. A limit with a confidence must also be believed to hold with it."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; nothing while none is known."""
        runs = sorted(feasible_runs(situation.problem, situation.history), key=lambda run: run[1])
        demanded = [limit for limit in situation.problem.limits if limit.confidence is not None]
        if not demanded or surrogate is None or not runs:
            return runs[0][0] if runs else None
        sure = confident(answering(surrogate)(situation, seed), situation)
        # Nothing sure enough: the best seen is still the best advice, and its probability is reported beside it.
        return next((row for row, _ in runs if sure[row]), runs[0][0])


@dataclass(frozen=True, slots=True)
class BestPredicted:
    """The best believed row among those that keep the limits with probability `sure` (Fabulinus: 0.99), tested or not."""

    sure: float = 0.99

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; nothing when no row is believed to keep the limits that surely."""
        if surrogate is None or not len(situation.rows):
            return None
        problem = situation.problem
        belief = answering(surrogate)(situation, seed)
        value = predicted_value(belief, situation)[0]
        allowed = belief.feasible(problem)[0] >= self.sure
        if problem.answerable is not None:
            allowed &= problem.answerable
        return int(np.argmin(np.where(allowed, value, np.inf))) if allowed.any() else None


def answering(surrogate: Surrogate) -> Surrogate:
    """The model that an answer asks: the careful one, where there is one."""
    return surrogate.carefully() if isinstance(surrogate, Careful) else surrogate


def predicted_value(belief: Belief, situation: Situation) -> FloatArray:
    """The believed goal value of every row, smaller is better `[b, q]`."""
    problem = situation.problem
    if problem.kind == "metric":
        mean = belief.mean[:, :, 1 + problem.metrics.index(problem.goal.metric)]
        return -mean if problem.goal.maximise else mean
    run = belief.run().expectation()
    if problem.kind == "cost":
        return run if belief.form == "cost" else problem.costs(run)
    return problem.seconds_at(run) if belief.form == "cost" else run


def confident(belief: Belief, situation: Situation) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows that keep every limit which demands a confidence with at least that probability `[q]`."""
    problem = situation.problem
    sure = np.ones(len(problem.space), dtype=bool)
    for limit in problem.limits:
        if limit.confidence is not None:
            sure &= belief.keeps(limit, problem)[0] >= limit.confidence
    return sure
