"""The small interfaces that a policy is made of.

Every part is a frozen dataclass with `__call__`, so its name, parameters, equality and printed form come for free, and the storage can say
exactly which policy ran. Parts keep no state between two calls; all randomness comes from the seed that they are given.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.policy.beliefs import Believed
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import Observations, Outcome, TrainingTarget


class Chooser(Protocol):
    """An initial design or a planner: chooses the next run."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next run; None when this chooser has no proposal."""


class Shortlist(Protocol):
    """Selects the rows for which an expensive computation pays."""

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """Row numbers among `candidates [q]`, given a cheap score of every row `[q]`."""


class Quadrature(Protocol):
    """Replaces a normal prediction by a few weighted outcomes."""

    @property
    def points(self) -> int:
        """Outcomes per modelled target."""

    def __call__(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes `[r, k, m]` and weights `[k]` for moments `[r, m]` in the model's units, k = points^m."""


class TimeoutRule(Protocol):
    """When a run is stopped."""

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop; infinite for no timeout."""


class CensoredValue(Protocol):
    """The training target of a run that was stopped before its end."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """An estimate, a lower bound, or None to train without this run. `state` is the state before the run."""


class Stop(Protocol):
    """A stopping rule of the exploration."""

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        """The reason to stop, as a sentence; None to continue."""


class Confirm(Protocol):
    """Decides, when the search is over, whether the best configuration runs once more."""

    @property
    def share(self) -> float:
        """The most that repetitions may cost, as a share of what the search has cost."""

    def affords(self, observations: Observations, usd: float) -> bool:
        """Whether a run of so many dollars still fits into that share."""

    def __call__(self, state: State, best: Believed) -> Plan | None:
        """The repetition; None when it is not worth its money."""


class Answer(Protocol):
    """Selects the configuration to recommend."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; None when no configuration is known to meet the constraints."""


def single(array: FloatArray) -> FloatArray:
    """The only state of a `[1, q]` array."""
    if array.shape[0] != 1:
        raise ValueError(f"expected one state, got {array.shape[0]}")
    return np.asarray(array[0])
