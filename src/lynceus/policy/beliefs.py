"""What is believed of configurations that ran, once runs may differ: their cost, and the chance that a run keeps the limits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from lynceus.models.interfaces import SupportsAccuratePrediction, Surrogate
from lynceus.models.metric_noise import chance_to_keep, reported_by_row
from lynceus.models.prediction import Prediction
from lynceus.models.run_noise import Belief, RunNoise, Runs, runs_by_row
from lynceus.models.state import State, feasible_runs
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observations

_MOST = 8
"""Configurations that are looked at closely; each needs a fit of the model without it."""
_MANY = 200
"""With more observations than this, the runs of a configuration speak for themselves: fits would take long, and add little."""
_TEACHERS = 24
"""Other repeated configurations that teach the noise, those that ran most often."""
_ENOUGH = 50
"""Runs of one configuration that are weighed, the latest ones."""
_RIVALS = 3
"""Admissible configurations among which the best is chosen: those behind them looked worse at a first glance."""


@dataclass(frozen=True, eq=False)
class Believed:
    """A configuration that ran, with what is believed of it."""

    row: int
    belief: Belief
    value: float
    """Expected objective of a run, smaller is better."""
    typical: float
    """The same without the runs that are slow for a reason of their own: what the search compares other configurations with."""
    chance: float
    """P(a run keeps every constraint)."""
    admissible: bool
    """Whether every constraint is kept with the confidence that it demands, and together more often than not."""
    chances: tuple[float, ...]
    """P(a run keeps each constraint alone), in the order of the problem."""


def believed_best(
    problem: Problem, observations: Observations, surrogate: Surrogate | None, noise: RunNoise, seed: int
) -> Believed | None:
    """The best configuration with a finished run that kept every constraint; None while there is none.

    If none is sure enough of the constraints, the one that most probably keeps them.
    """
    found: list[Believed] = []
    for one in _Weighing(problem, observations, surrogate, noise, seed).by_first_glance():
        found.append(one)
        if sum(each.admissible for each in found) == _RIVALS:
            break
    admissible = [one for one in found if one.admissible]
    if admissible:
        return min(admissible, key=lambda one: one.value)
    return max(found, key=lambda one: one.chance, default=None)


def believed_rivals(
    problem: Problem, observations: Observations, surrogate: Surrogate | None, noise: RunNoise, seed: int, most: int
) -> list[Believed]:
    """The configurations that look best at a first glance, `most` of them, whether they are sure of the constraints or not."""
    return list(itertools.islice(_Weighing(problem, observations, surrogate, noise, seed).by_first_glance(), most))


def believed_of(row: int, problem: Problem, observations: Observations, noise: RunNoise, seed: int) -> Believed:
    """What the runs alone, without a model, tell of a configuration with a finished run."""
    return _Weighing(problem, observations, None, noise, seed).believed(row)


@dataclass(frozen=True, eq=False)
class _Weighing:
    """All runs of a study, to be weighed for one configuration after the other."""

    problem: Problem
    observations: Observations
    surrogate: Surrogate | None
    noise: RunNoise
    seed: int

    @cached_property
    def runs(self) -> dict[int, Runs]:
        """The runs of each configuration."""
        return runs_by_row(self.observations)

    @cached_property
    def reported(self) -> dict[str, dict[int, list[float]]]:
        """For each metric with a limit, what the finished runs of each configuration reported."""
        return {
            each.metric: reported_by_row(self.observations, each.metric) for each in self.problem.metric_constraints
        }

    def believed(self, row: int) -> Believed:
        """What is believed of one configuration."""
        problem = self.problem
        repeated = (each for other, each in self.runs.items() if other != row and len(each) > 1 and each.finished)
        teachers = sorted(repeated, key=len, reverse=True)[:_TEACHERS]
        predicted = self._predicted(row)
        belief = self.noise.belief(_latest(self.runs[row]), map(_latest, teachers), _log_seconds(predicted, row))
        chances = [self._chance(constraint, belief, row, predicted) for constraint in problem.constraints]
        demanded = [constraint.confidence or 0.0 for constraint in problem.constraints]
        together = belief.chance(float(problem.ceiling_s[row]))
        for constraint, chance in zip(problem.constraints, chances, strict=True):
            together *= chance if constraint.metric not in ("time", "cost") else 1.0
        admissible = together >= 0.5 and all(chance >= least for chance, least in zip(chances, demanded, strict=True))
        value, typical = (self._value(row, seconds) for seconds in (belief.seconds, belief.typical_s))
        return Believed(row, belief, value, typical, together, admissible, tuple(chances))

    def _predicted(self, row: int) -> Prediction | None:
        """What the model predicts from all configurations but one; None without a model, or with very many runs."""
        others = tuple(seen for seen in self.observations if seen.row != row)
        if self.surrogate is None or not 0 < sum(seen.target is not None for seen in others) <= _MANY:
            return None
        return self.surrogate(State.present(self.problem, others), self.seed)

    def _chance(self, constraint: Constraint, belief: Belief, row: int, predicted: Prediction | None) -> float:
        """P(a run keeps one constraint)."""
        problem = self.problem
        if constraint.metric == "time":
            return belief.chance(constraint.bound)
        if constraint.metric == "cost":
            return belief.chance(float(problem.run_costs.seconds_at(np.asarray(constraint.bound), np.asarray(row))))
        reported = self.reported[constraint.metric]
        if row not in reported:
            return 1.0  # an infinite value that kept the limit: there is no more to be said of it
        repeated = (values for other, values in reported.items() if other != row and len(values) > 1)
        teachers = [values[-_ENOUGH:] for values in sorted(repeated, key=len, reverse=True)[:_TEACHERS]]
        typical = [float(np.mean(values)) for values in reported.values()]
        prior = None
        if predicted is not None and len(reported) > 1:
            metric = predicted.metric(problem.metrics.index(constraint.metric))
            prior = type(metric)(float(np.asarray(metric.mean)[0, row]), float(np.asarray(metric.std)[0, row]))
        return chance_to_keep(constraint, reported[row][-_ENOUGH:], teachers, typical, prior)

    def _value(self, row: int, seconds: float) -> float:
        """The objective of a run of so many seconds; a metric as it was seen on average."""
        if self.problem.kind != "metric":
            return self.problem.value(row, seconds, {})
        return float(np.mean([value for seen, value in feasible_runs(self.problem, self.observations) if seen == row]))

    def by_first_glance(self) -> Iterator[Believed]:
        """Configurations that kept every constraint once, in the order of the mean of their runs."""
        problem = self.problem
        seen: dict[int, float] = {}
        for row, value in feasible_runs(problem, self.observations):
            if row not in seen or problem.kind == "metric":
                seen[row] = value if problem.kind == "metric" else problem.value(row, _typical_s(self.runs[row]), {})
        for row in sorted(seen, key=lambda each: seen[each])[:_MOST]:
            yield self.believed(row)


def with_believed_incumbent(state: State, best: Believed | None) -> State:
    """The state in which the incumbent's value is the one that is believed, and timeouts have the margin that the noise demands.

    Without noise both are as before. While no configuration is sure enough of the constraints, there is no incumbent.
    """
    if best is None:
        return state
    value = best.typical if best.admissible else math.nan
    return replace(state, best=np.array([value]), margin=math.exp(best.belief.spread))


def noise_was_seen(observations: Observations) -> bool:
    """Whether a configuration ran more than once, so that the noise is not only a guess."""
    return any(len(runs) > 1 and runs.finished for runs in runs_by_row(observations).values())


def cautious(problem: Problem, noise: RunNoise, observations: Observations) -> Problem:
    """The problem that a search solves: limits on time and cost that must hold with a confidence are tighter by what the noise demands.

    A configuration keeps t <= L with probability p if its typical time is at most L · exp(−z(p) σ).
    """
    if not any(each.confidence is not None and each.metric in ("time", "cost") for each in problem.constraints):
        return problem
    spread = noise.spread(runs_by_row(observations).values())
    return problem.with_constraints(
        replace(each, bound=each.bound * math.exp(-max(float(ndtri(each.confidence)), 0.0) * spread))
        if each.confidence is not None and each.metric in ("time", "cost")
        else each
        for each in problem.constraints
    )


def answering(surrogate: Surrogate) -> Surrogate:
    """The model for an answer: a slower, more accurate one where the surrogate offers it."""
    return surrogate.accurate() if isinstance(surrogate, SupportsAccuratePrediction) else surrogate


def _latest(runs: Runs) -> Runs:
    """The latest runs: beyond some, more of them tell nothing new."""
    return Runs(runs.finished[-_ENOUGH:], runs.stopped[-_ENOUGH:])


def _typical_s(runs: Runs) -> float:
    """The geometric mean of the runs; a stopped one counts with the time that it ran."""
    return float(np.exp(np.mean(np.log(np.maximum((*runs.finished, *runs.stopped), 1e-9)))))


def _log_seconds(predicted: Prediction | None, row: int) -> tuple[float, float] | None:
    """Mean and std of ln seconds that are predicted of a row; None without a model of them."""
    if predicted is None or predicted.form != "log time":
        return None
    return float(predicted.mean[0, row, 0]), max(float(predicted.std[0, row, 0]), 1e-3)
