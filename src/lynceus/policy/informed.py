"""A search with a history: runs that earlier jobs suggest, among those of a search that knows nothing of them.

What the past may cost is bounded by construction. The other chooser never sees the past; a suggestion must be likely enough to be near the
best; and from the second one on, those that were vain, with what the next is expected to cost, take at most `share` times the money of the
other chooser's runs, and less with every further vain one (`FromHistory`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.models.transfer import Fit, Posterior, past_weights, posteriors, usable_history
from lynceus.policy.interfaces import Chooser
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.trial.order import Expected, Plan, Purpose
from lynceus.trial.outcome import End

_DRAWS = 96
"""Joint draws of each hypothesis."""
_MOST_ROWS = 192
"""Rows that are drawn: the most promising ones of every hypothesis."""
_MOST_RUNS = 60
"""After so many runs the past has had its say."""
_LEAST_SHARE = 0.01
"""Hypotheses below this share of the past's weight are not drawn."""
_NEAR = 1.1
"""A run within 10 % of the best is what the past is asked for."""
_PROGRESS = 0.05
"""A suggestion that improves on the best by a smaller share was vain."""
_OF_A_SINGLE_JOB = 1 / 3
"""The share of `chance` that a single past job must reach."""
_STEEP = 2
"""While no run has kept the limits, a row counts (best / its value)^2: one that is good under several hypotheses beats a gamble."""


