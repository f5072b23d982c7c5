"""The situation and beliefs: what is known, what it would look like after one more run, what is thought of it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.history import End, Expected, Order, Outcome, Plan, Reason, Told
from lynceus.problem import Budget, Tariff
from lynceus.situation import Belief, Situation, expected_charge, feasible_runs, is_warm, run_distribution, warm_saving
from lynceus.testing import SmallJob, small_job
from strategies import jobs

JOB = small_job("runtime <= 30m", "accuracy >= 0.8", budget=Budget(usd=5.0))


def failed(job: SmallJob, row: int, reason: Reason) -> Situation:
    lost = replace(job.observation(0, row), outcome=Outcome(End.FAILED, 5.0, 0.02, reason=reason), told=None)
    return Situation.present(job.problem, (lost,))


def test_the_present_is_what_the_history_says() -> None:
    rows = JOB.order_of_runs[:6]
    here = Situation.present(JOB.problem, JOB.finished(rows))
    cost = JOB.problem.price * JOB.measured.seconds
    assert here.rows.tolist() == list(rows)
    assert here.seconds == pytest.approx(JOB.measured.seconds[list(rows)])
    assert here.metrics[:, 0] == pytest.approx(JOB.measured.metrics["accuracy"][list(rows)])
    assert np.isnan(here.bound_s).all()
    assert sorted(np.flatnonzero(~here.open)) == sorted(rows)
    assert here.left[0] == pytest.approx(5.0 - cost[list(rows)].sum())
    assert here.worst == pytest.approx(cost[list(rows)].max())
    on_time = [row for row in rows if JOB.measured.seconds[row] <= 1800]
    assert here.best[0] == pytest.approx(cost[on_time].min())
    assert (here.started, here.current[0], len(here), here.targets) == (6, rows[-1], 1, 2)


def test_the_start_knows_nothing() -> None:
    here = Situation.present(JOB.problem, ())
    assert here.open.all()
    assert math.isnan(here.best[0])
    assert math.isnan(here.worst)
    assert here.left[0] == 5.0
    assert here.current[0] == -1
    assert here.metrics.shape == (0, 1)


@pytest.mark.parametrize(
    ("reason", "stays_open"),
    [(Reason.INFRA, True), (Reason.PREEMPTED, True), (Reason.OOM, False), (Reason.JOB, False), (Reason.USER, False)],
)
def test_failures_close_a_row_when_it_is_at_fault(reason: Reason, stays_open: bool) -> None:
    here = failed(JOB, 4, reason)
    assert bool(here.open[4]) == stays_open
    assert len(here.rows) == 0, "a failure teaches the model nothing"
    assert here.left[0] == pytest.approx(4.98), "and is paid for all the same"
    repeated = replace(JOB, problem=replace(JOB.problem, repeats=3))
    assert bool(failed(repeated, 4, reason).open[4]) == stays_open


def test_open_trials_close_rows_reserve_money_and_stand_for_their_belief() -> None:
    silent = Order(1, 7, 100.0, 0.4, Plan(7, why="design"))
    price = float(JOB.problem.price[9])
    believed = Order(2, 9, 100.0, 0.3, Plan(9, why="planned", expected=Expected("cost", (0.25, 0.9), (0.1, 0.0))))
    here = Situation.present(JOB.problem, JOB.finished([0]), (silent, believed))
    assert not here.open[[0, 7, 9]].any()
    assert here.left[0] == pytest.approx(5.0 - float(JOB.problem.price[0] * JOB.measured.seconds[0]) - 0.7)
    assert here.rows.tolist() == [0, 9]
    assert here.seconds[1] == pytest.approx(0.25 / price)
    assert here.metrics[1, 0] == 0.9
    assert math.isnan(here.best[0]), "a belief is no incumbent"
    assert (here.started, here.current[0]) == (3, -1)


def test_estimates_are_told_and_facts_decide_the_best() -> None:
    seen = JOB.observation(0, 9)
    stopped = replace(seen, outcome=Outcome(End.CAPPED, 100.0, 0.01), told=Told(2000.0, censored=True, bound_s=100.0))
    here = Situation.present(JOB.problem, (stopped,))
    assert here.seconds.tolist() == [2000.0]
    assert here.bound_s.tolist() == [100.0]
    assert math.isnan(here.metrics[0, 0])
    assert math.isnan(here.best[0])
    assert feasible_runs(JOB.problem, (stopped,)) == []


def test_only_answerable_rows_can_be_the_best() -> None:
    on_time = np.flatnonzero(JOB.measured.seconds <= 1800).tolist()
    masked = replace(JOB.problem, answerable=np.arange(24) == on_time[1])
    assert [row for row, _ in feasible_runs(JOB.problem, JOB.finished(on_time))] == on_time
    assert [row for row, _ in feasible_runs(masked, JOB.finished(on_time))] == [on_time[1]]


@given(jobs(), st.integers(1, 6), st.integers(1, 4), st.data())
def test_after_appends_one_run_to_each(job: SmallJob, rows_number: int, k: int, data: st.DataObject) -> None:
    here = Situation.present(job.problem, job.finished(job.order_of_runs[:3]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = rng.choice(np.flatnonzero(here.open), rows_number, replace=False)
    told, charge = rng.normal(size=(rows_number, k, here.targets)), rng.random((rows_number, k))
    value = np.where(rng.random((rows_number, k)) < 0.5, rng.random((rows_number, k)), np.nan)
    one = here.after(rows, told, charge, value)
    assert len(one) == rows_number * k
    for i in range(rows_number):
        for j in range(k):
            at = i * k + j
            assert one.imagined_rows[at].tolist() == [rows[i]]
            assert np.array_equal(one.imagined_told[at, 0], told[i, j])
            assert one.left[at] == here.left[0] - charge[i, j]
            assert one.current[at] == rows[i]
            assert np.array_equal(one.best[at], np.fmin(here.best[0], value[i, j]), equal_nan=True)
            closed = here.open & ~one.open_in_each()[at]
            assert np.flatnonzero(closed).tolist() == [rows[i]]
    two = one.after(
        np.full(len(one), 0),
        np.zeros((len(one), 2, here.targets)),
        np.ones((len(one), 2)),
        np.full((len(one), 2), np.nan),
    )
    assert np.array_equal(two.imagined_rows[:, 0], np.repeat(one.imagined_rows[:, 0], 2))
    assert np.array_equal(two.left, np.repeat(one.left, 2) - 1.0)
    some = two.part(np.array([1, 3]) % len(two))
    assert len(some) == 2
    assert len(here) == 1


def test_the_worst_counts_imagined_costs() -> None:
    here = Situation.present(small_job().problem, small_job().finished([0]))
    one = here.after(np.array([1, 2]), np.array([[[9.0]], [[0.001]]]), np.ones((2, 1)), np.ones((2, 1)))
    assert one.worst_in_each("cost") == pytest.approx([9.0, here.worst])
    assert one.worst_in_each("log time") == pytest.approx([here.worst, here.worst])


@given(jobs(), st.integers(0, 8))
def test_caps_of_rows_are_the_caps_of_all(job: SmallJob, runs: int) -> None:
    here = Situation.present(job.problem, job.finished(job.order_of_runs[:runs]))
    everything = np.arange(24)
    assert np.array_equal(here.caps_s()[0], here.cap_s_of(everything))
    assert not np.isnan(here.caps_s()).any()
    assert (here.caps_s()[0] <= job.problem.ceiling_s).all()


# Money ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [None, 700.0, 2000.0])
@pytest.mark.parametrize("tariff", [Tariff(), Tariff(minimum_s=900.0, boot_s=60.0, fee_usd=0.01)])
def test_the_expected_charge_of_log_time_is_monte_carlo(tariff: Tariff, cap: float | None) -> None:
    job = small_job(tariff=tariff)
    mean, std, price = 6.5, 0.6, float(job.problem.price[5])
    draws = np.exp(np.random.default_rng(1).normal(mean, std, 2_000_000))
    charges = tariff.charges(np.minimum(draws, math.inf if cap is None else cap), np.array(price))
    run = run_distribution("log time", np.array(mean), np.array(std))
    caps = None if cap is None else np.array(cap)
    usd = float(expected_charge(job.problem, run, "log time", np.array(5), caps))
    assert usd == pytest.approx(float(charges.mean()), rel=4e-3)


def test_the_expected_charge_of_a_stopped_cost_is_monte_carlo() -> None:
    job = small_job()
    draws = np.random.default_rng(2).normal(0.3, 0.1, 2_000_000)
    run = run_distribution("cost", np.array(0.3), np.array(0.1))
    cap_s = np.array(0.32 / float(job.problem.price[5]))
    usd = float(expected_charge(job.problem, run, "cost", np.array(5), cap_s))
    assert usd == pytest.approx(float(np.minimum(draws, 0.32).mean()), rel=1e-3)


def test_a_charge_is_never_negative() -> None:
    job = small_job(tariff=Tariff(boot_s=600.0, warm=("vm",)))
    here = Situation.present(job.problem, job.finished([0]))
    shape = (1, 24, 1)
    belief = Belief("cost", np.full(shape, -1.0), np.full(shape, 0.1))
    assert (belief.charge(here) == 0).all()


def test_warm_machines_save_boot_and_fee() -> None:
    job = small_job(tariff=Tariff(boot_s=100.0, fee_usd=0.01, warm=("vm", "nodes")))
    here = Situation.present(job.problem, job.finished([5]))
    saving = np.asarray(warm_saving(here))[0]
    point = job.problem.space.point(5)
    for row in range(24):
        other = job.problem.space.point(row)
        same = (other["vm"], other["nodes"]) == (point["vm"], point["nodes"])
        assert saving[row] == pytest.approx(100.0 * float(job.problem.price[row]) + 0.01 if same else 0.0)
        assert bool(is_warm(here)[0, row]) == same
        assert float(np.asarray(warm_saving(here, np.array([row])))[0]) == pytest.approx(saving[row])
    assert not is_warm(Situation.present(job.problem, ())).any()
    assert not is_warm(Situation.present(small_job().problem, small_job().finished([5]))).any()


# Beliefs -------------------------------------------------------------------------------------------------------------------


def belief_of(job: SmallJob, form: str = "cost") -> Belief:
    rng = np.random.default_rng(3)
    m = 1 + len(job.problem.metrics)
    mean = rng.uniform(0.1, 0.6, (2, 24, m)) if form == "cost" else rng.uniform(5.0, 8.0, (2, 24, m))
    return Belief(form, mean, rng.uniform(0.01, 0.2, (2, 24, m)))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["cost", "log time"])
def test_the_chance_to_keep_every_limit_is_monte_carlo(form: str) -> None:
    job = small_job("runtime <= 30m", "cost <= $0.4", "accuracy >= 0.3", "memory <= 0.5")
    belief = belief_of(job, form)
    rng = np.random.default_rng(4)
    for b, row in [(0, 3), (1, 17)]:
        draws = rng.normal(belief.mean[b, row], belief.std[b, row], (400_000, 3))
        price = float(job.problem.price[row])
        seconds = draws[:, 0] / price if form == "cost" else np.exp(draws[:, 0])
        kept = (seconds <= 1800) & (seconds * price <= 0.4) & (draws[:, 1] >= 0.3) & (draws[:, 2] <= 0.5)
        assert belief.feasible(job.problem)[b, row] == pytest.approx(kept.mean(), abs=5e-3)


def test_one_limit_is_tested_with_its_own_target() -> None:
    """The second metric's limit must read the second metric's belief."""
    job = small_job("accuracy >= 0.3", "memory <= 0.5", "runtime <= 30m")
    belief = belief_of(job)
    accuracy, memory, runtime = job.problem.limits
    product = (
        belief.keeps(accuracy, job.problem) * belief.keeps(memory, job.problem) * belief.keeps(runtime, job.problem)
    )
    assert product == pytest.approx(belief.feasible(job.problem))
    assert belief.keeps(memory, job.problem) == pytest.approx(np.asarray(belief.metric(1).cdf(0.5)))


def test_affordable_is_the_papers_test() -> None:
    """μ + 2.326 σ ≤ B."""
    job = small_job(budget=Budget(usd=0.7))
    belief = belief_of(job)
    here = Situation.present(job.problem, ())
    wanted = belief.mean[:1, :, 0] + 2.3263478740408408 * belief.std[:1, :, 0] <= 0.7
    one = Belief("cost", belief.mean[:1], belief.std[:1])
    assert np.array_equal(one.affordable(here, 0.99), wanted)
    assert 0 < wanted.sum() < 24
    assert one.affordable(Situation.present(small_job().problem, ()), 0.99).all()


def test_beliefs_have_two_arrays_of_one_shape() -> None:
    with pytest.raises(ValueError, match="two arrays"):
        Belief("cost", np.zeros((1, 2, 1)), np.zeros((1, 3, 1)))
    with pytest.raises(ValueError, match="two arrays"):
        Belief("cost", np.zeros((2, 1)), np.zeros((2, 1)))
