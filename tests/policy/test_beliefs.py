"""What is believed of configurations that ran: the choice among them, confidences, the incumbent and margins under noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.run_noise import RunNoise
from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved, BestSeen
from lynceus.policy.beliefs import believed_best, cautious, noise_was_seen, with_believed_incumbent
from lynceus.policy.presets import preset
from lynceus.policy.recommendation import recommend
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observation, Observations, TrainingTarget
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
    best = believed_best(problem_of(), LUCKY, None, NOISE, 0)
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
    best = believed_best(problem_of(), late, None, NOISE, 0)
    assert best is not None
    assert best.row == 1


def test_a_confidence_is_demanded_of_runs_and_not_of_means() -> None:
    problem = problem_of().with_constraints((Constraint("time", 100.0, confidence=0.95),))
    seen = (
        *(run(0, End.FINISHED, seconds) for seconds in (80.0, 95.0, 88.0)),
        *(run(1, End.FINISHED, seconds) for seconds in (89.5, 90.0, 90.5)),
    )
    best = believed_best(problem, seen, None, NOISE, 0)
    assert best is not None
    assert (best.row, best.admissible) == (0, False) or best.chance >= 0.95
    sure = (*seen, *(run(2, End.FINISHED, seconds) for seconds in (55.0, 60.0, 57.0)))
    chosen = believed_best(problem, sure, None, NOISE, 0)
    assert chosen is not None
    assert (chosen.row, chosen.admissible) == (2, True)
    assert chosen.chance >= 0.95


def test_constraints_on_cost_are_chances_of_times() -> None:
    problem = problem_of().with_constraints((Constraint("cost", 60.0),))
    one = believed_best(problem, LUCKY, None, NOISE, 0)
    assert one is not None
    assert one.chance == pytest.approx(one.belief.chance(60.0))


def test_the_incumbent_and_timeouts_without_noise_are_as_before() -> None:
    equal = (run(0, End.FINISHED, 40.0), run(0, End.FINISHED, 40.0), run(0, End.FINISHED, 40.0))
    state = present(equal)
    assert noise_was_seen(equal)
    assert not noise_was_seen(equal[:1])
    changed = with_believed_incumbent(state, believed_best(state.problem, state.observations, None, NOISE, 0))
    assert changed.best[0] == pytest.approx(state.best[0], rel=0.01)
    assert changed.timeouts_s() == pytest.approx(state.timeouts_s(), rel=0.02)
    assert with_believed_incumbent(state, None) is state


def test_timeouts_have_the_margin_that_the_noise_demands() -> None:
    state = present(LUCKY)
    best = believed_best(state.problem, state.observations, None, NOISE, 0)
    assert best is not None
    changed = with_believed_incumbent(state, best)
    assert best.value > changed.best[0] == best.typical > state.best[0]
    assert changed.margin == pytest.approx(math.exp(best.belief.spread))
    assert (changed.timeouts_s()[0] == np.minimum(changed.margin * best.typical, 100.0)).all()
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


def sized(row: int, seconds: float, size: float) -> Observation:
    seen = run(row, End.FINISHED, seconds)
    metrics = {"size": size}
    return replace(seen, outcome=replace(seen.outcome, metrics=metrics), target=TrainingTarget(seconds, metrics))


@pytest.mark.parametrize("modelled", [False, True])
def test_a_metric_that_never_varied_keeps_its_limit(modelled: bool) -> None:
    """Three runs all reported the same, just inside the limit: the model of other configurations has no say."""
    problem = problem_of().with_constraints((Constraint("size", 2_180_000.0),))
    sizes = (3_400_000.0, 2_900_000.0, 2_418_958.0, 2_170_343.0, 1_950_000.0)
    seen = tuple(sized(row, 30.0 + 5 * row, size) for row, size in enumerate(sizes))
    repeated = (*seen, *(sized(3, 45.0, sizes[3]) for _ in range(2)))
    surrogate = preset("lynceus").surrogate if modelled else None
    best = believed_best(problem, repeated, surrogate, NOISE, 0)
    assert best is not None
    assert (best.row, best.admissible) == (3, True)
    assert best.chance > 0.98


def test_a_metric_that_varies_is_not_taken_at_its_best_run() -> None:
    problem = problem_of().with_constraints((Constraint("size", 100.0),))
    runs = (sized(0, 40.0, 99.0), sized(0, 40.0, 107.0), sized(0, 40.0, 112.0), sized(1, 50.0, 60.0))
    best = believed_best(problem, runs, None, NOISE, 0)
    assert best is not None
    assert best.row == 1
    assert believed_best(problem, runs[:3], None, NOISE, 0).chance < 0.4  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["lynceus", "random", "bo"])
def test_a_recommendation_says_whether_it_reaches_the_confidence(name: str) -> None:
    """Runs between 70 and 130 seconds meet a limit of 100 seconds about half of the time, and one of 500 seconds always."""
    seen = tuple(run(0, End.FINISHED, seconds) for seconds in (95.0, 130.0, 75.0, 120.0, 98.0))
    for bound, confidence, reached in ((100.0, 0.95, False), (500.0, 0.8, True), (500.0, None, True)):
        problem = problem_of().with_constraints((Constraint("time", bound, confidence=confidence),))
        found = recommend(problem, preset(name), seen, seed=0)
        assert found is not None
        assert (found.row, found.reaches_confidence) == (0, reached)
        if confidence is not None:
            assert (found.probability >= confidence) is reached


def test_a_table_reaches_every_confidence() -> None:
    problem = replace(problem_of().with_constraints((Constraint("time", 100.0, confidence=0.95),)), deterministic=True)
    found = recommend(problem, preset("lynceus"), (run(0, End.FINISHED, 99.0),), seed=0)
    assert found is not None
    assert (found.probability, found.reaches_confidence) == (1.0, True)
