"""The answer of a study with its basis: what a run costs, what it saves, how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lynceus.history import End, History
from lynceus.policy import Policy, Recommendation, recommend
from lynceus.policy.belief import belief_of, believed_seconds
from lynceus.problem import Problem
from lynceus.units import format_duration, format_money


@dataclass(frozen=True)
class Verdict:
    """A recommendation, and the numbers that a person asks for next."""

    recommendation: Recommendation
    cost_basis: str
    """The arithmetic of the cost: `$0.38/h × 41m = $0.26 (measured)`."""
    runs: int
    """Finished runs of the recommended configuration."""
    kept: int
    """Of these, how many kept every limit."""
    baseline_usd: float
    """Cost of a run of the baseline configuration; NaN without one, or while nothing is known of it."""
    baseline_measured: bool

    @property
    def saving(self) -> float:
        """Share of the baseline's cost that is saved; NaN without a baseline."""
        return 1.0 - self.recommendation.cost_usd / self.baseline_usd if self.baseline_usd > 0 else math.nan

    @property
    def pays_back_after(self) -> float:
        """Runs after which the saving has paid for the search; infinite when nothing is saved, NaN without a baseline."""
        saved = self.baseline_usd - self.recommendation.cost_usd
        if math.isnan(saved):
            return math.nan
        return self.recommendation.spent_usd / saved if saved > 0 else math.inf


def verdict(
    problem: Problem,
    policy: Policy,
    history: History,
    *,
    baseline: int | None = None,
    seed: int,
    all_runs: History | None = None,
) -> Verdict | None:
    """The answer after a history; nothing when no configuration is known to keep the limits.

    `all_runs` holds every single run where `history` holds the median of repeated ones.
    """
    answer = recommend(problem, policy, history, seed=seed)
    if answer is None:
        return None
    every = history if all_runs is None else all_runs
    answer = replace(
        answer,
        spent_usd=sum(seen.outcome.charged_usd for seen in every),
        trials=len(every),
        stopped_early=sum(seen.outcome.end is End.CAPPED for seen in every),
    )
    own = [seen for seen in every if seen.row == answer.row and seen.outcome.end is End.FINISHED]
    kept = sum(problem.meets_limits(seen.row, seen.outcome.seconds, seen.outcome.metrics) for seen in own)
    usd, measured = _baseline(problem, policy, history, baseline, seed)
    return Verdict(answer, cost_basis(problem, answer), len(own), kept, usd, measured)


def cost_basis(problem: Problem, answer: Recommendation) -> str:
    """The arithmetic behind a cost, with units and whether it was measured."""
    hourly = format_money(float(problem.price[answer.row]) * 3600)
    tariff = problem.tariff
    extra = f" + {format_duration(tariff.boot_s)} boot" if tariff.boot_s else ""
    time = f"({format_duration(answer.seconds)}{extra})" if extra else format_duration(answer.seconds)
    fee = f" + {format_money(tariff.fee_usd)}" if tariff.fee_usd else ""
    rounded = f", billed per {format_duration(tariff.granularity_s)}" if tariff.granularity_s else ""
    how = "measured" if answer.measured else "predicted"
    return f"{hourly}/h × {time}{fee}{_restarts(problem, answer)} = {format_money(answer.cost_usd)} ({how}{rounded})"


def _restarts(problem: Problem, answer: Recommendation) -> str:
    """What interruptions add on average; nothing for machines that stay."""
    if problem.restarts is None or not problem.restarts.rate_per_s[answer.row] > 0:
        return ""
    undisturbed = problem.tariff.charge(answer.seconds, float(problem.price[answer.row]))
    return f" + {format_money(max(answer.cost_usd - undisturbed, 0.0))} for restarts"


def _baseline(problem: Problem, policy: Policy, history: History, row: int | None, seed: int) -> tuple[float, bool]:
    if row is None:
        return math.nan, False
    times = [seen.outcome.seconds for seen in history if seen.row == row and seen.outcome.end is End.FINISHED]
    if times:
        return problem.cost(row, sorted(times)[len(times) // 2]), True
    believed = belief_of(problem, policy, history, seed)
    if believed is None:
        return math.nan, False
    return problem.cost(row, float(believed_seconds(believed[0], problem)[row])), False
