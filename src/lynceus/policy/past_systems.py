"""Published systems that learn from earlier jobs, as rows of the table of presets. All of them run with the timeouts of the default."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.errors import InputError
from lynceus.models.interfaces import Surrogate
from lynceus.models.past_pairs import PastPairs
from lynceus.models.past_systems import (
    FingerprintForest,
    MatrixFactors,
    NearestPast,
    PastModel,
    RankedEnsemble,
    past_logs,
)
from lynceus.models.sized_scale_out import SizedScaleOut, sized_runs
from lynceus.models.state import State
from lynceus.policy.designs import Amount, UniformRows
from lynceus.policy.interfaces import Chooser
from lynceus.policy.planners.ernest import LowestPredicted, OptimalDesign
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.simple import ByPrice, FirstOf, Uniform
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.trial.order import Plan


@dataclass(frozen=True, slots=True)
class ReferenceRows:
    """The cheapest and the most expensive configuration, as a fingerprint of the job."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The first of both that has not run; None when both have."""
        price, ran = state.problem.price, {seen.row for seen in state.observations}
        for row in (int(np.argmin(price)), int(np.argmax(price))):
            if state.open[row] and row not in ran:
                return Plan(row, why="reference run for the fingerprint")
        return None


@dataclass(frozen=True, slots=True)
class LowestObjective:
    """The open row with the best predicted objective among those that probably keep the limits; of all rows if there is none."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """That row; None without a model or when all rows are closed."""
        if surrogate is None or not state.open.any():
            return None
        prediction = surrogate(state, seed)
        probability = prediction.feasible(state.problem)[0]
        row = int(np.lexsort((prediction.objective(state.problem)[0], probability < 0.5, ~state.open))[0])
        usd = float(prediction.charge(state, state.timeouts_s())[0, row])
        return Plan(
            row,
            why="best prediction",
            usd=usd,
            probability=float(probability[row]),
            expected=prediction.expected(row) if len(state.rows) else None,
        )


@dataclass(frozen=True, slots=True)
class ByPastCost:
    """Flora (Will et al. 2025): no model; in the order of what past jobs of the class cost on average, at the prices of this job."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The open row with the lowest Σ_j value_j(x) / min value_j; the cheapest one without a history."""
        problem = state.problem
        if not state.open.any():
            return None
        if problem.kind == "metric":
            single = problem.goal.formula is None
            logs = past_logs(problem, problem.objective.metric) if single else np.zeros((0, len(state.open)))
            logs = problem.objective.sign * logs
        else:
            logs = past_logs(problem) + (np.log(problem.price) if problem.kind == "cost" else 0.0)
        if not len(logs):
            return ByPrice()(state, None, seed)
        score = np.exp(np.minimum(logs - logs.min(axis=1, keepdims=True), 50.0)).mean(axis=0)
        row = int(np.lexsort((score, ~state.open))[0])
        return Plan(row, why=f"past jobs cost {score[row]:.2f} times their best on it")


@dataclass(frozen=True, slots=True)
class OverSizes:
    """Ernest over input sizes: the best predictions of a model of earlier jobs of other sizes, one after the other.

    Where no earlier job or this one has an input size, it is Ernest's design on this job, and the reason of every run says so.
    """

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The open row with the best prediction, from the first run on; None without a model or when all rows are closed."""
        if len(sized_runs(state.problem).rows):
            return LowestObjective()(state, surrogate, seed)
        plan = FirstOf((OptimalDesign(), LowestPredicted()))(state, surrogate, seed)
        if plan is None:
            return None
        return replace(plan, why=f"{plan.why}; no history with input sizes to learn from, so this job is measured")


def _row(
    name: str, choose: Chooser, surrogate: Surrogate | None, lookahead: int | None, timeout: Timeout | None
) -> Policy:
    if lookahead:
        raise InputError(f"lookahead: policy {name!r} plans one run at a time; leave lookahead out.")
    return Policy(name, choose, surrogate, timeout or TIMEOUTS["capped"])


def paris(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Two reference runs, then the best predictions of a forest over past jobs."""
    choose = FirstOf((ReferenceRows(), LowestObjective(), Uniform()))
    return _row("paris", choose, FingerprintForest(), lookahead, timeout)


def quasar(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Two random runs, then the best predictions of collaborative filtering."""
    choose = FirstOf((UniformRows(Amount(count=2)), LowestObjective(), Uniform()))
    return _row("quasar", choose, MatrixFactors(), lookahead, timeout)


def ottertune(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Three random runs, then expected improvement of a process around the nearest past job."""
    planner = Lookahead(ConstrainedImprovement(), per="run", charge="capped", confidence=0.0)
    return _row("ottertune", FirstOf((UniformRows(Amount(count=3)), planner)), NearestPast(), lookahead, timeout)


def karasu(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Three random runs, then expected improvement of an ensemble of past and own models, weighted by their ranking loss."""
    planner = Lookahead(ConstrainedImprovement(), per="run", charge="capped", confidence=0.0)
    return _row("karasu", FirstOf((UniformRows(Amount(count=3)), planner)), RankedEnsemble(), lookahead, timeout)


def flora(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """No model of this job: configurations in the order of what past jobs cost on them."""
    return _row("flora", ByPastCost(), None, lookahead, timeout)


def ernest_sizes(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Ernest's law over earlier jobs of other input sizes, then its best predictions in order."""
    return _row("ernest-sizes", FirstOf((OverSizes(), Uniform())), SizedScaleOut(), lookahead, timeout)


def reads_history(policy: Policy) -> bool:
    """Whether a policy is one of the published systems that read the history of a problem themselves."""
    return isinstance(policy.surrogate, PastModel | PastPairs | SizedScaleOut) or isinstance(policy.choose, ByPastCost)
