"""What is believed of configurations that ran: the choice among them, confidences, the incumbent and margins under noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.run_noise import RunNoise
from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved, BestSeen
from lynceus.policy.beliefs import believed, believed_best, cautious, noise_was_seen, with_believed_incumbent
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import recommend
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations
from retry_cases import problem_of, run

NOISE = RunNoise()
LUCKY: Observations = (
    run(0, End.FINISHED, 40.0),
    run(0, End.FINISHED, 62.0),
    run(0, End.FINISHED, 66.0),
    run(1, End.FINISHED, 50.0),
    run(1, End.FINISHED, 49.0),
    run(1, End.FINISHED, 52.0),
)


def present(observations: Observations, problem: Problem | None = None) -> State:
    return State.present(problem_of() if problem is None else problem, observations)


def test_one_lucky_run_does_not_win() -> None:
    assert BestSeen()(present(LUCKY), None, 0) == 0
    assert BestBelieved()(present(LUCKY), None, 0) == 1
    best = believed_best(present(LUCKY), None, NOISE, 0)
    assert best is not None
    assert 49.0 < best.value < 57.0
    assert best.chance > 0.95


def test_a_table_is_taken_at_its_word() -> None:
    problem = replace(problem_of(), deterministic=True)
    assert BestBelieved()(present(LUCKY, problem), None, 0) == 0


def test_a_plain_limit_must_be_kept_more_often_than_not() -> None:
    late = (
        run(0, End.FINISHED, 95.0),
        run(0, End.TIMEOUT, 100.0),
        run(0, End.TIMEOUT, 100.0),
        run(1, End.FINISHED, 98.0),
    )
    best = believed_best(present(late), None, NOISE, 0)
    assert best is not None
    assert best.row == 1


def test_a_confidence_is_demanded_of_runs_and_not_of_means() -> None:
    problem = problem_of().with_constraints((Constraint("time", 100.0, confidence=0.95),))
    seen = (
        *(run(0, End.FINISHED, seconds) for seconds in (80.0, 95.0, 88.0)),
        *(run(1, End.FINISHED, seconds) for seconds in (89.5, 90.0, 90.5)),
    )
    best = believed_best(present(seen, problem), None, NOISE, 0)
    assert best is not None
    assert (best.row, best.admissible) == (0, False) or best.chance >= 0.95
    sure = (*seen, *(run(2, End.FINISHED, seconds) for seconds in (55.0, 60.0, 57.0)))
    chosen = believed_best(present(sure, problem), None, NOISE, 0)
    assert chosen is not None
    assert (chosen.row, chosen.admissible) == (2, True)
    assert chosen.chance >= 0.95


def test_constraints_on_cost_are_chances_of_times() -> None:
    problem = problem_of().with_constraints((Constraint("cost", 60.0),))
    one = believed(present(LUCKY, problem), None, NOISE, 0, 1)
    assert one.chance == pytest.approx(one.belief.chance(60.0))


def test_the_incumbent_and_timeouts_without_noise_are_as_before() -> None:
    equal = (run(0, End.FINISHED, 40.0), run(0, End.FINISHED, 40.0), run(0, End.FINISHED, 40.0))
    state = present(equal)
    assert noise_was_seen(equal)
    assert not noise_was_seen(equal[:1])
    changed = with_believed_incumbent(state, believed_best(state, None, NOISE, 0))
    assert changed.best[0] == pytest.approx(state.best[0], rel=0.01)
    assert changed.timeouts_s() == pytest.approx(state.timeouts_s(), rel=0.02)
    assert with_believed_incumbent(state, None) is state


def test_timeouts_have_the_margin_that_the_noise_demands() -> None:
    state = present(LUCKY)
    best = believed_best(state, None, NOISE, 0)
    assert best is not None
    changed = with_believed_incumbent(state, best)
    assert changed.best[0] == best.value > state.best[0]
    assert changed.margin == pytest.approx(math.exp(best.belief.spread))
    assert (changed.timeouts_s()[0] == np.minimum(changed.margin * best.value, 100.0)).all()
    assert (changed.timeout_s_of(np.array([3])) == changed.timeouts_s()[0, 3]).all()


def test_only_limits_with_a_confidence_are_tightened() -> None:
    plain = problem_of()
    assert cautious(plain, NOISE, LUCKY) is plain
    demanding = plain.with_constraints((Constraint("time", 100.0, confidence=0.95), Constraint("cost", 70.0)))
    tight = cautious(demanding, NOISE, LUCKY)
    assert tight.deadline_s < 95.0
    assert tight.constraints[1].bound == 70.0
    calm = tuple(run(0, End.FINISHED, 50.0) for _ in range(4))
    assert cautious(demanding, NOISE, calm).deadline_s > 99.0


def test_a_recommendation_reports_what_is_believed() -> None:
    policy = replace(preset("random"), answer=BestBelieved())
    found = recommend(problem_of(), policy, LUCKY, seed=0)
    assert found is not None
    assert found.cost_interval_usd is not None
    assert found.noise is not None
    low, high = found.cost_interval_usd
    assert low < found.cost_usd < high
    assert (found.row, found.measured, found.trials) == (1, True, 6)
    assert 0.03 < found.noise < 0.4
    word = recommend(problem_of(), preset("random"), LUCKY, seed=0)
    assert word is not None
    assert (word.row, word.value, word.cost_interval_usd, word.noise) == (0, 40.0, None, None)
