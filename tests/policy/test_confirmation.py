"""Confirmation: the incumbent runs again before it is recommended, paid from a reserved part of the budget."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.policy.confirmation import (
    LARGEST_SHARE,
    RESERVED_SHARE,
    Held,
    RepeatBest,
    confirmation,
    held_for_confirmation,
)
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import best_configuration
from lynceus.policy.retries import RetryRules
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.study.study import Study
from lynceus.trial.incumbents import incumbent, median_runs
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import End
from lynceus.trial.stop import StopReason
from retry_cases import problem_of, run


def test_the_incumbent_is_confirmed_before_it_is_recommended() -> None:
    """The first incumbent had one fast run by chance; confirmation runs replace it."""
    study = Study(problem_of(), preset("random"), retry_rules=RetryRules(confirm_best=2))
    runs: dict[object, list[float]] = {n: [50.0, 50.0, 50.0] for n in range(1, 7)}
    runs[3] = [20.0, 60.0, 60.0]
    runs[5] = [40.0, 41.0, 42.0]
    while (trial := study.ask()) is not None:
        seconds = runs[trial.params["n"]].pop(0)
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    confirmed = [seen.row + 1 for seen in study.observations if seen.order.plan.purpose is Purpose.CONFIRM]
    assert confirmed == [3, 5]
    answer = study.recommend()
    assert answer is not None
    assert answer.params == {"n": 5}
    assert study.best_params == {"n": 5}
    assert (answer.trials, answer.spent_usd) == (len(study.observations), study.spent_usd)


def test_budget_is_held_for_confirmation() -> None:
    problem, random = problem_of(usd=200.0), preset("random")
    retry_rules = RetryRules(confirm_best=2)
    assert held_for_confirmation(problem, random, (), retry_rules) == Held(RESERVED_SHARE * 200.0)
    one = (run(0, End.FINISHED, 10.0),)
    assert held_for_confirmation(problem, random, one, retry_rules) == Held(2 * 1.5 * 10.0)
    slow = (run(0, End.FINISHED, 90.0),)
    assert held_for_confirmation(problem, random, slow, retry_rules) == Held(LARGEST_SHARE * 200.0)
    again = (*one, run(0, End.FINISHED, purpose=Purpose.CONFIRM))
    assert held_for_confirmation(problem, random, again, retry_rules) == Held(1.5 * 10.0)
    assert held_for_confirmation(problem, random, one, RetryRules()) == Held()


def test_the_policy_holds_a_smaller_part_once_there_is_an_incumbent() -> None:
    problem, policy = replace(problem_of(usd=200.0), budget=Budget(usd=200.0, trials=12)), preset("lynceus")
    assert held_for_confirmation(problem, policy, (), RetryRules()) == Held()
    one = (run(0, End.FINISHED, 10.0),)
    assert held_for_confirmation(problem, policy, one, RetryRules()) == Held(15.0, 1)
    assert held_for_confirmation(problem, policy, one, RetryRules(confirm_best=0)) == Held()
    again = (*one, run(0, End.FINISHED, purpose=Purpose.CONFIRM))
    assert held_for_confirmation(problem, policy, again, RetryRules()) == Held()
    assert held_for_confirmation(replace(problem, deterministic=True), policy, one, RetryRules()) == Held()


@given(st.lists(st.floats(1, 99), min_size=6, max_size=30), st.floats(20, 400), st.integers(0, 3))
def test_confirmation_never_exceeds_the_budget(times: list[float], usd: float, confirm: int) -> None:
    study = Study(problem_of(usd), preset("random"), retry_rules=RetryRules(confirm_best=confirm), seed=len(times))
    remaining = list(times)
    while (trial := study.ask()) is not None:
        assert study.spent_usd + study.reserved_usd <= usd * (1 + 1e-9)
        seconds = remaining.pop(0) if remaining else 50.0
        timed_out = trial.timeout is not None and seconds >= trial.timeout
        if timed_out:
            assert trial.timeout is not None
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    assert study.spent_usd <= usd * (1 + 1e-9)
    assert sum(seen.order.plan.purpose is Purpose.CONFIRM for seen in study.observations) <= confirm


def scaled_problem(**changes: object) -> Problem:
    space = Space.build([Integer("nodes", 1, 12)], price="0.5 + 0.5 * nodes")
    return replace(Problem(space, constraints=(Constraint("time", 900.0),)), **changes)


def searched(problem: Problem, noise: float, seed: int = 0, rules: RetryRules | None = None) -> Study:
    """A study of the default policy whose runs differ by `noise`."""
    study = Study(problem, preset("lynceus"), seed=seed, retry_rules=rules)
    random = np.random.default_rng(seed)
    while (trial := study.ask()) is not None:
        nodes = float(trial.params["nodes"])  # type: ignore[arg-type]
        seconds = (60 + 3000 / nodes + 8 * nodes) * math.exp(noise * random.normal())
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    return study


def repeats(study: Study) -> int:
    return sum(seen.order.plan.purpose is Purpose.CONFIRM for seen in study.observations)


def test_without_noise_one_repetition_settles_it() -> None:
    study = searched(scaled_problem(), noise=0.0)
    assert repeats(study) == 1
    answer = study.recommend()
    assert answer is not None
    assert answer.noise is not None
    assert answer.cost_interval_usd is not None
    measured = min(trial.cost_usd for trial in study.trials if trial.cost_usd is not None)
    assert answer.noise < 0.01
    assert answer.probability > 0.97
    # What is left is that a few runs in a hundred may be slow: two runs do not rule it out.
    low, high = answer.cost_interval_usd
    assert low == pytest.approx(measured, rel=0.01)
    assert measured < answer.cost_usd < 1.05 * measured
    assert high < 1.12 * measured


def test_the_first_repetition_may_cost_more_than_the_share_of_all() -> None:
    """A search of five equal runs pays one more, and not two."""
    searched_runs = tuple(run(row, End.FINISHED, 10.0) for row in range(5))
    again = run(0, End.FINISHED, 10.0, purpose=Purpose.CONFIRM)
    rule, usd = RepeatBest(), again.outcome.charged_usd
    assert rule.share < 1 / 5 < rule.first
    assert rule.affords(searched_runs, usd)
    assert not rule.affords((*searched_runs, again), usd)
    assert not replace(rule, first=0.0).affords(searched_runs, usd)


def test_the_user_s_repetitions_are_of_the_configuration_that_the_study_names() -> None:
    """The incumbent has one lucky run; the default policy believes in another configuration."""
    problem = problem_of(usd=1000.0)
    seen = (
        *(run(1, End.FINISHED, seconds) for seconds in (50.0, 52.0, 51.0)),
        *(run(2, End.FINISHED, seconds) for seconds in (40.0, 90.0, 45.0, 88.0)),
        run(0, End.FINISHED, 49.0),
    )
    lucky = incumbent(problem, seen)
    assert lucky is not None
    assert lucky.row == 0
    rules = RetryRules(confirm_best=2)
    for policy in (preset("lynceus"), preset("random")):
        order = confirmation(problem, policy, seen, rules, seed=0)
        best = best_configuration(problem, policy, median_runs(seen) if policy.name == "random" else seen, seed=0)
        assert order is not None
        assert best is not None
        assert order.row == best.row
        assert (order.row == lucky.row) == (policy.name == "random")


def test_a_table_is_not_repeated_and_speaks_for_itself() -> None:
    study = searched(scaled_problem(deterministic=True), noise=0.0)
    assert repeats(study) == 0
    answer = study.recommend()
    assert answer is not None
    assert (answer.cost_usd, answer.probability) == (study.best_value, 1.0)
    assert answer.cost_interval_usd is None


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_repeated_within_its_share(seed: int) -> None:
    study = searched(scaled_problem(), noise=0.25, seed=seed)
    rule = RepeatBest()
    first = next((i for i, seen in enumerate(study.observations) if seen.order.plan.purpose is Purpose.CONFIRM), None)
    assert first is not None
    charged = [seen.outcome.charged_usd for seen in study.observations]
    last = study.observations[-1].order.plan
    share = rule.share if len(charged) > first + 1 else rule.first
    assert sum(charged[first:-1]) + last.usd <= share * sum(charged[:first]) * (1 + 1e-9)
    assert searched(scaled_problem(), 0.25, seed, RetryRules(confirm_best=0)).observations == study.observations[:first]


@pytest.mark.parametrize("confirm", [None, 0, 1, 3, 20])
@pytest.mark.parametrize("trials", [1, 2, 6, 12])
def test_repetitions_keep_within_the_trials_of_the_budget(confirm: int | None, trials: int) -> None:
    problem = scaled_problem(budget=Budget(trials=trials))
    study = searched(problem, noise=0.2, rules=RetryRules(confirm_best=confirm))
    assert len(study.observations) <= trials
    assert repeats(study) < trials
    if confirm == 3 and trials == 12:
        assert repeats(study) == 3


class Clock:
    """A clock that moves by a second with every look."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.mark.parametrize("name", ["random", "lynceus"])
def test_no_repetition_starts_after_the_wall_clock(name: str) -> None:
    clock = Clock()
    problem = replace(problem_of(), budget=Budget(wall_clock_s=3.0))
    study = Study(problem, preset(name), clock=clock, retry_rules=RetryRules(confirm_best=2))
    while (trial := study.ask()) is not None:
        assert clock.now() < 3.0
        clock.sleep(1.0)
        study.tell(trial, runtime=20.0)
    assert len(study.observations) == 3
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.WALL_CLOCK


def test_a_configuration_that_failed_since_is_not_repeated() -> None:
    study = Study(problem_of(), preset("random"), retry_rules=RetryRules(confirm_best=3))
    while (trial := study.ask()) is not None:
        if study.pending[0].plan.purpose is Purpose.CONFIRM:
            study.tell(trial, runtime=5.0, state="FAIL", reason="job")
        else:
            study.tell(trial, runtime=20.0 + trial.number)
    assert repeats(study) == 1
