"""What preemptions cost: the formulas against simulated runs, and their inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.presets import preset
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.preemption import Preemption
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.study import Study
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget

SPOT, ON_DEMAND = 0.3, 1.0
"""Dollars per second."""


def problem_of(
    rate: float,
    *,
    twin: bool,
    interruptions: int = 2,
    billing: Billing | None = None,
    constraints: tuple[Constraint, ...] = (),
) -> Problem:
    space = Space.build(
        [Integer("n", 1, 3), Categorical("use_spot", (True, False))],
        price=f"({SPOT} if use_spot else {ON_DEMAND}) * 3600",
    )
    spot = space.columns["use_spot"].astype(bool)
    twins = np.where(spot & twin, np.arange(len(space)) + 1, -1)
    preemption = Preemption(np.where(spot, rate, 0.0), twins, interruptions)
    return Problem(
        space, budget=Budget(1e6), billing=billing or Billing(), preemption=preemption, constraints=constraints
    )


def simulated(problem: Problem, seconds: float, runs: int, seed: int) -> tuple[float, float]:
    """Mean dollars of simulated runs that are interrupted, restarted and moved, and the standard error of that mean."""
    rng = np.random.default_rng(seed)
    preemption, billing = problem.preemption, problem.billing
    assert preemption is not None
    rate, twin = float(preemption.rate_per_s[0]), int(preemption.twin[0])
    paid = np.zeros(runs)
    for run in range(runs):
        interruptions = 0
        while True:
            life = rng.exponential(1 / rate)
            paid[run] += billing.charge(min(life, seconds), float(problem.price[0]))
            if life >= seconds:
                break
            interruptions += 1
            if twin >= 0 and interruptions == preemption.interruptions:
                paid[run] += billing.charge(seconds, float(problem.price[twin]))
                break
    return float(paid.mean()), float(paid.std() / math.sqrt(runs))


@pytest.mark.parametrize("interruptions", [1, 2, 4])
@pytest.mark.parametrize("mean_interruptions", [0.05, 0.7, 2.0])
@pytest.mark.parametrize("billing", [Billing(), Billing(boot_s=30.0, fee_usd=2.0)], ids=["seconds", "boots"])
def test_expected_cost_is_that_of_simulated_runs(
    interruptions: int, mean_interruptions: float, billing: Billing
) -> None:
    seconds = 100.0
    problem = problem_of(mean_interruptions / seconds, twin=True, interruptions=interruptions, billing=billing)
    mean, error = simulated(problem, seconds, 20_000, seed=interruptions)
    assert problem.cost(0, seconds) == pytest.approx(mean, abs=4.5 * error)


@pytest.mark.parametrize("mean_interruptions", [0.05, 0.7, 1.5])
def test_without_a_twin_a_run_is_repeated_until_it_completes(mean_interruptions: float) -> None:
    seconds = 100.0
    rate = mean_interruptions / seconds
    problem = problem_of(rate, twin=False)
    assert problem.cost(0, seconds) == pytest.approx(SPOT * math.expm1(mean_interruptions) / rate)
    mean, error = simulated(problem, seconds, 20_000, seed=5)
    assert problem.cost(0, seconds) == pytest.approx(mean, abs=4.5 * error)


def test_billed_units_cost_half_a_unit_more_per_interruption() -> None:
    problem = problem_of(0.01, twin=True, billing=Billing(granularity_s=10.0))
    mean, error = simulated(problem, 100.0, 40_000, seed=2)
    assert problem.cost(0, 100.0) == pytest.approx(mean, abs=4.5 * error + 0.01 * mean)


def test_rare_interruptions_hardly_change_the_cost() -> None:
    never, rarely = problem_of(0.0, twin=True), problem_of(1e-12, twin=True)
    assert never.cost(0, 100.0) == 100 * SPOT
    assert rarely.cost(0, 100.0) == pytest.approx(100 * SPOT, rel=1e-9)
    assert rarely.cost(1, 100.0) == 100 * ON_DEMAND


@given(st.floats(0.1, 1e5), st.floats(1e-7, 0.05), st.booleans(), st.integers(1, 5))
def test_seconds_at_a_cost_are_the_inverse(seconds: float, rate: float, twin: bool, interruptions: int) -> None:
    problem = problem_of(rate, twin=twin, interruptions=interruptions)
    usd = problem.run_costs.of(np.full(6, seconds))
    assert usd == pytest.approx([problem.cost(row, seconds) for row in range(6)])
    if np.isfinite(usd).all() and rate * seconds < 50:
        assert problem.run_costs.seconds_at(usd) == pytest.approx(np.full(6, seconds), rel=1e-6)
        assert problem.run_costs.seconds_at(usd[:1], np.array([0])) == pytest.approx([seconds], rel=1e-6)


def test_constraints_on_cost_include_preemptions() -> None:
    limited = problem_of(0.01, twin=True, constraints=(Constraint.parse("cost <= 60 USD"),))
    ceiling = float(limited.ceiling_s[0])
    assert ceiling < 60 / SPOT
    assert limited.cost(0, ceiling) == pytest.approx(60.0)
    assert limited.ceiling_s[1] == pytest.approx(60 / ON_DEMAND)
    assert limited.meets_constraints(0, ceiling * 0.999, {})
    assert not limited.meets_constraints(0, ceiling * 1.001, {})


def test_extreme_times_give_valid_costs() -> None:
    problem = problem_of(10.0, twin=True)
    usd = problem.run_costs.of(np.array([0.0, 0.0, 1e9, 1e9, np.inf, np.inf]))
    assert usd[0] == usd[1] == 0
    assert math.isfinite(usd[2])
    assert usd[2] > 1e9
    assert np.isinf(usd[4:]).all()
    assert np.isposinf(problem.run_costs.seconds_at(np.full(6, np.inf))).all()


def test_invalid_preemption_is_an_error() -> None:
    with pytest.raises(ValueError, match="interruption rate of 0"):
        Preemption(np.array([0.1, 0.1]), np.array([1, -1]))
    with pytest.raises(ValueError, match="finite"):
        Preemption(np.array([math.nan]), np.array([-1]))
    with pytest.raises(ValueError, match="one rate"):
        Preemption(np.array([0.1]), np.array([-1, -1]))
    with pytest.raises(InputError, match="preemption: got 1 rates for 6 configurations"):
        Problem(problem_of(0.1, twin=True).space, preemption=Preemption(np.array([0.1]), np.array([-1])))


def observed(row: int, seconds: float, number: int = 0) -> Observation:
    outcome = Outcome(End.FINISHED, seconds, seconds * SPOT)
    return Observation(Order(number, row, math.inf, 0.0, Plan(row, "")), outcome, TrainingTarget(seconds))


def test_often_interrupted_machines_lose_against_more_expensive_on_demand_ones() -> None:
    """Spot costs a third, but runs of 100 s are interrupted three times on average: on demand is cheaper, and sets the timeout of a run."""
    observations = (observed(0, 100.0), observed(3, 100.0, 1))
    calm, frequent = problem_of(1e-6, twin=False), problem_of(0.03, twin=False)
    assert State.present(calm, observations).best[0] == pytest.approx(100 * SPOT, rel=1e-3)
    state = State.present(frequent, observations)
    assert state.best[0] == pytest.approx(100 * ON_DEMAND)
    timeouts_s = state.timeouts_s()[0]
    assert frequent.cost(2, float(timeouts_s[2])) == pytest.approx(100 * ON_DEMAND), (
        "stopped where it can no longer be cheaper"
    )
    assert timeouts_s[5] == pytest.approx(100.0)


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2020", "cherrypick", "bo"])
def test_policies_include_preemptions_in_the_cost(policy: str) -> None:
    """With the same measurements: rare interruptions lead to spot machines, frequent ones to on-demand machines."""
    chosen = []
    for rate in (1e-7, 0.2):
        study = Study(problem_of(rate, twin=False), preset(policy), seed=1)
        while (trial := study.ask()) is not None and len(study.observations) < 6:
            needed = 100.0 / (1 + 0.01 * int(str(trial.params["n"])))
            stopped = trial.timeout is not None and needed > trial.timeout
            study.tell(trial, runtime=trial.timeout if stopped else needed, state="TIMEOUT" if stopped else "COMPLETE")
        advice = study.recommend()
        assert advice is not None
        chosen.append(study.problem.space.point(advice.row)["use_spot"])
    assert chosen == [True, False]


def test_an_interrupted_configuration_is_tried_again_and_then_moved() -> None:
    from lynceus.policy.retries import RetryRules

    problem = problem_of(0.001, twin=True, interruptions=2)
    spot = problem.space.columns["use_spot"].astype(bool)
    problem = Problem(problem.space, budget=Budget(1e5), preemption=problem.preemption, testable=spot)
    study = Study(problem, preset("sweep"), retry_rules=RetryRules(retries_preempted=1, max_failures=3))
    seen = []
    while (trial := study.ask()) is not None:
        n, on_spot = trial.params["n"], trial.params["use_spot"]
        seen.append((n, on_spot, trial.why.startswith("moved to on-demand machines after 2 interruptions")))
        if on_spot and n in (1, 2):
            study.tell(trial, runtime=7.0, state="FAIL", reason=FailureReason.PREEMPTED)
        else:
            study.tell(trial, runtime=50.0)
    assert sorted(seen) == sorted(
        [(1, True, False)] * 2 + [(1, False, True)] + [(2, True, False)] * 2 + [(2, False, True)] + [(3, True, False)]
    )
    # Every second is charged at the price of the machines it ran on.
    assert study.spent_usd == pytest.approx(4 * 7.0 * SPOT + 2 * 50.0 * ON_DEMAND + 50.0 * SPOT)
    assert study.best_params == {"n": 3, "use_spot": True}


def test_a_twin_that_fails_is_tried_again_like_any_other() -> None:
    from lynceus.policy.retries import RetryRules

    problem = problem_of(0.001, twin=True, interruptions=1)
    spot = problem.space.columns["use_spot"].astype(bool)
    problem = Problem(problem.space, budget=Budget(1e5), preemption=problem.preemption, testable=spot)
    study = Study(
        problem, preset("sweep"), retry_rules=RetryRules(retries_preempted=0, retries_infra=1, max_failures=9)
    )
    reasons = []
    while (trial := study.ask()) is not None:
        reason = FailureReason.PREEMPTED if trial.params["use_spot"] else FailureReason.INFRA
        reasons.append((trial.params["n"], str(reason)))
        study.tell(trial, runtime=1.0, state="FAIL", reason=reason)
    assert sorted(reasons) == [(n, reason) for n in (1, 2, 3) for reason in ("infra", "infra", "preempted")]
