"""Fills: what the model hears of a run that was stopped, against Monte Carlo and by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.history import End, Expected, Order, Outcome, Plan, Told
from lynceus.parts import Fill
from lynceus.policy import TIMEOUTS
from lynceus.problem import Problem, Tariff
from lynceus.situation import Situation
from lynceus.testing import SmallJob, small_job
from lynceus.timeout import (
    HighestCost,
    LinearProgress,
    LowerBound,
    Nothing,
    PublishedProgram,
    TruncatedMean,
    WholeRun,
)

JOB = small_job("runtime <= 30m")
ROW = 9
PRICE = float(JOB.problem.price[ROW])


def told(
    fill: Fill,
    ran: float,
    *,
    expected: Expected | None = None,
    trace: tuple[tuple[float, float], ...] = (),
    oracle: float | None = None,
    job: SmallJob = JOB,
    runs: int = 4,
) -> Told | None:
    problem: Problem = job.problem
    order = Order(runs, ROW, ran, 1.0, Plan(ROW, why="tested", expected=expected))
    outcome = Outcome(End.CAPPED, ran, problem.cost(ROW, ran), {"accuracy": 0.5}, trace, oracle_s=oracle)
    return fill(problem, order, outcome, Situation.present(problem, job.finished(job.order_of_runs[:runs])))


def heard(value: Told | None) -> Told:
    assert value is not None
    return value


def test_a_lower_bound_is_what_ran() -> None:
    assert told(LowerBound(), 500.0) == Told(500.0, {"accuracy": 0.5}, censored=True, bound_s=500.0)


@pytest.mark.parametrize(("mean", "std", "ran_usd"), [(0.3, 0.1, 0.2), (0.3, 0.1, 0.5), (0.2, 0.02, 0.21)])
def test_truncated_mean_of_cost_is_monte_carlo(mean: float, std: float, ran_usd: float) -> None:
    draws = np.random.default_rng(1).normal(mean, std, 4_000_000)
    above = draws[draws > ran_usd]
    value = heard(told(TruncatedMean(), ran_usd / PRICE, expected=Expected("cost", (mean,), (std,))))
    error = 4 * float(above.std()) / math.sqrt(len(above))
    assert value.seconds * PRICE == pytest.approx(float(above.mean()), abs=error + 1e-9)
    assert value.censored
    assert value.bound_s == pytest.approx(ran_usd / PRICE)


@pytest.mark.parametrize(("mean", "std", "ran"), [(7.0, 0.4, 900.0), (6.0, 0.8, 1500.0)])
def test_truncated_mean_of_log_time_is_monte_carlo(mean: float, std: float, ran: float) -> None:
    draws = np.exp(np.random.default_rng(2).normal(mean, std, 4_000_000))
    above = draws[draws > ran]
    value = heard(told(TruncatedMean(), ran, expected=Expected("log time", (mean,), (std,))))
    assert value.seconds == pytest.approx(float(above.mean()), abs=4 * float(above.std()) / math.sqrt(len(above)))


def test_truncated_mean_counts_the_boot_once() -> None:
    """The model speaks of booted dollars, the told time is the job's own."""
    job = small_job(tariff=Tariff(boot_s=100.0, fee_usd=0.01))
    sure = Expected("cost", (0.01 + 1100.0 * PRICE,), (0.0,))
    assert heard(told(TruncatedMean(), 400.0, expected=sure, job=job)).seconds == pytest.approx(1000.0)


def test_truncated_mean_without_a_belief_is_the_bound() -> None:
    assert heard(told(TruncatedMean(), 321.0)).seconds == 321.0


def test_a_model_that_was_sure_of_less_is_overruled_by_the_facts() -> None:
    value = heard(told(TruncatedMean(), 700.0, expected=Expected("cost", (0.01,), (0.0,))))
    assert value.seconds == pytest.approx(700.0)


