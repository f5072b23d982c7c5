"""The public interface of a study: ask, tell, charges and optimize."""

import math
import subprocess
import time
from pathlib import Path

import pytest

import lynceus
from lynceus.errors import InputError, OverrunWarning
from lynceus.problem.billing import Billing
from lynceus.trial.outcome import End, FailureReason
from lynceus.trial.stop import StopReason
from lynceus.trial.trial import TrialState
from small_studies import ask, run, seconds_of, study_of


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2018", "bo", "random", "sweep"])
def test_ask_and_tell_find_the_best_configuration(policy: str) -> None:
    study = study_of(policy, constraints=["runtime <= 30m"])
    while (trial := study.ask()) is not None:
        runtime, state = run(trial)
        study.tell(trial, runtime=runtime, state=state)
    assert study.reason == "every configuration has been run"
    assert study.best_params == {"vm": "small", "nodes": 2}
    assert study.best_trial.cost_usd == pytest.approx(1560.0 / 3600 * 2)
    assert study.spent_usd <= 20.0
    best = study.recommend()
    assert best is not None
    assert (best.params, best.measured, best.trials) == (study.best_params, True, len(study.observations))
    assert best.value == study.best_value
    # The default policy repeats the best run: equal times leave open only whether a few runs in a hundred are slow.
    assert best.value == pytest.approx(1560.0 / 3600 * 2, rel=0.05 if policy == "lynceus" else 1e-9)


def test_a_trial_has_parameters_timeout_and_cost_in_user_units() -> None:
    study = study_of("sweep", constraints=["runtime <= 30m"])
    trial = ask(study)
    assert trial.params == {"vm": "small", "nodes": 1}
    assert trial.timeout == 1800.0
    assert trial.price_usd_per_hour == pytest.approx(1.0)
    assert trial.max_charge_usd == pytest.approx(0.5)
    assert trial.why == "lowest price left, $1.00/h"
    assert study.reserved_usd == pytest.approx(0.5)
    assert ask(study_of("random", budget=math.inf)).timeout is None
    assert ask(study_of("random", budget=math.inf)).max_charge_usd is None


def test_open_trials_are_distinct_and_reserve_their_cost() -> None:
    study = study_of("lynceus", budget="$4")
    trials = []
    while (trial := study.ask()) is not None:
        trials.append(trial)
        assert study.spent_usd + study.reserved_usd <= 4.0 * (1 + 1e-9)
    rows = [tuple(sorted((name, str(value)) for name, value in one.params.items())) for one in trials]
    assert len(rows) == len(set(rows))
    assert len(study.pending) == len(trials)
    assert study.stopped is not None
    study.tell(trials[0], runtime=1.0)
    assert study.ask() is not None, "the settled trial released its reservation"


def test_tell_computes_the_charge_unless_it_is_given() -> None:
    billing = Billing(granularity_s=60, boot_s=45)
    study = study_of("sweep", billing=billing)
    study.tell(ask(study), runtime="100s")
    assert study.observations[0].outcome.charged_usd == pytest.approx(180.0 / 3600)
    study.tell(ask(study), runtime="10s", charged="$0.01")
    assert study.observations[1].outcome.charged_usd == 0.01
    assert study.spent_usd == pytest.approx(0.06)


def test_a_trial_beyond_its_timeout_counts_as_stopped_with_its_true_time_and_charge() -> None:
    study = study_of("sweep", constraints=["runtime <= 10m"], budget="$1")
    trial = ask(study)
    assert (trial.timeout, trial.max_charge_usd) == (600.0, pytest.approx(600 / 3600))
    with pytest.warns(OverrunWarning) as warned:
        study.tell(trial, runtime=1e6)
    assert [str(one.message) for one in warned] == [
        "trial 0: it finished after 11d14h, beyond its timeout of 10m, and counts as stopped.",
        "trial 0: it was charged $277.61 more than the $0.17 reserved for it.",
    ]
    assert warned[0].filename == __file__
    (seen,) = study.observations
    assert (seen.outcome.end, seen.outcome.seconds) == (End.TIMEOUT, 1e6)
    assert seen.target is not None
    assert (seen.target.censored, seen.target.bound_s) == (True, 1e6)
    assert study.spent_usd == pytest.approx(1e6 / 3600)
    assert "counts as stopped; it was charged $277.61 more" in study.trials[0].detail
    assert study.ask() is None
    assert (
        study.reason == "nothing is left of $1.00, because trials were charged $277.61 more than was reserved for them"
    )
    study.resume(add_usd=400.0)
    assert study.ask() is not None


