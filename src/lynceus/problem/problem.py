"""The optimization problem: a space of configurations, an objective, constraints, a budget, and how machines are billed.

Two quantities are special because the price of every configuration is known before it runs: the *time* of a run is observed,
its *cost* follows through the billing. Everything else that a job reports (accuracy, throughput, …) is a *metric*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lynceus.errors import InputError
from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.data_fraction import shares
from lynceus.problem.dollar_use import dollar_use
from lynceus.problem.formula import PRICE
from lynceus.problem.future_use import FutureUse
from lynceus.problem.goal import Goal, ObjectiveKind
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.preemption import Preemption
from lynceus.problem.run_costs import RunCosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lynceus.space.column import BoolArray, FloatArray
    from lynceus.space.table import Space


@dataclass(frozen=True)
class Problem:
    """What to optimize, over which configurations, under which constraints and budget."""

    space: Space
    objective: Objective = field(default_factory=Objective)
    constraints: tuple[Constraint, ...] = ()
    budget: Budget = field(default_factory=Budget)
    billing: Billing = field(default_factory=Billing)
    testable: BoolArray | None = None
    """Rows that may be run `[q]`; None for all."""
    answerable: BoolArray | None = None
    """Rows that may be recommended `[q]`; None for all."""
    repeats: int = 1
    """How often one configuration may be run."""
    fraction: str | None = None
    """The column with the fraction of the data that a run reads; None when every run reads all of it."""
    preemption: Preemption | None = None
    """Which configurations run on machines that the cloud may take back (spot machines); None for none."""
    deterministic: bool = False
    """Whether every run of a configuration takes the same time, as in a replayed table: then no run is repeated to learn the noise."""
    baseline: Baseline | None = None
    """The configuration used until now, with which the best one is compared."""
    future: FutureUse | None = None
    """How often the result will be used; None: as the policy assumes."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Declared units of reported metrics: `{"ttft": "ms"}`."""
    history: tuple[PastJob, ...] = ()
    """Runs of earlier jobs to learn from; nothing of them is charged."""
    input: JobInput | None = None
    """What runs read from now on; runs on another input tell about it through a model (`lynceus.models.input_size`)."""

    def __post_init__(self) -> None:
        for name in ("testable", "answerable"):
            mask = getattr(self, name)
            if mask is None:
                continue
            if mask.shape != (len(self.space),):
                raise InputError(
                    f"{name}: got a mask of shape {mask.shape} for {len(self.space)} configurations; give one value each."
                )
            if not mask.any():
                raise InputError(f"{name}: no configuration is left; relax the rule that decides what is {name}.")
        if self.preemption is not None and len(self.preemption.twin) != len(self.space):
            raise InputError(
                f"preemption: got {len(self.preemption.twin)} rates for {len(self.space)} configurations; give one each."
            )
        if self.repeats < 1:
            raise InputError(f"repeats: got {self.repeats}; allow at least 1 run of every configuration.")
        for column in self.billing.warm:
            self.space.column(column)
        if self.fraction is not None:
            shares(self.space, self.fraction)
        if self.baseline is not None:
            self._check_baseline(self.baseline)
        _ = self.goal.formula  # refuses what cannot be computed
        self._check_future()

    def _check_baseline(self, baseline: Baseline) -> None:
        if not 0 <= baseline.row < len(self.space):
            raise InputError(
                f"baseline: row {baseline.row} is not one of the {len(self.space)} configurations; give one of them."
            )
        if baseline.measure and self.testable is not None and not self.testable[baseline.row]:
            raise InputError(
                "baseline: measure is true, but trials may not run this configuration (see fraction.test); give its runtime instead."
            )

    def _check_future(self) -> None:
        formula = self.goal.formula
        if self.future is None or formula is None or not formula.metrics or PRICE not in formula.reads:
            return
        if not self.objective.maximise and dollar_use(self) is None:
            missing = next((name for name in formula.metrics if name not in self.units), formula.metrics[0])
            raise InputError(
                f"future: '{self.objective.metric}' is no amount of dollars that can be counted; declare the unit of {missing}, "
                f"as in metrics: {{{missing}: {{unit: tokens/s}}}}."
            )

    def with_budget(self, usd: float, more_trials: int = 0) -> Problem:
        """The same problem with another budget in dollars, and with more trials where they are limited."""
        if usd == self.budget.usd and not more_trials:
            return self
        trials = None if self.budget.trials is None else self.budget.trials + more_trials
        return replace(self, budget=replace(self.budget, usd=usd, trials=trials))

    def with_constraints(self, constraints: Iterable[Constraint]) -> Problem:
        """The same problem under other constraints (what if the deadline were 30 minutes?)."""
        return replace(self, constraints=tuple(constraints))

    @cached_property
    def goal(self) -> Goal:
        """The objective over these configurations: what of it is known, and what runs have to tell."""
        return Goal(self.objective, self.space, linear=self.billing.linear and self.preemption is None)

    @property
    def kind(self) -> ObjectiveKind:
        """Whether the objective is cost, time, or what runs report."""
        return self.goal.kind

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Reported metrics in objective and constraints, in order of appearance."""
        names = [*self.goal.metrics, *(constraint.metric for constraint in self.constraints)]
        return tuple(dict.fromkeys(name for name in names if name not in ("cost", "time")))

    @cached_property
    def metric_constraints(self) -> tuple[Constraint, ...]:
        """Constraints on reported metrics, that is, all but those on time and cost."""
        return tuple(constraint for constraint in self.constraints if constraint.metric not in ("time", "cost"))

    @cached_property
    def price(self) -> FloatArray:
        """Dollars per second of every configuration `[q]`."""
        return self.space.price_per_second

    @cached_property
    def run_costs(self) -> RunCosts:
        """What production runs cost, as arrays."""
        return RunCosts(self.price, self.billing, self.preemption)

    @cached_property
    def deadline_s(self) -> float:
        """The tightest bound on time, in seconds; infinite without one."""
        return min(
            (constraint.bound for constraint in self.constraints if constraint.metric == "time"), default=math.inf
        )

    @cached_property
    def ceiling_s(self) -> FloatArray:
        """The longest time with which each configuration meets all constraints on time and cost `[q]`."""
        ceiling = np.full(len(self.space), self.deadline_s)
        for constraint in self.constraints:
            if constraint.metric == "cost":
                ceiling = np.minimum(ceiling, self.run_costs.seconds_at(np.asarray(constraint.bound)))
        return ceiling

    @cached_property
    def ceiling_usd(self) -> FloatArray:
        """The highest cost with which each configuration meets all constraints on time and cost `[q]`."""
        # A ceiling of −inf seconds (the bound does not even cover the boot) stays impossible: no cost is low enough.
        with np.errstate(invalid="ignore"):
            usd = self.run_costs.of(self.ceiling_s)
        return np.where(np.isneginf(self.ceiling_s), -np.inf, usd)

    def cost(self, row: int, seconds: float) -> float:
        """Dollars of a production run of `row` that takes `seconds`, boot and expected preemptions included."""
        return self.run_costs.of_run(row, seconds)

    def value(self, row: int, seconds: float, metrics: Mapping[str, float]) -> float:
        """The objective of a finished run, smaller is better (a maximised metric changes sign).

        NaN where a formula has no value, as a division by a throughput of 0.
        """
        if self.kind == "cost":
            return self.cost(row, seconds)
        if self.kind == "time":
            return seconds
        if self.goal.formula is None:
            return self.goal.value(row, metrics)
        return self.goal.value(row, {**metrics, "time": seconds, "cost": self.cost(row, seconds)})

    def meets_constraints(self, row: int, seconds: float, metrics: Mapping[str, float]) -> bool:
        """Whether a finished run met every constraint; a metric that was not reported meets none."""
        for constraint in self.constraints:
            if constraint.metric == "time":
                value: float | None = seconds
            else:
                value = self.cost(row, seconds) if constraint.metric == "cost" else metrics.get(constraint.metric)
            if value is None or not constraint.holds(value):
                return False
        return True

    def answer_value(self, row: int, seconds: float, metrics: Mapping[str, float]) -> float | None:
        """The objective of a finished run that may be recommended and met every constraint; None for any other run."""
        if self.answerable is not None and not self.answerable[row]:
            return None
        if not (self.goal.told_by(metrics) and self.meets_constraints(row, seconds, metrics)):
            return None
        value = self.value(row, seconds, metrics)
        return None if math.isnan(value) else value
