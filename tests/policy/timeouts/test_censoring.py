"""Censored values: training targets of stopped runs, against Monte Carlo and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.interfaces import CensoredValue
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.censoring import (
    Discard,
    HighestCost,
    LinearProgress,
    LowerBound,
    TruncatedMean,
    WholeRun,
)
from lynceus.problem.billing import Billing
from lynceus.problem.problem import Problem
from lynceus.testing.job import SmallJob, small_job
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, Outcome, TrainingTarget

JOB = small_job("runtime <= 30m")
ROW = 9
PRICE = float(JOB.problem.price[ROW])


def target(
    censored: CensoredValue,
    ran: float,
    *,
    expected: Expected | None = None,
    trace: tuple[tuple[float, float], ...] = (),
    oracle: float | None = None,
    job: SmallJob = JOB,
    runs: int = 4,
) -> TrainingTarget | None:
    problem: Problem = job.problem
    order = Order(runs, ROW, ran, 1.0, Plan(ROW, why="tested", expected=expected))
    outcome = Outcome(End.TIMEOUT, ran, problem.cost(ROW, ran), {"accuracy": 0.5}, trace, oracle_s=oracle)
    return censored(problem, order, outcome, State.present(problem, job.finished(job.order_of_runs[:runs])))


def present(value: TrainingTarget | None) -> TrainingTarget:
    assert value is not None
    return value


def test_a_lower_bound_is_what_ran() -> None:
    assert target(LowerBound(), 500.0) == TrainingTarget(500.0, {"accuracy": 0.5}, censored=True, bound_s=500.0)


@pytest.mark.parametrize(("mean", "std", "ran_usd"), [(0.3, 0.1, 0.2), (0.3, 0.1, 0.5), (0.2, 0.02, 0.21)])
def test_truncated_mean_of_cost_is_monte_carlo(mean: float, std: float, ran_usd: float) -> None:
    draws = np.random.default_rng(1).normal(mean, std, 4_000_000)
    above = draws[draws > ran_usd]
    value = present(target(TruncatedMean(), ran_usd / PRICE, expected=Expected("cost", (mean,), (std,))))
    error = 4 * float(above.std()) / math.sqrt(len(above))
    assert value.seconds * PRICE == pytest.approx(float(above.mean()), abs=error + 1e-9)
    assert value.censored
    assert value.bound_s == pytest.approx(ran_usd / PRICE)


@pytest.mark.parametrize(("mean", "std", "ran"), [(7.0, 0.4, 900.0), (6.0, 0.8, 1500.0)])
def test_truncated_mean_of_log_time_is_monte_carlo(mean: float, std: float, ran: float) -> None:
    draws = np.exp(np.random.default_rng(2).normal(mean, std, 4_000_000))
    above = draws[draws > ran]
    value = present(target(TruncatedMean(), ran, expected=Expected("log time", (mean,), (std,))))
    assert value.seconds == pytest.approx(float(above.mean()), abs=4 * float(above.std()) / math.sqrt(len(above)))


def test_the_truncated_mean_counts_the_boot_once() -> None:
    """The model predicts dollars with the boot; the training target is the job's own time."""
    job = small_job(billing=Billing(boot_s=100.0, fee_usd=0.01))
    certain = Expected("cost", (0.01 + 1100.0 * PRICE,), (0.0,))
    assert present(target(TruncatedMean(), 400.0, expected=certain, job=job)).seconds == pytest.approx(1000.0)


def test_the_truncated_mean_without_a_prediction_is_the_bound() -> None:
    assert present(target(TruncatedMean(), 321.0)).seconds == 321.0


def test_a_prediction_below_what_ran_gives_what_ran() -> None:
    value = present(target(TruncatedMean(), 700.0, expected=Expected("cost", (0.01,), (0.0,))))
    assert value.seconds == pytest.approx(700.0)


def test_linear_progress_is_read_off_the_line() -> None:
    trace = tuple((30.0 * i, 0.01 * i) for i in range(1, 11))
    value = present(target(LinearProgress(target=0.85), 300.0, trace=trace))
    assert value.seconds == pytest.approx(30.0 * 85)
    assert value.censored


def test_linear_progress_is_least_squares_of_time_on_progress() -> None:
    rng = np.random.default_rng(3)
    times = np.arange(30.0, 330.0, 30.0)
    progress = 0.001 * times + rng.normal(0, 0.01, len(times))
    slope, offset = np.polyfit(progress, times, 1)
    value = present(
        target(LinearProgress(0.85), 300.0, trace=tuple(zip(times.tolist(), progress.tolist(), strict=True)))
    )
    assert value.seconds == pytest.approx(max(slope * 0.85 + offset, 300.0))


@pytest.mark.parametrize(
    ("trace", "seconds"),
    [
        (((50.0, 0.1),), 425.0),
        ((), 321.0),
        (((50.0, 0.0),), 321.0),
        (((50.0, 0.3), (80.0, 0.3)), 321.0),
        (((50.0, 0.4), (80.0, 0.2)), 321.0),
        (((50.0, 0.1), (400.0, 0.9)), 425.0),
    ],
    ids=["one point", "none", "no progress", "flat", "falling", "later than the stop"],
)
def test_linear_progress_with_few_reports(trace: tuple[tuple[float, float], ...], seconds: float) -> None:
    """One point is a line through the origin; without usable progress the truncated mean is used (here: the bound)."""
    assert present(target(LinearProgress(0.85), 321.0, trace=trace)).seconds == pytest.approx(seconds)


def test_highest_cost_is_that_of_the_most_expensive_run() -> None:
    rows = JOB.order_of_runs[:4]
    highest = max(float(JOB.problem.price[row] * JOB.measured.seconds[row]) for row in rows)
    assert present(target(HighestCost(), 10.0)).seconds == pytest.approx(highest / PRICE)
    assert present(target(HighestCost(), 1e6)).seconds == 1e6
    assert present(target(HighestCost(), 10.0, runs=0)).seconds == 10.0


def test_discard_is_none() -> None:
    assert target(Discard(), 100.0) is None


def test_ideal_is_the_full_time_and_needs_a_replay() -> None:
    assert target(WholeRun(), 100.0, oracle=777.0) == TrainingTarget(777.0, {"accuracy": 0.5})
    with pytest.raises(InputError, match=r"'ideal' needs the full time of stopped runs.* choose 'tg' for live runs"):
        target(WholeRun(), 100.0)


@given(
    name=st.sampled_from(sorted(TIMEOUTS)),
    ran=st.floats(1e-3, 1e5),
    mean=st.floats(-5, 5),
    std=st.floats(0, 10),
    form=st.sampled_from(["cost", "log time"]),
    boot=st.sampled_from([0.0, 100.0]),
)
def test_the_target_is_never_below_what_ran(
    name: str, ran: float, mean: float, std: float, form: str, boot: float
) -> None:
    job = replace(JOB, problem=replace(JOB.problem, billing=Billing(boot_s=boot, granularity_s=boot)))
    expected = Expected(form, (mean,), (std,))  # type: ignore[arg-type]
    value = target(
        TIMEOUTS[name].censored, ran, expected=expected, oracle=2 * ran, trace=((ran / 2, 0.2), (ran, 0.3)), job=job
    )
    assert value is None or (math.isfinite(value.seconds) and value.seconds >= ran)
