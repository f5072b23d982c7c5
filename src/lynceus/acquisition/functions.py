"""Acquisition functions as parts of a policy: expected improvement under constraints, and the Gittins index."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.acquisition.gittins import gittins_index
from lynceus.acquisition.improvement import (
    billed_improvement,
    expected_improvement,
    improvement_within,
    truncated_improvement,
)
from lynceus.errors import InputError
from lynceus.models.distribution import Normal
from lynceus.models.formula_moments import spread
from lynceus.models.interfaces import Guess
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.problem.future_use import future_count
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray


@dataclass(frozen=True, slots=True)
class ConstrainedImprovement:
    """EIc: expected improvement over the best feasible run, times the probability of feasibility (Gardner et al. 2014, eq. 5)."""

    exact: bool = False
    """E[(y* − C) 1{C ≤ ceiling}], because cost and deadline share one model; otherwise the papers' product EI · P(feasible).
    A model of log time always uses the exact form, as the known price turns it into one integral."""
    guess: Guess = "sigma"
    """The best value while no feasible run is known."""

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Acquisition values `[b, q]` in units of the objective."""
        problem = state.problem
        best = guessed_best(prediction, state, self.guess)[:, None]
        if problem.kind == "metric":
            return _if_it_works(self._reported_improvement(prediction, problem, best), state)
        if prediction.form == "log time":
            value = _log_time_improvement(prediction, state, best)
        else:
            cost = prediction.run()
            ceiling = problem.ceiling_usd
            if problem.kind == "time":
                # Seconds are dollars over the price, less what the billing adds for the start.
                mean = (prediction.mean[:, :, 0] - problem.billing.fee_usd) / problem.price - problem.billing.boot_s
                cost = Normal(mean, prediction.std[:, :, 0] / problem.price)
                ceiling = problem.ceiling_s
            if self.exact:
                value = truncated_improvement(cost, best, np.broadcast_to(ceiling, prediction.mean.shape[:2]))
            else:
                value = expected_improvement(cost, best) * prediction.within_ceiling(problem)
        for constraint in problem.metric_constraints:
            value = value * prediction.meets(constraint, problem)
        return _if_it_works(value, state)

    def _reported_improvement(self, prediction: Prediction, problem: Problem, best: FloatArray) -> FloatArray:
        """EI of a metric or a formula, times the chance that the limits hold; exactly together where both are of one metric."""
        objective, sign = prediction.reported_objective(problem), problem.objective.sign
        own = _own_limits(problem) if self.exact else None
        low, high = (-np.inf, np.inf) if own is None else (own.low, own.high)
        if prediction.rows is not None and own is not None:
            low, high = own.low[prediction.rows], own.high[prediction.rows]
        value = improvement_within(objective, sign * best, low, high, maximise=problem.objective.maximise)
        return value * prediction.feasible(problem, None if own is None else own.metric)


