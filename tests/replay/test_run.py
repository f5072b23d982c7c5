"""Replays: honest, blind to what was not paid for, and the same on any number of workers."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.choose import ByPrice, Within
from lynceus.errors import InputError
from lynceus.executor import Measurements
from lynceus.policy import TIMEOUTS, Policy, preset
from lynceus.problem import Budget, Limit, Problem, Tariff
from lynceus.replay import Campaign, ReplayJob, optimum, replay, run_campaign
from lynceus.replay.campaign import traced
from lynceus.replay.run import fitted
from lynceus.space import Space
from lynceus.timeout import LinearProgress

POLICIES = ["sweep", "random", "random+timeouts", "lynceus-2020"]


def made(seed: int, budget: float = math.inf, tariff: Tariff | None = None, rows: int = 24) -> ReplayJob:
    """A job with times and prices drawn at random; the deadline is the median time."""
    rng = np.random.default_rng(seed)
    seconds = rng.lognormal(5, 1, rows)
    vm, nodes = np.divmod(np.arange(rows), 8)
    table = {"vm": [f"vm{i}" for i in vm], "nodes": (nodes + 1).tolist(), "usd": rng.uniform(0.1, 5, rows).tolist()}
    space = Space.from_table(table, ["vm", "nodes"], price="usd")
    problem = Problem(
        space, limits=(Limit("time", float(np.median(seconds))),), budget=Budget(budget), tariff=tariff or Tariff()
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
def test_to_the_end_the_beginning_is_the_same_and_the_policy_is_asked_for_its_answer(name):
    job = made(2)
    short, whole = replay(job, policy(name), 5), replay(job, policy(name), 5, until="end")
    assert facts(whole)[: len(short.steps)] == facts(short)
    assert whole.cno_at_stop == 1.0
    assert whole.reason


class Watched(np.ndarray):
    """An array that notes which single rows were read."""

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
    tariff=st.sampled_from([Tariff(), Tariff(60, 60, 30), Tariff(granularity_s=3600), Tariff(fee_usd=0.05)]),
    name=st.sampled_from(["sweep", "random", "random+timeouts"]),
    parallel=st.integers(1, 3),
)
def test_the_budget_is_never_overdrawn(seed, budget, tariff, name, parallel):
    job = made(seed, budget, tariff)
    done = replay(job, preset(name), seed, until="end", parallel=parallel)
    if done.steps:
        assert done.steps[-1].spent_usd <= budget * (1 + 1e-9)
    reached = [step.cno for step in done.steps]
    assert reached == sorted(reached, reverse=True)


def test_one_and_two_workers_give_the_same_trace_ordered_by_policy_and_seed():
    campaign = Campaign(made(5), (preset("random"), preset("sweep")), seeds=3, first_seed=7)
    seen: list[int] = []
    alone = run_campaign(campaign)
    together = run_campaign(campaign, workers=2, progress=lambda done: seen.append(done.seed))
    strip = [{**record, "decision_s": 0} for record in traced(campaign, alone)]
    assert strip == [{**record, "decision_s": 0} for record in traced(campaign, together)]
    assert [(done.policy, done.seed) for done in together] == [(p, s) for p in ("random", "sweep") for s in (7, 8, 9)]
    assert sorted(seen) == [7, 7, 8, 8, 9, 9]


def test_trials_under_way_at_the_same_time_cost_no_more_than_the_budget_and_are_all_counted():
    done = replay(made(6, budget=3.0), preset("random"), 0, parallel=4, until="end")
    assert done.steps[-1].spent_usd <= 3.0 * (1 + 1e-9)


def test_a_mistake_in_a_worker_arrives_as_the_same_mistake():
    outside = Policy("outside", Within("nods > 2", ByPrice()))
    with pytest.raises(InputError, match="nods"):
        run_campaign(Campaign(made(7), (outside,), seeds=2), workers=2)


@pytest.mark.parametrize(("given", "word"), [({"seeds": 0}, "seeds: 0"), ({"seeds": 1, "parallel": 0}, "parallel: 0")])
def test_campaigns_that_cannot_be(given, word):
    with pytest.raises(InputError, match=word):
        Campaign(made(8), (preset("sweep"),), **given)
    with pytest.raises(InputError, match="given twice"):
        Campaign(made(8), (preset("sweep"), preset("sweep")), 1)
    with pytest.raises(InputError, match="workers: 0"):
        run_campaign(Campaign(made(8), (preset("sweep"),), 1), workers=0)


def test_a_fill_that_extrapolates_aims_at_the_target_of_the_job(toy):
    aimed = fitted(preset("lynceus-2018"), dataclasses.replace(toy, target=0.7))
    assert aimed.timeout.fill == LinearProgress(target=0.7)
    own = dataclasses.replace(
        preset("lynceus-2018"), timeout=dataclasses.replace(TIMEOUTS["linear"], fill=LinearProgress(target=0.5))
    )
    assert fitted(own, toy) == own
    assert fitted(preset("sweep"), toy) == preset("sweep")
