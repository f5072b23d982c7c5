"""What a model predicts of every configuration: distributions, feasibility, the objective, and what a run would be charged.

Shapes: b states, q candidate rows, m modelled targets (the time of a run first, then the metrics of objective and constraints).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lynceus.models.distribution import LogNormal, Normal
from lynceus.models.formula_moments import known_value, matched_distribution, product_distribution
from lynceus.models.state import Form, State, warm_saving
from lynceus.trial.order import Expected

if TYPE_CHECKING:
    from lynceus.models.distribution import Distribution
    from lynceus.problem.objective import Constraint
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Prediction:
    """Means and standard deviations of every target at every row in every state."""

    form: Form
    """The unit of target 0: dollars or ln seconds."""
    mean: FloatArray
    """`[b, q, m]`"""
    std: FloatArray
    """`[b, q, m]`"""
    rows: IntArray | None = None
    """The configurations that are predicted `[q]`; None for all of them, in order."""
    logs: tuple[bool, ...] = ()
    """Whether each metric is predicted by its natural logarithm; empty: all of them are normal in their own unit."""

    def __post_init__(self) -> None:
        if self.mean.shape != self.std.shape or self.mean.ndim != 3:
            raise ValueError(
                f"a prediction needs two arrays [b, q, m] of one shape, got {self.mean.shape} and {self.std.shape}"
            )

    def run(self) -> Normal | LogNormal:
        """The distribution of target 0 `[b, q]`: dollars for form `cost`, seconds for form `log time`."""
        return run_distribution(self.form, self.mean[:, :, 0], self.std[:, :, 0])

    def metric(self, index: int) -> Normal | LogNormal:
        """The distribution of the problem's metric number `index` `[b, q]`."""
        mean, std = self.mean[:, :, 1 + index], self.std[:, :, 1 + index]
        return LogNormal(mean, std) if self.logs and self.logs[index] else Normal(mean, std)

    def expected(self, row: int) -> Expected:
        """The moments at one row of the first state, to be kept with a plan."""
        return Expected(self.form, tuple(self.mean[0, row].tolist()), tuple(self.std[0, row].tolist()), self.logs)

    def objective(self, problem: Problem) -> FloatArray:
        """Expected value of the objective `[b, q]`, smaller is better (a maximised metric changes sign)."""
        if problem.kind == "metric":
            return problem.objective.sign * self.reported_objective(problem).expectation()
        run = self.run().expectation()
        if problem.kind == "cost":
            return run if self.form == "cost" else problem.run_costs.of(run, self.rows)
        return problem.run_costs.seconds_at(run, self.rows) if self.form == "cost" else run

    def reported_objective(self, problem: Problem) -> Normal | LogNormal:
        """The distribution of an objective that runs report, in its own unit and sign `[b, q]`: a metric, or a formula."""
        formula = problem.goal.formula
        if formula is None:
            return self.metric(problem.metrics.index(problem.objective.metric))
        monomial, quantities = formula.monomial, self._quantities(problem)
        if monomial is None or "cost" in monomial.exponents:
            return matched_distribution(
                formula, quantities, self.rows, lambda seconds: problem.run_costs.of(seconds, self.rows)
            )
        if not monomial.exponents:
            factor = monomial.factor if self.rows is None else monomial.factor[self.rows]
            return known_value(factor, self.mean.shape[:2])
        return product_distribution(monomial, quantities, self.rows)

    def _quantities(self, problem: Problem) -> dict[str, Normal | LogNormal]:
        """The distribution of a run's seconds, and of every metric that the objective reads `[b, q]`."""
        run = self.run()
        if isinstance(run, Normal):
            # Seconds are dollars over the price, less what the billing adds for the start.
            price, billing = problem.price if self.rows is None else problem.price[self.rows], problem.billing
            run = Normal((np.asarray(run.mean) - billing.fee_usd) / price - billing.boot_s, np.asarray(run.std) / price)
        return {"time": run} | {name: self.metric(problem.metrics.index(name)) for name in problem.goal.metrics}

    def seconds(self, problem: Problem) -> FloatArray:
        """Expected time of a run `[b, q]`."""
        run = self.run().expectation()
        return np.maximum(problem.run_costs.seconds_at(run, self.rows) if self.form == "cost" else run, 0.0)

    def within_ceiling(self, problem: Problem) -> FloatArray:
        """P(the constraints on time and cost hold) `[b, q]`, through the known price."""
        ceiling = problem.ceiling_usd if self.form == "cost" else problem.ceiling_s
        return self.run().cdf(ceiling if self.rows is None else ceiling[self.rows])

    def feasible(self, problem: Problem, without: str | None = None) -> FloatArray:
        """P(every constraint holds) `[b, q]`, with targets taken as independent; those on the metric `without` are left out."""
        probability = (
            self.within_ceiling(problem) if np.isfinite(problem.ceiling_s).any() else np.ones(self.mean.shape[:2])
        )
        for constraint in problem.metric_constraints:
            if constraint.metric != without:
                probability = probability * self.meets(constraint, problem)
        return probability

    def meets(self, constraint: Constraint, problem: Problem) -> FloatArray:
        """P(this one constraint holds) `[b, q]`."""
        if constraint.metric in ("time", "cost"):
            return self.within_ceiling(problem.with_constraints((constraint,)))
        metric = self.metric(problem.metrics.index(constraint.metric))
        return metric.sf(constraint.bound) if constraint.at_least else metric.cdf(constraint.bound)

    def charge(self, state: State, timeouts_s: FloatArray | None = None) -> FloatArray:
        """Expected dollars charged for running each row now `[b, q]`, stopped at `timeouts_s [b, q]` if given."""
        usd = expected_charge(state.problem, self.run(), self.form, None, timeouts_s)
        return np.maximum(usd - warm_saving(state), 0.0)

    def affordable(self, state: State, confidence: float) -> BoolArray:
        """Rows whose full run fits into the remaining budget with this probability `[b, q]` (μ + 2.326 σ ≤ B for 0.99)."""
        if np.isposinf(state.left).all():
            return np.ones(self.mean.shape[:2], dtype=bool)
        upper = self.run().quantile(confidence)
        problem = state.problem
        usd = upper if self.form == "cost" else problem.billing.charges(upper, problem.price)
        return usd - warm_saving(state) <= state.left[:, None]


