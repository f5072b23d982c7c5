"""Stopping rules: when they stop, when they continue, and their reasons."""

import math
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lynceus.models.state import State
from lynceus.policy.interfaces import Stop
from lynceus.policy.stopping import (
    AllOf,
    AnyOf,
    FutureUses,
    GittinsStop,
    Iterations,
    MaxTrials,
    Never,
    ProteusStop,
    SmallImprovement,
    TotalBudget,
    usd_of_improvement,
)
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.testing.job import small_job
from lynceus.trial.order import Plan, Purpose
from lynceus.trial.outcome import Observation

JOB = small_job("runtime <= 30m")
RUNS = JOB.finished(JOB.order_of_runs[:8])
HERE = State.present(JOB.problem, RUNS)
BEST = float(HERE.best[0])
EMPTY = State.present(JOB.problem, ())


def plan(gain: float = math.nan, rate: float = math.nan) -> Plan:
    return Plan(0, why="tested", best_gain=gain, best_rate=rate)


def planned(runs: tuple[Observation, ...], **gains: list[float]) -> tuple[Observation, ...]:
    """The same runs, planned with these largest improvements."""
    names = {"gain": "best_gain", "rate": "best_rate"}
    for name, values in gains.items():
        runs = tuple(
            replace(seen, order=replace(seen.order, plan=replace(seen.order.plan, **{names[name]: value})))
            for seen, value in zip(runs, values, strict=True)
        )
    return runs


@dataclass(frozen=True)
class Says:
    reason: str | None

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        return self.reason


HOPELESS = small_job("accuracy >= 0.99")


def hopeless(count: int, chances: list[float]) -> str | None:
    """What the rule says after `count` runs that missed the limit, the last of them planned with these chances per dollar."""
    runs = HOPELESS.finished(HOPELESS.order_of_runs[:count])
    *earlier, now = [Plan(0, why="tested", chance_rate=chance) for chance in chances]
    for place, one in enumerate(reversed(earlier), 1):
        seen = runs[-place]
        runs = (*runs[:-place], replace(seen, order=replace(seen.order, plan=one)), *runs[len(runs) - place + 1 :])
    rule = GittinsStop(40.0, patience=3, gives_up=True)
    return rule(State.present(HOPELESS.problem, runs), now)


def test_a_search_gives_up_when_no_run_is_likely_enough_to_meet_the_constraints() -> None:
    reason = hopeless(24, [1e-139] * 3)
    assert reason is not None
    assert re.fullmatch(
        r"no configuration is likely enough to meet the constraints: one more dollar of search would be worth \$0\.\d+ over "
        r"40 future runs",
        reason,
    )


@pytest.mark.parametrize(
    ("count", "chances"),
    [
        (24, [1e-139, 0.9, 1e-139]),  # a model may be wrong once
        (24, [1e-139, 1e-139, 0.9]),
        (24, [1e-139, 1e-139]),  # the plan before had no model
        (12, [1e-139] * 3),  # so few runs do not rule out that the model is wrong: 40 × 0.5 / (12 + 1) > 1
    ],
)
def test_a_search_does_not_give_up_while_a_run_may_be_worth_its_price(count: int, chances: list[float]) -> None:
    assert hopeless(count, chances) is None


def test_published_rules_never_give_up() -> None:
    runs = planned(HOPELESS.finished(HOPELESS.order_of_runs[:24]), rate=[0.0] * 24)
    assert GittinsStop(100.0, patience=3)(State.present(HOPELESS.problem, runs), plan(rate=0.0)) is None


def test_never() -> None:
    assert Never()(HERE, plan(0.0, 0.0)) is None


@pytest.mark.parametrize(("share", "fires"), [(0.0099, True), (0.0101, False), (0.0, True)])
def test_small_improvement(share: float, fires: bool) -> None:
    reason = SmallImprovement()(HERE, plan(share * BEST))
    words = f"the largest expected improvement is {share:.2%} of the incumbent, under 1.00%"
    assert reason == (words if fires else None)


