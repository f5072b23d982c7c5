"""Configurations that a lucky incumbent stopped run again, once it is no longer believed to be that good."""

from dataclasses import replace

import pytest

from lynceus.models.state import State
from lynceus.policy.confirmation import repeated_reason
from lynceus.policy.presets import preset
from lynceus.policy.reopened_rows import with_reopened_rows
from lynceus.problem.objective import Constraint
from lynceus.study.study import Study
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import End, Observation
from retry_cases import problem_of, run


def search(study: Study, lucky_s: float, usual_s: float, others_s: float) -> None:
    """Run a study whose first run is lucky, and whose other configurations always take the same time."""
    while (trial := study.ask()) is not None:
        seconds, row = others_s, study.pending[0].row
        if trial.number == 0:
            seconds = lucky_s
        elif row == study.observations[0].row:
            seconds = usual_s
        assert trial.number < 40, "the search must end"
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)


@pytest.mark.parametrize("usual_s", [150.0, 95.0], ids=["misses the limit", "costs more"])
def test_what_a_lucky_run_stopped_runs_again(usual_s: float) -> None:
    problem = problem_of(usd=10_000.0).with_constraints((Constraint("time", 100.0),))
    study = Study(problem, preset("lynceus"))
    search(study, lucky_s=30.0, usual_s=usual_s, others_s=50.0)
    study.resume()  # what a repetition may cost is too little for it here
    search(study, lucky_s=30.0, usual_s=usual_s, others_s=50.0)
    lucky = study.observations[0].row
    stopped = {seen.row for seen in study.observations if seen.outcome.end is End.TIMEOUT} - {lucky}
    finished = {seen.row for seen in study.observations if seen.outcome.end is End.FINISHED} - {lucky}
    assert stopped & finished, "a configuration that was stopped after 30 s ran to its end"
    found = study.recommend()
    assert found is not None
    assert found.row != lucky
    assert found.seconds == pytest.approx(50.0, rel=0.3)


def stopped_after(row: int, seconds: float, timeout_s: float) -> Observation:
    seen = run(row, End.TIMEOUT, seconds)
    return replace(seen, order=replace(seen.order, timeout_s=timeout_s))


def test_only_what_could_still_win_runs_again() -> None:
    repeated = (run(0, End.FINISHED, 30.0), run(0, End.FINISHED, 60.0), run(0, End.FINISHED, 60.0))
    seen = (
        *repeated,
        stopped_after(1, 30.0, 30.0),  # the luckiest run stopped it
        stopped_after(2, 58.0, 58.0),  # hardly longer
        stopped_after(3, 30.0, 100.0),  # not the incumbent ended it
        run(4, End.FINISHED, 99.0),
    )
    state = replace(State.present(problem_of(), seen), best=State.present(problem_of(), repeated[1:]).best)
    policy = preset("lynceus")
    assert [row for row in range(5) if with_reopened_rows(state, policy, ()).open[row]] == [1]
    table = replace(state, problem=replace(state.problem, deterministic=True))
    assert with_reopened_rows(table, policy, ()) is table
    unrepeated = replace(state, observations=seen[2:])
    assert with_reopened_rows(unrepeated, policy, ()) is unrepeated
    assert with_reopened_rows(state, preset("random"), ()) is state, "it takes runs at their word"
    poor = replace(state, left=state.left * 0.0 + 20.0)
    assert not with_reopened_rows(poor, policy, ()).open[1], "there is no money to learn more"


def test_the_reason_of_the_end_names_what_was_repeated() -> None:
    policy, problem = preset("lynceus"), problem_of()
    again = replace(run(0, End.FINISHED, 62.0, purpose=Purpose.CONFIRM))
    best = (run(0, End.FINISHED, 60.0), run(1, End.FINISHED, 80.0), again)
    assert repeated_reason(problem, policy, best, seed=0) == "the best configuration was repeated"
    refuted = (
        run(0, End.FINISHED, 40.0),
        run(1, End.FINISHED, 45.0),
        replace(again, outcome=run(0, End.FINISHED, 90.0).outcome),
    )
    said = repeated_reason(problem, policy, refuted, seed=0)
    assert said == "n=1 was repeated, and n=2 is now believed to be better; a repetition of it is not worth its cost"
