"""Spaces with walls: a search that learns from failures leaves the region in which configurations fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lynceus
from lynceus.policy.next_step import next_step, observe
from lynceus.problem.objective import Constraint
from lynceus.space.column import BoolArray, FloatArray
from lynceus.trial.outcome import End, FailureReason, Observations, Outcome
from lynceus.trial.record import Record
from lynceus.trial.stop import Stopped, StopReason

SPACE = lynceus.Space.build(
    [
        lynceus.Categorical("family", ["c", "m", "r", "x"]),
        lynceus.Ordinal("size", [1, 2, 4, 8]),
        lynceus.Ordinal("nodes", [1, 2, 4, 8]),
        lynceus.Ordinal("batch", [16, 32, 64, 128, 256, 512, 1024, 2048]),
    ],
    price="(0.04 if family == 'c' else 0.05 if family == 'm' else 0.065 if family == 'r' else 0.09) * size * nodes",
)
"""512 configurations; no column says how much memory a machine has."""


def column(name: str) -> FloatArray:
    return np.array([SPACE.point(row)[name] for row in range(len(SPACE))], dtype=float)


MEMORY = np.array([{"c": 2, "m": 4, "r": 8, "x": 16}[str(SPACE.point(row)["family"])] for row in range(len(SPACE))])
MEMORY = MEMORY * column("size")
ROOM = MEMORY / (2 + column("batch") / 50)
WALL: BoolArray = np.sort(ROOM)[304] > ROOM
SECONDS = 20_000 / (column("size") * column("nodes")) ** 0.75 * (1 + 60 / column("batch"))


def search(
    seed: int, reason: FailureReason, trials: int = 60, *, stops: bool = True
) -> tuple[Observations, Stopped, int]:
    """A study on the space with the wall; its observations, why it ended, and how often it paused."""
    deadline_s = float(np.quantile(SECONDS[~WALL], 0.5))
    limit = Constraint("time", deadline_s)
    problem = lynceus.Problem(SPACE, constraints=(limit,), budget=lynceus.Budget(usd=1e4, trials=trials))
    policy = lynceus.preset("lynceus")
    if not stops:
        policy = lynceus.Policy(policy.name, policy.choose, policy.surrogate, policy.timeout, answer=policy.answer)
    seen: Observations = ()
    paused = resumed = 0
    while True:
        record = Record("walls", observations=seen, resumed_at=resumed)
        decision = next_step(problem, policy, lynceus.RetryRules(), record, seed=seed).decision
        if isinstance(decision, Stopped):
            if decision.kind is not StopReason.PAUSED:
                return seen, decision, paused
            paused, resumed = paused + 1, len(seen)
            continue
        row, full_s = decision.row, float(SECONDS[decision.row])
        ran_s = min(600.0 if WALL[row] else full_s, decision.timeout_s)
        charged = problem.billing.charge(ran_s, float(problem.price[row]))
        if WALL[row]:
            outcome = Outcome.failed(reason, "it broke", seconds=ran_s, charged_usd=charged)
        else:
            outcome = Outcome(End.FINISHED if full_s <= decision.timeout_s else End.TIMEOUT, ran_s, charged)
        seen = (*seen, observe(problem, policy, seen, decision, outcome))


@pytest.mark.parametrize("reason", [FailureReason.OOM, FailureReason.JOB])
def test_few_trials_are_lost_behind_a_wall_and_no_study_pauses(reason: FailureReason) -> None:
    lost = after = 0
    for seed in range(3):
        seen, _, pauses = search(seed, reason)
        assert pauses == 0
        lost += sum(bool(WALL[one.row]) for one in seen[5:])
        after += len(seen[5:])
        costs = [SPACE.price_per_second[one.row] * one.outcome.seconds for one in seen if one.outcome.reason is None]
        assert min(costs, default=math.inf) < math.inf
    assert lost <= 0.2 * after, f"{lost} of {after}"


def test_a_long_search_wastes_less_than_a_tenth() -> None:
    seen, _, pauses = search(2, FailureReason.OOM, trials=100, stops=False)
    assert len(seen) == 100
    assert pauses == 0
    assert sum(bool(WALL[one.row]) for one in seen[5:]) <= 9


def test_when_only_likely_failures_are_left_they_still_run() -> None:
    space = lynceus.Space.build([lynceus.Integer("n", 1, 6)], price=1.0)
    problem = lynceus.Problem(space, budget=lynceus.Budget(usd=100.0))
    study = lynceus.Study(problem, lynceus.preset("sweep"), retry_rules=lynceus.RetryRules(max_failures=0))
    tried = []
    while (trial := study.ask()) is not None:
        tried.append(trial.params["n"])
        study.tell(trial, runtime=1.0, state="FAIL", reason="oom")
    assert sorted(tried) == [1, 2, 3, 4, 5, 6]