def test_small_improvement_needs_enough_runs_an_incumbent_and_a_model() -> None:
    assert SmallImprovement(0.1, after=9)(HERE, plan(0.0)) is None
    assert SmallImprovement(0.1, after=8)(HERE, plan(0.0)) is not None
    assert SmallImprovement()(EMPTY, plan(0.0)) is None
    assert SmallImprovement()(HERE, plan()) is None
    assert SmallImprovement()(HERE, None) is None


def test_small_improvement_of_a_maximised_metric_is_relative() -> None:
    job = small_job("runtime <= 30m", objective="maximize accuracy")
    here = State.present(job.problem, job.finished(job.order_of_runs[:8]))
    best = -float(here.best[0])
    assert 0.8 < best < 1.0
    assert SmallImprovement(0.01)(here, plan(0.009 * best)) is not None
    assert SmallImprovement(0.01)(here, plan(0.011 * best)) is None


def proteus(gains: list[float], now: float) -> str | None:
    """The reason when the incumbent ran first and these improvements came last."""
    runs = sorted(RUNS, key=lambda seen: seen.outcome.charged_usd != BEST)
    observations = planned(tuple(runs), gain=[math.nan] * (8 - len(gains)) + gains)
    return ProteusStop(0.01)(State.present(JOB.problem, observations), plan(now))


def test_proteus_stops_when_improvements_fell_twice_and_the_last_run_did_not_improve() -> None:
    assert proteus([0.3 * BEST, 0.2 * BEST], 0.005 * BEST) == (
        "expected improvement fell twice to 0.50% of the incumbent and the last run improved it by 0.00%, both under 1.00%"
    )


@pytest.mark.parametrize(
    ("gains", "now"),
    [
        ([0.3, 0.2], 0.02),
        ([0.2, 0.3], 0.005),
        ([0.004, 0.003], 0.005),
        ([0.2], 0.005),
        ([], 0.005),
    ],
    ids=["still large", "rose before", "rises now", "one", "none"],
)
def test_proteus_continues(gains: list[float], now: float) -> None:
    assert proteus([gain * BEST for gain in gains], now * BEST) is None


def test_proteus_continues_after_an_improvement() -> None:
    good = next(seen for seen in RUNS if seen.outcome.charged_usd == BEST)
    rest = tuple(seen for seen in RUNS if seen is not good)
    observations = planned((*rest, good), gain=[math.nan] * 6 + [0.3 * BEST, 0.2 * BEST])
    assert ProteusStop(0.01)(State.present(JOB.problem, observations), plan(0.005 * BEST)) is None


def test_proteus_with_a_best_value_of_zero() -> None:
    job = small_job(objective="minimize accuracy")
    perfect = tuple(
        replace(seen, outcome=replace(seen.outcome, metrics={"accuracy": 0.0})) for seen in job.finished([1, 2, 3])
    )
    observations = planned(perfect, gain=[math.nan, 3.0, 2.0])
    assert ProteusStop()(State.present(job.problem, observations), plan(1.0)) is None


@pytest.mark.parametrize(("runs", "share", "fires"), [(9, 0.0999, True), (9, 0.1001, False), (99, 0.05, False)])
def test_future_uses(runs: int, share: float, fires: bool) -> None:
    reason = FutureUses(runs)(HERE, plan(share * BEST))
    words = f"the largest expected improvement, {share:.2%} of the incumbent, does not pay for itself over {runs} future runs"
    assert reason == (words if fires else None)


def test_total_budget() -> None:
    spent = sum(seen.outcome.charged_usd for seen in RUNS)
    enough = spent + 11 * BEST
    assert TotalBudget(enough + 1e-9, runs=10)(HERE, plan()) is None
    reason = TotalBudget(enough - 1e-6, runs=10)(HERE, plan())
    assert reason == f"${spent:.2f} spent and 10 runs at ${BEST:.2f} reach the total of ${enough:.2f}"
    assert TotalBudget(0.01, runs=10)(EMPTY, plan()) is None


def test_max_trials() -> None:
    assert MaxTrials(9)(HERE, plan()) is None
    assert MaxTrials(8)(HERE, None) == "8 runs were started"


