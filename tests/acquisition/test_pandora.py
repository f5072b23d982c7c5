"""The Gittins index as an acquisition function, against its defining equation."""

from dataclasses import replace

import numpy as np
import pytest

from deciding import decide
from lynceus.acquisition.functions import PandoraIndex
from lynceus.errors import InputError
from lynceus.models.distribution import LogNormal
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.policy import Policy
from lynceus.problem.future_use import FutureUse
from lynceus.testing.job import small_job


def test_the_index_solves_its_equation_under_the_deadline() -> None:
    job = small_job("runtime <= 30m")
    problem = job.problem
    state = State.present(problem, job.finished(job.order_of_runs[:6]))
    prediction = Trees(trees=20, target="log time")(state, 3)
    index = state.best[0] - PandoraIndex(future_runs=50.0)(prediction, state)[0]
    charge = prediction.charge(state, state.timeouts_s())[0]
    rng = np.random.default_rng(5)
    checked = 0
    likely = prediction.feasible(problem)[0] > 0.05  # rarer successes need more draws
    for row in np.flatnonzero((prediction.std[0, :, 0] > 0.05) & likely)[:5]:
        seconds = np.exp(prediction.mean[0, row, 0] + prediction.std[0, row, 0] * rng.standard_normal(400_000))
        cost = seconds * problem.price[row]
        saved = np.maximum(index[row] - cost, 0.0) * (seconds <= problem.deadline_s)
        assert saved.mean() == pytest.approx(charge[row] / 50.0, rel=0.03)
        checked += 1
    assert checked >= 3


def test_the_future_use_that_the_user_gives_counts() -> None:
    job = small_job("runtime <= 30m")
    state = State.present(job.problem, job.finished(job.order_of_runs[:6]))
    said = replace(state, problem=replace(job.problem, future=FutureUse(runs=50)))
    prediction = Trees(trees=20, target="log time")(state, 3)
    np.testing.assert_array_equal(PandoraIndex(7.0)(prediction, said), PandoraIndex(50.0)(prediction, state))


def test_a_positive_value_means_that_the_improvement_exceeds_its_cost() -> None:
    """g < best is the same as future_runs · EI > charge, row by row: the stopping rule of the same name."""
    job = small_job("runtime <= 30m")
    problem = job.problem
    state = State.present(problem, job.finished(job.order_of_runs[:6]))
    prediction = Trees(trees=20, target="log time")(state, 3)
    score = PandoraIndex(future_runs=20.0)(prediction, state)[0]
    run = LogNormal(prediction.mean[0, :, 0], prediction.std[0, :, 0])
    reach = np.minimum(state.best[0] / problem.price, problem.ceiling_s)
    gain = problem.price * run.truncated_put(state.best[0] / problem.price, reach)
    pays = 20.0 * gain > prediction.charge(state, state.timeouts_s())[0]
    clear = np.abs(score) > 1e-9
    assert clear.sum() > 5
    np.testing.assert_array_equal((score > 0)[clear], pays[clear])


@pytest.mark.parametrize("target", ["cost", "log time"])
def test_a_planner_runs_the_row_with_the_smallest_index(target: str) -> None:
    job = small_job("runtime <= 30m")
    surrogate = Trees(trees=20, target=target)  # type: ignore[arg-type]
    policy = Policy("pandora", Lookahead(PandoraIndex(), per="run", confidence=0.0), surrogate)
    observations = job.finished(job.order_of_runs[:6])
    order = decide(job.problem, policy, observations, seed=3)
    state = State.present(job.problem, observations)
    score = PandoraIndex()(surrogate(state, 3), state)[0]
    assert order.row == int(np.argmax(np.where(state.open, score, -np.inf)))  # type: ignore[union-attr]


def test_it_needs_cost_as_objective() -> None:
    job = small_job("runtime <= 30m", objective="time")
    state = State.present(job.problem, job.finished(job.order_of_runs[:4]))
    with pytest.raises(InputError, match="needs cost as the objective"):
        PandoraIndex()(Trees(trees=4, target="log time")(state, 1), state)
