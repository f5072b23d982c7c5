"""What is known at one moment, real or imagined: observations, pending runs, and the budget that remains.

Shapes: b states, q candidate rows, n observations, e imagined observations, k imagined outcomes, m modelled targets
(the time of a run first, then the metrics of objective and constraints).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.problem.billing import machine_groups
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, FailureReason, Observations

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray, IntArray

Form = Literal["cost", "log time"]
"""What a surrogate models of a run's time: its cost in dollars, or the natural logarithm of its seconds."""


@dataclass(frozen=True, eq=False)
class State:
    """One real state (b = 1), or many imagined ones that share its real observations."""

    problem: Problem
    observations: Observations
    pending: tuple[Order, ...]
    """Runs in progress; their rows are closed and their cost is reserved in the budget."""
    rows: IntArray
    """Configurations that the model is trained on, in order `[n]`; predicted results of pending runs come last."""
    seconds: FloatArray
    """Training targets: times `[n]`."""
    metrics: FloatArray
    """Training targets: metrics `[n, m - 1]`; NaN where a run reported none."""
    bound_s: FloatArray
    """For runs whose time is an estimate: the time that they really ran, a lower bound `[n]`; NaN for finished runs."""
    open: BoolArray
    """Rows that may still be run `[q]`."""
    worst: float
    """Highest observed value of the objective; NaN before the first."""
    started: int
    """Runs ordered so far, pending ones included."""
    left: FloatArray
    """Remaining budget in dollars, after everything charged and reserved `[b]`."""
    best: FloatArray
    """Objective value of the best finished run that met every constraint `[b]`; NaN while there is none."""
    current: IntArray
    """Row whose machines are running `[b]`; −1 for none."""
    imagined_rows: IntArray
    """`[b, e]`"""
    imagined_targets: FloatArray
    """In the model's own units `[b, e, m]`."""
    success: FloatArray | None = None
    """The chance that a run of each row does not fail `[q]`; None as long as no failure was a configuration's fault."""
    margin: float = 1.0
    """A run is stopped when it has cost so many times what the incumbent costs: above 1 where runs are known to differ."""
    logs: tuple[bool, ...] = ()
    """Whether each metric in `metrics` is a natural logarithm, for a model inside another one; empty: none is."""

    @classmethod
    def present(cls, problem: Problem, observations: Observations, pending: tuple[Order, ...] = ()) -> State:
        """The real state after `observations`, while `pending` runs are in progress."""
        names = problem.metrics
        target = [(seen.row, seen.target) for seen in observations if seen.target is not None]
        rows = [row for row, _ in target]
        seconds = [t.seconds for _, t in target]
        bounds = [t.bound_s if t.censored else math.nan for _, t in target]
        metrics = [[t.metrics.get(name, math.nan) for name in names] for _, t in target]
        values = [problem.value(row, t.seconds, t.metrics) for row, t in target if problem.goal.told_by(t.metrics)]
        for order in pending:
            predicted = expected_result(problem, order)
            if predicted is not None:
                rows.append(order.row)
                seconds.append(predicted[0])
                bounds.append(math.nan)
                metrics.append(list(predicted[1:]))
        charged = sum(seen.outcome.charged_usd for seen in observations)
        reserved = sum(order.reserved_usd for order in pending)
        best = min((value for _, value in feasible_runs(problem, observations)), default=math.nan)
        return cls(
            problem, observations, pending,
            rows=np.array(rows, dtype=np.int64),
            seconds=np.array(seconds, dtype=float),
            metrics=np.array(metrics, dtype=float).reshape(len(rows), len(names)),
            bound_s=np.array(bounds, dtype=float),
            open=_open_rows(problem, observations, pending),
            worst=max((value for value in values if not math.isnan(value)), default=math.nan),
            started=len(observations) + len(pending),
            left=np.array([problem.budget.usd - charged - reserved]),
            best=np.array([best]),
            current=np.array([_machines_up(observations, pending)], dtype=np.int64),
            imagined_rows=np.zeros((1, 0), dtype=np.int64),
            imagined_targets=np.zeros((1, 0, 1 + len(names))),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.left)

    @property
    def targets(self) -> int:
        """How many quantities are modelled (m)."""
        return 1 + len(self.problem.metrics)

    def after(self, rows: IntArray, target: FloatArray, charge: FloatArray, value: FloatArray) -> State:
        """The b·k states in which each row `[b]` has run with k imagined outcomes.

        `target [b, k, m]` is in the model's units, `charge [b, k]` in dollars, `value [b, k]` in the objective's unit and NaN where
        a constraint was violated. A single state may be followed by many rows.
        """
        b, k = charge.shape
        parents = np.broadcast_to(np.arange(len(self)), (b,)) if len(self) == 1 else np.arange(b)
        children = np.repeat(parents, k)
        e = self.imagined_rows.shape[1]
        imagined_rows = np.empty((b * k, e + 1), dtype=np.int64)
        imagined_rows[:, :e] = self.imagined_rows[children]
        imagined_rows[:, e] = np.repeat(rows, k)
        imagined_targets = np.empty((b * k, e + 1, target.shape[2]))
        imagined_targets[:, :e] = self.imagined_targets[children]
        imagined_targets[:, e] = target.reshape(b * k, target.shape[2])
        return replace(
            self,
            left=self.left[children] - charge.ravel(),
            best=np.fmin(self.best[children], value.ravel()),
            current=imagined_rows[:, e],
            imagined_rows=imagined_rows,
            imagined_targets=imagined_targets,
        )

    def part(self, which: slice | BoolArray | IntArray) -> State:
        """Some of the states."""
        return replace(
            self,
            left=self.left[which],
            best=self.best[which],
            current=self.current[which],
            imagined_rows=self.imagined_rows[which],
            imagined_targets=self.imagined_targets[which],
        )

    def worst_in_each(self, form: Form) -> FloatArray:
        """Highest objective value `[b]`; imagined runs count where the model's unit is the objective's."""
        worst = np.full(len(self), self.worst)
        if self.imagined_rows.shape[1] and form == "cost" and self.problem.kind == "cost":
            worst = np.fmax(worst, self.imagined_targets[:, :, 0].max(axis=1))
        return worst

    def open_in_each(self) -> BoolArray:
        """Rows that may still be run in each state `[b, q]`."""
        open_rows = np.broadcast_to(self.open, (len(self), len(self.open))).copy()
        if self.problem.repeats == 1:
            np.put_along_axis(open_rows, self.imagined_rows, False, axis=1)
        return open_rows

    def timeouts_s(self) -> FloatArray:
        """Seconds after which a run cannot be recommended any more `[b, q]`: it is late, or costs more (takes longer) than the best."""
        return self._timeouts(self.best[:, None], None, self.problem.ceiling_s)

    def timeout_s_of(self, rows: IntArray) -> FloatArray:
        """The same for one row of each state `[b]`, or for many rows of the only state."""
        return self._timeouts(self.best, rows, self.problem.ceiling_s[rows])

    def _timeouts(self, best: FloatArray, rows: IntArray | None, ceiling_s: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            if self.problem.kind == "cost":
                beaten = np.where(np.isnan(best), np.inf, self.problem.run_costs.seconds_at(self.margin * best, rows))
            elif self.problem.kind == "time":
                beaten = np.where(np.isnan(best), np.inf, self.margin * best)
            elif (known := self.problem.goal.known) is not None:
                # A configuration that is known to be no better than the best has nothing to tell.
                own = known if rows is None else known[rows]
                beaten = np.where(own >= best, -np.inf, np.inf)
            else:
                beaten = np.full(best.shape, np.inf)
            return np.minimum(beaten, ceiling_s)


def warm_saving(state: State, rows: IntArray | None = None) -> FloatArray | float:
    """Dollars saved where machines are running already: for every row `[b, q]`, or for one row of each state `[b]`."""
    problem, billing = state.problem, state.problem.billing
    if not billing.warm:
        return 0.0
    price = problem.price if rows is None else problem.price[rows]
    return np.where(is_warm(state, rows), billing.boot_s * price + billing.fee_usd, 0.0)


def is_warm(state: State, rows: IntArray | None = None) -> BoolArray:
    """Whether the machines are running already: for every row `[b, q]`, or for one row of each state `[b]`."""
    group = machine_groups(state.problem.space, state.problem.billing.warm)
    up = np.where(state.current >= 0, group[state.current], -1)
    machine = group if rows is None else group[rows]
    if rows is None:
        up = up[:, None]
    return np.asarray((up == machine) & (machine >= 0))


def feasible_runs(problem: Problem, observations: Observations) -> list[tuple[int, float]]:
    """(row, objective value) of every finished run that met every constraint and may be recommended."""
    runs = []
    for seen in observations:
        if seen.outcome.end is End.FINISHED:
            value = problem.answer_value(seen.row, seen.outcome.seconds, seen.outcome.metrics)
            if value is not None:
                runs.append((seen.row, value))
    return runs


def expected_result(problem: Problem, order: Order) -> tuple[float, ...] | None:
    """Seconds and metrics that the model expected of a pending run; None when no model was used.

    NaN for a metric that is constrained only since the run was ordered.
    """
    expected = order.plan.expected
    if expected is None:
        return None
    if expected.form == "cost":
        usd = np.asarray(max(expected.mean[0], 0.0))
        seconds = max(float(problem.run_costs.seconds_at(usd, np.asarray(order.row))), 0.0)
    else:
        seconds = math.exp(min(expected.mean[0], 700.0))
    logs = expected.logs or (False,) * len(expected.mean[1:])
    metrics = [math.exp(min(mean, 700.0)) if log else mean for mean, log in zip(expected.mean[1:], logs, strict=True)]
    return (seconds, *metrics, *[math.nan] * (len(problem.metrics) - len(metrics)))


def _machines_up(observations: Observations, pending: tuple[Order, ...]) -> int:
    """The row whose machines can be used again; −1 for none. Those of pending runs are busy. After a failure they may be gone,
    and a run without a charge (an imported one) had none."""
    if pending or not observations:
        return -1
    last = observations[-1]
    return -1 if last.outcome.end is End.FAILED or last.outcome.charged_usd == 0 else last.row


def _open_rows(problem: Problem, observations: Observations, pending: tuple[Order, ...]) -> BoolArray:
    open_rows = np.ones(len(problem.space), dtype=bool) if problem.testable is None else problem.testable.copy()
    used = np.zeros(len(problem.space), dtype=np.int64)
    for seen in observations:
        reason = seen.outcome.reason
        if reason is None:
            used[seen.row] += 1
        elif reason.blames_configuration or reason is FailureReason.USER:
            used[seen.row] = problem.repeats
    for order in pending:
        used[order.row] += 1
    return open_rows & (used < problem.repeats)