def test_gittins_stops_when_a_dollar_of_search_saves_less_than_a_dollar() -> None:
    rule = GittinsStop(future_runs=50.0)
    assert rule(HERE, plan(rate=0.0201)) is None
    assert rule(HERE, plan(rate=0.01)) == "one more dollar of search would save $0.50 over 50 future runs"
    assert rule(HERE, plan(rate=5.6e-7)) == "one more dollar of search would save $0.000028 over 50 future runs"
    assert rule(EMPTY, plan(rate=0.0)) is None
    assert rule(HERE, plan()) is None
    assert rule(HERE, None) is None


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ("cost", "one more dollar of search would save $0.36 over 180 future runs"),
        ("minimize usd_per_query", "one more dollar of search would save $0.36 over 180 future queries"),
    ],
)
def test_what_the_user_says_of_future_use_counts(objective: str, said: str) -> None:
    job = small_job(objective=objective)
    problem = replace(job.problem, future=FutureUse(per_month=30, months=6))
    here = replace(State.present(problem, job.finished(range(3))), best=np.array([1.0]))
    for assumed in (1.0, 1e6):
        assert GittinsStop(assumed)(here, plan(rate=0.002)) == said
        assert GittinsStop(assumed)(here, plan(rate=1 / 179)) is None


@pytest.mark.parametrize(("objective", "named"), [("time", "time"), ("maximize accuracy", "accuracy")])
def test_an_objective_that_is_no_money_is_compared_by_what_a_run_of_the_best_costs(objective: str, named: str) -> None:
    job = small_job(objective=objective)
    here = State.present(job.problem, job.finished(range(6)))
    value = {"time": job.measured.seconds, "accuracy": -job.measured.metrics["accuracy"]}[named]
    row = int(np.argmin(value[:6]))
    run_usd, best = job.problem.cost(row, float(job.measured.seconds[row])), abs(float(here.best[0]))
    even = best / (50.0 * run_usd)
    assert GittinsStop(50.0)(here, plan(rate=1.01 * even)) is None
    reason = GittinsStop(50.0)(here, plan(rate=0.5 * even))
    assert reason == (
        f"one more dollar of search would improve {named} by {0.5 / (50.0 * run_usd):.2%}, worth $0.50 of runs over 50 future runs"
    )


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("objective", ["maximize accuracy", "minimize accuracy", "minimize price / accuracy"])
def test_the_unit_of_the_objective_stops_no_search_and_prolongs_none(objective: str, scale: float) -> None:
    job = small_job(objective=objective)
    other = replace(job, measured=replace(job.measured, metrics={"accuracy": scale * job.measured.metrics["accuracy"]}))
    here, there = (State.present(each.problem, each.finished(range(6))) for each in (job, other))
    factor = float(there.best[0] / here.best[0])
    for rate in np.geomspace(1e-4, 1e2, 30):
        stops = [GittinsStop(50.0)(here, plan(rate=rate)), GittinsStop(50.0)(there, plan(rate=factor * rate))]
        assert stops[0] == stops[1] or None not in stops


def test_dollars_per_unit_are_counted_where_the_user_counts_units() -> None:
    job = small_job(objective="minimize price / accuracy")
    units = {"accuracy": "tokens/s"}  # whatever it is called, a throughput
    problem = replace(job.problem, units=units, future=FutureUse(runs=7.2e6))
    here = State.present(problem, job.finished(range(6)))
    assert usd_of_improvement(here) == pytest.approx(1 / 3600)
    assert GittinsStop(1.0)(here, plan(rate=0.9 / 2000)) == (
        "one more dollar of search would save $0.90 over 7,200,000 future tokens"
    )
    assert GittinsStop(1.0)(here, plan(rate=1.1 / 2000)) is None
    undeclared = replace(problem, future=None)
    relative = usd_of_improvement(State.present(undeclared, job.finished(range(6))))
    assert relative != pytest.approx(1 / 3600)


def test_every_rule_that_counts_uses_follows_the_user() -> None:
    many = replace(HERE, problem=replace(JOB.problem, future=FutureUse(runs=99)))
    assert FutureUses(9)(HERE, plan(0.05 * BEST)) is not None
    assert FutureUses(9)(many, plan(0.05 * BEST)) is None
    spent = sum(seen.outcome.charged_usd for seen in RUNS)
    assert TotalBudget(spent + 50 * BEST, runs=10)(HERE, plan()) is None
    assert "99 runs at" in (TotalBudget(spent + 50 * BEST, runs=10)(many, plan()) or "")


