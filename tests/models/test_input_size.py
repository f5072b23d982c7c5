"""Predictions for inputs that never ran, against jobs whose true time is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from lynceus.models.input_coordinates import coordinates
from lynceus.models.input_size import InputModel, predict_at_input
from lynceus.policy.input_answer import best_at_input
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space import Categorical, Ordinal, Space
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget

NODES = [1, 2, 4, 8, 16, 32]
SPACE = Space.build(
    [Categorical("vm", ["c", "m", "r"]), Ordinal("nodes", NODES)],
    price="nodes * (0.1 if vm == 'c' else 0.13 if vm == 'm' else 0.17)",
)
Truth = Callable[[dict[str, object], float], float]


def linear(params: dict[str, object], gb: float) -> float:
    """A fixed start, and data that are divided among the machines."""
    speed = {"c": 1.25, "m": 1.0, "r": 0.9}[str(params["vm"])]
    return 30.0 + 20.0 * gb / speed / float(str(params["nodes"])) ** 0.9


def cliff(params: dict[str, object], gb: float) -> float:
    """The same, four times slower where the data of a machine exceed its memory."""
    memory = {"c": 4.0, "m": 8.0, "r": 16.0}[str(params["vm"])] * float(str(params["nodes"]))
    return linear(params, gb) * (4.0 if gb > memory else 1.0)


def runs(
    truth: Truth, inputs: Sequence[JobInput], rows: Sequence[int] = range(len(SPACE)), noise: float = 0.0, seed: int = 0
) -> Observations:
    generator = np.random.default_rng(seed)
    found: list[Observation] = []
    for given in inputs:
        for row in rows:
            seconds = truth(SPACE.point(row), given.numbers.get("size", 50e9) / 1e9) * math.exp(
                noise * generator.standard_normal()
            )
            order = Order(len(found), row, math.inf, 0.0, Plan(row, "test"), input=given)
            outcome = Outcome(End.FINISHED, seconds, 0.0, {"rows": given.numbers.get("size", 1.0) / 1e9})
            found.append(Observation(order, outcome, TrainingTarget(seconds, outcome.metrics)))
    return tuple(found)


def gb(amount: float) -> JobInput:
    return JobInput.read({"size": amount * 1e9})


def truths(truth: Truth, amount: float) -> np.ndarray:
    return np.array([truth(SPACE.point(row), amount) for row in range(len(SPACE))])


def test_several_sizes_tell_a_size_that_never_ran() -> None:
    believed = predict_at_input(Problem(SPACE), runs(linear, [gb(25), gb(50), gb(100)]), gb(200))
    assert believed is not None
    error = believed.prediction.mean[0, :, 0] - np.log(truths(linear, 200))
    assert np.abs(error).max() < 0.4
    assert np.abs(error).mean() < 0.1


def test_doubt_grows_with_the_distance_from_what_ran() -> None:
    model = InputModel.fit(Problem(SPACE), runs(linear, [gb(50), gb(60)], noise=0.03))
    assert model is not None
    stds = [float(model.at(gb(size)).prediction.std[0, :, 0].mean()) for size in (55, 110, 220, 880)]
    assert stds == sorted(stds)
    assert stds[-1] > 3 * stds[0]


def test_runs_on_more_than_one_size_reduce_the_doubt() -> None:
    one = predict_at_input(Problem(SPACE), runs(linear, [gb(50)]), gb(200))
    three = predict_at_input(Problem(SPACE), runs(linear, [gb(25), gb(50), gb(100)]), gb(200))
    assert one is not None
    assert three is not None
    assert three.prediction.std[0, :, 0].mean() < 0.6 * one.prediction.std[0, :, 0].mean()


def test_intervals_of_80_percent_cover_about_80_percent() -> None:
    """Over jobs whose growth is drawn from what is believed of jobs: 0.85 ± 0.2 with the size, one size run, twice as much asked."""
    generator, inside = np.random.default_rng(5), []
    for job in range(60):
        growth, scaling = generator.normal(0.85, 0.2), generator.uniform(0.3, 0.9)

        def truth(params: dict[str, object], size: float, growth: float = growth, scaling: float = scaling) -> float:
            return 20.0 * size**growth / float(str(params["nodes"])) ** scaling

        rows = generator.choice(len(SPACE), 8, replace=False).tolist()
        believed = predict_at_input(Problem(SPACE), runs(truth, [gb(50)], rows, noise=0.05, seed=job), gb(100))
        assert believed is not None
        error = np.log(truths(truth, 100)) - believed.prediction.mean[0, :, 0]
        inside.append(np.abs(error) <= 1.2816 * believed.prediction.std[0, :, 0])
    assert 0.7 <= np.mean(inside) <= 0.97


def test_where_runs_do_not_vary_what_was_measured_counts() -> None:
    """A configuration that is 15 % faster than its neighbours is taken for luck where runs vary, and for what it is where they do not."""
    fast = 7

    def truth(params: dict[str, object], size: float) -> float:
        return linear(params, size) * (0.85 if params == SPACE.point(fast) else 1.0)

    seen = runs(truth, [gb(50)], rows=[3, 5, 6, 7, 8, 9, 11], noise=0.0)
    errors = []
    for exact in (False, True):
        believed = predict_at_input(Problem(SPACE, deterministic=exact), seen, gb(50))
        assert believed is not None
        errors.append(abs(float(believed.prediction.mean[0, fast, 0]) - math.log(truth(SPACE.point(fast), 50))))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.01


def test_memory_that_suffices_for_less_data_is_not_trusted_with_more() -> None:
    """The cheapest row at 60 GB is just below its wall of memory; with twice the data it is four times slower."""
    problem = Problem(SPACE)
    seen = runs(cliff, [gb(60)])
    small = best_at_input(problem, predict_at_input(problem, seen, gb(60)).prediction)  # type: ignore[union-attr]
    large = best_at_input(problem, predict_at_input(problem, seen, gb(120)).prediction)  # type: ignore[union-attr]
    costs = {size: truths(cliff, size) * problem.price for size in (60, 120)}
    assert costs[60][small] <= 1.1 * costs[60].min()
    assert costs[120][large] <= 1.35 * costs[120].min()


def test_totals_of_a_cluster_move_with_its_machines() -> None:
    space = Space.build(
        [Categorical("vm", ["a", "b"]), Ordinal("nodes", [2, 4, 8])],
        price="nodes * (1 if vm == 'a' else 2)",
    )
    table = {"vm": ["a", "a", "b", "b"], "nodes": [2, 4, 2, 4], "ram_gb": [8, 8, 16, 16], "total_gb": [16, 32, 32, 64]}
    both = Space.from_table({**table, "usd": [1, 2, 2, 4]}, ["vm", "nodes"], ["nodes", "ram_gb", "total_gb"], "usd")
    assert coordinates(space).price_moves
    found = coordinates(both)
    moving = dict(zip(["nodes", "ram_gb", "total_gb", "price"], found.shift.tolist(), strict=True))
    assert moving["nodes"] < 0
    assert moving["total_gb"] < 0
    assert moving["price"] < 0
    assert moving["ram_gb"] == 0


def test_without_machines_memory_moves_with_the_data() -> None:
    space = Space.build([Ordinal("threads", [1, 2]), Ordinal("memory_gib", [4, 8])], price="threads")
    assert coordinates(space).shift.tolist()[:2] == [0.0, pytest.approx(-1 / (math.log(2) / 2))]
    assert not coordinates(space).price_moves


def test_a_stopped_run_only_says_that_it_takes_longer() -> None:
    seen = list(runs(linear, [gb(50)], rows=[0, 2, 4, 5]))
    bound = TrainingTarget(100.0, censored=True, bound_s=100.0)
    late = Observation(
        Order(9, 12, 100.0, 0.0, Plan(12, "test"), input=gb(50)), Outcome(End.TIMEOUT, 100.0, 0.0), bound
    )
    believed = predict_at_input(Problem(SPACE), (*seen, late), gb(50))
    assert believed is not None
    assert float(believed.prediction.run().sf(100.0)[0, 12]) > 0.9


def test_names_have_a_level_of_their_own_and_share_their_shape() -> None:
    files = {"a": 40.0, "b": 80.0, "c": 55.0}
    seen: list[Observation] = []
    for name, amount in files.items():
        for one in runs(linear, [gb(amount)]):
            order = Order(len(seen), one.row, math.inf, 0.0, Plan(one.row, "test"), input=JobInput.read({"file": name}))
            seen.append(Observation(order, one.outcome, one.target))
    problem = Problem(SPACE)
    known = predict_at_input(problem, tuple(seen), JobInput.read("file=b"))
    new = predict_at_input(problem, tuple(seen), JobInput.read("file=d"))
    assert known is not None
    assert new is not None
    assert np.abs(known.prediction.mean[0, :, 0] - np.log(truths(linear, 80))).max() < 0.1
    assert new.prediction.std[0, :, 0].mean() > 2 * known.prediction.std[0, :, 0].mean()
    row, costs = best_at_input(problem, new.prediction), truths(linear, 60) * problem.price
    assert costs[row] <= 1.1 * costs.min()
    assert math.isnan(new.growth)


def test_the_deadline_tells_how_large_an_input_without_a_size_is() -> None:
    seen = runs(linear, [JobInput.read("file=a")])
    levels = []
    for deadline in (100.0, 10_000.0):
        problem = Problem(SPACE, constraints=(Constraint("time", deadline),))
        believed = predict_at_input(problem, seen, JobInput.read("file=b"))
        assert believed is not None
        levels.append(float(believed.prediction.mean[0, :, 0].mean()))
    assert levels[0] < levels[1]


def test_metrics_grow_with_the_input_too() -> None:
    problem = Problem(SPACE, constraints=(Constraint("rows", 1e9),))
    believed = predict_at_input(problem, runs(linear, [gb(25), gb(50), gb(100)]), gb(200))
    assert believed is not None
    assert np.allclose(np.exp(believed.prediction.mean[0, :, 1]), 200, rtol=0.15)


def test_another_unit_of_time_changes_no_answer() -> None:
    seen = runs(linear, [gb(25), gb(50)], rows=[0, 1, 3, 6, 9, 14])
    slow = tuple(Observation(one.order, one.outcome, TrainingTarget(one.outcome.seconds * 1000.0)) for one in seen)
    first, second = (predict_at_input(Problem(SPACE), each, gb(100)) for each in (seen, slow))
    assert first is not None
    assert second is not None
    assert np.allclose(second.prediction.mean[0, :, 0] - first.prediction.mean[0, :, 0], math.log(1000.0), atol=1e-6)
    assert np.allclose(second.prediction.std[0, :, 0], first.prediction.std[0, :, 0], atol=1e-6)


def test_nothing_is_said_without_a_run() -> None:
    assert predict_at_input(Problem(SPACE), (), gb(50)) is None
