"""Constraints that change while a study goes on: what counts on, what runs again, and what every reader sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.policy.next_step import next_step
from lynceus.storage.sql.storage import Storage
from lynceus.study.study import Study
from lynceus.trial.outcome import End
from lynceus.trial.stop import StopReason
from lynceus.trial.trial import Trial

SPACE = lynceus.Space.build(
    [lynceus.Categorical("vm", ["small", "large"]), lynceus.Integer("nodes", 1, 5)],
    price="nodes * (0.10 if vm == 'small' else 0.45)",
)


def seconds(trial: Trial) -> float:
    speed = 1 if trial.params["vm"] == "small" else 3
    return 300 + 3600 / (int(str(trial.params["nodes"])) * speed)  # 540 s at best


def run(trial: Trial) -> dict[str, float]:
    return {"runtime": min(seconds(trial), trial.timeout or 1e9), "bytes": 4e6 + 1e5 * int(str(trial.params["nodes"]))}


def searched(*constraints: str, storage: str | None = None, policy: str = "lynceus", budget: str = "$40") -> Study:
    study = lynceus.create_study(
        space=SPACE, constraints=list(constraints), budget=budget, storage=storage, study_name="changes", policy=policy
    )
    study.optimize(run)
    return study


def test_a_later_deadline_takes_up_an_infeasible_search_and_runs_stopped_configurations_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = searched("runtime <= 5m", storage=url)
    before = study.observations
    assert {seen.outcome.end for seen in before} == {End.TIMEOUT}
    assert (study.over, study.recommend()) == (True, None)
    spent = study.spent_usd

    other = Storage(url).journal("changes")
    study.resume(constraints=["runtime <= 15m"])
    assert not study.over
    assert [str(one) for one in study.problem.constraints] == ["time <= 15m"]
    study.optimize(run)

    assert study.observations[: len(before)] == before, "paid runs count on, as bounds at their old timeouts"
    assert all(seen.target is not None and seen.target.bound_s == seen.order.timeout_s for seen in before)
    assert {seen.order.timeout_s for seen in before[1:]} == {300.0}
    again = {seen.row for seen in study.observations[len(before) :]} & {seen.row for seen in before}
    assert again, "configurations that were stopped at the old deadline run again"
    assert study.spent_usd > spent
    found = study.recommend()
    assert found is not None
    assert found.seconds <= 900
    other.refresh()
    assert other.record == study.record, "another process sees the same"
    (change,) = other.record.limit_changes
    assert (change.started, str(change)) == (len(before), f"time <= 5m → time <= 15m, before trial {len(before)}")
    assert [event.kind for event in Storage(url).events("changes")].count("limited") == 1


def test_every_order_of_the_journal_follows_from_what_was_known_then(tmp_path: Path) -> None:
    study = searched("runtime <= 5m", storage=f"sqlite:///{tmp_path}/s.db")
    study.resume(constraints=["runtime <= 15m"])
    study.optimize(run)
    record, base = study.record, study.problem.with_constraints((lynceus.Constraint.parse("runtime <= 5m"),))
    for place, seen in enumerate(record.observations):
        known = tuple(change for change in record.limit_changes if change.started <= seen.order.number)
        then = replace(
            record, observations=record.observations[:place], stopped=None, limit_changes=known, active_s=0.0
        )
        step = next_step(base, study.policy, study.retry_rules, then, seed=study.seed)
        assert step.decision == seen.order, place


def test_a_search_that_converged_goes_on_under_a_tighter_limit() -> None:
    study = searched("runtime <= 40m")
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.CONVERGED
    settled = len(study.observations)
    study.resume(constraints=["runtime <= 600s"])
    study.optimize(run)
    assert len(study.observations) > settled, "plans and repetitions from before the change do not end the new search"
    assert seconds_of(study) <= 600


def seconds_of(study: Study) -> float:
    found = study.recommend()
    assert found is not None
    return found.seconds


def test_a_limit_on_a_metric_that_trials_report_can_be_added_while_a_trial_is_open() -> None:
    study = searched("runtime <= 40m", budget="$0.6")
    study.resume(5.0)
    trial = study.ask()
    assert trial is not None
    study.resume(constraints=["bytes <= 4.25MB"])
    assert study.next_step().decision is not None, "the model's expectation of the open trial knows no bytes"
    late = trial.timeout is not None and seconds(trial) >= trial.timeout
    study.tell(trial, state="TIMEOUT" if late else "COMPLETE", **run(trial))
    study.optimize(run)
    assert [str(one) for one in study.problem.constraints] == ["time <= 40m", "bytes <= 4250000"]
    assert int(str(study.best_params["nodes"])) <= 2


def test_the_same_constraints_change_nothing() -> None:
    study = searched("runtime <= 40m", policy="sweep")
    study.resume(constraints=["runtime <= 2400s"])
    assert study.record.limit_changes == ()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (["byts <= 4MB"], r"constraints: no trial of study 'changes' has reported 'byts'; .* Did you mean 'bytes'\?"),
        (
            ["runtime <= soon"],
            r"constraints: the bound in 'runtime <= soon' is 'soon', of which 'soon' is not understood",
        ),
        (["runtime <= 5m", "runtime <= 6m"], r"constraints: time is limited twice; give one of"),
        (["bytes <= 4XB"], r"constraints: '4XB' in 'bytes <= 4XB' is neither a number nor an amount of bytes"),
        ("runtime <= 5m", r"resume: constraints is 'runtime <= 5m', but a list"),
    ],
)
def test_bad_constraints_are_refused_and_nothing_changes(constraints: list[str], message: str) -> None:
    study = searched("runtime <= 40m", policy="sweep")
    before = study.record
    with pytest.raises(InputError, match=message):
        study.resume(5.0, constraints=constraints)
    assert study.record == before


def test_a_program_continues_with_the_old_or_the_new_constraints(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    searched("runtime <= 40m", storage=url, policy="sweep").resume(constraints=["runtime <= 10m"])
    for given in ("runtime <= 40m", "runtime <= 600s"):
        again = lynceus.create_study(
            space=SPACE, constraints=[given], budget="$40", storage=url, study_name="changes", load_if_exists=True
        )
        assert [str(one) for one in again.problem.constraints] == ["time <= 10m"]
    with pytest.raises(InputError, match=r"to change a limit, open it as it was and call study\.resume\(constraints="):
        lynceus.create_study(
            space=SPACE, constraints=["runtime <= 7m"], storage=url, study_name="changes", load_if_exists=True
        )
