"""Learning from past jobs: weights follow the evidence, misleading history loses, and conditioning agrees with brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.past_match import match, past_curves
from lynceus.models.state import State
from lynceus.models.transfer import _NOISE, Transfer, _correlation, _fit, _hypotheses
from lynceus.policy.default import MODEL
from lynceus.problem.budget import Budget
from lynceus.problem.history import PastJob
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.testing import check_surrogate
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget


def space_of(memory: str = "memory_gib", factor: float = 1.0) -> Space:
    sizes = Mapped(memory, "vm", {"small": 8 * factor, "medium": 16 * factor, "large": 32 * factor})
    return Space.build(
        [Categorical("vm", ["small", "medium", "large"]), Ordinal("nodes", [2, 4, 8, 16, 32])],
        derived=[sizes],
        price="0.1 * nodes * (1 if vm == 'small' else 2 if vm == 'medium' else 4)",
    )


SPACE = space_of()
MEMORY = np.array([float(one) for one in SPACE.columns["memory_gib"].tolist()])
NODES = np.array([float(one) for one in SPACE.columns["nodes"].tolist()])


def seconds_with(data_gb: float) -> FloatArray:
    """A job that scales with nodes and is five times slower where its data do not fit into memory."""
    slow = np.where(data_gb > MEMORY * NODES, 5.0, 1.0)
    return np.asarray(40.0 * data_gb / NODES**0.9 * slow)


def past(seconds: FloatArray, name: str = "past") -> PastJob:
    columns = {name_: tuple(column.tolist()) for name_, column in SPACE.columns.items()}
    return PastJob(name, columns, tuple(seconds.tolist()), (False,) * len(seconds))


def problem_with(*history: PastJob) -> Problem:
    return Problem(SPACE, constraints=(Constraint("time", 600.0),), budget=Budget(usd=100.0), history=history)


def seen(rows: list[int], seconds: FloatArray, timeout_s: float = 1e9) -> tuple[Observation, ...]:
    found = []
    for number, row in enumerate(rows):
        order = Order(number, row, timeout_s, 1.0, Plan(row, why=""))
        if seconds[row] <= timeout_s:
            found.append(
                Observation(order, Outcome(End.FINISHED, seconds[row], 0.1), TrainingTarget(float(seconds[row])))
            )
        else:
            target = TrainingTarget(timeout_s, censored=True, bound_s=timeout_s)
            found.append(Observation(order, Outcome(End.TIMEOUT, timeout_s, 0.1), target))
    return tuple(found)


ROWS = [0, 12, 3, 9, 14, 6]


def test_without_history_it_is_the_wrapped_model() -> None:
    state = State.present(problem_with(), seen(ROWS, seconds_with(100)))
    inner, wrapped = MODEL(state, 3), Transfer(MODEL)(state, 3)
    assert np.array_equal(inner.mean, wrapped.mean)
    assert np.array_equal(inner.std, wrapped.std)


def test_it_is_a_surrogate() -> None:
    check_surrogate(Transfer(MODEL))


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_sibling_gains_weight_and_predicts_better(factor: float) -> None:
    truth = seconds_with(100.0 * factor)
    state = State.present(problem_with(past(seconds_with(100.0))), seen(ROWS[:4], truth))
    model = Transfer(MODEL)
    assert model.weights(state)["past"] > 0.9
    errors = [np.abs(one(state, 0).mean[0, :, 0] - np.log(truth)).mean() for one in (model, MODEL)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("misleading", ["inverted", "shuffled"])
def test_misleading_history_loses_its_weight(misleading: str) -> None:
    truth = seconds_with(100.0)
    logs = np.log(truth)
    wrong = np.exp(2 * logs.mean() - logs)
    if misleading == "shuffled":
        wrong = np.random.default_rng(4).permutation(truth)
    state = State.present(problem_with(past(wrong)), seen(ROWS, truth))
    model = Transfer(MODEL)
    before = model.weights(State.present(problem_with(past(wrong)), ()))["past"]
    assert before == pytest.approx(0.5)
    assert model.weights(state)["past"] < 0.1
    errors = [np.abs(one(state, 0).mean[0, :, 0] - logs).mean() for one in (model, MODEL)]
    assert errors[0] < 1.25 * errors[1]


def test_past_jobs_that_tell_nothing_of_each_other_are_trusted_less() -> None:
    random = np.random.default_rng(1)
    strangers = [past(np.exp(random.normal(6.0, 1.0, len(SPACE))), f"stranger {i}") for i in range(4)]
    weights = Transfer(MODEL).weights(State.present(problem_with(*strangers), ()))
    assert 1.0 - weights[""] < 0.15
    relatives = [past(seconds_with(size), f"size {size}") for size in (90.0, 100.0, 110.0)]
    weights = Transfer(MODEL).weights(State.present(problem_with(*relatives), ()))
    assert 1.0 - weights[""] > 0.45


def test_imagined_runs_condition_as_real_ones_do() -> None:
    truth = seconds_with(100.0)
    state = State.present(problem_with(past(seconds_with(90.0))), seen(ROWS[:3], truth))
    rows, logs = np.array([[9, 14]]), np.log(truth[[9, 14]])
    imagined = replace(state, imagined_rows=rows, imagined_targets=logs[None, :, None])
    later = State.present(state.problem, seen([*ROWS[:3], 9, 14], truth))
    hypothesis = _hypotheses(SPACE, state.problem.history, 0.5, 600.0)[-1]
    every = np.arange(len(SPACE))
    before = _fit(hypothesis, state, _correlation(SPACE, every, state.rows))
    after = _fit(hypothesis, later, _correlation(SPACE, every, later.rows))
    for one, other in zip(before.predict(imagined), after.predict(later), strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_the_evidence_is_the_density_of_the_runs() -> None:
    truth = seconds_with(100.0)
    state = State.present(problem_with(past(seconds_with(90.0))), seen(ROWS, truth))
    every, rows = np.arange(len(SPACE)), state.rows
    for hypothesis in _hypotheses(SPACE, state.problem.history, 0.5, 600.0)[:4]:
        fit = _fit(hypothesis, state, _correlation(SPACE, every, rows))
        among = hypothesis.covariance(_correlation(SPACE, rows, rows), rows, rows) + _NOISE**2 * np.eye(len(rows))
        gap = np.log(truth[rows]) - hypothesis.mean[rows]
        expected = -0.5 * (gap @ np.linalg.solve(among, gap) + np.linalg.slogdet(2 * np.pi * among)[1])
        assert fit.evidence == pytest.approx(expected, abs=1e-6)


def test_stopped_runs_count_as_longer() -> None:
    truth = seconds_with(100.0)
    faster = past(truth / 50, "fifty times faster")
    slower = past(truth * 1.1, "as slow")
    state = State.present(problem_with(faster, slower), seen(ROWS[:4], truth, timeout_s=100.0))
    weights = Transfer(MODEL).weights(state)
    assert weights["as slow"] > weights["fifty times faster"]


def test_columns_match_by_name_and_unit() -> None:
    job = PastJob("mib", {"memory_mib": (8192, 16384, 32768), "nodes": (2, 4, 8)}, (1.0, 2.0, 3.0), (False,) * 3)
    found = match(SPACE, job)
    assert [SPACE.feature_names[place] for place in found.used] == ["nodes", "memory_gib"]
    assert found.features[:, 1].tolist() == [8.0, 16.0, 32.0]
    assert found.notes == ()


def test_machines_are_compared_by_their_sizes_and_the_rest_is_said() -> None:
    columns = {"vm": ("r9", "r9", "r10"), "memory_gib": (24, 24, 48)}
    found = match(SPACE, PastJob("other cloud", columns, (1.0, 2.0, 3.0), (False,) * 3))
    assert len(found.runs) == 3, "the name of a machine is not needed where its memory is known"
    assert found.notes == ("other cloud has no column nodes; it is compared by the others",)
    nothing = PastJob("elsewhere", {"colour": ("red",) * 3}, (1.0, 2.0, 3.0), (False,) * 3)
    assert match(SPACE, nothing).notes == ("elsewhere has no column in common with this space; it is not used",)
    assert past_curves(SPACE, (nothing,)) == []
    few = PastJob("few", {"nodes": (2,), "memory_gib": (8,)}, (1.0,), (False,))
    assert "so it is not used" in match(SPACE, few).notes[0]
