"""What is known at one moment, real or imagined, and what a model believes of it.

Shapes: b situations, q candidate rows, n observations, e imagined observations, k imagined outcomes, m modelled targets
(the time of a run first, then the metrics that goal and limits speak of).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.distribution import LogNormal, Normal
from lynceus.history import End, Expected, History, Order, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lynceus.distribution import Distribution
    from lynceus.problem import Limit, Problem

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Form = Literal["cost", "log time"]
"""What a surrogate models of a run's time: its cost in dollars, or the natural logarithm of its seconds."""


@dataclass(frozen=True, eq=False)
class Situation:
    """One real situation (b = 1), or many imagined ones that share its real observations."""

    problem: Problem
    history: History
    pending: tuple[Order, ...]
    """Runs that are under way; their rows are closed and their money is reserved."""
    rows: IntArray
    """Configurations that the model hears of, in order `[n]`; believed results of pending runs come last."""
    seconds: FloatArray
    """Told times `[n]`."""
    metrics: FloatArray
    """Told metrics `[n, m - 1]`; NaN where nothing was reported."""
    bound_s: FloatArray
    """For runs whose told time is an estimate: what really ran, a lower bound `[n]`; NaN for finished runs."""
    open: BoolArray
    """Rows that may still be run `[q]`."""
    worst: float
    """Highest value of the goal told so far; NaN at the start."""
    started: int
    """Runs ordered so far, pending ones included."""
    left: FloatArray
    """Dollars left after everything charged and reserved `[b]`."""
    best: FloatArray
    """Goal value of the best finished run that kept every limit `[b]`; NaN while there is none."""
    current: IntArray
    """Row whose machines are up `[b]`; −1 for none."""
    imagined_rows: IntArray
    """`[b, e]`"""
    imagined_told: FloatArray
    """In the model's own units `[b, e, m]`."""

    @classmethod
    def present(cls, problem: Problem, history: History, pending: tuple[Order, ...] = ()) -> Situation:
        """The real situation after `history`, while `pending` runs are under way."""
        names = problem.metrics
        told = [(seen.row, seen.told) for seen in history if seen.told is not None]
        rows = [row for row, _ in told]
        seconds = [t.seconds for _, t in told]
        bounds = [t.bound_s if t.censored else math.nan for _, t in told]
        metrics = [[t.metrics.get(name, math.nan) for name in names] for _, t in told]
        values = [problem.value(row, t.seconds, t.metrics) for row, t in told if _speaks_of_goal(problem, t.metrics)]
        for order in pending:
            believed = believed_result(problem, order)
            if believed is not None:
                rows.append(order.row)
                seconds.append(believed[0])
                bounds.append(math.nan)
                metrics.append(list(believed[1:]))
        charged = sum(seen.outcome.charged_usd for seen in history)
        reserved = sum(order.reserved_usd for order in pending)
        best = min((value for _, value in feasible_runs(problem, history)), default=math.nan)
        return cls(
            problem, history, pending,
            rows=np.array(rows, dtype=np.int64),
            seconds=np.array(seconds, dtype=float),
            metrics=np.array(metrics, dtype=float).reshape(len(rows), len(names)),
            bound_s=np.array(bounds, dtype=float),
            open=_open_rows(problem, history, pending),
            worst=max(values, default=math.nan),
            started=len(history) + len(pending),
            left=np.array([problem.budget.usd - charged - reserved]),
            best=np.array([best]),
            current=np.array([_machines_up(history, pending)], dtype=np.int64),
            imagined_rows=np.zeros((1, 0), dtype=np.int64),
            imagined_told=np.zeros((1, 0, 1 + len(names))),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.left)

    @property
    def targets(self) -> int:
        """How many quantities are modelled (m)."""
        return 1 + len(self.problem.metrics)

    def after(self, rows: IntArray, told: FloatArray, charge: FloatArray, value: FloatArray) -> Situation:
        """The b·k situations in which each row `[b]` has run with k imagined outcomes.

        `told [b, k, m]` is in the model's units, `charge [b, k]` in dollars, `value [b, k]` in the goal's unit and NaN where a
        limit was broken. A single situation may be followed by many rows.
        """
        b, k = charge.shape
        parents = np.broadcast_to(np.arange(len(self)), (b,)) if len(self) == 1 else np.arange(b)
        children = np.repeat(parents, k)
        e = self.imagined_rows.shape[1]
        imagined_rows = np.empty((b * k, e + 1), dtype=np.int64)
        imagined_rows[:, :e] = self.imagined_rows[children]
        imagined_rows[:, e] = np.repeat(rows, k)
        imagined_told = np.empty((b * k, e + 1, told.shape[2]))
        imagined_told[:, :e] = self.imagined_told[children]
        imagined_told[:, e] = told.reshape(b * k, told.shape[2])
        return replace(
            self,
            left=self.left[children] - charge.ravel(),
            best=np.fmin(self.best[children], value.ravel()),
            current=imagined_rows[:, e],
            imagined_rows=imagined_rows,
            imagined_told=imagined_told,
        )

    def part(self, which: slice | BoolArray | IntArray) -> Situation:
        """Some of the situations."""
        return replace(
            self,
            left=self.left[which],
            best=self.best[which],
            current=self.current[which],
            imagined_rows=self.imagined_rows[which],
            imagined_told=self.imagined_told[which],
        )

    def worst_in_each(self, form: Form) -> FloatArray:
        """Highest goal value told so far, imagined runs included `[b]`; they count when the model's unit is the goal's."""
        worst = np.full(len(self), self.worst)
        if self.imagined_rows.shape[1] and form == "cost" and self.problem.kind == "cost":
            worst = np.fmax(worst, self.imagined_told[:, :, 0].max(axis=1))
        return worst

    def open_in_each(self) -> BoolArray:
        """Rows that may still be run in each situation `[b, q]`."""
        open_rows = np.broadcast_to(self.open, (len(self), len(self.open))).copy()
        if self.problem.repeats == 1:
            np.put_along_axis(open_rows, self.imagined_rows, False, axis=1)
        return open_rows

    def caps_s(self) -> FloatArray:
        """Seconds after which a run can no longer be the answer `[b, q]`: it is late, or dearer (slower) than the best."""
        return self._caps(self.best[:, None], None, self.problem.ceiling_s)

    def cap_s_of(self, rows: IntArray) -> FloatArray:
        """The same for one row of each situation `[b]`, or for many rows of the only situation."""
        return self._caps(self.best, rows, self.problem.ceiling_s[rows])

    def _caps(self, best: FloatArray, rows: IntArray | None, ceiling_s: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            if self.problem.kind == "cost":
                beaten = np.where(np.isnan(best), np.inf, self.problem.seconds_at(best, rows))
            elif self.problem.kind == "time":
                beaten = np.where(np.isnan(best), np.inf, best)
            else:
                beaten = np.full(best.shape, np.inf)
            return np.minimum(beaten, ceiling_s)


@dataclass(frozen=True, eq=False)
class Belief:
    """What a model thinks of every row in every situation."""

    form: Form
    """The unit of target 0: dollars or ln seconds. Metrics are always believed normal in their own unit."""
    mean: FloatArray
    """`[b, q, m]`"""
    std: FloatArray
    """`[b, q, m]`"""

    def __post_init__(self) -> None:
        if self.mean.shape != self.std.shape or self.mean.ndim != 3:
            raise ValueError(
                f"a belief needs two arrays [b, q, m] of one shape, got {self.mean.shape} and {self.std.shape}"
            )

    def run(self) -> Normal | LogNormal:
        """The distribution of target 0 `[b, q]`: dollars for form `cost`, seconds for form `log time`."""
        return run_distribution(self.form, self.mean[:, :, 0], self.std[:, :, 0])

    def metric(self, index: int) -> Normal:
        """The distribution of the problem's metric number `index` `[b, q]`."""
        return Normal(self.mean[:, :, 1 + index], self.std[:, :, 1 + index])

    def expected(self, row: int) -> Expected:
        """The moments at one row of the first situation, to be kept with a plan."""
        return Expected(self.form, tuple(self.mean[0, row].tolist()), tuple(self.std[0, row].tolist()))

    def within_ceiling(self, problem: Problem) -> FloatArray:
        """P(the limits on time and cost are kept) `[b, q]`, through the known price."""
        return self.run().cdf(problem.ceiling_usd if self.form == "cost" else problem.ceiling_s)

    def feasible(self, problem: Problem) -> FloatArray:
        """P(every limit is kept) `[b, q]`, targets taken as independent."""
        probability = (
            self.within_ceiling(problem) if np.isfinite(problem.ceiling_s).any() else np.ones(self.mean.shape[:2])
        )
        for limit in problem.metric_limits:
            probability = probability * self.keeps(limit, problem)
        return probability

    def keeps(self, limit: Limit, problem: Problem) -> FloatArray:
        """P(this one limit is kept) `[b, q]`."""
        if limit.metric in ("time", "cost"):
            return self.within_ceiling(problem.with_limits((limit,)))
        metric = self.metric(problem.metrics.index(limit.metric))
        return metric.sf(limit.bound) if limit.at_least else metric.cdf(limit.bound)

    def charge(self, situation: Situation, caps_s: FloatArray | None = None) -> FloatArray:
        """Expected dollars charged for running each row now `[b, q]`, stopped at `caps_s [b, q]` if given."""
        usd = expected_charge(situation.problem, self.run(), self.form, None, caps_s)
        return np.maximum(usd - warm_saving(situation), 0.0)

    def affordable(self, situation: Situation, sure: float) -> BoolArray:
        """Rows whose full run fits into the money left with probability `sure` `[b, q]` (spec: μ + 2.326 σ ≤ B for 0.99)."""
        if np.isposinf(situation.left).all():
            return np.ones(self.mean.shape[:2], dtype=bool)
        upper = self.run().quantile(sure)
        problem = situation.problem
        usd = upper if self.form == "cost" else problem.tariff.charges(upper, problem.price)
        return usd - warm_saving(situation) <= situation.left[:, None]


def run_distribution(form: Form, mean: FloatArray, std: FloatArray) -> Normal | LogNormal:
    """The distribution of a run's dollars (form `cost`) or seconds (form `log time`) from moments in the model's units."""
    return Normal(mean, std) if form == "cost" else LogNormal(mean, std)


def expected_charge(
    problem: Problem, run: Distribution, form: Form, rows: IntArray | None, caps_s: FloatArray | None
) -> FloatArray:
    """Expected dollars of a booted run: E[charge(min(T, cap))], of dollars or seconds distributed as `run`, restarts included.

    `rows` says of which configurations; nothing: of all.
    """
    tariff = problem.tariff
    if form == "cost":
        if caps_s is None:
            return np.maximum(run.expectation(), 0.0)  # a normal belief reaches below zero, a charge does not
        return np.maximum(run.capped_mean(problem.costs(np.maximum(caps_s, 0.0), rows)), 0.0)
    # max(min(T, cap) + boot, minimum) = boot + min(T, cap) + (floor − T)⁺ with floor = minimum − boot ≤ cap; a run that is
    # stopped before the minimum pays it all the same.
    floor = max(tariff.minimum_s - tariff.boot_s, 0.0)
    seconds = run.expectation() if caps_s is None else run.capped_mean(np.maximum(caps_s, floor))
    price = problem.price_of_runs(seconds, rows)
    if floor > 0:
        seconds = seconds + run.put(floor)
    return np.asarray(price * (seconds + tariff.boot_s + tariff.granularity_s / 2) + tariff.fee_usd)


def warm_saving(situation: Situation, rows: IntArray | None = None) -> FloatArray | float:
    """Dollars saved because machines are up already: for every row `[b, q]`, or for one row of each situation `[b]`."""
    problem, tariff = situation.problem, situation.problem.tariff
    if not tariff.warm:
        return 0.0
    price = problem.price if rows is None else problem.price[rows]
    return np.where(is_warm(situation, rows), tariff.boot_s * price + tariff.fee_usd, 0.0)


def is_warm(situation: Situation, rows: IntArray | None = None) -> BoolArray:
    """Whether the machines are up already: for every row `[b, q]`, or for one row of each situation `[b]`."""
    problem = situation.problem
    up = np.where(situation.current >= 0, problem.machine[situation.current], -1)
    machine = problem.machine if rows is None else problem.machine[rows]
    if rows is None:
        up = up[:, None]
    return np.asarray((up == machine) & (machine >= 0))


def feasible_runs(problem: Problem, history: History) -> list[tuple[int, float]]:
    """(row, goal value) of every finished run that kept every limit and may be the answer."""
    runs = []
    for seen in history:
        if seen.outcome.end is End.FINISHED:
            value = problem.answer_value(seen.row, seen.outcome.seconds, seen.outcome.metrics)
            if value is not None:
                runs.append((seen.row, value))
    return runs


def believed_result(problem: Problem, order: Order) -> tuple[float, ...] | None:
    """Seconds and metrics that the model expects of a run under way; nothing when no model was asked."""
    expected = order.plan.expected
    if expected is None:
        return None
    if expected.form == "cost":
        usd = np.asarray(max(expected.mean[0], 0.0))
        seconds = max(float(problem.seconds_at(usd, np.asarray(order.row))), 0.0)
    else:
        seconds = math.exp(min(expected.mean[0], 700.0))
    return (seconds, *expected.mean[1:])


def _speaks_of_goal(problem: Problem, metrics: Mapping[str, float]) -> bool:
    return problem.kind != "metric" or problem.goal.metric in metrics


def _machines_up(history: History, pending: tuple[Order, ...]) -> int:
    """The row whose machines can be used again. Those of runs under way are busy, and which of several are free is not known;
    after a failure they may be gone, and a run that was charged nothing (an imported one) had none."""
    if pending or not history:
        return -1
    last = history[-1]
    return -1 if last.outcome.end is End.FAILED or last.outcome.charged_usd == 0 else last.row


def _open_rows(problem: Problem, history: History, pending: tuple[Order, ...]) -> BoolArray:
    open_rows = np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable.copy()
    used = np.zeros(len(problem.space), dtype=np.int64)
    for seen in history:
        reason = seen.outcome.reason
        if reason is None:
            used[seen.row] += 1
        elif reason.blames_configuration or reason is Reason.USER:
            used[seen.row] = problem.repeats
    for order in pending:
        used[order.row] += 1
    return open_rows & (used < problem.repeats)
