"""The state: what is known, and imagined states after one more run."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.models.state import State, feasible_runs, is_warm, warm_saving
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, FailureReason, Outcome, TrainingTarget
from strategies import jobs

JOB = small_job("runtime <= 30m", "accuracy >= 0.8", budget=Budget(usd=5.0))


def failed(job: SmallJob, row: int, reason: FailureReason) -> State:
    lost = replace(job.observation(0, row), outcome=Outcome(End.FAILED, 5.0, 0.02, reason=reason), target=None)
    return State.present(job.problem, (lost,))


def test_the_present_state_follows_from_the_observations() -> None:
    rows = JOB.order_of_runs[:6]
    here = State.present(JOB.problem, JOB.finished(rows))
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


def test_the_initial_state() -> None:
    here = State.present(JOB.problem, ())
    assert here.open.all()
    assert math.isnan(here.best[0])
    assert math.isnan(here.worst)
    assert here.left[0] == 5.0
    assert here.current[0] == -1
    assert here.metrics.shape == (0, 1)


@pytest.mark.parametrize(
    ("reason", "stays_open"),
    [
        (FailureReason.INFRA, True),
        (FailureReason.PREEMPTED, True),
        (FailureReason.OOM, False),
        (FailureReason.JOB, False),
        (FailureReason.USER, False),
    ],
)
def test_failures_of_the_configuration_close_its_row(reason: FailureReason, stays_open: bool) -> None:
    here = failed(JOB, 4, reason)
    assert bool(here.open[4]) == stays_open
    assert len(here.rows) == 0, "a failure has no training target"
    assert here.left[0] == pytest.approx(4.98), "and is charged nevertheless"
    repeated = replace(JOB, problem=replace(JOB.problem, repeats=3))
    assert bool(failed(repeated, 4, reason).open[4]) == stays_open


def test_pending_runs_close_rows_reserve_budget_and_count_as_predicted() -> None:
    unpredicted = Order(1, 7, 100.0, 0.4, Plan(7, why="design"))
    price = float(JOB.problem.price[9])
    predicted = Order(2, 9, 100.0, 0.3, Plan(9, why="planned", expected=Expected("cost", (0.25, 0.9), (0.1, 0.0))))
    here = State.present(JOB.problem, JOB.finished([0]), (unpredicted, predicted))
    assert not here.open[[0, 7, 9]].any()
    assert here.left[0] == pytest.approx(5.0 - float(JOB.problem.price[0] * JOB.measured.seconds[0]) - 0.7)
    assert here.rows.tolist() == [0, 9]
    assert here.seconds[1] == pytest.approx(0.25 / price)
    assert here.metrics[1, 0] == 0.9
    assert math.isnan(here.best[0]), "a prediction is no incumbent"
    assert (here.started, here.current[0]) == (3, -1)


def test_estimates_train_the_model_and_only_finished_runs_can_be_best() -> None:
    seen = JOB.observation(0, 9)
    stopped = replace(
        seen, outcome=Outcome(End.TIMEOUT, 100.0, 0.01), target=TrainingTarget(2000.0, censored=True, bound_s=100.0)
    )
    here = State.present(JOB.problem, (stopped,))
    assert here.seconds.tolist() == [2000.0]
    assert here.bound_s.tolist() == [100.0]
    assert math.isnan(here.metrics[0, 0])
    assert math.isnan(here.best[0])
    assert feasible_runs(JOB.problem, (stopped,)) == []


def test_only_answerable_rows_can_be_best() -> None:
    on_time = np.flatnonzero(JOB.measured.seconds <= 1800).tolist()
    masked = replace(JOB.problem, answerable=np.arange(24) == on_time[1])
    assert [row for row, _ in feasible_runs(JOB.problem, JOB.finished(on_time))] == on_time
    assert [row for row, _ in feasible_runs(masked, JOB.finished(on_time))] == [on_time[1]]


@given(jobs(), st.integers(1, 6), st.integers(1, 4), st.data())
def test_after_appends_one_run_to_each(job: SmallJob, rows_number: int, k: int, data: st.DataObject) -> None:
    here = State.present(job.problem, job.finished(job.order_of_runs[:3]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    rows = rng.choice(np.flatnonzero(here.open), rows_number, replace=False)
    target, charge = rng.normal(size=(rows_number, k, here.targets)), rng.random((rows_number, k))
    value = np.where(rng.random((rows_number, k)) < 0.5, rng.random((rows_number, k)), np.nan)
    one = here.after(rows, target, charge, value)
    assert len(one) == rows_number * k
    for i in range(rows_number):
        for j in range(k):
            at = i * k + j
            assert one.imagined_rows[at].tolist() == [rows[i]]
            assert np.array_equal(one.imagined_targets[at, 0], target[i, j])
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


def test_the_worst_value_includes_imagined_costs() -> None:
    here = State.present(small_job().problem, small_job().finished([0]))
    one = here.after(np.array([1, 2]), np.array([[[9.0]], [[0.001]]]), np.ones((2, 1)), np.ones((2, 1)))
    assert one.worst_in_each("cost") == pytest.approx([9.0, here.worst])
    assert one.worst_in_each("log time") == pytest.approx([here.worst, here.worst])


@given(jobs(), st.integers(0, 8))
def test_timeouts_of_some_rows_equal_those_of_all(job: SmallJob, runs: int) -> None:
    here = State.present(job.problem, job.finished(job.order_of_runs[:runs]))
    everything = np.arange(24)
    assert np.array_equal(here.timeouts_s()[0], here.timeout_s_of(everything))
    assert not np.isnan(here.timeouts_s()).any()
    assert (here.timeouts_s()[0] <= job.problem.ceiling_s).all()


def test_warm_machines_save_boot_and_fee() -> None:
    job = small_job(billing=Billing(boot_s=100.0, fee_usd=0.01, warm=("vm", "nodes")))
    here = State.present(job.problem, job.finished([5]))
    saving = np.asarray(warm_saving(here))[0]
    point = job.problem.space.point(5)
    for row in range(24):
        other = job.problem.space.point(row)
        same = (other["vm"], other["nodes"]) == (point["vm"], point["nodes"])
        assert saving[row] == pytest.approx(100.0 * float(job.problem.price[row]) + 0.01 if same else 0.0)
        assert bool(is_warm(here)[0, row]) == same
        assert float(np.asarray(warm_saving(here, np.array([row])))[0]) == pytest.approx(saving[row])
    assert not is_warm(State.present(job.problem, ())).any()
    assert not is_warm(State.present(small_job().problem, small_job().finished([5]))).any()
