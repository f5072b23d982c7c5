"""The public interface of a study: ask, tell, enqueue, optimize, and the error messages for invalid input."""

import math

import pytest

from lynceus.errors import InputError, OverrunWarning
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.create import create_study
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason
from lynceus.trial.stop import StopReason
from lynceus.trial.trial import Trial, TrialState

SPACE = Space.build(
    [Categorical("vm", ("small", "large")), Integer("nodes", 1, 4)], price="nodes if vm == 'small' else 3 * nodes"
)


def study_of(policy: str = "random", **given: object) -> Study:
    return create_study(space=SPACE, policy=policy, **{"budget": "$20", "seed": 1, **given})  # type: ignore[arg-type]


def ask(study: Study) -> Trial:
    trial = study.ask()
    assert trial is not None, study.reason
    return trial


def seconds_of(trial: Trial) -> float:
    return 3000.0 / (int(str(trial.params["nodes"])) * (2.5 if trial.params["vm"] == "large" else 1.0)) + 60.0


def run(trial: Trial) -> tuple[float, str]:
    """Simulate a trial: (seconds, state) up to its timeout."""
    needed = seconds_of(trial)
    if trial.timeout is not None and needed > trial.timeout:
        return trial.timeout, "TIMEOUT"
    return needed, "COMPLETE"


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2018", "bo", "random", "sweep"])
def test_ask_and_tell_find_the_best_configuration(policy: str) -> None:
    study = study_of(policy, constraints=["runtime <= 30m"])
    while (trial := study.ask()) is not None:
        runtime, state = run(trial)
        study.tell(trial, runtime=runtime, state=state)
    assert study.reason is not None
    assert ("one more dollar of search" if policy == "lynceus" else "every configuration has been run") in study.reason
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


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({}, "tell: trial 0 needs its running time, for example runtime='12m'."),
        ({"state": "TIMEOUT"}, "tell: trial 0 needs its running time, for example runtime='12m'."),
        ({"runtime": math.nan}, "tell: the runtime of trial 0 is nan, but a finite amount of at least 0 is needed."),
        ({"runtime": -3}, "tell: the runtime of trial 0 is -3, but a finite amount of at least 0 is needed."),
        ({"runtime": math.inf}, "tell: the runtime of trial 0 is inf, but a finite amount of at least 0 is needed."),
        (
            {"runtime": 0},
            "tell: trial 0 is said to have completed in 0 seconds; give the measured running time.",
        ),
        (
            {"runtime": "soon"},
            "tell: the runtime of trial 0 is 'soon', of which 'soon' is not understood: "
            "write numbers with d, h, m, s or ms, such as '1h30m'.",
        ),
        (
            {"runtime": 5, "state": "DONE"},
            "tell: state 'DONE' is unknown; use one of RUNNING, COMPLETE, TIMEOUT, FAIL.",
        ),
        (
            {"runtime": 5, "state": "RUNNING"},
            "tell: trial 0 is running already; tell COMPLETE, TIMEOUT or FAIL.",
        ),
        (
            {"runtime": 5, "reason": "oom"},
            "tell: reason 'oom' came with state COMPLETE; only a trial that failed has a reason.",
        ),
        (
            {"state": "FAIL", "reason": "weather"},
            "tell: reason 'weather' is unknown; use one of infra, preempted, oom, job, user.",
        ),
        (
            {"runtime": 5, "metrics": {"accuracy": math.nan}},
            "tell: metric 'accuracy' of trial 0 is nan; report a finite number.",
        ),
        (
            {"runtime": 5, "accuracy": "high"},
            "tell: metric 'accuracy' of trial 0 is 'high'; report a finite number.",
        ),
        ({"runtime": 5, "charged": -1}, "tell: charged is -1, but a finite amount of at least 0 is needed."),
        (
            {"runtime": 5, "progress": [(1, 2, 3)]},
            "tell: the progress of trial 0 must be (seconds, progress) pairs of finite numbers, "
            "for example [(30, 0.1), (60, 0.2)].",
        ),
        (
            {"runtime": 5, "progress": [(1, math.nan)]},
            "tell: the progress of trial 0 must be (seconds, progress) pairs of finite numbers, "
            "for example [(30, 0.1), (60, 0.2)].",
        ),
    ],
)
def test_invalid_results_are_rejected_and_not_recorded(result: dict[str, object], message: str) -> None:
    study = study_of()
    trial = ask(study)
    with pytest.raises(InputError) as error:
        study.tell(trial, **result)  # type: ignore[arg-type]
    assert str(error.value) == message
    assert study.observations == ()
    assert len(study.pending) == 1
    study.tell(trial, runtime=5)
    assert len(study.observations) == 1