def run_distribution(form: Form, mean: FloatArray, std: FloatArray) -> Normal | LogNormal:
    """The distribution of a run's dollars (form `cost`) or seconds (form `log time`) from moments in the model's units."""
    return Normal(mean, std) if form == "cost" else LogNormal(mean, std)


def expected_charge(
    problem: Problem, run: Distribution, form: Form, rows: IntArray | None, timeouts_s: FloatArray | None
) -> FloatArray:
    """E[charge(min(T, timeout))] in dollars of a run that boots its machines, expected preemptions included.

    `run` is the distribution of its dollars or seconds, `rows` the configurations; None for all of them.
    """
    billing = problem.billing
    if form == "cost":
        if timeouts_s is None:
            return np.maximum(run.expectation(), 0.0)  # a normal prediction reaches below zero, a charge does not
        return np.maximum(run.capped_mean(problem.run_costs.of(np.maximum(timeouts_s, 0.0), rows)), 0.0)
    # max(min(T, timeout) + boot, minimum) = boot + min(T, timeout) + (floor − T)⁺ with floor = minimum − boot ≤ timeout;
    # a run that is stopped before the minimum is charged the minimum.
    floor = max(billing.minimum_s - billing.boot_s, 0.0)
    seconds = run.expectation() if timeouts_s is None else run.capped_mean(np.maximum(timeouts_s, floor))
    price = problem.run_costs.price(seconds, rows)
    if floor > 0:
        seconds = seconds + run.put(floor)
    return np.asarray(price * (seconds + billing.boot_s + billing.granularity_s / 2) + billing.fee_usd)