def test_a_charge_beyond_the_reservation_counts_in_full() -> None:
    study = study_of("sweep", constraints=["runtime <= 10m"], budget="$1")
    with pytest.warns(OverrunWarning, match="it was charged \\$49.83 more than the \\$0.17 reserved for it"):
        study.tell(ask(study), runtime="5m", charged=50)
    (trial,) = study.trials
    assert (trial.state, trial.charged_usd, study.spent_usd) == (TrialState.COMPLETE, 50.0, 50.0)
    assert "$49.83 more" in trial.detail
    assert study.ask() is None
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.BUDGET


def test_a_trial_at_its_timeout_and_one_without_are_no_overruns() -> None:
    study = study_of("sweep", constraints=["runtime <= 10m"], budget="$1")
    study.tell(ask(study), runtime=600.0)
    unlimited = study_of("random", budget=math.inf)
    trial = ask(unlimited)
    assert trial.timeout is None
    unlimited.tell(trial, runtime=1e6, charged=50)
    assert [one.trials[0].state for one in (study, unlimited)] == [TrialState.COMPLETE] * 2
    assert [one.trials[0].detail for one in (study, unlimited)] == ["", ""]


def test_the_grace_period_is_reserved_and_charged() -> None:
    """What is reserved covers a run that is stopped and uses all of its grace period; with the last money, too."""
    study = study_of("sweep", billing=Billing(grace_s=60.0), constraints=["runtime <= 10m"], budget="$0.55")
    while (trial := study.ask()) is not None:
        assert trial.timeout is not None
        used_s = trial.timeout + 60.0
        charged = used_s * trial.price_usd_per_hour / 3600
        assert trial.max_charge_usd == pytest.approx(charged)
        study.tell(trial, runtime=trial.timeout, state="TIMEOUT", charged=charged)
    assert len(study.observations) >= 2
    assert study.spent_usd == pytest.approx(0.55)
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.BUDGET
    assert all(trial.detail == "" for trial in study.trials)


def test_told_text_is_one_clean_line() -> None:
    study = study_of("sweep")
    study.tell(ask(study), runtime=5, metrics={"p99\x00": 1.0}, detail="first\n\x1b[2Jsecond")
    (trial,) = study.trials
    assert (dict(trial.metrics), trial.detail) == ({"p99�": 1.0}, "first �[2Jsecond")


def test_tell_by_number_with_metrics_and_progress() -> None:
    study = study_of(objective="maximize accuracy")
    trial = ask(study)
    study.tell(trial.number, runtime=60, metrics={"loss": 0.2}, accuracy=0.9, progress=[(30, 0.5), (60, 0.9)])
    outcome = study.observations[0].outcome
    assert outcome.metrics == {"loss": 0.2, "accuracy": 0.9}
    assert outcome.trace == ((30.0, 0.5), (60.0, 0.9))
    assert study.best_value == 0.9


def test_a_failed_trial_needs_no_runtime_and_has_a_reason() -> None:
    study = study_of()
    first = ask(study)
    study.tell(first, state="FAIL")
    assert study.observations[0].outcome.reason is FailureReason.JOB
    second = ask(study)
    assert second.params != first.params
    study.tell(second, state=TrialState.FAIL, reason="OOM", runtime="5m", detail="Killed")
    outcome = study.observations[1].outcome
    assert (outcome.end, outcome.reason, outcome.seconds, outcome.detail) == (
        End.FAILED,
        FailureReason.OOM,
        300.0,
        "Killed",
    )


def test_best_params_need_a_feasible_trial() -> None:
    study = study_of(study_name="nightly", constraints=["runtime <= 10m"])
    with pytest.raises(
        InputError, match="study 'nightly': no trial has kept every constraint yet, so there is no best one"
    ):
        _ = study.best_params
    assert study.recommend() is None


def test_optimize_calls_the_function_for_every_trial() -> None:
    study = study_of("lynceus", constraints=["runtime <= 30m"])
    study.optimize(lambda trial: min(seconds_of(trial), trial.timeout or math.inf))
    assert study.best_params == {"vm": "small", "nodes": 2}
    states = {seen.outcome.end for seen in study.observations}
    assert states == {End.FINISHED, End.TIMEOUT}
    for seen in study.observations:
        assert (seen.outcome.end is End.TIMEOUT) == (seen.outcome.seconds >= seen.order.timeout_s)


