"""Learning from past jobs: weights follow the evidence, misleading history loses, and conditioning agrees with brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.past_curves import credibility, metric_curve, time_curves
from lynceus.models.past_match import match
from lynceus.models.state import State
from lynceus.models.transfer import _NOISE, correlation, fitted, hypotheses_of, past_weights, posteriors, usable_history
from lynceus.problem.budget import Budget
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
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


def weights_of(problem: Problem, observations: tuple[Observation, ...]) -> dict[str, float]:
    return past_weights(posteriors(State.present(problem, observations)))


def misleading(how: str, truth: FloatArray) -> FloatArray:
    logs = np.log(truth)
    return np.random.default_rng(4).permutation(truth) if how == "shuffled" else np.exp(2 * logs.mean() - logs)


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_a_sibling_gains_weight_and_predicts(factor: float) -> None:
    truth = seconds_with(100.0 * factor)
    state = State.present(problem_with(past(seconds_with(100.0))), seen(ROWS[:4], truth))
    found = posteriors(state)
    assert past_weights(found)["past"] > 0.7
    best = max((one for one in found if one.job), key=lambda one: one.weight)
    fit = best.fits[0]
    assert fit is not None
    mean, covariance = fit.moments(SPACE, np.arange(len(SPACE)))
    assert np.abs(mean - np.log(truth)).mean() < 0.25
    assert (np.diag(covariance) > 0).all()


def test_sizes_say_for_how_much_data_a_past_job_is_read() -> None:
    """Four times the data: known before any run, and wrong sizes lose against the runs."""
    truth, small = seconds_with(400.0), past(seconds_with(100.0))
    errors = {}
    for size in (None, "400 GB", "25 GB"):
        told = replace(small, input=JobInput.read("100 GB"))
        problem = replace(problem_with(told), constraints=(), input=None if size is None else JobInput.read(size))
        for runs in (0, 4):
            state = State.present(problem, seen(ROWS[:runs], truth))
            believed = [one for one in posteriors(state) if one.job]
            total = sum(one.weight for one in believed)
            fits = [(one.weight / total, fit) for one in believed if (fit := one.fits[0]) is not None]
            mean = sum(weight * fit.moments(SPACE, np.arange(len(SPACE)))[0] for weight, fit in fits)
            errors[size, runs] = float(np.abs(mean - np.log(truth)).mean())
    assert errors["400 GB", 0] < 0.5 * errors[None, 0]
    assert errors["25 GB", 0] > errors[None, 0]
    assert max(errors[size, 4] for size in ("400 GB", "25 GB")) < 0.4


@pytest.mark.parametrize("how", ["inverted", "shuffled"])
def test_misleading_history_is_not_believed_before_any_run(how: str) -> None:
    truth = seconds_with(100.0)
    wrong = past(misleading(how, truth))
    assert credibility(SPACE, past(truth)) > 0.5
    assert credibility(SPACE, wrong) < 0.1
    weights = weights_of(problem_with(wrong), ())
    assert weights.get("past", 0.0) < 0.05


def test_an_adversarial_history_loses_its_weight() -> None:
    wrong = past(np.asarray(40.0 * 100.0 / NODES**0.9 * (MEMORY / 8) ** -1.5), "wants memory")
    before = weights_of(problem_with(wrong), ())
    after = weights_of(problem_with(wrong), seen(list(range(0, 15, 2)), np.asarray(40.0 * 100 / NODES**0.9)))
    assert before["wants memory"] > 0.3
    assert after["wants memory"] < 0.1


def test_past_jobs_that_tell_nothing_of_each_other_are_trusted_less() -> None:
    random = np.random.default_rng(1)
    smooth = [
        40.0 * 100 / NODES**p * (MEMORY / 16) ** m for p, m in zip(random.uniform(0, 2, 4), (-3, 2, 0, 3), strict=True)
    ]
    strangers = [past(np.asarray(one), f"stranger {i}") for i, one in enumerate(smooth)]
    relatives = [past(seconds_with(size), f"size {size}") for size in (90.0, 100.0, 110.0)]
    assert weights_of(problem_with(*strangers), ())[""] > weights_of(problem_with(*relatives), ())[""] + 0.1


def test_jobs_of_another_family_do_not_count() -> None:
    problem = problem_with(replace(past(seconds_with(100.0)), related=False))
    assert usable_history(problem) == ()
    assert [one.job for one in posteriors(State.present(problem, ()))] == ["", ""]


def test_the_deadlines_tell_the_level() -> None:
    sibling = replace(past(seconds_with(100.0)), deadline_s=600.0)
    as_it_was, doubled = (
        problem_with(sibling).with_constraints((Constraint("time", limit),)) for limit in (600.0, 1200.0)
    )
    means = []
    for problem in (as_it_was, doubled):
        found = [one for one in hypotheses_of(problem) if one.job]
        process = [one.processes[0] for one in found]
        means.append(
            sum(one.prior * each.mean.mean() for one, each in zip(found, process, strict=True) if each is not None)
        )
    assert 0.4 < (means[1] - means[0]) / sum(one.prior for one in found) < 0.8, "about ln 2"


def test_the_evidence_is_the_density_of_the_runs_and_the_moments_those_of_a_gaussian_process() -> None:
    truth = seconds_with(100.0)
    rows, every = np.array(ROWS), np.arange(len(SPACE))
    for hypothesis in hypotheses_of(problem_with(past(seconds_with(90.0))))[:6]:
        process = hypothesis.processes[0]
        assert process is not None
        fit = fitted(process, SPACE, rows, np.log(truth[rows]), np.zeros(len(rows), dtype=bool))
        among = process.covariance(correlation(SPACE, rows, rows), rows, rows) + _NOISE**2 * np.eye(len(rows))
        gap = np.log(truth[rows]) - process.mean[rows]
        expected = -0.5 * (gap @ np.linalg.solve(among, gap) + np.linalg.slogdet(2 * np.pi * among)[1])
        assert fit.evidence == pytest.approx(expected, abs=1e-6)
        cross = process.covariance(correlation(SPACE, every, rows), every, rows)
        mean, covariance = fit.moments(SPACE, every)
        assert mean == pytest.approx(process.mean + cross @ np.linalg.solve(among, gap), abs=1e-8)
        prior = process.covariance(correlation(SPACE, every, every), every, every)
        assert covariance == pytest.approx(prior - cross @ np.linalg.solve(among, cross.T), abs=1e-8)


def test_a_stopped_run_has_the_moments_of_a_truncated_normal() -> None:
    process = hypotheses_of(problem_with(past(seconds_with(90.0))))[0].processes[0]
    assert process is not None
    row = np.array([3])
    bound = process.mean[row] + 0.2
    fit = fitted(process, SPACE, row, bound, np.array([True]))
    own = float(process.covariance(np.ones((1, 1)), row, row)[0, 0])
    random = np.random.default_rng(0)
    truth = process.mean[row] + np.sqrt(own) * random.standard_normal(400_000)
    noisy = truth + _NOISE * random.standard_normal(len(truth))
    kept = truth[noisy > bound]
    mean, covariance = fit.moments(SPACE, row)
    assert mean[0] == pytest.approx(kept.mean(), abs=0.01)
    assert covariance[0, 0] == pytest.approx(kept.var(), rel=0.03)
    assert fit.evidence == pytest.approx(np.log(len(kept) / len(truth)), abs=0.01)


def test_draws_have_the_moments() -> None:
    state = State.present(problem_with(past(seconds_with(100.0))), seen(ROWS[:3], seconds_with(100.0)))
    one = max(posteriors(state), key=lambda one: one.weight)
    fit, rows = one.fits[0], np.array([1, 4, 7])
    assert fit is not None
    (drawn,) = one.draws(SPACE, rows, np.random.default_rng(2).standard_normal((1, 40_000, 3)))
    assert drawn is not None
    mean, covariance = fit.moments(SPACE, rows)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(covariance, abs=0.02)


def test_stopped_runs_count_as_longer() -> None:
    truth = seconds_with(100.0)
    faster = past(truth / 50, "fifty times faster")
    slower = past(truth * 1.1, "as slow")
    weights = weights_of(problem_with(faster, slower), seen(ROWS[:4], truth, timeout_s=100.0))
    assert weights["as slow"] > weights["fifty times faster"]


def test_metrics_are_learnt_by_their_logarithm() -> None:
    truth = seconds_with(100.0)
    told = replace(past(truth), metrics={"tokens": tuple((1000 / truth).tolist())})
    problem = replace(problem_with(told), objective=Objective.parse("maximize tokens"))
    assert usable_history(problem) == (told,)
    assert usable_history(replace(problem, history=(past(truth),))) == (), "it never reported the objective"
    curve = metric_curve(SPACE, told, "tokens")
    assert curve is not None
    assert np.abs(curve.mean - np.log(1000 / truth)).max() < 0.2


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
    assert time_curves(SPACE, nothing) == ()
    few = PastJob("few", {"nodes": (2,), "memory_gib": (8,)}, (1.0,), (False,))
    assert "so it is not used" in match(SPACE, few).notes[0]
