"""What the best configuration saves against the baseline: in a use, over all future uses, and after how many it has paid for the search.

A use is a run of the job, or a unit where the objective is dollars per unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lynceus.problem.dollar_use import DollarUse, dollar_use
from lynceus.problem.future_use import FutureUse, plural
from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import median_runs
from lynceus.trial.nan_equality import NanEquality
from lynceus.trial.outcome import End, Observation, Observations

if TYPE_CHECKING:
    from lynceus.models.distribution import LogNormal, Normal
    from lynceus.models.prediction import Prediction

Basis = Literal["measured", "given", "predicted"]
"""How the cost of a baseline is known: a run of it finished, the user gave its time, or a model predicts it."""
Interval = tuple[float, float]


@dataclass(frozen=True)
class Uses:
    """How often the result will be used."""

    count: float
    """In all."""
    unit: str
    """`runs`, or what an objective in dollars per unit counts: `million tokens`."""
    per_month: float | None
    """As the user wrote it, like the next field; None when the count itself was given."""
    months: float | None
    assumed: bool
    """Whether the user did not say it, so that it is what the policy assumes."""

    def __str__(self) -> str:
        said = FutureUse(None if self.per_month is not None else self.count, self.per_month, self.months)
        return said.shown(self.unit)


@dataclass(frozen=True, eq=False)
class BaselineCost(NanEquality):
    """Dollars of a use of the baseline."""

    usd: float = math.nan
    """NaN without a baseline, or while nothing is known of its cost."""
    interval_usd: Interval | None = None
    """Where it lies with a probability of 80 %, when it is predicted."""
    basis: Basis | None = None


@dataclass(frozen=True)
class Savings:
    """What the best configuration saves. NaN while the cost of the baseline is unknown; intervals where it is predicted."""

    saved_usd: float
    """Dollars that a use saves."""
    saved_interval_usd: Interval | None
    saving: float
    """The same as a share of the baseline's cost."""
    saving_interval: Interval | None
    future_saving_usd: float
    """Dollars that all future uses save, before the cost of the search."""
    future_saving_interval_usd: Interval | None
    pays_back_after_runs: float
    """Uses after which the search has paid for itself; infinite when nothing is saved."""
    pays_back_interval_runs: Interval | None


_RUN = DollarUse("run", 1.0)
"""Uses are runs, whose cost is known whatever the objective."""


def _use(problem: Problem) -> DollarUse:
    """What counts as a use: a unit where the objective is dollars per unit, otherwise a run."""
    found = None if problem.kind == "cost" else dollar_use(problem)
    return _RUN if found is None or found.unit == "run" else found


def predicted_use(problem: Problem, prediction: Prediction) -> tuple[Normal | LogNormal, float] | None:
    """The distribution of an objective in dollars per unit `[b, q]`, and dollars of a use for 1 of it; None where runs count."""
    use = _use(problem)
    return None if use is _RUN else (prediction.reported_objective(problem), use.usd)


def counted_uses(problem: Problem, future: FutureUse) -> Uses:
    """A future use with the unit that the objective counts in."""
    unit = plural(_use(problem).unit)
    return Uses(future.count, unit, future.per_month, future.months, assumed=problem.future is None)


def use_cost(problem: Problem, cost_usd: float, value: float) -> float:
    """Dollars of a use of a configuration, from those of a run and its objective."""
    use = _use(problem)
    return cost_usd if use is _RUN else use.usd * value


def known_baseline(problem: Problem, observations: Observations) -> BaselineCost:
    """The cost of the baseline as far as no model is needed: its median run in the study, otherwise the time that the user gave."""
    if problem.baseline is None:
        return BaselineCost()
    row, runtime_s = problem.baseline.row, problem.baseline.runtime_s
    for seen in median_runs(tuple(seen for seen in observations if seen.row == row)):
        if seen.outcome.end is End.FINISHED and (usd := _seen_cost(problem, seen)) is not None:
            return BaselineCost(usd, basis="measured")
    if runtime_s is not None and _use(problem) is _RUN:
        return BaselineCost(problem.cost(row, runtime_s), basis="given")
    return BaselineCost()


def savings(own_usd: float, baseline: BaselineCost, uses: Uses, spent_usd: float) -> Savings:
    """What a configuration saves whose uses cost `own_usd` each, after a search for `spent_usd`."""
    saved = baseline.usd - own_usd
    shares = saved_range = future = back = None
    if baseline.interval_usd is not None:
        low, high = baseline.interval_usd
        saved_range = (low - own_usd, high - own_usd)
        shares = (_share(own_usd, low), _share(own_usd, high))
        future = (uses.count * saved_range[0], uses.count * saved_range[1])
        back = (_pays_back_after(spent_usd, saved_range[1]), _pays_back_after(spent_usd, saved_range[0]))
    return Savings(
        saved_usd=saved,
        saved_interval_usd=saved_range,
        saving=_share(own_usd, baseline.usd),
        saving_interval=shares,
        future_saving_usd=uses.count * saved,
        future_saving_interval_usd=future,
        pays_back_after_runs=_pays_back_after(spent_usd, saved),
        pays_back_interval_runs=back,
    )


def _seen_cost(problem: Problem, seen: Observation) -> float | None:
    use = _use(problem)
    if use is _RUN:
        return problem.cost(seen.row, seen.outcome.seconds)
    if not problem.goal.told_by(seen.outcome.metrics):
        return None
    return use.usd * problem.value(seen.row, seen.outcome.seconds, seen.outcome.metrics)


def _share(own_usd: float, baseline_usd: float) -> float:
    return 1.0 - own_usd / baseline_usd if baseline_usd > 0 else math.nan


def _pays_back_after(spent_usd: float, saved_usd: float) -> float:
    if math.isnan(saved_usd):
        return math.nan
    return spent_usd / saved_usd if saved_usd > 0 else math.inf
