"""Nephele, Fabulinus, Fabolas, TrimTuner and their baselines from end to end, also on degenerate jobs."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.fabolas import Fabolas
from lynceus.models.state import State
from lynceus.policy.answer import BestPredicted, answering
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import recommend
from lynceus.problem.budget import Budget
from lynceus.problem.data_fraction import Fraction, row_shares
from lynceus.problem.problem import Problem
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.testing.job import SmallJob
from lynceus.trial.outcome import End
from shares import small_share_job

ON_SAMPLES = ("fabulinus", "fabulinus-2019", "fabolas", "trimtuner", "trimtuner-gp")
ON_ALL_DATA = ("eic-full", "ei-full")


def explored(
    name: str,
    problem: Problem,
    measured: Measurements,
    *,
    trials: int = 14,
    timeout: str | None = None,
    lookahead: int | None = None,
    parallel: int = 1,
) -> Study:
    clock = SimulatedClock()
    bounded = replace(problem, budget=replace(problem.budget, trials=trials))
    study = Study(bounded, preset(name, lookahead, timeout), seed=1, name="shares", clock=clock)
    explore(study, TableExecutor(bounded, measured, clock), clock, parallel=parallel)
    return study


def accuracy_job(**changes: object) -> tuple[SmallJob, Problem]:
    job = small_share_job(**changes)  # type: ignore[arg-type]
    return job, Fraction("share", "all", "full").apply(job.problem)


def truly_feasible(problem: Problem, measured: Measurements, row: int) -> bool:
    return problem.meets_constraints(
        row, float(measured.seconds[row]), {"accuracy": float(measured.metrics["accuracy"][row])}
    )


@pytest.mark.parametrize("name", ON_SAMPLES)
def test_samples_are_tested_and_a_run_on_all_data_is_recommended(name: str) -> None:
    job = small_share_job()
    problem = Fraction("share", "samples", "full").apply(job.problem)
    study = explored(name, problem, job.measured)
    assert len(study.observations) == 14
    assert all(row_shares(problem)[seen.row] < 1 for seen in study.observations)
    advice = study.recommend()
    assert advice is not None
    assert row_shares(problem)[advice.row] == 1
    assert not advice.measured
    if name != "fabolas":
        assert truly_feasible(problem, job.measured, advice.row)
        best = max(
            job.measured.metrics["accuracy"][row]
            for row in np.flatnonzero(row_shares(problem) == 1)
            if truly_feasible(problem, job.measured, int(row))
        )
        assert job.measured.metrics["accuracy"][advice.row] > best - 0.05


def test_fabulinus_recommends_only_what_ran_on_all_data() -> None:
    job, problem = accuracy_job()
    study = explored("fabulinus", problem, job.measured, trials=20)
    full = row_shares(problem) == 1
    ran = [seen.row for seen in study.observations]
    checked = [place for place, row in enumerate(ran) if full[row]]
    assert checked, "the recommendation runs on all data"
    assert all(later - earlier > 5 for earlier, later in itertools.pairwise(checked))
    for known in range(1, len(ran) + 1):
        advice = recommend(problem, preset("fabulinus"), study.observations[:known], seed=1)
        assert (advice is None) == (
            not any(truly_feasible(problem, job.measured, ran[p]) for p in checked if p < known)
        )
        if advice is not None:
            assert advice.measured
            assert truly_feasible(problem, job.measured, advice.row)


def test_fabulinus_looks_one_run_ahead_and_no_further() -> None:
    job, problem = accuracy_job()
    study = explored("fabulinus", problem, job.measured, trials=12, lookahead=1)
    assert len({seen.row for seen in study.observations}) == 12
    with pytest.raises(InputError, match="at most 1 run ahead"):
        preset("fabulinus", lookahead=2)


@pytest.mark.parametrize("name", ON_ALL_DATA)
def test_the_baselines_run_on_all_data_only(name: str) -> None:
    job, problem = accuracy_job()
    study = explored(name, problem, job.measured, trials=8)
    assert all(row_shares(problem)[seen.row] == 1 for seen in study.observations)
    advice = study.recommend()
    assert advice is not None
    assert advice.measured
    assert truly_feasible(problem, job.measured, advice.row)


def test_nephele_may_recommend_any_fraction() -> None:
    job = small_share_job("accuracy >= 0.87", "runtime <= 300s", objective="cost", budget=Budget(usd=6.0))
    problem = Fraction("share").apply(job.problem)
    study = explored("nephele", problem, job.measured, trials=36)
    advice = study.recommend()
    feasible = [row for row in range(36) if truly_feasible(problem, job.measured, row)]
    cheapest = min(feasible, key=lambda row: problem.cost(row, float(job.measured.seconds[row])))
    assert row_shares(problem)[cheapest] < 1, "the cheapest feasible run of the job must be on a sample"
    assert advice is not None
    assert advice.row == cheapest
    assert sum(seen.outcome.charged_usd for seen in study.observations) <= 6.0
    start = [seen for seen in study.observations if seen.order.plan.why.startswith("Latin")]
    spent = np.cumsum([seen.outcome.charged_usd for seen in start])
    assert (spent[:-1] < 0.6).all(), "the design ends when a tenth of the budget is spent"


@pytest.mark.parametrize("name", [*ON_SAMPLES, *ON_ALL_DATA, "nephele"])
def test_budgets_timeouts_and_parallel_runs(name: str) -> None:
    job, problem = accuracy_job(budget=Budget(usd=2.0))
    if name == "nephele":
        job = small_share_job("accuracy >= 0.9", objective="cost", budget=Budget(usd=2.0))
        problem = Fraction("share").apply(job.problem)
    study = explored(name, problem, job.measured, trials=12, timeout="capped", parallel=3)
    assert sum(seen.outcome.charged_usd for seen in study.observations) <= 2.0 + 1e-9
    assert len(study.observations) >= 3
    assert len({seen.row for seen in study.observations}) == len(study.observations)
    study.recommend()


@pytest.mark.parametrize("name", [*ON_SAMPLES, *ON_ALL_DATA])
@pytest.mark.parametrize("defect", ["constant", "infeasible", "ties", "unreported"])
def test_degenerate_jobs_are_explored(name: str, defect: str) -> None:
    job, problem = accuracy_job(**({} if defect != "infeasible" else {"seed": 3}))
    measured = job.measured
    if defect == "constant":
        measured = replace(measured, metrics={"accuracy": np.full(36, 0.5)}, seconds=np.full(36, 50.0))
    elif defect == "infeasible":
        measured = replace(measured, seconds=np.full(36, 5000.0))
    elif defect == "ties":
        measured = replace(measured, seconds=np.round(measured.seconds, -2) + 1.0)
    else:
        measured = replace(measured, metrics={"accuracy": np.full(36, math.nan)})
    study = explored(name, problem, measured, trials=10)
    assert len(study.observations) == 10
    assert all(seen.outcome.end is End.FINISHED for seen in study.observations)
    advice = study.recommend()
    if defect == "infeasible" and name != "fabolas":
        assert advice is None, "no configuration is predicted to be feasible"


def test_without_a_data_fraction_every_run_is_on_all_data() -> None:
    job = small_share_job()
    study = explored("fabulinus", job.problem, job.measured, trials=12)
    assert len(study.observations) == 12
    assert {float(seen) for seen in row_shares(job.problem)[[one.row for one in study.observations]]} == {1.0}
    assert recommend(job.problem, preset("fabulinus"), study.observations, seed=1) is not None


def test_a_recommendation_uses_more_members_than_a_plan() -> None:
    job, problem = accuracy_job()
    observations = job.finished([row for row in job.order_of_runs if row_shares(problem)[row] < 1][:10])
    state = State.present(problem, observations)
    fast = Fabolas()
    accurate = answering(fast)
    assert isinstance(accurate, Fabolas)
    assert answering(accurate) == accurate
    members = [len(model.predict_jointly(state, 3).targets[0].model.weights) for model in (fast, accurate)]  # type: ignore[union-attr]
    assert members[0] <= 8 < members[1] <= 32
    assert BestPredicted()(state, fast, 3) == BestPredicted()(state, accurate, 3)


def test_the_reported_probability_is_that_of_the_recommendation() -> None:
    job = small_share_job()
    problem = Fraction("share", "samples", "full").apply(job.problem)
    observations = job.finished([row for row in job.order_of_runs if row_shares(problem)[row] < 1][:14])
    policy = preset("fabulinus")
    advice = recommend(problem, policy, observations, seed=1)
    assert advice is not None
    assert advice.probability >= 0.99
