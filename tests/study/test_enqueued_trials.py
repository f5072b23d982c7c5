"""Trials that the user asks for, adds or stops."""

import pytest

from lynceus.errors import InputError
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.study.create import create_study
from small_studies import ask, study_of


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