def test_tell_rejects_unknown_and_settled_trials() -> None:
    study = study_of()
    with pytest.raises(InputError) as unknown:
        study.tell(3, runtime=5)
    assert str(unknown.value) == "tell: trial 3 was never asked for; call ask() first and tell what it returned."
    trial = ask(study)
    study.tell(trial, runtime=5)
    with pytest.raises(InputError) as settled:
        study.tell(trial, runtime=5)
    assert str(settled.value) == "tell: trial 0 has been told already; a trial is told once."
    assert len(study.observations) == 1


def test_best_params_need_a_feasible_trial() -> None:
    study = study_of(study_name="nightly", constraints=["runtime <= 10m"])
    with pytest.raises(
        InputError, match="study 'nightly': no trial has kept every constraint yet, so there is no best one"
    ):
        _ = study.best_params
    assert study.recommend() is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "make it fast"}, "objective: cannot read 'make it fast'"),
        ({"constraints": ["runtime"]}, "constraints: cannot read 'runtime'"),
        ({"budget": "lots"}, "budget is 'lots', but dollars such as"),
        ({"budget": 0}, "budget: 0.0 dollars is no budget"),
        ({"policy": "best"}, "policy: there is no 'best'; choose one of lynceus, "),
        ({"billing": Billing(warm=("colour",))}, "colour"),
        ({"space": "x"}, "space is 'x', but a Space, .* is needed"),
        ({"objective": 3}, "objective is 3, but a text such as"),
        (
            {"constraints": "runtime <= 45m"},
            r"constraints is 'runtime <= 45m', but a list such as \['runtime <= 45m'\]",
        ),
        ({"constraints": [45]}, "constraints: one of them is 45, but a text such as"),
        ({"budget": [5]}, r"budget is \[5\], but dollars"),
        ({"billing": 60}, "billing is 60, but a Billing"),
        ({"policy": None}, "policy is None, but a name such as"),
        ({"seed": "7"}, "seed is '7', but a whole number"),
        ({"seed": -1}, "seed is -1, but a whole number from 0 to"),
        ({"seed": 2**63}, "seed is 9223372036854775808, but a whole number from 0 to"),
        ({"study_name": 7}, "study_name is 7, but a text"),
        ({"load_if_exists": "yes"}, "load_if_exists is 'yes', but True or False"),
        ({"storage": 7}, "storage is 7, but an address such as"),
        ({"retry_rules": {}}, "retry_rules is {}, but RetryRules"),
    ],
)
def test_create_study_rejects_invalid_arguments(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        create_study(**{"space": SPACE, "budget": "$20", "policy": "random", **given})  # type: ignore[arg-type]


def test_arguments_of_the_wrong_type_are_rejected() -> None:
    study = study_of()
    with pytest.raises(InputError, match="tell: trial is 'first', but what ask"):
        study.tell("first", runtime=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="enqueue_trial: params is 3, but a mapping"):
        study.enqueue_trial(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="add_trial: params is None, but a mapping"):
        study.add_trial(None, runtime=5)  # type: ignore[arg-type]
    assert study.observations == study.pending == ()


def test_constraints_and_budgets_may_be_objects() -> None:
    study = study_of(constraints=[Constraint("time", 60.0)], budget=Budget(usd=3.0, trials=1))
    study.tell(ask(study), runtime=5)
    assert study.ask() is None
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.TRIALS


def test_an_enqueued_trial_runs_first() -> None:
    study = study_of("sweep")
    study.enqueue_trial({"vm": "large", "nodes": 3})
    trial = ask(study)
    assert trial.params == {"vm": "large", "nodes": 3}
    assert trial.why == "asked for by the user"
    study.tell(trial, runtime=4000)
    assert ask(study).params == {"vm": "small", "nodes": 1}
    with pytest.raises(InputError):
        study.enqueue_trial({"vm": "tiny", "nodes": 3})


def test_enqueued_trials_wait_for_money_that_open_trials_reserve() -> None:
    space = Space.build([Integer("nodes", 1, 4)], price="3600 * nodes")
    study = create_study(space=space, budget=100.0, policy="random")
    for nodes in (1, 2, 3):
        study.enqueue_trial({"nodes": nodes})
    first = study.ask()
    assert first is not None
    assert study.ask() is None, "the first trial may spend all the money"
    assert [study.problem.space.point(row)["nodes"] for row in study.record.queue] == [2, 3]
    study.tell(first, runtime=10.0)
    second = study.ask()
    assert second is not None
    assert second.params == {"nodes": 2}
    study.tell(second, runtime=45.0)
    assert study.ask() is None
    assert study.record.queue == (), "no money is left: the last one leaves the queue"


def test_an_enqueued_trial_that_ran_already_is_skipped() -> None:
    study = study_of("sweep")
    study.tell(ask(study), runtime=4000)
    study.enqueue_trial({"vm": "small", "nodes": 1})
    study.enqueue_trial({"vm": "large", "nodes": 1})
    assert ask(study).params == {"vm": "large", "nodes": 1}


def test_enqueued_trials_respect_budget_trial_limit_and_stop() -> None:
    study = study_of("sweep", budget=Budget(usd=20.0, trials=1))
    study.enqueue_trial({"vm": "large", "nodes": 4})
    study.enqueue_trial({"vm": "large", "nodes": 3})
    ask(study)
    assert study.ask() is None
    small_budget = study_of(
        "sweep", budget=Budget(usd=0.5), billing=Billing(boot_s=300.0, minimum_s=400.0, warm=("vm",))
    )
    small_budget.enqueue_trial({"vm": "large", "nodes": 1})
    small_budget.enqueue_trial({"vm": "large", "nodes": 2})
    while (trial := small_budget.ask()) is not None:
        assert trial.timeout is not None
        small_budget.tell(trial, runtime=min(trial.timeout, 100.0), state="TIMEOUT")
        assert small_budget.spent_usd <= 0.5 * (1 + 1e-9)
    stopped = study_of("sweep")
    stopped.enqueue_trial({"vm": "large", "nodes": 4})
    stopped.stop()
    assert stopped.ask() is None


def test_a_stop_with_open_trials_is_permanent() -> None:
    study = study_of("sweep")
    first = ask(study)
    study.stop("enough for today")
    assert study.ask() is None
    study.tell(first, runtime=60)
    assert study.ask() is None
    assert study.reason == "enough for today"


def test_an_added_trial_costs_nothing_and_counts_as_observation() -> None:
    study = study_of("sweep", billing=Billing(boot_s=60.0, warm=("vm",)))
    study.add_trial({"vm": "small", "nodes": 1}, runtime="10m", metrics={"accuracy": 0.8})
    assert study.spent_usd == 0
    assert study.best_params == {"vm": "small", "nodes": 1}
    trial = ask(study)
    assert trial.params != {"vm": "small", "nodes": 1}
    assert study.pending[0].boots, "an imported run leaves no warm machine"
    assert trial.timeout == pytest.approx(660.0 / 2 - 60.0), "the imported run is the incumbent"
    with pytest.raises(InputError, match="a run of 0 seconds"):
        study.add_trial({"vm": "small", "nodes": 2}, runtime=0)
    with pytest.raises(InputError, match="add_trial: runtime"):
        study.add_trial({"vm": "small", "nodes": 2}, runtime="-1m")


def test_optimize_calls_the_function_for_every_trial() -> None:
    study = study_of("lynceus", constraints=["runtime <= 30m"])
    study.optimize(lambda trial: min(seconds_of(trial), trial.timeout or math.inf))
    assert study.best_params == {"vm": "small", "nodes": 2}
    states = {seen.outcome.end for seen in study.observations}
    assert states == {End.FINISHED, End.TIMEOUT}
    for seen in study.observations:
        assert (seen.outcome.end is End.TIMEOUT) == (seen.outcome.seconds >= seen.order.timeout_s)


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
