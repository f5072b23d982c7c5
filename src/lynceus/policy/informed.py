"""Choosers that start where earlier jobs suggest, not at the cheapest configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.past_match import past_curves
from lynceus.models.state import State
from lynceus.models.transfer import Transfer
from lynceus.policy.planners.simple import FirstOf
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class FromHistory:
    """Where earlier jobs suggest that a feasible run is cheap, until one is known or the past has lost its weight."""

    least: float = 0.4
    """Below this weight of the past there is no proposal."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The open row with the largest expected quality; None as soon as a run was feasible.

        The quality of a row under one hypothesis is P(feasible) times the cheapest cost over its cost; the hypotheses are averaged.
        """
        if not isinstance(surrogate, Transfer) or not np.isnan(state.best[0]) or not state.open.any():
            return None
        weights = surrogate.weights(state)
        if 1.0 - weights.get("", 0.0) < self.least:
            return None
        problem, prediction = state.problem, surrogate(state, seed)
        rate = np.zeros(len(state.open))
        for weight, one in surrogate.mixture(state, seed):
            worth = one.feasible(problem)[0] / np.maximum(one.objective(problem)[0], 1e-12)
            rate += weight * worth / worth.max()
        works = 1.0 if state.success is None else state.success
        rate = np.where(state.open, rate * works, -np.inf)
        chance = prediction.feasible(problem)[0] * works
        row = int(np.argmax(rate))
        return Plan(
            row,
            why=f"suggested by {_most_important(weights)}",
            score=float(rate[row]),
            probability=float(chance[row]),
            usd=float(prediction.charge(state, state.timeouts_s())[0, row]),
            expected=prediction.expected(row),
        )


def _most_important(weights: Mapping[str, float]) -> str:
    """The past job with the largest weight, and how many others count."""
    names = sorted((name for name in weights if name), key=lambda name: -weights[name])
    return f"{names[0]} (weight {weights[names[0]]:.0%})" + (f" and {len(names) - 1} others" if names[1:] else "")


def can_learn(policy: Policy, problem: Problem) -> bool:
    """Whether a policy learns from the history of a problem: the default does, where some of it can be compared and times matter.

    Published systems stay as they were published; policy files may name `transfer` and `from-history` themselves.
    """
    usable = problem.kind != "metric" and bool(past_curves(problem.space, problem.history))
    return usable and policy.name == "lynceus" and not isinstance(policy.surrogate, Transfer)


def informed(policy: Policy) -> Policy:
    """The default policy for a study with a history: it begins where the past suggests, and not with an initial design."""
    if policy.surrogate is None or not isinstance(policy.choose, FirstOf):
        raise ValueError(f"policy {policy.name!r} needs a model and an initial design to learn from history")
    choose = FirstOf((FromHistory(), policy.choose.choosers[-1]))
    return replace(policy, choose=choose, surrogate=Transfer(policy.surrogate))
