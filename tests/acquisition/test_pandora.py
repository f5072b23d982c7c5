"""The Gittins index as a gain, against the equation that defines it."""

import numpy as np
import pytest

from lynceus.acquisition.gains import PandoraIndex
from lynceus.choose import Rollout
from lynceus.distribution import LogNormal
from lynceus.errors import InputError
from lynceus.policy import Policy, decide
from lynceus.situation import Situation
from lynceus.surrogate.trees import Trees
from lynceus.testing import small_job


def test_the_index_solves_its_equation_under_the_deadline() -> None:
    job = small_job("runtime <= 30m")
    problem = job.problem
    situation = Situation.present(problem, job.finished(job.order_of_runs[:6]))
    belief = Trees(trees=20, target="log time")(situation, 3)
    index = situation.best[0] - PandoraIndex(future_runs=50.0)(belief, situation)[0]
    charge = belief.charge(situation, situation.caps_s())[0]
    rng = np.random.default_rng(5)
    checked = 0
    likely = belief.feasible(problem)[0] > 0.05  # rarer successes are beyond what draws can show
    for row in np.flatnonzero((belief.std[0, :, 0] > 0.05) & likely)[:5]:
        seconds = np.exp(belief.mean[0, row, 0] + belief.std[0, row, 0] * rng.standard_normal(400_000))
        cost = seconds * problem.price[row]
        saved = np.maximum(index[row] - cost, 0.0) * (seconds <= problem.deadline_s)
        assert saved.mean() == pytest.approx(charge[row] / 50.0, rel=0.03)
        checked += 1
    assert checked >= 3


def test_a_positive_score_says_that_the_gain_beats_its_price() -> None:
    """g < best is the same as future_runs · EI > charge, row by row: the stopping rule of the same name."""
    job = small_job("runtime <= 30m")
    problem = job.problem
    situation = Situation.present(problem, job.finished(job.order_of_runs[:6]))
    belief = Trees(trees=20, target="log time")(situation, 3)
    score = PandoraIndex(future_runs=20.0)(belief, situation)[0]
    run = LogNormal(belief.mean[0, :, 0], belief.std[0, :, 0])
    reach = np.minimum(situation.best[0] / problem.price, problem.ceiling_s)
    gain = problem.price * run.truncated_put(situation.best[0] / problem.price, reach)
    pays = 20.0 * gain > belief.charge(situation, situation.caps_s())[0]
    clear = np.abs(score) > 1e-9
    assert clear.sum() > 5
    np.testing.assert_array_equal((score > 0)[clear], pays[clear])


@pytest.mark.parametrize("target", ["cost", "log time"])
def test_a_planner_runs_the_smallest_index(target: str) -> None:
    job = small_job("runtime <= 30m")
    surrogate = Trees(trees=20, target=target)  # type: ignore[arg-type]
    policy = Policy("pandora", Rollout(PandoraIndex(), per="run", sure=0.0), surrogate)
    history = job.finished(job.order_of_runs[:6])
    order = decide(job.problem, policy, history, seed=3)
    situation = Situation.present(job.problem, history)
    score = PandoraIndex()(surrogate(situation, 3), situation)[0]
    assert order.row == int(np.argmax(np.where(situation.open, score, -np.inf)))  # type: ignore[union-attr]


def test_it_needs_dollars() -> None:
    job = small_job("runtime <= 30m", goal="time")
    situation = Situation.present(job.problem, job.finished(job.order_of_runs[:4]))
    with pytest.raises(InputError, match="not cost"):
        PandoraIndex()(Trees(trees=4, target="log time")(situation, 1), situation)
