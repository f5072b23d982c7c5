"""The program published with the ICDCS'20 paper, bug by bug: parts that repeat where it deviates from the paper.

They plug into the same interfaces as the parts of Lynceus and exist to compare with the program's numbers. The entry point
`lynceus.policies` offers them: the preset `authors-2020` and the timeout `authors` work everywhere, in replays only.

The program also sets σ = 10 μ where all trees agree exactly. This is left out: there, rounding keeps agreeing trees apart, so the rule
hardly ever applies. Here agreement is recognised, and the rule would apply often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.acquisition.functions import ConstrainedImprovement, worst_and_spread
from lynceus.errors import InputError
from lynceus.models.distribution import Normal
from lynceus.models.interfaces import AcquisitionFunction, Picked, Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.designs import LatinHypercube
from lynceus.policy.interfaces import CensoredValue, Chooser, Quadrature, TimeoutRule
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.outcomes import product_rule
from lynceus.policy.planners.simple import FirstOf
from lynceus.policy.plugins import PolicyPlugin, Row
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.censoring import estimate, truncated_seconds
from lynceus.policy.timeouts.rules import IncumbentTimeout
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.trial.order import Order
from lynceus.trial.outcome import Outcome, TrainingTarget
from lynceus_lab.median_stopping import VIZIER_TIMEOUT, MedianStopping

PUBLISHED_TREES = Trees(trees=10, min_gain=1e-6, min_variance=0.001, shared_randomness=True, inputs="parameters")
"""The ensemble of the program: Weka's rules for leaves, parameters as inputs, and the same random numbers at every step."""


@dataclass(frozen=True, slots=True)
class PublishedImprovement:
    """EIc that guesses an unknown best as worst + 3 · √(largest σ), where the paper has + 3 · largest σ."""

    exact: bool = False

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Acquisition values `[b, q]` in units of the objective."""
        if prediction.form == "cost" or state.problem.kind == "metric":
            worst, largest = worst_and_spread(prediction, state)
            guessed = worst + 3.0 * np.sqrt(largest)
            state = replace(state, best=np.where(np.isnan(state.best), guessed, state.best))
        return ConstrainedImprovement(self.exact)(prediction, state)


@dataclass(frozen=True, slots=True)
class PublishedQuadrature:
    """Gauss-Hermite with the factor 1/√π at the wrong place: nodes are 0.564 of what they should be, weights sum to 1.772.

    >>> nodes, weights = PublishedQuadrature()(np.array([[10.0]]), np.array([[2.0]]))
    >>> nodes[0, :, 0].round(3), weights.round(3)
    (array([3.687, 5.642, 7.596]), array([0.295, 1.182, 0.295]))
    """

    points: int = 3

    def __post_init__(self) -> None:
        if self.points != 3:
            raise ValueError(f"the published quadrature has 3 points, got {self.points}")

    def __call__(self, mean: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Nodes `[r, k, m]` and weights `[k]` for moments `[r, m]`, k = 3^m."""
        values, weights = Normal(mean, std).nodes(self.points)
        return product_rule(values / np.sqrt(np.pi), weights * np.sqrt(np.pi))


@dataclass(frozen=True)
class PublishedLookahead(Lookahead):
    """A look-ahead that tests whether imagined runs are affordable with the budget that really remains."""

    def _pick(self, children: State, surrogate: Surrogate, seed: int) -> Picked:
        real = State.present(children.problem, children.observations, children.pending)
        return super()._pick(replace(children, left=np.full(len(children), real.left[0])), surrogate, seed)


@dataclass(frozen=True, slots=True)
class PublishedRecord:
    """What the program records for a stopped run.

    Stopped at the deadline: the true time. Stopped at the incumbent's cost: it depends on the progress at the stop, read at the nearest
    tick. At the target: the time until the stop. No progress: the true time. Otherwise: the truncated mean. Replays only.
    """

    target: float = 0.85
    tick_s: float = 30.0

    def __call__(self, problem: Problem, order: Order, outcome: Outcome, state: State) -> TrainingTarget | None:
        """The program's record."""
        if outcome.oracle_s is None:
            raise InputError(
                "timeout 'authors' needs the full time of stopped runs, which only replays know; choose 'tg' for live runs."
            )
        if outcome.seconds >= problem.deadline_s * (1 - 1e-9):
            return TrainingTarget(outcome.oracle_s, outcome.metrics)
        ticks = round(outcome.seconds / self.tick_s)
        progress = outcome.trace[min(ticks, len(outcome.trace)) - 1][1] if ticks and outcome.trace else 0.0
        if progress >= self.target:
            return TrainingTarget(outcome.seconds, outcome.metrics)
        if progress <= 0.0:
            return TrainingTarget(outcome.oracle_s, outcome.metrics)
        return estimate(outcome, truncated_seconds(problem, order, outcome.seconds))


AUTHORS_TIMEOUT = Timeout(IncumbentTimeout(), PublishedRecord())


def authors_2020(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """The program as it was published."""
    planner = PublishedLookahead(
        PublishedImprovement(), depth=2 if lookahead is None else lookahead, quadrature=PublishedQuadrature()
    )
    choose = FirstOf((LatinHypercube(), planner))
    return Policy("authors-2020", choose, PUBLISHED_TREES, timeout or AUTHORS_TIMEOUT)


PLUGIN = PolicyPlugin(
    presets={
        "authors-2020": Row("the program published with ICDCS'20, with its deviations from the paper", authors_2020)
    },
    timeouts={"authors": AUTHORS_TIMEOUT, "vizier": VIZIER_TIMEOUT},
    parts={
        AcquisitionFunction: (PublishedImprovement,),
        Quadrature: (PublishedQuadrature,),
        Chooser: (PublishedLookahead,),
        CensoredValue: (PublishedRecord,),
        TimeoutRule: (MedianStopping,),
    },
    former_names={"published-program": "published-record"},
    former_fields={
        ("constrained-improvement", "guess", "root sigma"): {"kind": "published-improvement"},
        ("gauss-hermite", "rule", "authors"): {"kind": "published-quadrature"},
        ("lookahead", "rule", "authors"): {"quadrature": "published-quadrature"},
        ("lookahead", "real_money", True): {"kind": "published-lookahead"},
    },
)
"""What the entry point `lynceus.policies` offers."""
