"""The best configuration of a study: what a run costs, what it saves, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lynceus.analysis.input_growth import check_again
from lynceus.analysis.limit_chances import LimitChance, limit_chances
from lynceus.analysis.predictions import explaining_policy, hypothetical_policy, predict
from lynceus.analysis.savings import (
    BaselineCost,
    Basis,
    Interval,
    Uses,
    counted_uses,
    known_baseline,
    predicted_use,
    savings,
    use_cost,
)
from lynceus.analysis.shortfall import shortfall_text
from lynceus.analysis.study_context import StudyContext
from lynceus.models.prediction import Prediction
from lynceus.policy.default import MODEL
from lynceus.policy.future_use import future_use
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import Recommendation, answering_policy, recommend
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration, format_money
from lynceus.trial.incumbents import representative
from lynceus.trial.outcome import End, Observations
from lynceus.trial.present_input import present_runs

_ENDS = (0.1, 0.9)
"""The ends of an interval of 80 %, as shares of the probability."""


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
    limits: tuple[LimitChance, ...]
    """Each constraint with the chance that a run meets it, and what runs told of it."""
    reaches_confidence: bool
    """Whether every constraint is met with the confidence that it demands, and all of them more often than not. If not, no configuration
    is known that does: this is the nearest one."""
    shortfall: str | None
    """A sentence that says so: `none reaches 95 %; the nearest is nodes=4 with 48 %`; None where the confidence is reached."""
    baseline: Mapping[str, object] | None
    """The configuration used until now."""
    baseline_usd: float
    """Dollars of a use of the baseline: of a run, or of a unit where the objective is dollars per unit; NaN without one, or while its cost
    is unknown."""
    baseline_interval_usd: Interval | None
    """Where it lies with a probability of 80 %, when it is predicted; then savings and pay-back have intervals, too."""
    baseline_basis: Basis | None
    baseline_measured: bool
    """Whether the cost of the baseline was measured or given; otherwise it is predicted, or unknown."""
    saved_usd: float
    """Dollars that a use saves; NaN without a baseline, like the next numbers."""
    saved_interval_usd: Interval | None
    saving: float
    """Share of the baseline's cost that a use saves."""
    saving_interval: Interval | None
    future: Uses
    """How often the result will be used."""
    future_saving_usd: float
    """Dollars that all future uses save, before the cost of the search."""
    future_saving_interval_usd: Interval | None
    pays_back_after_runs: float
    """Uses after which the saving has paid for the search; infinite when nothing is saved."""
    pays_back_interval_runs: Interval | None
    spent_usd: float
    """What the search has cost."""
    trials: int
    stopped_early: int
    check_again: str | None = None
    """At which size of the input the answer must be checked again; None where the job does not say what runs read."""


def answer(context: StudyContext, problem: Problem | None = None) -> Answer | None:
    """The answer of a study; None when no configuration is known to meet the constraints.

    `problem` replaces the study's own, for example with another deadline.
    """
    study, known = context.study, context.known
    problem = study.problem if problem is None else problem
    policy = explaining_policy(study)
    found = recommend(problem, hypothetical_policy(study), known, seed=study.seed)
    if found is None:
        return None
    here = present_runs(problem, study.observations)
    run = representative(here, found.row)
    finished = [seen for seen in here if seen.row == found.row and seen.outcome.end is End.FINISHED]
    feasible = [problem.meets_constraints(seen.row, seen.outcome.seconds, seen.outcome.metrics) for seen in finished]
    baseline = _baseline_cost(problem, policy, known, study.seed)
    uses = counted_uses(problem, future_use(problem, policy))
    saved = savings(use_cost(problem, found.cost_usd, found.value), baseline, uses, study.spent_usd)
    return Answer(
        study=study.name,
        row=found.row,
        params=found.params,
        command=None if context.command is None else context.command(found.params),
        trial=None if run is None else run.order.number,
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
        limits=limit_chances(problem, found, finished),
        reaches_confidence=found.reaches_confidence,
        shortfall=None if found.reaches_confidence else shortfall_text(problem, found.row, found.probability),
        baseline=None if problem.baseline is None else problem.space.point(problem.baseline.row),
        baseline_usd=baseline.usd,
        baseline_interval_usd=baseline.interval_usd,
        baseline_basis=baseline.basis,
        baseline_measured=baseline.basis in ("measured", "given"),
        future=uses,
        **vars(saved),
        spent_usd=study.spent_usd,
        trials=len(study.observations),
        stopped_early=sum(seen.outcome.end is End.TIMEOUT for seen in study.observations),
        check_again=check_again(problem, study.observations, found.row),
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


def _baseline_cost(problem: Problem, policy: Policy, known: Observations, seed: int) -> BaselineCost:
    """Dollars of a use of the baseline: measured, given, or predicted as a range."""
    found = known_baseline(problem, known)
    if problem.baseline is None or found.basis is not None:
        return found
    # Whatever the policy searches with: the range of this model holds the truth as often as it says, that of bagged trees does not.
    prediction = predict(problem, answering_policy(replace(policy, surrogate=MODEL), known), known, seed)
    return found if prediction is None else _predicted_cost(problem, known, prediction, problem.baseline.row)


def _predicted_cost(problem: Problem, known: Observations, prediction: Prediction, row: int) -> BaselineCost:
    if (use := predicted_use(problem, prediction)) is not None:
        each, usd = use
        values = (each.expectation(), *(each.quantile(share) for share in _ENDS))
        middle, low, high = (usd * float(value[0, row]) for value in values)
    else:
        run = prediction.run()
        middle, low, high = (
            max(float(each[0, row]), 0.0) for each in (run.expectation(), *(run.quantile(share) for share in _ENDS))
        )
        if prediction.form != "cost":
            middle, low, high = (problem.cost(row, seconds) for seconds in (middle, low, high))
    stopped = [seen.outcome.seconds for seen in known if seen.row == row and seen.outcome.end is End.TIMEOUT]
    if stopped and use is None:  # it ran at least so long
        least = problem.cost(row, max(stopped))
        low, high = max(low, least), max(high, least)
    return BaselineCost(min(max(middle, low), high), (low, high), "predicted")