def test_a_measured_baseline_neither_fills_nor_breaks_the_patience() -> None:
    observations = planned(RUNS, rate=[math.nan] * 5 + [0.001, 0.001, math.nan])
    last = observations[-1]
    measured = replace(last, order=replace(last.order, plan=replace(last.order.plan, purpose=Purpose.BASELINE)))
    assert GittinsStop(100.0, patience=3)(State.present(JOB.problem, (*observations[:-1], measured)), plan(rate=0.002))


@pytest.mark.parametrize(
    ("earlier", "fires"),
    [([0.001, 0.001], True), ([0.5, 0.001], False), ([0.001, 0.5], False), ([math.nan, 0.001], False)],
)
def test_gittins_patience(earlier: list[float], fires: bool) -> None:
    observations = planned(RUNS, rate=[math.nan] * 6 + earlier)
    reason = GittinsStop(100.0, patience=3)(State.present(JOB.problem, observations), plan(rate=0.002))
    assert (reason is not None) == fires


def test_repetitions_of_the_best_neither_fill_nor_break_the_patience() -> None:
    observations = planned(RUNS, rate=[math.nan] * 5 + [0.001, 0.001, math.nan])
    last = observations[-1]
    repeated = replace(last, order=replace(last.order, plan=replace(last.order.plan, purpose=Purpose.CONFIRM)))
    rule, now = GittinsStop(100.0, patience=3), plan(rate=0.002)
    assert rule(State.present(JOB.problem, observations), now) is None
    assert rule(State.present(JOB.problem, (*observations[:-1], repeated)), now) is not None
    assert rule(State.present(JOB.problem, (*observations[:-2], repeated)), now) is None


def test_gittins_patience_needs_enough_plans() -> None:
    observations = planned(RUNS[:1], rate=[0.0])
    assert GittinsStop(100.0, patience=3)(replace(HERE, observations=observations), plan(rate=0.0)) is None


def test_the_gittins_rule_is_the_index_against_the_incumbent() -> None:
    """g(x) ≥ C* for all x, with λ = 1/n, is the same as n · max EI/E[charge] ≤ 1."""
    from lynceus.acquisition.gittins import gittins_index
    from lynceus.acquisition.improvement import expected_improvement
    from lynceus.models.distribution import Normal

    rng = np.random.default_rng(5)
    for _ in range(50):
        cost = Normal(rng.uniform(0.1, 0.6, 6), rng.uniform(0.01, 0.2, 6))
        charge = np.asarray(cost.mean)
        future = float(rng.uniform(1, 200))
        index = gittins_index(cost, charge / future)
        rate = float((expected_improvement(cost, BEST) / charge).max())
        fires = GittinsStop(future)(HERE, plan(rate=rate)) is not None
        assert fires == bool((index >= BEST).all())


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (AnyOf((Says(None), Says("a"), Says("b"))), "a"),
        (AnyOf((Says(None),)), None),
        (AnyOf(()), None),
        (AllOf((Says("a"), Says("b"))), "a; b"),
        (AllOf((Says("a"), Says(None))), None),
        (AllOf(()), None),
        (AllOf((AnyOf((Says(None), Says("x"))), Says("y"))), "x; y"),
    ],
)
def test_combinations(rule: Stop, reason: str | None) -> None:
    assert rule(HERE, plan()) == reason


def test_cherrypicks_rule() -> None:
    rule = SmallImprovement(0.10, after=6)
    assert rule(HERE, plan(0.05 * BEST)) == "the largest expected improvement is 5.00% of the incumbent, under 10.00%"
    assert rule(replace(HERE, started=5), plan(0.05 * BEST)) is None


def test_iterations_limit_only_a_study_without_a_budget() -> None:
    free = replace(JOB.problem, budget=Budget())
    assert Iterations(8)(State.present(free, RUNS), plan()) == "8 runs were made; a budget allows more"
    assert Iterations(9)(State.present(free, RUNS), plan()) is None
    for own in (Budget(usd=5.0), Budget(trials=50)):
        assert Iterations(8)(State.present(replace(free, budget=own), RUNS), plan()) is None
    with pytest.raises(ValueError, match="1 or more"):
        Iterations(0)