@dataclass(frozen=True)
class FromHistory:
    """Where earlier jobs suggest the best configuration; a chooser without the past where they suggest nothing, or had their share."""

    otherwise: Chooser
    """The search without a history."""
    share: float = 1.0
    """Dollars for vain suggestions of the past, the next one included, per dollar of the other chooser's runs. The first is free."""
    patience: int = 2
    """So many suggestions may be vain before every further one halves the share: a past that helps seldom needs a third one."""
    least: float = 0.25
    """Below this weight the past suggests nothing."""
    chance: float = 0.15
    """With n past jobs, a suggestion must be within 10 % of the best with a probability of (1 − 1/n) · chance, the weight of the past
    included, and with a single one of chance/3: the more jobs there are, the more easily one of them fits the runs so far by accident."""

    def __post_init__(self) -> None:
        if not (self.share >= 0 and self.patience >= 0 and 0 <= self.least <= 1 and 0 <= self.chance <= 1):
            raise ValueError(
                f"share {self.share} and patience {self.patience} must not be negative; least {self.least} and chance {self.chance} "
                "must lie in [0, 1]"
            )

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The past's suggestion if it may run, else the other chooser's plan."""
        vain = vain_charges(state)
        left_usd = self.share * 0.5 ** max(len(vain) - self.patience, 0) * other_usd(state) - sum(vain)
        if left_usd >= 0 and len(state.rows) <= _MOST_RUNS:
            plan = suggestion(state, seed, self.least)
            payable = plan is not None and (plan.usd <= left_usd or not _has_suggested(state))
            if plan is not None and payable and self._likely_enough(state, plan):
                return plan
        return self.otherwise(state, surrogate, seed)

    def _likely_enough(self, state: State, plan: Plan) -> bool:
        """Where there is a suggestion, there is at least one past job."""
        return plan.score >= self.chance * max(1.0 - 1.0 / len(usable_history(state.problem)), _OF_A_SINGLE_JOB)


def _has_suggested(state: State) -> bool:
    orders = (*(seen.order for seen in state.observations), *state.pending)
    return any(one.plan.purpose is Purpose.HISTORY for one in orders)


def vain_charges(state: State) -> list[float]:
    """What was charged for each suggestion of the past that did not improve on the best of its time by 5 %, or is reserved for it."""
    best, found = math.inf, []
    for seen in state.observations:
        outcome = seen.outcome
        value = (
            state.problem.answer_value(seen.row, outcome.seconds, outcome.metrics)
            if outcome.end is End.FINISHED
            else None
        )
        enough = best if math.isinf(best) else best - _PROGRESS * abs(best)
        if seen.order.plan.purpose is Purpose.HISTORY and not (value is not None and value < enough):
            found.append(outcome.charged_usd)
        best = min(best, math.inf if value is None else value)
    return found + [one.reserved_usd for one in state.pending if one.plan.purpose is Purpose.HISTORY]


def other_usd(state: State) -> float:
    """What was charged for all other runs."""
    return sum(
        seen.outcome.charged_usd for seen in state.observations if seen.order.plan.purpose is not Purpose.HISTORY
    )


def suggestion(state: State, seed: int, least: float = 0.25) -> Plan | None:
    """The row that is most probably within 10 % of the best, according to the past; None where it has no weight or no hope.

    While no run has kept the limits: the row with the largest E[(best / value)²].
    """
    if not state.open.any() or not usable_history(state.problem):
        return None
    found = posteriors(state)
    weights = past_weights(found)
    weight = 1.0 - weights.get("", 0.0)
    if weight < least:
        return None
    past = [one for one in found if one.job and one.weight >= _LEAST_SHARE * weight]
    rows = _promising(state, past)
    random = generator(seed, "history", state.started)
    total, usd, kept, gain = (np.zeros(len(rows)) for _ in range(4))
    for one in past:
        drawn = one.draws(state.problem.space, rows, random.standard_normal((len(one.fits), _DRAWS, len(rows))))
        value, feasible = _values(state, rows, drawn)
        total += one.weight * _worth(state, value, feasible).mean(axis=0)
        gain += one.weight * _improvement(state, value, feasible).mean(axis=0)
        kept += one.weight * feasible.mean(axis=0)
        usd += one.weight * _charges(state, rows, drawn[0]).mean(axis=0)
    drawn_weight = sum(one.weight for one in past)
    usd /= drawn_weight
    place = int(np.argmax(total))
    if total[place] <= 0.02 * drawn_weight:
        return None
    return Plan(
        int(rows[place]),
        why=f"suggested by {_most_important(weights)}",
        score=float(total[place]),
        gain=float(gain[place]),
        probability=float(kept[place] / drawn_weight),
        usd=float(usd[place]),
        expected=_expected(state, past, int(rows[place])),
        best_rate=float(np.max(gain / np.maximum(usd, np.finfo(float).tiny))),
        purpose=Purpose.HISTORY,
    )


def _promising(state: State, past: list[Posterior]) -> IntArray:
    """Open rows that are drawn: all, or in large spaces those with the best mean predictions of each hypothesis."""
    rows = np.flatnonzero(state.open)
    if len(rows) <= _MOST_ROWS:
        return rows
    each = max(8, _MOST_ROWS // len(past))
    chosen: set[int] = set()
    for one in sorted(past, key=lambda one: -one.weight):
        logs = [None if fit is None else (fit.process.mean + _shift(fit))[rows][None] for fit in one.fits]
        value, feasible = _values(state, rows, logs)
        worst = np.where(feasible, 0.0, 1e6)[0]
        chosen.update(rows[np.argsort(np.log(np.maximum(value[0], 1e-300)) + worst, kind="stable")[:each]].tolist())
        if len(chosen) >= _MOST_ROWS:
            break
    return np.array(sorted(chosen), dtype=np.int64)


def _shift(fit: Fit) -> float:
    """By how much the runs so far lie above a process on average."""
    return float(np.mean(fit.sites - fit.process.mean[fit.rows])) if len(fit.rows) else 0.0


def _worth(state: State, value: FloatArray, feasible: BoolArray) -> FloatArray:
    """What each row is worth in each draw `[s, r]`."""
    value = np.where(feasible, value, np.inf)
    lowest = value.min(axis=1, keepdims=True)
    incumbent = float(state.best[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.isnan(incumbent):
            return np.asarray(np.nan_to_num((lowest / value) ** _STEEP, nan=0.0))
        incumbent = abs(1.0 / incumbent) if state.problem.objective.maximise else incumbent
        lowest = np.minimum(lowest, incumbent)
        near = (value <= _NEAR * lowest) & (value < incumbent) & (incumbent > _NEAR * lowest)
    return np.asarray(near, dtype=float)


def _improvement(state: State, value: FloatArray, feasible: BoolArray) -> FloatArray:
    """By how much each draw improves on the best so far, in the unit of the objective `[s, r]`; NaN before any run has kept the limits."""
    best = abs(float(state.best[0]))
    if np.isnan(best):
        return np.full(value.shape, np.nan)
    better = 1.0 / value - best if state.problem.objective.maximise else best - value
    return np.where(feasible, np.maximum(better, 0.0), 0.0)


def _values(state: State, rows: IntArray, logs: list[FloatArray | None]) -> tuple[FloatArray, BoolArray]:
    """The objective as a positive number, smaller is better, and feasibility, from logarithms of every target `[s, r]`."""
    problem = state.problem
    seconds = np.exp(np.minimum(logs[0] if logs[0] is not None else np.zeros(1), 700.0))
    told = {name: np.exp(one) for name, one in zip(problem.metrics, logs[1:], strict=True) if one is not None}
    feasible = np.asarray(seconds <= problem.ceiling_s[rows])
    for limit in problem.metric_constraints:
        if limit.metric in told:
            held = told[limit.metric]
            feasible &= held >= limit.bound if limit.at_least else held <= limit.bound
    if problem.kind == "cost":
        value = problem.run_costs.of(seconds, rows)
    elif problem.kind == "time":
        value = seconds
    elif problem.goal.formula is None:
        value = told[problem.objective.metric]
    else:
        quantities = {"time": seconds, "cost": problem.run_costs.of(seconds, rows), **told}
        value = np.broadcast_to(problem.goal.formula.values(quantities, rows), seconds.shape)
    value = np.where(np.isfinite(value) & (value > 0), value, np.inf)
    return np.asarray(1.0 / value if problem.objective.maximise else value), feasible


def _charges(state: State, rows: IntArray, logs: FloatArray | None) -> FloatArray:
    """Dollars of a run until its timeout `[s, r]`."""
    problem = state.problem
    seconds = np.exp(np.minimum(logs if logs is not None else 0.0, 700.0))
    return problem.billing.charges(
        np.minimum(seconds, np.maximum(state.timeouts_s()[0, rows], 0.0)), problem.price[rows]
    )


def _expected(state: State, past: list[Posterior], row: int) -> Expected | None:
    """Moments of the past's prediction at one row, metrics by their logarithm; None where a metric is not predicted."""
    space, at = state.problem.space, np.array([row])
    total = sum(one.weight for one in past)
    means, stds = [], []
    for target in range(state.targets):
        fits = [(one.weight / total, fit) for one in past if (fit := one.fits[target]) is not None]
        if len(fits) < len(past):
            return None
        moments = [(weight, *(float(part.ravel()[0]) for part in fit.moments(space, at))) for weight, fit in fits]
        mean = sum(weight * one for weight, one, _ in moments)
        means.append(mean)
        stds.append(math.sqrt(sum(weight * (variance + (one - mean) ** 2) for weight, one, variance in moments)))
    return Expected("log time", tuple(means), tuple(stds), (True,) * (state.targets - 1))


def _most_important(weights: Mapping[str, float]) -> str:
    """The past job with the largest weight, and how many others count."""
    names = sorted((name for name in weights if name), key=lambda name: -weights[name])
    others = f" and {len(names) - 1} {'others' if names[2:] else 'other'}" if names[1:] else ""
    return f"{names[0]} (weight {weights[names[0]]:.0%}){others}"


def can_learn(policy: Policy, problem: Problem) -> bool:
    """Whether a policy learns from the history of a problem: the default does, where some of it counts.

    Published systems stay as they were published; policy files may name `from-history` themselves.
    """
    plain = policy.name == "lynceus" and not isinstance(policy.choose, FromHistory)
    return plain and problem.goal.known is None and bool(usable_history(problem))


def informed(policy: Policy) -> Policy:
    """The default policy for a study with a history."""
    return replace(policy, choose=FromHistory(policy.choose))
