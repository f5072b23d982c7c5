"""What interruptions cost: the formulas against simulated runs, and their inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.history import End, Observation, Order, Outcome, Plan, Reason, Told
from lynceus.policy import preset
from lynceus.problem import Budget, Limit, Problem, Tariff
from lynceus.restarts import Restarts
from lynceus.situation import Situation
from lynceus.space import Categorical, Integer, Space
from lynceus.study import Study

SPOT, ON_DEMAND = 0.3, 1.0
"""Dollars per second, to make sums easy to see."""


def problem_of(
    rate: float, *, twin: bool, interruptions: int = 2, tariff: Tariff | None = None, limits: tuple[Limit, ...] = ()
) -> Problem:
    space = Space.build(
        [Integer("n", 1, 3), Categorical("use_spot", (True, False))],
        price=f"({SPOT} if use_spot else {ON_DEMAND}) * 3600",
    )
    spot = space.columns["use_spot"].astype(bool)
    twins = np.where(spot & twin, np.arange(len(space)) + 1, -1)
    restarts = Restarts(np.where(spot, rate, 0.0), twins, interruptions)
    return Problem(space, budget=Budget(1e6), tariff=tariff or Tariff(), restarts=restarts, limits=limits)


def simulated(problem: Problem, seconds: float, runs: int, seed: int) -> tuple[float, float]:
    """Mean dollars of runs that are really interrupted, started again and moved, and the standard error of that mean."""
    rng = np.random.default_rng(seed)
    restarts, tariff = problem.restarts, problem.tariff
    assert restarts is not None
    rate, twin = float(restarts.rate_per_s[0]), int(restarts.twin[0])
    paid = np.zeros(runs)
    for run in range(runs):
        interruptions = 0
        while True:
            life = rng.exponential(1 / rate)
            paid[run] += tariff.charge(min(life, seconds), float(problem.price[0]))
            if life >= seconds:
                break
            interruptions += 1
            if twin >= 0 and interruptions == restarts.interruptions:
                paid[run] += tariff.charge(seconds, float(problem.price[twin]))
                break
    return float(paid.mean()), float(paid.std() / math.sqrt(runs))


@pytest.mark.parametrize("interruptions", [1, 2, 4])
@pytest.mark.parametrize("mean_interruptions", [0.05, 0.7, 2.0])
@pytest.mark.parametrize("tariff", [Tariff(), Tariff(boot_s=30.0, fee_usd=2.0)], ids=["seconds", "boots"])
def test_expected_cost_is_that_of_simulated_runs(interruptions: int, mean_interruptions: float, tariff: Tariff) -> None:
    seconds = 100.0
    problem = problem_of(mean_interruptions / seconds, twin=True, interruptions=interruptions, tariff=tariff)
    mean, error = simulated(problem, seconds, 20_000, seed=interruptions)
    assert problem.cost(0, seconds) == pytest.approx(mean, abs=4.5 * error)


@pytest.mark.parametrize("mean_interruptions", [0.05, 0.7, 1.5])
def test_without_a_refuge_a_run_starts_again_until_it_comes_through(mean_interruptions: float) -> None:
    seconds = 100.0
    rate = mean_interruptions / seconds
    problem = problem_of(rate, twin=False)
    assert problem.cost(0, seconds) == pytest.approx(SPOT * math.expm1(mean_interruptions) / rate)
    mean, error = simulated(problem, seconds, 20_000, seed=5)
    assert problem.cost(0, seconds) == pytest.approx(mean, abs=4.5 * error)


def test_billed_units_cost_half_a_unit_more_per_interruption() -> None:
    problem = problem_of(0.01, twin=True, tariff=Tariff(granularity_s=10.0))
    mean, error = simulated(problem, 100.0, 40_000, seed=2)
    assert problem.cost(0, 100.0) == pytest.approx(mean, abs=4.5 * error + 0.01 * mean)


def test_rare_interruptions_cost_next_to_nothing_and_none_nothing() -> None:
    never, rarely = problem_of(0.0, twin=True), problem_of(1e-12, twin=True)
    assert never.cost(0, 100.0) == 100 * SPOT
    assert rarely.cost(0, 100.0) == pytest.approx(100 * SPOT, rel=1e-9)
    assert rarely.cost(1, 100.0) == 100 * ON_DEMAND


@given(st.floats(0.1, 1e5), st.floats(1e-7, 0.05), st.booleans(), st.integers(1, 5))
def test_seconds_at_a_cost_are_the_inverse(seconds: float, rate: float, twin: bool, interruptions: int) -> None:
    problem = problem_of(rate, twin=twin, interruptions=interruptions)
    usd = problem.costs(np.full(6, seconds))
    assert usd == pytest.approx([problem.cost(row, seconds) for row in range(6)])
    if np.isfinite(usd).all() and rate * seconds < 50:
        assert problem.seconds_at(usd) == pytest.approx(np.full(6, seconds), rel=1e-6)
        assert problem.seconds_at(usd[:1], np.array([0])) == pytest.approx([seconds], rel=1e-6)


def test_limits_on_cost_count_the_restarts() -> None:
    limited = problem_of(0.01, twin=True, limits=(Limit.parse("cost <= 60 USD"),))
    ceiling = float(limited.ceiling_s[0])
    assert ceiling < 60 / SPOT
    assert limited.cost(0, ceiling) == pytest.approx(60.0)
    assert limited.ceiling_s[1] == pytest.approx(60 / ON_DEMAND)
    assert limited.meets_limits(0, ceiling * 0.999, {})
    assert not limited.meets_limits(0, ceiling * 1.001, {})


def test_extremes_stay_numbers() -> None:
    problem = problem_of(10.0, twin=True)
    usd = problem.costs(np.array([0.0, 0.0, 1e9, 1e9, np.inf, np.inf]))
    assert usd[0] == usd[1] == 0
    assert math.isfinite(usd[2])
    assert usd[2] > 1e9
    assert np.isinf(usd[4:]).all()
    assert np.isposinf(problem.seconds_at(np.full(6, np.inf))).all()


def test_restarts_are_checked_when_built() -> None:
    with pytest.raises(ValueError, match="no refuge"):
        Restarts(np.array([0.1, 0.1]), np.array([1, -1]))
    with pytest.raises(ValueError, match="finite"):
        Restarts(np.array([math.nan]), np.array([-1]))
    with pytest.raises(ValueError, match="one rate"):
        Restarts(np.array([0.1]), np.array([-1, -1]))
    with pytest.raises(InputError, match="restarts: 1 came for 6"):
        Problem(problem_of(0.1, twin=True).space, restarts=Restarts(np.array([0.1]), np.array([-1])))


def observed(row: int, seconds: float, number: int = 0) -> Observation:
    outcome = Outcome(End.FINISHED, seconds, seconds * SPOT)
    return Observation(Order(number, row, math.inf, 0.0, Plan(row, "")), outcome, Told(seconds))


def test_often_interrupted_machines_lose_against_dearer_ones_that_stay() -> None:
    """Spot costs a third, but runs of 100 s are interrupted three times on average: on demand wins, also as the cap of a run."""
    history = (observed(0, 100.0), observed(3, 100.0, 1))
    calm, wild = problem_of(1e-6, twin=False), problem_of(0.03, twin=False)
    assert Situation.present(calm, history).best[0] == pytest.approx(100 * SPOT, rel=1e-3)
    situation = Situation.present(wild, history)
    assert situation.best[0] == pytest.approx(100 * ON_DEMAND)
    caps = situation.caps_s()[0]
    assert wild.cost(2, float(caps[2])) == pytest.approx(100 * ON_DEMAND), "stopped where it can no longer be cheaper"
    assert caps[5] == pytest.approx(100.0)


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2020", "cherrypick", "bo"])
def test_policies_expect_restarts_when_they_choose(policy: str) -> None:
    """The same measurements: where interruptions are rare the next run is on spot machines, where they are the rule it is not."""
    chosen = []
    for rate in (1e-7, 0.2):
        study = Study(problem_of(rate, twin=False), preset(policy), seed=1)
        while (trial := study.ask()) is not None and len(study.history) < 6:
            study.tell(trial, runtime=100.0 / (1 + 0.01 * int(str(trial.params["n"]))))
        advice = study.recommend()
        assert advice is not None
        chosen.append(study.problem.space.point(advice.row)["use_spot"])
    assert chosen == [True, False]


def test_an_interrupted_configuration_is_tried_again_and_then_moved() -> None:
    from lynceus.conduct import Conduct

    problem = problem_of(0.001, twin=True, interruptions=2)
    spot = problem.space.columns["use_spot"].astype(bool)
    problem = Problem(problem.space, budget=Budget(1e5), restarts=problem.restarts, testable=spot)
    study = Study(problem, preset("sweep"), conduct=Conduct(retries_preempted=1, max_failures=3))
    seen = []
    while (trial := study.ask()) is not None:
        n, on_spot = trial.params["n"], trial.params["use_spot"]
        seen.append((n, on_spot, trial.why.startswith("moved to on-demand machines after 2 interruptions")))
        if on_spot and n in (1, 2):
            study.tell(trial, runtime=7.0, state="FAIL", reason=Reason.PREEMPTED)
        else:
            study.tell(trial, runtime=50.0)
    assert sorted(seen) == sorted(
        [(1, True, False)] * 2 + [(1, False, True)] + [(2, True, False)] * 2 + [(2, False, True)] + [(3, True, False)]
    )
    # Every second is in the ledger at the price of the machines it ran on.
    assert study.spent_usd == pytest.approx(4 * 7.0 * SPOT + 2 * 50.0 * ON_DEMAND + 50.0 * SPOT)
    assert study.best_params == {"n": 3, "use_spot": True}


def test_a_twin_that_fails_is_tried_again_like_any_other() -> None:
    from lynceus.conduct import Conduct

    problem = problem_of(0.001, twin=True, interruptions=1)
    spot = problem.space.columns["use_spot"].astype(bool)
    problem = Problem(problem.space, budget=Budget(1e5), restarts=problem.restarts, testable=spot)
    study = Study(problem, preset("sweep"), conduct=Conduct(retries_preempted=0, retries_infra=1, max_failures=9))
    reasons = []
    while (trial := study.ask()) is not None:
        reason = Reason.PREEMPTED if trial.params["use_spot"] else Reason.INFRA
        reasons.append((trial.params["n"], str(reason)))
        study.tell(trial, runtime=1.0, state="FAIL", reason=reason)
    assert sorted(reasons) == [(n, reason) for n in (1, 2, 3) for reason in ("infra", "infra", "preempted")]
