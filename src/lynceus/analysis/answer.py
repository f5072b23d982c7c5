"""The best configuration of a study: what a run costs, what it saves, and how certain that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lynceus.analysis.overview import measured_cost
from lynceus.analysis.predictions import explaining_policy, predict, predicted_times
from lynceus.analysis.study_context import StudyContext
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import Recommendation, recommend
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration, format_money
from lynceus.trial.outcome import End, Observations


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`lynceus best`. NaN and infinite numbers are null in JSON."""

    study: str
    row: int
    """Position in the table of configurations."""
    params: Mapping[str, object]
    command: str | None
    """The command line that runs it; None for studies without a command."""
    trial: int | None
    """The run that represents it: its only one, or the median of several; None when it was not run."""
    measured: bool
    """Whether it was run to its end and met every constraint; otherwise the numbers below are predictions."""
    value: float
    """The objective in its own unit and sign."""
    runtime_s: float
    """Expected time of a run."""
    cost_usd: float
    """Dollars of a production run: the expectation after all runs where runs differ."""
    cost_interval_usd: tuple[float, float] | None
    """Where the mean cost of a run lies with a probability of 80 %; None where the policy takes runs at their word."""
    noise: float | None
    """By how much runs of one configuration differ: 0.1 means about 10 %; None as above."""
    cost_basis: str
    """How the cost was computed: `$0.38/h × 41m = $0.26 (measured)`."""
    runs: int
    """Finished runs of it."""
    feasible_runs: int
    """Those of them that met every constraint."""
    probability: float
    """Chance that a run meets every constraint, by the model; NaN without a model."""
    baseline: Mapping[str, object] | None
    """The configuration used until now."""
    baseline_usd: float
    """Dollars of a run of the baseline; NaN without one, or while its cost is unknown."""
    baseline_measured: bool
    saving: float
    """Share of the baseline's cost that a run saves; NaN without a baseline."""
    pays_back_after_runs: float
    """Runs after which the saving has paid for the search; infinite when nothing is saved, NaN without a baseline."""
    spent_usd: float
    """What the search has cost."""
    trials: int
    stopped_early: int


def answer(context: StudyContext, problem: Problem | None = None) -> Answer | None:
    """The answer of a study; None when no configuration is known to meet the constraints.

    `problem` replaces the study's own, for example with another deadline.
    """
    study, known = context.study, context.known
    problem = study.problem if problem is None else problem
    policy = explaining_policy(study)
    found = recommend(problem, policy, known, seed=study.seed)
    if found is None:
        return None
    finished = [seen for seen in study.observations if seen.row == found.row and seen.outcome.end is End.FINISHED]
    feasible = [problem.meets_constraints(seen.row, seen.outcome.seconds, seen.outcome.metrics) for seen in finished]
    usd, usd_measured = _baseline_cost(problem, policy, known, context.baseline, study.seed)
    return Answer(
        study=study.name,
        row=found.row,
        params=found.params,
        command=None if context.command is None else context.command(found.params),
        trial=_trial(known, found.row),
        measured=found.measured,
        value=found.value,
        runtime_s=found.seconds,
        cost_usd=found.cost_usd,
        cost_interval_usd=found.cost_interval_usd,
        noise=found.noise,
        cost_basis=cost_basis(problem, found),
        runs=len(finished),
        feasible_runs=sum(feasible),
        probability=found.probability,
        baseline=None if context.baseline is None else problem.space.point(context.baseline),
        baseline_usd=usd,
        baseline_measured=usd_measured,
        saving=1.0 - found.cost_usd / usd if usd > 0 else math.nan,
        pays_back_after_runs=_pays_back_after(study.spent_usd, usd - found.cost_usd),
        spent_usd=study.spent_usd,
        trials=len(study.observations),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in study.observations),
    )


def cost_basis(problem: Problem, found: Recommendation) -> str:
    """How a cost was computed, with units and whether it was measured."""
    hourly = format_money(float(problem.price[found.row]) * 3600)
    billing = problem.billing
    boot = f" + {format_duration(billing.boot_s)} boot" if billing.boot_s else ""
    time = f"({format_duration(found.seconds)}{boot})" if boot else format_duration(found.seconds)
    fee = f" + {format_money(billing.fee_usd)}" if billing.fee_usd else ""
    rounded = f", billed per {format_duration(billing.granularity_s)}" if billing.granularity_s else ""
    how = "measured" if found.measured else "predicted"
    if found.cost_interval_usd is not None:
        low, high = map(format_money, found.cost_interval_usd)
        how = "measured" if low == high else f"expected; with a probability of 80 % from {low} to {high}"
    return f"{hourly}/h × {time}{fee}{_restarts(problem, found)} = {format_money(found.cost_usd)} ({how}{rounded})"


def _restarts(problem: Problem, found: Recommendation) -> str:
    """What preemptions add on average; empty for machines that are not preempted."""
    if problem.preemption is None or not problem.preemption.rate_per_s[found.row] > 0:
        return ""
    undisturbed = problem.billing.charge(found.seconds, float(problem.price[found.row]))
    return f" + {format_money(max(found.cost_usd - undisturbed, 0.0))} for restarts"


def _trial(known: Observations, row: int) -> int | None:
    for seen in known:
        if seen.row == row and seen.outcome.end is End.FINISHED:
            return seen.order.number
    return None


def _pays_back_after(spent_usd: float, saved_usd: float) -> float:
    if math.isnan(saved_usd):
        return math.nan
    return spent_usd / saved_usd if saved_usd > 0 else math.inf


def _baseline_cost(
    problem: Problem, policy: Policy, known: Observations, row: int | None, seed: int
) -> tuple[float, bool]:
    """Dollars of a run of the baseline, and whether they were measured."""
    if row is None:
        return math.nan, False
    measured = measured_cost(problem, known, row)
    if not math.isnan(measured):
        return measured, True
    prediction = predict(problem, policy, known, seed)
    if prediction is None:
        return math.nan, False
    return problem.cost(row, float(predicted_times(prediction, problem)[row])), False
