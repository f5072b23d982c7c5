"""What a study refuses: invalid arguments and results, each with one sentence."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.study.create import create_study
from lynceus.trial.stop import StopReason
from small_studies import SPACE, ask, study_of


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "make it fast"}, "objective: cannot read 'make it fast'"),
        ({"constraints": ["runtime"]}, "constraints: cannot read 'runtime'"),
        ({"budget": "lots"}, "budget is 'lots', but dollars such as"),
        ({"budget": 0}, "budget: 0.0 dollars is no budget"),
        ({"policy": "best"}, "policy: there is no 'best'."),
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
