"""Nephele, Fabulinus, Fabolas, TrimTuner and their baselines from end to end, in good and in bad weather."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.engine import explore
from lynceus.executor import Measurements, PretendedClock, TableExecutor
from lynceus.fraction import Fraction
from lynceus.history import End
from lynceus.policy import preset, recommend
from lynceus.policy.answer import BestPredicted, answering
from lynceus.problem import Budget, Problem
from lynceus.situation import Situation
from lynceus.study import Study
from lynceus.surrogate.fabolas import Fabolas
from lynceus.testing import SmallJob
from shares import small_share_job

ON_SAMPLES = ("fabulinus", "fabolas", "trimtuner", "trimtuner-gp")
ON_ALL_DATA = ("eic-full", "ei-full")


def explored(
    name: str,
    problem: Problem,
    measured: Measurements,
    *,
    trials: int = 14,
    timeout: str | None = None,
    parallel: int = 1,
) -> Study:
    clock = PretendedClock()
    bounded = replace(problem, budget=replace(problem.budget, trials=trials))
    study = Study(bounded, preset(name, timeout=timeout), seed=1, name="shares", clock=clock)
    explore(study, TableExecutor(bounded, measured, clock), clock, parallel=parallel)
    return study


def accuracy_job(**changes: object) -> tuple[SmallJob, Problem]:
    job = small_share_job(**changes)  # type: ignore[arg-type]
    return job, job.problem.with_fraction(Fraction("share", "all", "full"))


def truly_feasible(problem: Problem, measured: Measurements, row: int) -> bool:
    return problem.meets_limits(
        row, float(measured.seconds[row]), {"accuracy": float(measured.metrics["accuracy"][row])}
    )


@pytest.mark.parametrize("name", ON_SAMPLES)
def test_samples_are_tested_and_all_data_is_the_answer(name: str) -> None:
    job, problem = accuracy_job()
    study = explored(name, problem, job.measured)
    assert len(study.history) == 14
    assert all(problem.share[seen.row] < 1 for seen in study.history)
    advice = study.recommend()
    assert advice is not None
    assert problem.share[advice.row] == 1
    assert not advice.measured
    if name != "fabolas":
        assert truly_feasible(problem, job.measured, advice.row)
        best = max(
            job.measured.metrics["accuracy"][row]
            for row in np.flatnonzero(problem.share == 1)
            if truly_feasible(problem, job.measured, int(row))
        )
        assert job.measured.metrics["accuracy"][advice.row] > best - 0.05


@pytest.mark.parametrize("name", ON_ALL_DATA)
def test_the_baselines_run_on_all_data_only(name: str) -> None:
    job, problem = accuracy_job()
    study = explored(name, problem, job.measured, trials=8)
    assert all(problem.share[seen.row] == 1 for seen in study.history)
    advice = study.recommend()
    assert advice is not None
    assert advice.measured
    assert truly_feasible(problem, job.measured, advice.row)


def test_any_fraction_may_win_with_nephele() -> None:
    job = small_share_job("accuracy >= 0.87", "runtime <= 300s", goal="cost", budget=Budget(usd=6.0))
    problem = job.problem.with_fraction(Fraction("share"))
    study = explored("nephele", problem, job.measured, trials=36)
    advice = study.recommend()
    kept = [row for row in range(36) if truly_feasible(problem, job.measured, row)]
    cheapest = min(kept, key=lambda row: problem.cost(row, float(job.measured.seconds[row])))
    assert problem.share[cheapest] < 1, "the job must have a sample that wins"
    assert advice is not None
    assert advice.row == cheapest
    assert sum(seen.outcome.charged_usd for seen in study.history) <= 6.0
    start = [seen for seen in study.history if seen.order.plan.why.startswith("Latin")]
    spent = np.cumsum([seen.outcome.charged_usd for seen in start])
    assert (spent[:-1] < 0.6).all(), "the start ends as soon as a tenth of the budget is spent"


@pytest.mark.parametrize("name", [*ON_SAMPLES, *ON_ALL_DATA, "nephele"])
def test_budgets_timeouts_and_parallel_runs(name: str) -> None:
    job, problem = accuracy_job(budget=Budget(usd=2.0))
    if name == "nephele":
        job = small_share_job("accuracy >= 0.9", goal="cost", budget=Budget(usd=2.0))
        problem = job.problem.with_fraction(Fraction("share"))
    study = explored(name, problem, job.measured, trials=12, timeout="capped", parallel=3)
    assert sum(seen.outcome.charged_usd for seen in study.history) <= 2.0 + 1e-9
    assert len(study.history) >= 3
    assert len({seen.row for seen in study.history}) == len(study.history)
    study.recommend()


@pytest.mark.parametrize("name", [*ON_SAMPLES, *ON_ALL_DATA])
@pytest.mark.parametrize("weather", ["constant", "infeasible", "twins", "unreported"])
def test_bad_weather_is_no_crash(name: str, weather: str) -> None:
    job, problem = accuracy_job(**({} if weather != "infeasible" else {"seed": 3}))
    measured = job.measured
    if weather == "constant":
        measured = replace(measured, metrics={"accuracy": np.full(36, 0.5)}, seconds=np.full(36, 50.0))
    elif weather == "infeasible":
        measured = replace(measured, seconds=np.full(36, 5000.0))
    elif weather == "twins":
        measured = replace(measured, seconds=np.round(measured.seconds, -2) + 1.0)
    else:
        measured = replace(measured, metrics={"accuracy": np.full(36, math.nan)})
    study = explored(name, problem, measured, trials=10)
    assert len(study.history) == 10
    assert all(seen.outcome.end is End.FINISHED for seen in study.history)
    advice = study.recommend()
    if weather == "infeasible" and name != "fabolas":
        assert advice is None, "nothing is believed to keep the cap"


def test_without_a_declared_fraction_everything_is_all_data() -> None:
    job = small_share_job()
    study = explored("fabulinus", job.problem, job.measured, trials=12)
    assert len(study.history) == 12
    assert {float(seen) for seen in job.problem.share[[one.row for one in study.history]]} == {1.0}
    assert recommend(job.problem, preset("fabulinus"), study.history, seed=1) is not None


def test_an_answer_rests_on_more_members_than_a_plan() -> None:
    job, problem = accuracy_job()
    history = job.finished([row for row in job.order_of_runs if problem.share[row] < 1][:10])
    situation = Situation.present(problem, history)
    quick = Fabolas()
    careful = answering(quick)
    assert isinstance(careful, Fabolas)
    assert answering(careful) == careful
    members = [len(model.foresee(situation, 3).targets[0].model.weights) for model in (quick, careful)]  # type: ignore[union-attr]
    assert members[0] <= 8 < members[1] <= 32
    assert BestPredicted()(situation, quick, 3) == BestPredicted()(situation, careful, 3)


def test_the_probability_that_is_told_is_that_of_the_answer() -> None:
    job, problem = accuracy_job()
    history = job.finished([row for row in job.order_of_runs if problem.share[row] < 1][:14])
    policy = preset("fabulinus")
    advice = recommend(problem, policy, history, seed=1)
    assert advice is not None
    assert advice.probability >= 0.99
