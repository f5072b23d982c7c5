"""What models and acquisition functions promise each other.

Every part is a frozen dataclass with `__call__`, so its name, parameters, equality and printed form come for free. Parts keep no state
between two calls; all randomness comes from the seed that they are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.space.column import BoolArray, FloatArray, IntArray


class Surrogate(Protocol):
    """A model of the job: from a state to predictions for every row."""

    def __call__(self, state: State, seed: int) -> Prediction:
        """Fit and predict in one step, always for the whole table."""


class AcquisitionFunction(Protocol):
    """How much a run of each row is expected to help; higher is better."""

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Acquisition values `[b, q]`."""


Guess = Literal["sigma", "ceiling", "likely"]
"""What replaces the best value while no feasible run is known: see `lynceus.acquisition.functions.guessed_best`."""


@runtime_checkable
class ConstrainedAcquisition(Protocol):
    """An acquisition function that is expected improvement under constraints: simple enough for a surrogate to compute itself."""

    @property
    def exact(self) -> bool:
        """Whether improvement and constraints on time or cost are integrated jointly, not as independent events."""

    @property
    def guess(self) -> Guess:
        """The rule for a best value that is not known yet."""


@dataclass(frozen=True, eq=False, slots=True)
class Picked:
    """The row with the largest acquisition value in each of b states, and its moments there."""

    row: IntArray
    """`[b]`; −1 where no row is open and affordable."""
    value: FloatArray
    """Acquisition values `[b]`."""
    mean: FloatArray
    """`[b, m]`"""
    std: FloatArray
    """`[b, m]`"""


@runtime_checkable
class SupportsPick(Protocol):
    """A surrogate that finds the best row of many states without returning predictions for all rows."""

    def pick(self, state: State, acquisition: AcquisitionFunction, confidence: float, seed: int) -> Picked | None:
        """The best affordable row of every state; None when the surrogate cannot compute this acquisition function."""


class JointPrediction(Protocol):
    """A joint prediction for rows that may be run and rows that may be recommended, in units in which it is normal."""

    @property
    def answers(self) -> IntArray:
        """Rows that may be recommended `[a]`."""

    def draws(self, rows: IntArray, count: int) -> FloatArray:
        """Joint draws of the objective at some rows `[count, r]`, smaller is better; the same count gives the same draws."""

    def feasible_draws(self, count: int) -> BoolArray:
        """Whether the answers meet every constraint in each draw `[count, a]`."""

    def covariance(self, rows: IntArray) -> FloatArray:
        """Covariance of the objective at some rows with the objective at the answers `[r, a]`."""

    def variance(self, rows: IntArray) -> FloatArray:
        """Variance of the objective itself at some rows `[r]`."""

    def measurement_variance(self, rows: IntArray) -> FloatArray:
        """Variance of one measurement of the objective at some rows, noise included `[r]`."""

    def constrained(self, rows: IntArray, count: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """For every constrained quantity that is not the objective: its draws at the answers, which `feasible_draws` judges `[count, a]`,
        its covariance at some rows with the answers `[r, a]`, and the variance of one measurement at these rows `[r]`."""

    def after(self, rows: IntArray) -> Prediction:
        """The prediction for the answers `[r, a, m]` after a run of each row had its expected outcome."""


@runtime_checkable
class SupportsJointPrediction(Protocol):
    """A surrogate that knows the covariance between rows."""

    def predict_jointly(self, state: State, seed: int) -> JointPrediction:
        """The joint prediction in a single state."""


@runtime_checkable
class SupportsAccuratePrediction(Protocol):
    """A surrogate that has a slower, more accurate form for small probabilities."""

    def accurate(self) -> Surrogate:
        """The same model with less sampling noise: too slow for every decision, right for a recommendation."""


class Utility(Protocol):
    """The value of the information in a run; higher is better, utilities multiply."""

    def __call__(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """`[r]`, none below 0."""


@runtime_checkable
class RefinedUtility(Protocol):
    """A utility that has a slower, more accurate form for a few rows."""

    def refined(self, joint: JointPrediction, state: State, rows: IntArray) -> FloatArray:
        """`[r]`, none below 0."""
