"""A search after the input of the job has changed: earlier runs are paid for, and what they tell is history."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lynceus.policy.informed import can_learn, informed
from lynceus.policy.orders import ROUNDING
from lynceus.policy.policy import Policy
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observation, Observations
from lynceus.trial.past_job import past_job
from lynceus.trial.present_input import present_runs


@dataclass(frozen=True, eq=False)
class SearchHere:
    """What a search on the present input rests on."""

    problem: Problem
    """With the runs on other inputs as history, and the money that is left after them."""
    policy: Policy
    observations: Observations
    """Those on the present input."""
    resumed_at: int
    """How many of them had settled when the study was last resumed."""
    broke: bool = False
    """Whether runs on other inputs have used up the budget."""


def search_here(problem: Problem, policy: Policy, observations: Observations, resumed_at: int) -> SearchHere:
    """The search on the present input; itself where no run read another one."""
    here = present_runs(problem, observations)
    if here is observations:
        return SearchHere(problem, policy, observations, resumed_at)
    kept = {seen.order.number for seen in here}
    others = tuple(seen for seen in observations if seen.order.number not in kept)
    total = problem.budget.usd
    left = total - sum(seen.outcome.charged_usd for seen in others)
    left = 0.0 if math.isfinite(total) and left <= ROUNDING * total else left
    problem = replace(problem, history=(*problem.history, *_histories(problem, others)))
    return SearchHere(
        problem if left <= 0 else problem.with_budget(left),
        informed(policy) if can_learn(policy, problem) else policy,
        here,
        sum(seen.order.number in kept for seen in observations[:resumed_at]),
        broke=left == 0,
    )


def _histories(problem: Problem, others: Observations) -> list[PastJob]:
    """The runs on other inputs, one past job for each of them."""
    groups: dict[JobInput, list[Observation]] = {}
    for seen in others:
        if seen.order.input is not None and seen.target is not None and seen.outcome.seconds > 0:
            groups.setdefault(seen.order.input, []).append(seen)
    return [past_job(f"this job on {given}", problem, tuple(runs)) for given, runs in groups.items()]
