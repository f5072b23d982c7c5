"""Retry rules: which failures are retried, and when a study pauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules, pause_reason, with_retries
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason, Observation
from lynceus.trial.stop import StopReason
from retry_cases import observation_lists, problem_of, run


@given(observation_lists, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_a_row_is_open_while_it_has_retries_left(
    observations: tuple[Observation, ...], infra: int, job: int, preempted: int
) -> None:
    retry_rules = RetryRules(retries_infra=infra, retries_job=job, retries_preempted=preempted)
    open_rows = State.present(problem_of(), with_retries(observations, retry_rules)).open
    for row in range(6):
        outcomes = [seen.outcome for seen in observations if seen.row == row]
        infra_failures = sum(one.reason is FailureReason.INFRA for one in outcomes)
        preemptions = sum(one.reason is FailureReason.PREEMPTED for one in outcomes)
        job_failures = sum(one.reason in (FailureReason.JOB, FailureReason.OOM) for one in outcomes)
        settled = any(one.end is not End.FAILED or one.reason is FailureReason.USER for one in outcomes)
        assert open_rows[row] == (
            not settled and infra_failures <= infra and preemptions <= preempted and job_failures <= job
        )


@given(observation_lists)
def test_retry_rules_keep_orders_charges_and_targets(observations: tuple[Observation, ...]) -> None:
    adjusted = with_retries(observations, RetryRules())
    assert [(one.order, one.outcome.charged_usd, one.target) for one in adjusted] == [
        (one.order, one.outcome.charged_usd, one.target) for one in observations
    ]


def test_after_a_pause_the_configurations_that_failed_run_again() -> None:
    study = Study(problem_of(), preset("sweep"), retry_rules=RetryRules(max_failures=2))
    failed = []
    while (trial := study.ask()) is not None:
        failed.append(trial.params)
        study.tell(trial, state="FAIL", reason="oom" if len(failed) == 1 else "job")
    study.resume()
    run = []
    while (trial := study.ask()) is not None:
        run.append(trial.params)
        study.tell(trial, runtime=1.0)
    assert failed[1] in run, "the job was mended"
    assert failed[0] not in run, "more memory would not come by mending the job"
    assert len(run) == len(study.problem.space) - 1


def test_a_job_that_never_ran_runs_again_after_a_resume_also_where_too_few_configurations_failed_for_a_pause() -> None:
    study = Study(problem_of(), preset("sweep"), retry_rules=RetryRules(max_failures=100))
    while (trial := study.ask()) is not None:
        study.tell(trial, state="FAIL", reason="job")
    failed = len(study.trials)
    assert study.stopped is not None
    assert study.stopped.study_state == "FINISHED"
    study.resume()
    trial = study.ask()
    assert failed > 0
    assert trial is not None, "the job was mended"


@given(observation_lists, st.integers(0, 6))
def test_single_failures_count_after_a_resume(observations: tuple[Observation, ...], resumed_at: int) -> None:
    without_pauses = RetryRules(max_failures=0)
    assert with_retries(observations, without_pauses, resumed_at) == with_retries(observations, without_pauses)


def test_the_reason_of_a_pause_counts_failures_in_words() -> None:
    study = Study(problem_of(), preset("sweep"), retry_rules=RetryRules(max_failures=1, retries_infra=9))
    trial = study.ask()
    assert trial is not None
    study.tell(trial, state="FAIL", reason="infra")
    assert study.ask() is None
    assert str(study.reason).startswith("the last trial failed (1 infrastructure failure)")


def test_a_study_pauses_after_consecutive_failures_until_it_is_resumed() -> None:
    study = Study(problem_of(), preset("sweep"), retry_rules=RetryRules(max_failures=3, retries_infra=9))
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state="FAIL", reason="infra", detail="the disk is on fire")
    assert study.ask() is None
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.PAUSED
    assert (
        study.reason
        == "the last 3 trials failed (3 infrastructure failures); the last: the disk is on fire; look at them, then resume"
    )
    study.resume()
    trial = study.ask()
    assert trial is not None
    study.tell(trial, state="FAIL", reason="infra")
    assert study.ask() is not None  # failures before the pause no longer count


def test_a_finished_run_resets_the_failure_count() -> None:
    observations = (*(run(0, FailureReason.INFRA) for _ in range(4)), run(1, End.FINISHED))
    assert pause_reason(observations, 0, RetryRules(max_failures=5)) is None
    assert pause_reason((*observations, *observations[:4]), 0, RetryRules(max_failures=5)) is None
    assert pause_reason(observations[:4] * 2, 0, RetryRules(max_failures=5)) is not None
    assert pause_reason(observations[:4] * 2, 0, RetryRules(max_failures=0)) is None
    assert pause_reason(tuple(run(0, FailureReason.USER) for _ in range(9)), 0, RetryRules()) is None


def test_job_failures_are_not_retried_and_infrastructure_failures_are() -> None:
    study = Study(
        problem_of(), preset("sweep"), retry_rules=RetryRules(max_failures=0, retries_infra=1, retries_preempted=2)
    )
    asked: list[tuple[object, str]] = []
    reasons = {1: "job", 2: "oom", 3: "infra", 4: "preempted"}
    while (trial := study.ask()) is not None:
        n = trial.params["n"]
        asked.append((n, ""))
        assert isinstance(n, int)
        if n in reasons:
            study.tell(trial, state="FAIL", reason=reasons[n], runtime=1)
        else:
            study.tell(trial, runtime=50.0 - n)
    counts = {n: sum(one == n for one, _ in asked) for n in range(1, 7)}
    assert counts == {1: 1, 2: 1, 3: 2, 4: 3, 5: 1, 6: 1}
    assert study.spent_usd == pytest.approx(1 + 1 + 2 + 3 + 45 + 44)


@pytest.mark.parametrize("field", ["retries_infra", "retries_job", "max_failures", "confirm_best"])
def test_negative_numbers_are_rejected(field: str) -> None:
    with pytest.raises(InputError, match=f"{field} is -1; give 0 or more"):
        RetryRules(**{field: -1})
