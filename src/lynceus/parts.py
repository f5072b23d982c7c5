"""The small interfaces that a policy and the loop are made of, on one page.

Every part is a frozen dataclass with `__call__`: its name, parameters, equality and printed form come for free, and the ledger
can say exactly which policy ran. Nothing is kept between two calls; a seed names the luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from lynceus.history import Order, Outcome, Plan, Told
from lynceus.problem import Problem
from lynceus.situation import Belief, BoolArray, FloatArray, IntArray, Situation


class Surrogate(Protocol):
    """A model of the job: what is known in, what is believed of every row out."""

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """Fit and predict in one step; a finite table is always predicted everywhere."""


class Gain(Protocol):
    """How much a run of each row would help; higher is better."""

    def __call__(self, belief: Belief, situation: Situation) -> FloatArray:
        """Scores `[b, q]`."""


Guess = Literal["sigma", "root sigma", "ceiling", "likely"]
"""What stands for the best value while nothing feasible is known: see `lynceus.acquisition.guessed_best`."""


@runtime_checkable
class ConstrainedGain(Protocol):
    """A gain that is expected improvement under the limits: simple enough for a surrogate to compute by itself."""

    @property
    def exact(self) -> bool:
        """Improvement and limits on time or cost taken jointly, not as independent events."""

    @property
    def guess(self) -> Guess:
        """The rule for a best value that is not known yet."""


@dataclass(frozen=True, eq=False, slots=True)
class Picked:
    """The row with the largest gain in each of b situations, and what is believed of it there."""

    row: IntArray
    """`[b]`; −1 where no row is open and affordable."""
    gain: FloatArray
    """`[b]`"""
    mean: FloatArray
    """`[b, m]`"""
    std: FloatArray
    """`[b, m]`"""


@runtime_checkable
class PicksRows(Protocol):
    """A surrogate that can find the best row of many situations without handing out whole beliefs."""

    def pick(self, situation: Situation, gain: Gain, sure: float, seed: int) -> Picked | None:
        """Nothing: I do not know this gain, use my belief."""


class Foresight(Protocol):
    """A joint belief about rows that may be run and rows that may be the answer, in units in which it is normal."""

    @property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the goal at some rows `[count, r]`, smaller is better; the same count gives the same draws."""

    def kept(self, count: int) -> BoolArray:
        """Whether the answers keep every limit in each draw `[count, a]`."""

    def cross(self, rows: IntArray) -> FloatArray:
        """Covariance of the goal at some rows with the goal at the answers `[r, a]`."""

    def cross_own(self, rows: IntArray) -> FloatArray:
        """Variance of the goal itself at some rows `[r]`."""

    def seen(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the goal at some rows, its noise included `[r]`."""

    def limited(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Of every quantity under a limit that is not the goal: the draws at the answers that `kept` judges `[count, a]`, its
        covariance at some rows with the answers `[r, a]`, and the variance of one measurement at these rows `[r]`."""

    def after(self, rows: IntArray) -> Belief:
        """What would be believed of the answers, `[r, a, m]`, had each row just shown what is expected of it."""


@runtime_checkable
class Foresees(Protocol):
    """A surrogate that knows how rows hang together."""

    def foresee(self, situation: Situation, seed: int) -> Foresight:
        """The joint belief in one situation."""


@runtime_checkable
class Careful(Protocol):
    """A surrogate that can think longer where a small probability matters."""

    def carefully(self) -> Surrogate:
        """The same model with less luck in it: too slow for every decision, right for an answer."""


class Worth(Protocol):
    """What it would be worth to know the outcome of a run; higher is better, worths multiply."""

    def __call__(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """`[r]`, none below 0."""


@runtime_checkable
class RefinedWorth(Protocol):
    """A worth that has a slower, closer form for a few rows."""

    def refined(self, foresight: Foresight, situation: Situation, rows: IntArray) -> FloatArray:
        """`[r]`, none below 0."""


class Chooser(Protocol):
    """A design or a planner."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The next run; nothing: I have nothing to say."""


class Shortlist(Protocol):
    """Which rows are worth an expensive look."""

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """Row numbers among `candidates [q]`, given a cheap score of every row `[q]`."""


class Cap(Protocol):
    """When a run is stopped."""

    def __call__(self, situation: Situation, plan: Plan) -> float:
        """Seconds, perhaps infinite."""


class Fill(Protocol):
    """What the model hears about a run that was stopped."""

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, situation: Situation) -> Told | None:
        """An estimate, a lower bound, or nothing."""


class Stop(Protocol):
    """A reason to end the exploration."""

    def __call__(self, situation: Situation, plan: Plan | None) -> str | None:
        """A sentence, or nothing: go on."""


class Answer(Protocol):
    """Which configuration to recommend."""

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row, or nothing: none is known to keep the limits."""


def single(array: FloatArray) -> FloatArray:
    """The only situation of a `[1, q]` array; a mistake of ours when there are more."""
    if array.shape[0] != 1:
        raise ValueError(f"expected one situation, got {array.shape[0]}")
    return np.asarray(array[0])
