"""The objective of a problem: which part of it is known before a run, and what runs have to tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from lynceus.errors import InputError
from lynceus.problem.formula import PRICE, Formula
from lynceus.problem.objective import Objective

if TYPE_CHECKING:
    from lynceus.space.column import FloatArray
    from lynceus.space.table import Space

ObjectiveKind = Literal["cost", "time", "metric"]


@dataclass(frozen=True, eq=False)
class Goal:
    """An objective over the configurations of one space."""

    objective: Objective
    space: Space
    linear: bool
    """Whether cost is time × price."""

    @cached_property
    def kind(self) -> ObjectiveKind:
        """Whether the objective is cost, time, or what runs report: a metric, or a formula of metrics and known columns."""
        if self.objective.metric == "cost":
            return "cost"
        return "time" if self.objective.metric == "time" else "metric"

    @cached_property
    def formula(self) -> Formula | None:
        """The objective as a formula; None where it is cost, time or a single metric."""
        name = self.objective.metric
        if not self.objective.is_formula and (self.kind != "metric" or name not in self.space.columns):
            return None
        formula = Formula.of(name, self.space, linear=self.linear)
        if PRICE in formula.reads:
            refuse_price(parameter.name for parameter in self.space.parameters)
        return formula

    @cached_property
    def known(self) -> FloatArray | None:
        """The objective of every configuration `[q]`, smaller is better, where it is known before anything runs; None otherwise."""
        if self.formula is None or self.formula.quantities:
            return None
        return self.objective.sign * self.formula.known_values()

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Reported metrics that the objective reads; empty for cost, time, and what is known."""
        if self.kind != "metric":
            return ()
        return (self.objective.metric,) if self.formula is None else self.formula.metrics

    @property
    def target(self) -> int:
        """The one modelled target that is the objective: 0, the run's time, for time and cost; 1, the first metric, for a metric."""
        if self.formula is not None:
            raise InputError(
                f"objective: this policy needs cost, time or one metric as the objective, not '{self.objective.metric}'; "
                "choose the policy lynceus."
            )
        return 0 if self.kind != "metric" else 1

    def told_by(self, metrics: Mapping[str, float]) -> bool:
        """Whether a run reported every metric that the objective reads."""
        return all(name in metrics for name in self.metrics)

    def value(self, row: int, told: Mapping[str, float]) -> float:
        """The objective of a run with its `time`, `cost` and metrics, smaller is better; NaN where a formula has no value."""
        if self.formula is None:
            return self.objective.sign * told[self.objective.metric]
        return self.objective.sign * self.formula.value(row, told)


def refuse_price(names: Iterable[str]) -> None:
    """Refuse a parameter or a metric with the name that formulas have for dollars per hour."""
    if PRICE in names:
        raise InputError(
            "'price' is the name of a configuration's dollars per hour; give the parameter or metric another name."
        )
