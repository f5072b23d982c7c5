"""The distribution of formulas, against Monte Carlo."""

import numpy as np
import pytest

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.distribution import LogNormal, Normal
from lynceus.models.formula_moments import as_log_normal, spread
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.problem.billing import Billing
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Integer
from lynceus.space.table import Space

SPACE = Space.build([Integer("pods", 1, 4)], price="0.5 * pods")
DRAWS = 400_000


def drawn(problem: Problem, prediction: Prediction, row: int) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The objective of many imagined runs in its own sign, and the quantities behind it."""
    rng = np.random.default_rng(7 + row)
    draws = rng.normal(prediction.mean[0, row], prediction.std[0, row], (DRAWS, prediction.mean.shape[2]))
    told = {"time": np.exp(draws[:, 0])}
    told["cost"] = problem.run_costs.of(told["time"], np.full(DRAWS, row))
    for place, name in enumerate(problem.metrics):
        value = draws[:, 1 + place]
        told[name] = np.exp(value) if prediction.logs and prediction.logs[place] else value
    assert problem.goal.formula is not None
    return problem.goal.formula.values(told, np.full(DRAWS, row)), told


def predicted(problem: Problem, *, logs: bool = True, std: float = 0.4) -> Prediction:
    rng = np.random.default_rng(3)
    shape = (1, len(SPACE), 1 + len(problem.metrics))
    mean = rng.uniform(1.0, 2.0, shape)
    mean[:, :, 0] = rng.uniform(6.0, 7.0, shape[:2])
    return Prediction("log time", mean, np.full(shape, std), logs=(logs,) * len(problem.metrics))


EXACT = ["price / throughput", "price * latency / throughput", "sqrt(latency) * pods", "cost * errors", "pods * price"]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("text", EXACT)
def test_the_improvement_of_a_product_is_exact(direction: str, text: str) -> None:
    problem = Problem(SPACE, Objective.parse(f"{direction} {text}"), (Constraint.parse("share <= 4"),))
    prediction = predicted(problem)
    check_improvement(problem, prediction, 5e-3)


@pytest.mark.parametrize(
    "text", ["price / throughput + 0.2 * errors", "max(latency, 3) * pods", "cost + errors", "log(latency) * pods - 2"]
)
def test_the_improvement_of_any_formula_is_near(text: str) -> None:
    """Moments by quadrature: within 5 % of the incumbent's scale."""
    problem = Problem(SPACE, Objective.parse(f"minimize {text}"), billing=Billing(minimum_s=600.0))
    check_improvement(problem, predicted(problem), 0.05)


def check_improvement(problem: Problem, prediction: Prediction, tolerance: float) -> None:
    sign = problem.objective.sign
    for row in (0, 3):
        values, told = drawn(problem, prediction, row)
        for quantile in (0.3, 0.6):
            best = float(np.quantile(sign * values, quantile)) + 0.3 * float(np.abs(values).mean())
            state = State.present(problem, ())
            state = State(**{**vars(state), "best": np.array([best])})
            feasible = np.ones(DRAWS, dtype=bool)
            for constraint in problem.constraints:
                feasible &= told[constraint.metric] <= constraint.bound
            expected = float((np.maximum(best - sign * values, 0.0) * feasible).mean())
            found = float(ConstrainedImprovement(exact=True)(prediction, state)[0, row])
            assert abs(found - expected) <= tolerance * max(abs(best), expected)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("limit", ["throughput >= 3", "throughput <= 6"])
@pytest.mark.parametrize("text", ["price / throughput", "throughput", "throughput * price"])
def test_limits_on_the_learnt_metric_itself_are_integrated_with_it(direction: str, limit: str, text: str) -> None:
    constraint = Constraint.parse(limit)
    problem = Problem(SPACE, Objective.parse(f"{direction} {text}"), (constraint,))
    prediction, sign = predicted(problem, std=0.7), problem.objective.sign
    rng = np.random.default_rng(5)
    for row in (1, 2):
        throughput = np.exp(rng.normal(prediction.mean[0, row, 1], prediction.std[0, row, 1], DRAWS))
        hourly = float(problem.price[row]) * 3600
        values = {"price / throughput": hourly / throughput, "throughput": throughput}.get(text, throughput * hourly)
        best = float(np.median(sign * values)) + 0.2 * float(values.mean())
        state = State(**{**vars(State.present(problem, ())), "best": np.array([best])})
        kept = throughput >= constraint.bound if constraint.at_least else throughput <= constraint.bound
        gains = np.maximum(best - sign * values, 0.0) * kept
        found = float(ConstrainedImprovement(exact=True)(prediction, state)[0, row])
        assert abs(found - float(gains.mean())) <= 6 * float(gains.std()) / np.sqrt(DRAWS)


def test_a_known_objective_has_no_spread() -> None:
    problem = Problem(SPACE, Objective.parse("minimize pods * price"), (Constraint.parse("p99 <= 4"),))
    objective = predicted(problem).reported_objective(problem)
    np.testing.assert_allclose(objective.expectation()[0], [0.5, 2.0, 4.5, 8.0])
    assert (np.asarray(objective.std) == 0).all()


def test_a_multiple_of_a_normal_metric_stays_normal() -> None:
    problem = Problem(SPACE, Objective.parse("minimize price * drift"))
    objective = predicted(problem, logs=False).reported_objective(problem)
    assert isinstance(objective, Normal)
    np.testing.assert_allclose(objective.std, 0.4 * np.array([[0.5, 1.0, 1.5, 2.0]]))


def test_a_log_normal_stand_in_has_the_same_mean_and_spread() -> None:
    normal = Normal(np.array([5.0, 2.0]), np.array([1.0, 0.2]))
    stand_in = as_log_normal(normal)
    assert isinstance(stand_in, LogNormal)
    np.testing.assert_allclose(stand_in.expectation(), normal.mean)
    np.testing.assert_allclose(spread(stand_in), normal.std)
    assert np.isfinite(as_log_normal(Normal(np.array([-3.0, 0.0]), np.array([1.0, 0.0]))).mean).all()
