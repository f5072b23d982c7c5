"""A search whose input changes: earlier runs stay paid for, and tell about the new input as history."""

from __future__ import annotations

from dataclasses import replace

import lynceus
from lynceus.policy.next_step import next_step
from lynceus.policy.other_inputs import search_here
from lynceus.policy.retries import RetryRules
from lynceus.problem.job_input import JobInput
from lynceus.study.study import Study
from lynceus.trial.incumbents import incumbent
from lynceus.trial.order import Order, Purpose
from lynceus.trial.outcome import End
from lynceus.trial.trial import TrialState

SPACE = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4, 8, 16])], price="0.1 * nodes")


def searched(budget: str = "$10") -> Study:
    study = lynceus.create_study(space=SPACE, constraints=["runtime <= 20m"], budget=budget, input="100 GB")
    for _ in range(4):
        if (trial := study.ask()) is None:
            break
        seconds = 60 + 1600 / float(trial.params["nodes"])
        late = trial.timeout is not None and seconds > trial.timeout
        study.tell(
            trial, runtime=min(seconds, trial.timeout or seconds), state="TIMEOUT" if late else TrialState.COMPLETE
        )
    return study


def test_orders_say_what_their_runs_read() -> None:
    study = searched()
    assert {str(seen.order.input) for seen in study.observations} == {"100 GB"}


def test_a_new_input_opens_all_configurations_and_keeps_numbers_and_money() -> None:
    study = searched()
    problem = replace(study.problem, input=JobInput.read("400 GB"))
    order = next_step(problem, study.policy, RetryRules(), study.record, seed=0).decision
    assert isinstance(order, Order)
    assert order.number == study.record.started
    assert str(order.input) == "400 GB"
    here = search_here(problem, study.policy, study.observations, 0)
    assert here.observations == ()
    assert here.problem.budget.usd == problem.budget.usd - study.spent_usd
    assert [job.name for job in here.problem.history] == ["this job on 100 GB"]
    assert incumbent(problem, study.observations) is None
    assert incumbent(study.problem, study.observations) is not None


def test_money_that_is_gone_is_gone_for_every_input() -> None:
    study = searched("$0.06")
    record, problem = study.record, replace(study.problem, input=JobInput.read("400 GB"))
    left = problem.budget.usd - study.spent_usd
    decision = next_step(problem, study.policy, RetryRules(), replace(record, stopped=None), seed=0).decision
    assert not isinstance(decision, Order) or decision.reserved_usd <= left * (1 + 1e-9)


def test_back_at_the_first_input_its_runs_count_again() -> None:
    study = searched()
    best = study.recommend()
    again = replace(study.problem, input=JobInput.read("100.5 GB"))
    assert best is not None
    assert search_here(again, study.policy, study.observations, 0).observations is study.observations


def test_imported_runs_may_have_read_another_input() -> None:
    study = lynceus.create_study(space=SPACE, budget="$10", input="100 GB")
    study.add_trial({"nodes": 4}, runtime=900, input="400 GB")
    study.add_trial({"nodes": 2}, runtime=800)
    assert [str(seen.order.input) for seen in study.observations] == ["400 GB", "100 GB"]
    assert study.best_params == {"nodes": 2}


def test_a_search_without_a_budget_goes_on_after_runs_on_another_input() -> None:
    study = lynceus.create_study(space=SPACE, constraints=["runtime <= 20m"], input="100 GB")
    study.add_trials([({"nodes": nodes}, 60 + 1600 / nodes, {}) for nodes in (1, 2, 4)], input="50 GB")
    assert study.ask() is not None


def test_a_job_that_is_cheapest_on_few_machines_is_believed_on_the_next_input() -> None:
    """Its runs on more machines were stopped; that they would have taken far longer is a guess, and no reason to distrust it."""
    space = lynceus.Space.build(
        [lynceus.Ordinal("workers", [1, 2]), lynceus.Ordinal("piece_kb", [16, 128, 1024])], price="0.05 * workers"
    )
    study = lynceus.create_study(space=space, constraints=["runtime <= 2m"], budget="$1", input="4 MB")
    seconds = {16: 1.9, 128: 1.2, 1024: 1.1}
    while (trial := study.ask()) is not None and len(study.observations) < 6:
        took = seconds[int(str(trial.params["piece_kb"]))]
        late = trial.timeout is not None and took > trial.timeout
        study.tell(trial, runtime=trial.timeout if late else took, state="TIMEOUT" if late else TrialState.COMPLETE)
    assert any(seen.outcome.end is End.TIMEOUT for seen in study.observations)
    problem = replace(study.problem, input=JobInput.read("16 MB"))
    order = next_step(problem, study.policy, RetryRules(), study.record, seed=0).decision
    assert isinstance(order, Order)
    assert order.plan.purpose is Purpose.HISTORY
    assert problem.space.point(order.row)["workers"] == 1