@dataclass(frozen=True, slots=True)
class Improvement:
    """EI without constraints (a baseline)."""

    guess: Guess = "sigma"

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Acquisition values `[b, q]` in units of the objective."""
        unconstrained = replace(state, problem=state.problem.with_constraints(()))
        return ConstrainedImprovement(guess=self.guess)(prediction, unconstrained)


@dataclass(frozen=True, slots=True)
class PandoraIndex:
    """How far the Gittins index g(x) lies under the best: E[(g − C)⁺ 1{feasible}] = λ·E[charge]; the smallest g is run.

    Weitzman's rule for opening boxes, used by Xie et al. (2024) as an acquisition function. The index contains the cost of the run
    already, so a planner should not divide by dollars again (`per: run`). Where the value is positive, the run pays for itself.
    """

    future_runs: float = 100.0
    """1/λ: how many future runs of the job profit from an improvement, where the problem does not say it."""
    guess: Guess = "likely"

    def __post_init__(self) -> None:
        if not self.future_runs > 0:
            raise ValueError(f"future_runs is {self.future_runs}; give a positive number")

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Acquisition values `[b, q]` in dollars; −inf where the constraints cannot be met."""
        problem, billing, shape = state.problem, state.problem.billing, prediction.mean.shape[:2]
        if problem.kind != "cost":
            raise InputError(
                f"acquisition 'pandora-index' needs cost as the objective, but the objective is '{problem.objective}'; "
                "choose another acquisition function."
            )
        best = guessed_best(prediction, state, self.guess)[:, None]
        weight = 1.0 / future_count(problem.future, self.future_runs)
        charge, run = prediction.charge(state, state.timeouts_s()), prediction.run()
        if prediction.form == "cost":
            index = gittins_index(run, charge, weight, np.broadcast_to(problem.ceiling_usd, shape))
        else:
            price = _price_of_runs(prediction, problem)
            seconds = gittins_index(run, charge / price, weight, np.broadcast_to(problem.ceiling_s, shape))
            index = price * (seconds + billing.boot_s) + billing.fee_usd
        return np.asarray(best - index)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The probability to meet every constraint."""

    def __call__(self, prediction: Prediction, state: State) -> FloatArray:
        """Probabilities `[b, q]`."""
        return prediction.feasible(state.problem)


def _if_it_works(value: FloatArray, state: State) -> FloatArray:
    """Acquisition values `[b, q]` times the chance that the run does not fail: a failed run improves nothing."""
    return value if state.success is None else value * state.success


def guessed_best(prediction: Prediction, state: State, guess: Guess) -> FloatArray:
    """The best objective value of each state `[b]`, guessed where no feasible run is known.

    `sigma`: highest observed value + 3 · largest σ over open rows (ICDCS'20).
    `ceiling`: the most that a feasible run can cost.
    `likely`: the same for the cheapest row that is feasible with probability 1/2. Rows that cost more then have no expected
    improvement, and cheaper rows gain by what they save.
    A model of log time never uses σ, because three standard deviations of a logarithm are a factor, not an amount.
    """
    unknown = np.isnan(state.best)
    if not unknown.any():
        return state.best
    if prediction.form == "log time" and state.problem.kind != "metric" and guess != "likely":
        guess = "ceiling"
    if guess == "likely":
        guessed = _likely_ceiling(prediction, state)
    elif guess == "ceiling":
        guessed = np.full(len(state), _ceiling_value(prediction, state))
    else:
        worst, largest = worst_and_spread(prediction, state)
        guessed = worst + 3.0 * largest
    return np.where(unknown, guessed, state.best)


def worst_and_spread(prediction: Prediction, state: State) -> tuple[FloatArray, FloatArray]:
    """The highest observed objective value and the largest σ of an open row, of each state `[b]` each."""
    problem = state.problem
    std = prediction.std[:, :, 0]
    if problem.kind == "metric":
        std = spread(prediction.reported_objective(problem))
    elif problem.kind == "time":
        std = std / problem.price
    largest = np.where(state.open_in_each(), std, 0.0).max(axis=1)
    return np.nan_to_num(state.worst_in_each(prediction.form)), largest


def _ceiling_value(prediction: Prediction, state: State) -> float:
    """The worst feasible value of the objective; twice the worst observed one where no constraint bounds it."""
    problem = state.problem
    ceiling = {"cost": problem.ceiling_usd, "time": problem.ceiling_s}.get(problem.kind, problem.goal.known)
    if ceiling is not None:
        bounded = ceiling[state.open & np.isfinite(ceiling)]
        if len(bounded):
            return float(bounded.max())
    worst = state.worst
    if np.isnan(worst):  # nothing was reported yet: whatever is predicted
        worst = float(prediction.objective(problem)[0].max()) if problem.kind == "metric" else 0.5
    return worst + abs(worst)


@dataclass(frozen=True, eq=False, slots=True)
class _OwnLimits:
    """Limits on the one quantity that the objective learns, as limits on the objective itself `[q]`."""

    metric: str
    low: FloatArray
    high: FloatArray


def _own_limits(problem: Problem) -> _OwnLimits | None:
    """None where the objective learns no single metric as a power, or it has no limit."""
    formula = problem.goal.formula
    monomial = None if formula is None else formula.monomial
    exponents = {problem.objective.metric: 1.0} if formula is None else {} if monomial is None else monomial.exponents
    names = [name for name in exponents if name not in ("time", "cost")]
    limits = [each for each in problem.constraints if each.metric in names]
    if len(exponents) != 1 or not limits:
        return None
    ((name, power),) = exponents.items()
    factor = np.ones(1) if monomial is None else monomial.factor
    low, high = np.full(len(problem.space), -np.inf), np.full(len(problem.space), np.inf)
    for each in limits:
        with np.errstate(divide="ignore"):
            bound = factor * (each.bound if power == 1.0 else np.power(max(each.bound, 0.0), power))
        if each.at_least == (power > 0):
            low = np.maximum(low, bound)
        else:
            high = np.minimum(high, bound)
    return _OwnLimits(name, low, high)


def _likely_ceiling(prediction: Prediction, state: State) -> FloatArray:
    """The ceiling of the cheapest open row that is feasible with probability 1/2, or else of the most probable one `[b]`."""
    problem = state.problem
    ceiling = {"cost": problem.ceiling_usd, "time": problem.ceiling_s}.get(problem.kind)
    if ceiling is None or not np.isfinite(ceiling).all():
        return np.full(len(state), _ceiling_value(prediction, state))
    probability = np.where(state.open_in_each(), prediction.feasible(problem), -1.0)
    even = np.where(probability >= 0.5, ceiling, np.inf).min(axis=1)
    return np.asarray(np.where(np.isfinite(even), even, ceiling[probability.argmax(axis=1)]))


def _log_time_improvement(prediction: Prediction, state: State, best: FloatArray) -> FloatArray:
    problem, run = state.problem, prediction.run()
    if problem.kind == "time":
        return truncated_improvement(run, best, np.broadcast_to(problem.ceiling_s, prediction.mean.shape[:2]))
    billing = problem.billing
    price = _price_of_runs(prediction, problem)
    return billed_improvement(run, best - billing.fee_usd, price, billing.boot_s, billing.minimum_s, problem.ceiling_s)


def _price_of_runs(prediction: Prediction, problem: Problem) -> FloatArray:
    """Dollars per second, with the preemptions expected in a run of the predicted length `[q]` or `[b, q]`."""
    if problem.preemption is None:
        return problem.price
    return problem.run_costs.price(np.exp(np.minimum(prediction.mean[:, :, 0], 700.0)))