def test_linear_progress_is_read_off_the_line() -> None:
    trace = tuple((30.0 * i, 0.01 * i) for i in range(1, 11))
    value = heard(told(LinearProgress(target=0.85), 300.0, trace=trace))
    assert value.seconds == pytest.approx(30.0 * 85)
    assert value.censored


def test_linear_progress_is_least_squares_of_time_on_progress() -> None:
    rng = np.random.default_rng(3)
    times = np.arange(30.0, 330.0, 30.0)
    progress = 0.001 * times + rng.normal(0, 0.01, len(times))
    slope, offset = np.polyfit(progress, times, 1)
    value = heard(told(LinearProgress(0.85), 300.0, trace=tuple(zip(times.tolist(), progress.tolist(), strict=True))))
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
def test_linear_progress_with_little_to_see(trace: tuple[tuple[float, float], ...], seconds: float) -> None:
    """One point is a line through the origin; where nothing can be read the truncated mean stands in (here: the bound)."""
    assert heard(told(LinearProgress(0.85), 321.0, trace=trace)).seconds == pytest.approx(seconds)


def test_highest_cost_is_that_of_the_dearest_run() -> None:
    rows = JOB.order_of_runs[:4]
    dearest = max(float(JOB.problem.price[row] * JOB.measured.seconds[row]) for row in rows)
    assert heard(told(HighestCost(), 10.0)).seconds == pytest.approx(dearest / PRICE)
    assert heard(told(HighestCost(), 1e6)).seconds == 1e6
    assert heard(told(HighestCost(), 10.0, runs=0)).seconds == 10.0


def test_nothing_is_nothing() -> None:
    assert told(Nothing(), 100.0) is None


def test_ideal_is_the_truth_and_only_a_table_knows_it() -> None:
    assert told(WholeRun(), 100.0, oracle=777.0) == Told(777.0, {"accuracy": 0.5})
    with pytest.raises(InputError, match=r"'ideal' needs to know the end of a stopped run.* choose 'tg' for live runs"):
        told(WholeRun(), 100.0)


def test_the_published_program() -> None:
    fill = PublishedProgram(target=0.85, tick_s=30.0)
    belief = Expected("cost", (0.3,), (0.1,))
    rising = tuple((30.0 * i, 0.05 * i) for i in range(1, 21))
    late = told(fill, 1800.0, oracle=5000.0, trace=rising, expected=belief)
    assert late == Told(5000.0, {"accuracy": 0.5}), "stopped at the deadline: the truth"
    at_target = told(fill, 540.0, oracle=5000.0, trace=rising, expected=belief)
    assert at_target == Told(540.0, {"accuracy": 0.5}), "at the target already: what it cost"
    none_yet = told(fill, 10.0, oracle=5000.0, expected=belief)
    assert none_yet == Told(5000.0, {"accuracy": 0.5}), "no progress yet: the truth"
    between = told(fill, 300.0, oracle=5000.0, trace=rising, expected=belief)
    assert between == told(TruncatedMean(), 300.0, expected=belief)
    with pytest.raises(InputError, match="'authors' repeats a replay program"):
        told(fill, 100.0)


@given(
    name=st.sampled_from(sorted(TIMEOUTS)),
    ran=st.floats(1e-3, 1e5),
    mean=st.floats(-5, 5),
    std=st.floats(0, 10),
    form=st.sampled_from(["cost", "log time"]),
    boot=st.sampled_from([0.0, 100.0]),
)
def test_never_below_what_ran(name: str, ran: float, mean: float, std: float, form: str, boot: float) -> None:
    job = replace(JOB, problem=replace(JOB.problem, tariff=Tariff(boot_s=boot, granularity_s=boot)))
    expected = Expected(form, (mean,), (std,))  # type: ignore[arg-type]
    value = told(
        TIMEOUTS[name].fill, ran, expected=expected, oracle=2 * ran, trace=((ran / 2, 0.2), (ran, 0.3)), job=job
    )
    assert value is None or (math.isfinite(value.seconds) and value.seconds >= ran)
