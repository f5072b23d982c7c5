"""A study from outside: ask and tell, and what it says to every mistake."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.history import End, Reason
from lynceus.policy import Because
from lynceus.problem import Budget, Limit, Tariff
from lynceus.space import Categorical, Integer, Space
from lynceus.study import Study, Trial, TrialState, create_study

SPACE = Space.build(
    [Categorical("vm", ("small", "large")), Integer("nodes", 1, 4)], price="nodes if vm == 'small' else 3 * nodes"
)


def study_of(policy: str = "random", **given: object) -> Study:
    return create_study(space=SPACE, policy=policy, **{"budget": "$20", "seed": 1, **given})  # type: ignore[arg-type]


def asked(study: Study) -> Trial:
    trial = study.ask()
    assert trial is not None, study.reason
    return trial


def seconds_of(trial: Trial) -> float:
    return 3000.0 / (int(str(trial.params["nodes"])) * (2.5 if trial.params["vm"] == "large" else 1.0)) + 60.0


def run(trial: Trial) -> tuple[float, str]:
    """What a machine would tell of a trial."""
    needed = seconds_of(trial)
    if trial.timeout is not None and needed > trial.timeout:
        return trial.timeout, "TIMEOUT"
    return needed, "COMPLETE"


# The loop ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2018", "bo", "random", "sweep"])
def test_ask_and_tell_find_the_best_configuration(policy: str) -> None:
    study = study_of(policy, constraints=["runtime <= 30m"])
    while (trial := study.ask()) is not None:
        runtime, state = run(trial)
        study.tell(trial, runtime=runtime, state=state)
    assert study.reason is not None
    assert ("a dollar more of search" if policy == "lynceus" else "every configuration has been run") in study.reason
    assert study.best_params == {"vm": "small", "nodes": 2}
    assert study.best_value == pytest.approx(1560.0 / 3600 * 2)
    assert study.spent_usd <= 20.0
    best = study.recommend()
    assert best is not None
    assert (best.params, best.measured, best.trials) == (study.best_params, True, len(study.history))
    assert best.value == pytest.approx(study.best_value)


def test_a_trial_speaks_the_users_words() -> None:
    study = study_of("sweep", constraints=["runtime <= 30m"])
    trial = asked(study)
    assert trial.params == {"vm": "small", "nodes": 1}
    assert trial.timeout == 1800.0
    assert trial.price_usd_per_hour == pytest.approx(1.0)
    assert trial.max_charge_usd == pytest.approx(0.5)
    assert trial.why == "cheapest price left, $1.00/h"
    assert study.reserved_usd == pytest.approx(0.5)
    assert asked(study_of("random", budget=math.inf)).timeout is None
    assert asked(study_of("random", budget=math.inf)).max_charge_usd is None


def test_open_trials_are_different_rows_and_their_money_is_kept() -> None:
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
    assert study.ask() is not None, "money came back, so it may be worth asking again"


def test_tell_charges_by_the_tariff_or_by_the_bill() -> None:
    billing = Tariff(granularity_s=60, boot_s=45)
    study = study_of("sweep", billing=billing)
    study.tell(asked(study), runtime="100s")
    assert study.history[0].outcome.charged_usd == pytest.approx(180.0 / 3600)
    study.tell(asked(study), runtime="100s", charged="$0.70")
    assert study.history[1].outcome.charged_usd == 0.7
    assert study.spent_usd == pytest.approx(0.75)


def test_tell_by_number_with_metrics_and_progress() -> None:
    study = study_of(objective="maximize accuracy")
    trial = asked(study)
    study.tell(trial.number, runtime=60, metrics={"loss": 0.2}, accuracy=0.9, progress=[(30, 0.5), (60, 0.9)])
    outcome = study.history[0].outcome
    assert outcome.metrics == {"loss": 0.2, "accuracy": 0.9}
    assert outcome.trace == ((30.0, 0.5), (60.0, 0.9))
    assert study.best_value == 0.9


def test_a_failed_trial_needs_no_time_and_has_a_reason() -> None:
    study = study_of()
    first = asked(study)
    study.tell(first, state="FAIL")
    assert study.history[0].outcome.reason is Reason.JOB
    second = asked(study)
    assert second.params != first.params
    study.tell(second, state=TrialState.FAIL, reason="OOM", runtime="5m", detail="Killed")
    outcome = study.history[1].outcome
    assert (outcome.end, outcome.reason, outcome.seconds, outcome.detail) == (End.FAILED, Reason.OOM, 300.0, "Killed")


# Mistakes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "words"),
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
def test_what_cannot_be_told_is_refused_and_nothing_is_recorded(told: dict[str, object], words: str) -> None:
    study = study_of()
    trial = asked(study)
    with pytest.raises(InputError) as error:
        study.tell(trial, **told)  # type: ignore[arg-type]
    assert str(error.value) == words
    assert study.history == ()
    assert len(study.pending) == 1
    study.tell(trial, runtime=5)
    assert len(study.history) == 1


def test_a_trial_is_told_once_and_asked_before() -> None:
    study = study_of()
    with pytest.raises(InputError) as never:
        study.tell(3, runtime=5)
    assert str(never.value) == "tell: trial 3 was never asked for; call ask() first and tell what it returned."
    trial = asked(study)
    study.tell(trial, runtime=5)
    with pytest.raises(InputError) as twice:
        study.tell(trial, runtime=5)
    assert str(twice.value) == "tell: trial 0 has been told already; a trial is told once."
    assert len(study.history) == 1


def test_there_is_no_best_before_one_is_known() -> None:
    study = study_of(study_name="nightly", constraints=["runtime <= 10m"])
    with pytest.raises(InputError, match="study 'nightly': no trial has kept every limit yet, so there is no best one"):
        _ = study.best_params
    assert study.recommend() is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"objective": "make it fast"}, "objective: cannot read 'make it fast'"),
        ({"constraints": ["runtime"]}, "constraints: cannot read 'runtime'"),
        ({"budget": "lots"}, "budget is 'lots', but dollars such as"),
        ({"budget": 0}, "budget: 0.0 dollars buy nothing"),
        ({"policy": "best"}, "policy: there is no 'best'; choose one of lynceus, "),
        ({"billing": Tariff(warm=("colour",))}, "colour"),
        ({"space": "x"}, "space is 'x', but a Space, .* is needed"),
        ({"objective": 3}, "objective is 3, but a text such as"),
        (
            {"constraints": "runtime <= 45m"},
            r"constraints is 'runtime <= 45m', but a list such as \['runtime <= 45m'\]",
        ),
        ({"constraints": [45]}, "constraints: one of them is 45, but a text such as"),
        ({"budget": [5]}, r"budget is \[5\], but dollars"),
        ({"billing": 60}, "billing is 60, but a Tariff"),
        ({"policy": None}, "policy is None, but a name such as"),
        ({"seed": "7"}, "seed is '7', but a whole number"),
        ({"seed": -1}, "seed is -1, but 0 or more"),
        ({"study_name": 7}, "study_name is 7, but a text"),
        ({"load_if_exists": "yes"}, "load_if_exists is 'yes', but True or False"),
        ({"storage": 7}, "storage is 7, but an address such as"),
        ({"conduct": {}}, "conduct is {}, but a Conduct"),
    ],
)
def test_studies_that_cannot_be_made(given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        create_study(**{"space": SPACE, "budget": "$20", "policy": "random", **given})  # type: ignore[arg-type]


def test_arguments_of_other_types_are_named() -> None:
    study = study_of()
    with pytest.raises(InputError, match="tell: trial is 'first', but what ask"):
        study.tell("first", runtime=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="enqueue_trial: params is 3, but a mapping"):
        study.enqueue_trial(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="add_trial: params is None, but a mapping"):
        study.add_trial(None, runtime=5)  # type: ignore[arg-type]
    assert study.history == study.pending == ()


def test_constraints_and_budgets_may_be_values() -> None:
    study = study_of(constraints=[Limit("time", 60.0)], budget=Budget(usd=3.0, trials=1))
    study.tell(asked(study), runtime=5)
    assert study.ask() is None
    assert study.stopped is not None
    assert study.stopped.because is Because.TRIALS


# Wishes of people ----------------------------------------------------------------------------------------------------------


def test_an_enqueued_trial_comes_first() -> None:
    study = study_of("sweep")
    study.enqueue_trial({"vm": "large", "nodes": 3})
    trial = asked(study)
    assert trial.params == {"vm": "large", "nodes": 3}
    assert trial.why == "asked for by the user"
    study.tell(trial, runtime=4000)
    assert asked(study).params == {"vm": "small", "nodes": 1}
    with pytest.raises(InputError):
        study.enqueue_trial({"vm": "tiny", "nodes": 3})


def test_an_enqueued_trial_that_ran_already_is_skipped() -> None:
    study = study_of("sweep")
    study.tell(asked(study), runtime=4000)
    study.enqueue_trial({"vm": "small", "nodes": 1})
    study.enqueue_trial({"vm": "large", "nodes": 1})
    assert asked(study).params == {"vm": "large", "nodes": 1}


def test_enqueued_trials_keep_the_budget_the_trials_and_the_stop() -> None:
    study = study_of("sweep", budget=Budget(usd=20.0, trials=1))
    study.enqueue_trial({"vm": "large", "nodes": 4})
    study.enqueue_trial({"vm": "large", "nodes": 3})
    asked(study)
    assert study.ask() is None
    poor = study_of("sweep", budget=Budget(usd=0.5), billing=Tariff(boot_s=300.0, minimum_s=400.0, warm=("vm",)))
    poor.enqueue_trial({"vm": "large", "nodes": 1})
    poor.enqueue_trial({"vm": "large", "nodes": 2})
    while (trial := poor.ask()) is not None:
        assert trial.timeout is not None
        poor.tell(trial, runtime=min(trial.timeout, 100.0), state="TIMEOUT")
        assert poor.spent_usd <= 0.5 * (1 + 1e-9)
    stopped = study_of("sweep")
    stopped.enqueue_trial({"vm": "large", "nodes": 4})
    stopped.stop()
    assert stopped.ask() is None


def test_a_stop_stands_also_while_trials_are_open() -> None:
    study = study_of("sweep")
    first = asked(study)
    study.stop("enough for today")
    assert study.ask() is None
    study.tell(first, runtime=60)
    assert study.ask() is None
    assert study.reason == "enough for today"


def test_an_added_trial_is_free_knowledge() -> None:
    study = study_of("sweep", billing=Tariff(boot_s=60.0, warm=("vm",)))
    study.add_trial({"vm": "small", "nodes": 1}, runtime="10m", metrics={"accuracy": 0.8})
    assert study.spent_usd == 0
    assert study.best_params == {"vm": "small", "nodes": 1}
    trial = asked(study)
    assert trial.params != {"vm": "small", "nodes": 1}
    assert study.pending[0].boots, "nothing of an imported run is still warm"
    assert trial.timeout == pytest.approx(660.0 / 2 - 60.0), "it is the incumbent all the same"
    with pytest.raises(InputError, match="a run of 0 seconds"):
        study.add_trial({"vm": "small", "nodes": 2}, runtime=0)
    with pytest.raises(InputError, match="add_trial: runtime"):
        study.add_trial({"vm": "small", "nodes": 2}, runtime="-1m")


# optimize ------------------------------------------------------------------------------------------------------------------


def test_optimize_asks_calls_and_tells() -> None:
    study = study_of("lynceus", constraints=["runtime <= 30m"])
    study.optimize(lambda trial: min(seconds_of(trial), trial.timeout or math.inf))
    assert study.best_params == {"vm": "small", "nodes": 2}
    states = {seen.outcome.end for seen in study.history}
    assert states == {End.FINISHED, End.CAPPED}
    for seen in study.history:
        assert (seen.outcome.end is End.CAPPED) == (seen.outcome.seconds >= seen.order.cap_s)


def test_optimize_takes_metrics_and_a_number_of_trials() -> None:
    study = study_of(objective="maximize accuracy")
    study.optimize(lambda trial: {"runtime": 60.0, "accuracy": 0.1 * trial.number}, n_trials=3)
    assert len(study.history) == 3
    assert study.best_value == pytest.approx(0.2)
    assert study.reason is None
    with pytest.raises(InputError) as error:
        study.optimize(lambda trial: {"accuracy": 0.5}, n_trials=1)
    assert str(error.value) == (
        "optimize: the function returned ['accuracy'] for trial 3; it must return 'runtime' in seconds."
    )
