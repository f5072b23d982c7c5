"""Published systems that learn from earlier jobs: surrogates that fall back without a history and find a sibling's optimum with one."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.past_pairs import runs_of_history
from lynceus.models.past_systems import (
    FingerprintForest,
    MatrixFactors,
    NearestPast,
    PastModel,
    RankedEnsemble,
    past_logs,
)
from lynceus.models.state import State
from lynceus.policy.past_systems import reads_history
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.history import PastJob
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Ordinal
from lynceus.space.table import Space
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.testing import check_surrogate

SPACE = Space.build(
    [Ordinal("nodes", [2, 4, 8, 16, 32]), Ordinal("memory_gib", [8, 16, 32])], price="0.1 * nodes * memory_gib / 8"
)
NODES, MEMORY = (np.array([float(one) for one in SPACE.columns[name].tolist()]) for name in ("nodes", "memory_gib"))
MODELS = [FingerprintForest(trees=30), MatrixFactors(), NearestPast(), RankedEnsemble()]
SYSTEMS = ["paris", "quasar", "ottertune", "karasu", "flora", "scout"]


def seconds_with(data_gb: float) -> FloatArray:
    return np.asarray(40.0 * data_gb / NODES**0.9 * np.where(data_gb > MEMORY * NODES, 5.0, 1.0))


def past(seconds: FloatArray, name: str) -> PastJob:
    columns = {column: tuple(cells.tolist()) for column, cells in SPACE.columns.items()}
    rate = {"rate": tuple((1e4 / seconds).tolist())}
    return PastJob(name, columns, tuple(seconds.tolist()), (False,) * len(seconds), metrics=rate)


HISTORY = tuple(past(seconds_with(size), f"size {size}") for size in (60.0, 90.0, 100.0, 250.0))


def problem_with(*history: PastJob, objective: str = "cost") -> Problem:
    limits = (Constraint("time", 900.0),)
    return Problem(
        SPACE, Objective.parse(objective), limits, budget=Budget(usd=1000.0), history=history, deterministic=True
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_they_are_surrogates_without_a_history(model: PastModel) -> None:
    check_surrogate(model)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("objective", ["cost", "maximize rate"])
def test_relatives_make_predictions_better(model: PastModel, objective: str) -> None:
    truth = seconds_with(95.0)
    problem = problem_with(*HISTORY, objective=objective)
    study = Study(problem, preset("sweep"))
    study.add_trials(
        [(SPACE.point(row), float(truth[row]), {"rate": 1e4 / float(truth[row])}) for row in (0, 5, 10, 14)]
    )
    state = State.present(problem, study.observations)
    found = model(state, 0)
    plain = model(State.present(problem_with(objective=objective), study.observations), 0)
    targets = [np.log(truth), np.log(1e4 / truth)][: state.targets]
    for target, logs in enumerate(targets):
        error = np.abs(found.mean[0, :, target] - logs).mean()
        assert error < 0.6 * np.abs(plain.mean[0, :, target] - logs).mean()
    assert (found.std > 0).all()


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_searches_with_and_without_a_history(name: str) -> None:
    truth = seconds_with(95.0)
    best = float(np.where(truth <= 900.0, truth * 0.1 * NODES * MEMORY / 8 / 3600, np.inf).min())
    for history in (HISTORY, ()):
        problem, clock = problem_with(*history), SimulatedClock()
        study = Study(problem, preset(name), clock=clock)
        explore(study, TableExecutor(problem, Measurements(truth), clock), clock)
        assert study.observations
        if history and name != "scout":
            assert study.best_value == pytest.approx(best, rel=0.1)
    assert reads_history(preset(name))
    assert compose(describe(preset(name))) == preset(name)


def test_past_jobs_that_lack_a_metric_are_left_out() -> None:
    silent = PastJob("silent", HISTORY[0].columns, HISTORY[0].seconds, HISTORY[0].stopped)
    assert past_logs(problem_with(*HISTORY, silent)).shape == (5, len(SPACE))
    assert past_logs(problem_with(*HISTORY, silent, objective="maximize rate"), "rate").shape == (4, len(SPACE))


def test_scout_learns_from_a_history_of_two_jobs() -> None:
    assert runs_of_history(problem_with(HISTORY[0])) is None
    found = runs_of_history(problem_with(*HISTORY))
    assert found is not None
    assert len(found.seconds) == len(HISTORY) * len(SPACE)
