"""Replays: they read only rows that were paid for, and are the same with any number of workers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executors.table import Measurements
from lynceus.policy.planners.simple import ByPrice, Within
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.censoring import LinearProgress
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.replay.campaign import Campaign, run_campaign, traced
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import fitted, replay
from lynceus.replay.score import optimum
from lynceus.space.table import Space
from lynceus_lab.worlds import Noise

POLICIES = ["sweep", "random", "random+timeouts", "lynceus-2020"]


def made(seed: int, budget: float = math.inf, billing: Billing | None = None, rows: int = 24) -> ReplayJob:
    """A job with times and prices drawn at random; the deadline is the median time."""
    rng = np.random.default_rng(seed)
    seconds = rng.lognormal(5, 1, rows)
    vm, nodes = np.divmod(np.arange(rows), 8)
    table = {"vm": [f"vm{i}" for i in vm], "nodes": (nodes + 1).tolist(), "usd": rng.uniform(0.1, 5, rows).tolist()}
    space = Space.from_table(table, ["vm", "nodes"], price="usd")
    problem = Problem(
        space,
        constraints=(Constraint("time", float(np.median(seconds))),),
        budget=Budget(budget),
        billing=billing or Billing(),
    )
    measured = Measurements(seconds)
    best = optimum(problem, measured)
    assert best is not None
    return ReplayJob("made", problem, measured, best)


def facts(done):
    """A replay without its timings."""
    return [dataclasses.replace(step, decision_s=0.0) for step in done.steps]


def policy(name: str) -> Policy:
    return preset(name, lookahead=1) if name == "lynceus-2020" else preset(name)


@pytest.mark.parametrize("name", POLICIES)
def test_a_replay_finds_the_optimum_and_counts_its_money(name):
    job = made(1)
    done = replay(job, policy(name), seed=3)
    assert done.steps[-1].cno == 1.0
    assert all(step.cno > 1.0 for step in done.steps[:-1])
    assert done.steps[-1].spent_usd == pytest.approx(sum(step.charged_usd for step in done.steps))
    assert done.cno_at_stop is None
    assert len({tuple(step.params.items()) for step in done.steps}) == len(done.steps)


@pytest.mark.parametrize("name", POLICIES)
def test_a_replay_to_the_end_starts_the_same_and_scores_the_recommendation(name):
    job = made(2)
    short, whole = replay(job, policy(name), 5), replay(job, policy(name), 5, until="end")
    assert facts(whole)[: len(short.steps)] == facts(short)
    assert whole.cno_at_stop == 1.0
    assert whole.reason


class Watched(np.ndarray):
    """An array that records which rows were read."""

    read: set[int]

    def __getitem__(self, key):
        self.read.add(int(key))
        return np.asarray(self)[key]


@pytest.mark.parametrize("name", POLICIES)
def test_only_rows_that_were_launched_are_read(name):
    job = made(3)
    watched = job.measurements.seconds.copy().view(Watched)
    watched.read = set()
    done = replay(dataclasses.replace(job, measurements=Measurements(watched)), policy(name), 1)
    assert watched.read == {job.problem.space.row(step.params) for step in done.steps}


@pytest.mark.parametrize("name", POLICIES)
def test_values_of_rows_that_were_not_run_change_nothing(name):
    job = made(4)
    done = replay(job, policy(name), 2)
    run = [job.problem.space.row(step.params) for step in done.steps]
    poisoned = np.full(len(job.problem.space), np.nan)
    poisoned[run] = job.measurements.seconds[run]
    again = replay(dataclasses.replace(job, measurements=Measurements(poisoned)), policy(name), 2)
    assert facts(again) == facts(done)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 99),
    budget=st.floats(0.3, 20.0),
    billing=st.sampled_from([Billing(), Billing(60, 60, 30), Billing(granularity_s=3600), Billing(fee_usd=0.05)]),
    name=st.sampled_from(["sweep", "random", "random+timeouts"]),
    parallel=st.integers(1, 3),
)
def test_the_budget_is_never_exceeded(seed, budget, billing, name, parallel):
    job = made(seed, budget, billing)
    done = replay(job, preset(name), seed, until="end", parallel=parallel)
    if done.steps:
        assert done.steps[-1].spent_usd <= budget * (1 + 1e-9)
    reached = [step.cno for step in done.steps]
    assert reached == sorted(reached, reverse=True)


def test_one_and_two_workers_give_the_same_trace():
    campaign = Campaign(made(5), (preset("random"), preset("sweep")), seeds=3, first_seed=7)
    seen: list[int] = []
    alone = run_campaign(campaign)
    together = run_campaign(campaign, workers=2, progress=lambda done: seen.append(done.seed))
    strip = [{**record, "decision_s": 0} for record in traced(campaign, alone)]
    assert strip == [{**record, "decision_s": 0} for record in traced(campaign, together)]
    assert [(done.policy, done.seed) for done in together] == [(p, s) for p in ("random", "sweep") for s in (7, 8, 9)]
    assert sorted(seen) == [7, 7, 8, 8, 9, 9]


def test_parallel_trials_stay_within_the_budget():
    done = replay(made(6, budget=3.0), preset("random"), 0, parallel=4, until="end")
    assert done.steps[-1].spent_usd <= 3.0 * (1 + 1e-9)


def test_an_input_error_in_a_worker_is_raised_in_the_parent():
    outside = Policy("outside", Within("nods > 2", ByPrice()))
    with pytest.raises(InputError, match="nods"):
        run_campaign(Campaign(made(7), (outside,), seeds=2), workers=2)


@pytest.mark.parametrize(
    ("given", "word"), [({"seeds": 0}, "seeds: got 0"), ({"seeds": 1, "parallel": 0}, "parallel: got 0")]
)
def test_invalid_campaigns(given, word):
    with pytest.raises(InputError, match=word):
        Campaign(made(8), (preset("sweep"),), **given)
    with pytest.raises(InputError, match="given twice"):
        Campaign(made(8), (preset("sweep"), preset("sweep")), 1)
    with pytest.raises(InputError, match="workers: got 0"):
        run_campaign(Campaign(made(8), (preset("sweep"),), 1), workers=0)


def test_extrapolated_progress_aims_at_the_target_of_the_job(toy):
    aimed = fitted(preset("lynceus-2018"), dataclasses.replace(toy, target=0.7))
    assert aimed.timeout.censored == LinearProgress(target=0.7)
    own = dataclasses.replace(
        preset("lynceus-2018"), timeout=dataclasses.replace(TIMEOUTS["linear"], censored=LinearProgress(target=0.5))
    )
    assert fitted(own, toy) == own
    assert fitted(preset("sweep"), toy) == preset("sweep")


def test_a_table_is_not_repeated_but_a_noisy_world_is():
    job = made(2)
    calm = replay(job, preset("lynceus"), seed=3, until="end")
    assert len({step.row for step in calm.steps}) == len(calm.steps)
    noisy = replay(job, preset("lynceus"), seed=3, until="end", world=Noise(0.1))
    assert len({step.row for step in noisy.steps}) < len(noisy.steps)
