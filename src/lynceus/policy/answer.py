"""Answers: which configuration is recommended at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.run_noise import RunNoise
from lynceus.models.state import State, feasible_runs
from lynceus.policy.beliefs import answering, believed_best
from lynceus.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class BestSeen:
    """The best finished run that kept every constraint. A constraint with a confidence must also be predicted to hold with it."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; None while none is known."""
        runs = sorted(feasible_runs(state.problem, state.observations), key=lambda run: run[1])
        demanded = [constraint for constraint in state.problem.constraints if constraint.confidence is not None]
        if not demanded or surrogate is None or not runs:
            return runs[0][0] if runs else None
        sure = confident(answering(surrogate)(state, seed), state.problem)
        # None is sure enough: recommend the best seen, and report its probability beside it.
        return next((row for row, _ in runs if sure[row]), runs[0][0])


@dataclass(frozen=True, slots=True)
class BestBelieved:
    """The best configuration that ran, by what is believed of it after all its runs: one lucky run is not taken at its word.

    Where every run of a configuration takes the same time (a replayed table), the best seen.
    """

    noise: RunNoise = field(default_factory=RunNoise)

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; None while none is known."""
        if state.problem.deterministic:
            return BestSeen()(state, surrogate, seed)
        best = believed_best(state.problem, state.observations, surrogate, self.noise, seed)
        return None if best is None else best.row


@dataclass(frozen=True, slots=True)
class BestPredicted:
    """The best predicted row among those that keep the constraints with probability `confidence` (Fabulinus: 0.99), tested or not."""

    confidence: float = 0.99

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; None when no row is predicted to keep the constraints with that probability."""
        if surrogate is None or not len(state.rows):
            return None
        problem = state.problem
        prediction = answering(surrogate)(state, seed)
        value = prediction.objective(problem)[0]
        allowed = prediction.feasible(problem)[0] >= self.confidence
        if problem.answerable is not None:
            allowed &= problem.answerable
        return int(np.argmin(np.where(allowed, value, np.inf))) if allowed.any() else None


def confident(prediction: Prediction, problem: Problem) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows `[q]` that keep every constraint with a confidence with at least that probability."""
    sure = np.ones(len(problem.space), dtype=bool)
    for constraint in problem.constraints:
        if constraint.confidence is not None:
            sure &= prediction.meets(constraint, problem)[0] >= constraint.confidence
    return sure