def test_a_command_that_ended_at_the_timeout_counts_as_stopped() -> None:
    study = study_of("lynceus", constraints=["runtime <= 30m"])

    def run(trial: lynceus.Trial) -> float:
        seconds = seconds_of(trial)
        if trial.timeout is not None and seconds > trial.timeout:
            raise subprocess.TimeoutExpired("job", trial.timeout)
        return seconds

    study.optimize(run)
    stopped = [seen for seen in study.observations if seen.outcome.end is End.TIMEOUT]
    assert stopped
    assert all(seen.outcome.seconds == seen.order.timeout_s for seen in stopped)
    assert study.best_params == {"vm": "small", "nodes": 2}


@pytest.mark.parametrize("captured", [True, False])
def test_a_real_command_ends_at_the_timeout(captured: bool) -> None:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 2)], price="0.1 * nodes")
    study = lynceus.create_study(space=space, budget="$1", constraints=["runtime <= 50ms"])

    def run(trial: lynceus.Trial) -> float:
        subprocess.run(["sleep", "30"], timeout=trial.timeout, capture_output=captured, check=True)
        return 30.0

    study.optimize(run, n_trials=1)
    assert [seen.outcome.end for seen in study.observations] == [End.TIMEOUT]


def test_a_timeout_of_the_function_itself_is_its_own() -> None:
    study = study_of("lynceus", constraints=["runtime <= 30m"])

    def run(trial: lynceus.Trial) -> float:
        raise subprocess.TimeoutExpired("job", 1.0)

    with pytest.raises(subprocess.TimeoutExpired):
        study.optimize(run)


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (ValueError("no such column"), "job", "ValueError: no such column"),
        (KeyboardInterrupt(), "infra", "KeyboardInterrupt"),
        (SystemExit(3), "infra", "SystemExit: 3"),
        (MemoryError(), "oom", "MemoryError"),
    ],
)
def test_an_error_of_the_function_is_recorded_and_raised_again(
    tmp_path: Path, error: BaseException, reason: str, detail: str
) -> None:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 3)], price="3600 * 1000 * nodes")
    storage = f"sqlite:///{tmp_path}/s.db"
    study = lynceus.create_study(space=space, budget="$1e9", study_name="s", storage=storage, policy="sweep")

    def run(trial: lynceus.Trial) -> float:
        if trial.number == 1:
            time.sleep(0.01)
            raise error
        return min(5.0, trial.timeout or 5.0)

    with pytest.raises(type(error)) as raised:
        study.optimize(run)
    assert raised.value is error
    again = lynceus.load_study(study_name="s", storage=storage)
    assert not again.pending
    assert again.reserved_usd == 0
    failed = again.trials[1]
    assert (failed.state, failed.reason, failed.detail) == ("FAIL", reason, detail)
    assert failed.charged_usd >= 10.0, "what it took is paid"
    again.optimize(lambda trial: min(5.0, trial.timeout or 5.0))
    repeated = [trial.number for trial in again.trials if trial.params == failed.params]
    assert len(repeated) == (2 if reason == "infra" else 1)


def test_what_cannot_be_told_does_not_leave_a_trial_open() -> None:
    study = study_of(objective="maximize accuracy")
    with pytest.raises(InputError, match="report a finite number"):
        study.optimize(lambda trial: {"runtime": 60.0, "accuracy": math.nan})
    assert [(trial.state, trial.reason) for trial in study.trials] == [("FAIL", "job")]


def test_optimize_accepts_metrics_and_n_trials() -> None:
    study = study_of(objective="maximize accuracy")
    study.optimize(lambda trial: {"runtime": 60.0, "accuracy": 0.1 * trial.number}, n_trials=3)
    assert len(study.observations) == 3
    assert study.best_value == pytest.approx(0.2)
    assert study.reason is None
    with pytest.raises(InputError) as error:
        study.optimize(lambda trial: {"accuracy": 0.5}, n_trials=1)
    assert str(error.value) == (
        "optimize: the function returned ['accuracy'] for trial 3; it must return 'runtime' in seconds."
    )
