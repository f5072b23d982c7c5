"""Repetitions during a search: what they are worth, and when they replace a new configuration."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from lynceus.policy.confirmation import RepeatBest
from lynceus.policy.deciding_repeats import Rival, worth_of_repeating
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.study.study import Study
from lynceus.trial.order import Purpose

REPEATING = replace(preset("lynceus"), confirm=RepeatBest(during_search=True))


def by_simulation(rival: Rival, others: list[Rival], draws: int = 400_000) -> float:
    """Draw a typical time and a run of it, update by Bayes' rule, and choose the answer with the smaller loss."""
    rng = np.random.default_rng(5)
    f = rival.doubt * rng.normal(size=draws)
    run = f + rival.spread * rng.normal(size=draws)
    weight = rival.doubt**2 / (rival.doubt**2 + rival.spread**2)
    mean, std = weight * run, rival.doubt * math.sqrt(1 - weight)
    loss = rival.value * (np.exp(mean) + ndtr((mean - rival.slack) / std))
    rest = min((other.loss for other in others), default=2 * rival.value)
    return min(float(loss.mean()), rest) - float(np.minimum(loss, rest).mean())


@pytest.mark.parametrize("slack", [0.05, 0.4, -0.1])
@pytest.mark.parametrize("other", [0.9, 1.0, 1.2])
def test_the_worth_is_what_simulated_runs_say(slack: float, other: float) -> None:
    rival, others = Rival(1.0, slack, 0.25, 0.3), [Rival(other, math.inf, 0.1, 0.3)]
    assert worth_of_repeating(rival, others) == pytest.approx(by_simulation(rival, others), abs=0.002)


@settings(deadline=None)
@given(st.floats(0.5, 2.0), st.floats(-1.0, 1.0), st.floats(0.0, 0.6), st.floats(0.001, 0.6), st.floats(0.5, 2.0))
def test_information_is_never_worth_less_than_nothing(
    value: float, slack: float, doubt: float, spread: float, other: float
) -> None:
    rival, rest = Rival(value, slack, doubt, spread), Rival(other, math.inf, 0.0, spread)
    worth = worth_of_repeating(rival, [rest])
    assert 0.0 <= worth <= min(rival.loss, rest.loss)
    assert worth_of_repeating(rest, [rival]) == pytest.approx(0.0, abs=1e-9), "what is known needs no run"


def test_a_close_rival_is_worth_more_than_a_distant_one() -> None:
    best = Rival(1.0, math.inf, 0.2, 0.2)
    worth = [worth_of_repeating(Rival(value, math.inf, 0.2, 0.2), [best]) for value in (1.05, 1.3, 2.0)]
    assert worth == sorted(worth, reverse=True)
    assert worth[2] < 0.01 * worth[0]


def noisy_study(policy=REPEATING, *, deterministic: bool = False, rules: RetryRules | None = None, seed: int = 0):
    """A search of 12 sizes whose runs differ by 30 %."""
    space = Space.build([Integer("nodes", 1, 12)], price="nodes")
    problem = Problem(space, constraints=(Constraint("time", 1500.0),), deterministic=deterministic)
    study = Study(problem, policy, seed=seed, retry_rules=rules or RetryRules())
    rng = np.random.default_rng(seed)
    while (trial := study.ask()) is not None and len(study.observations) < 60:
        nodes = trial.params["nodes"]
        seconds = (600 + 3000 / nodes + 20 * nodes) * (1.0 if deterministic else rng.lognormal(0, 0.3))
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    return study


def searched_again(study: Study) -> list[int]:
    """Rows of runs of the search whose configuration had run before."""
    seen: set[int] = set()
    again = []
    for one in study.observations:
        if one.row in seen and one.order.plan.purpose is Purpose.SEARCH and "runs again, because" in one.order.plan.why:
            again.append(one.row)
        seen.add(one.row)
    return again


def test_a_noisy_search_repeats_configurations_before_it_ends() -> None:
    found = [searched_again(noisy_study(seed=seed)) for seed in range(3)]
    assert sum(map(len, found)) > 0
    assert all(rows.count(row) <= RepeatBest().most for rows in found for row in rows)


def test_the_search_is_the_same_where_runs_do_not_differ_or_the_user_decides() -> None:
    plain = preset("lynceus")
    for arguments in ({"deterministic": True}, {"rules": RetryRules(confirm_best=0)}):
        studies = [noisy_study(policy, **arguments) for policy in (plain, REPEATING)]
        rows = [[(seen.row, seen.outcome.seconds) for seen in study.observations] for study in studies]
        assert rows[0] == rows[1]
        assert not searched_again(studies[1])
