"""Trials that measure several rows: each becomes a trial, and the money adds up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynceus
from lynceus.problem.billing import Billing
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.reported_rows import separated
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Outcome

SPACE = Space.build(
    [Categorical("gpu", ["a", "b"]), Integer("clients", values=(1, 2, 4))], price="1 if gpu == 'a' else 2"
)
PROBLEM = Problem(SPACE)
ROW = SPACE.row({"gpu": "b", "clients": 2})


def order(boots: bool = True) -> Order:
    return Order(7, ROW, 600.0, 1.0, Plan(ROW, why="test"), boots)


def outcome(metrics: dict[str, float], seconds: float = 100.0, usd: float = 0.5, end: End = End.FINISHED) -> Outcome:
    return Outcome(end, seconds, usd, metrics)


def test_further_rows_become_runs_that_pay_for_their_measuring_alone() -> None:
    told = {"throughput": 5.0, "measuring_s": 20.0, "throughput@clients=4": 8.0, "measuring_s@clients=4": 30.0}
    own, further = separated(PROBLEM, order(), outcome(told), 8)
    ((ordered, found),) = further
    assert SPACE.point(ordered.row) == {"gpu": "b", "clients": 4}
    assert (ordered.number, ordered.plan.purpose, ordered.boots) == (8, Purpose.SHARED, False)
    assert (own.seconds, own.metrics) == (70.0, {"throughput": 5.0, "measuring_s": 20.0})
    assert found.metrics["throughput"] == 8.0
    # 50 s of set-up and 30 s of measuring: what a trial of its own would have taken; charged are the 30 s.
    assert found.seconds == 80.0
    assert math.isclose(found.charged_usd, 0.5 * 30 / 100)
    assert math.isclose(own.charged_usd + found.charged_usd, 0.5)


@given(
    st.lists(st.floats(0.0, 200.0), min_size=1, max_size=2),
    st.floats(0.1, 300.0),
    st.floats(0.0, 10.0),
    st.sampled_from([Billing(), Billing(boot_s=45.0), Billing(granularity_s=60.0, minimum_s=60.0, fee_usd=0.1)]),
    st.booleans(),
)
def test_the_charges_always_add_up(
    measured: list[float], seconds: float, usd: float, billing: Billing, boots: bool
) -> None:
    told = {"throughput": 1.0}
    for value, each in zip((1, 4), measured, strict=False):
        told |= {f"throughput@clients={value}": 2.0, f"measuring_s@clients={value}": each}
    problem = Problem(SPACE, billing=billing)
    own, further = separated(problem, order(boots), outcome(told, seconds, usd), 8)
    assert len(further) == len(measured)
    assert math.isclose(own.charged_usd + sum(one.charged_usd for _, one in further), usd, abs_tol=1e-9)
    assert all(one.charged_usd >= 0 for one in (own, *(each for _, each in further)))


@pytest.mark.parametrize("name", ["recall@10", "map@k=5", "throughput@clients=3", "@clients=4", "throughput@gpu=c"])
def test_a_name_that_names_no_row_is_a_metric(name: str) -> None:
    own, further = separated(PROBLEM, order(), outcome({name: 0.5}), 8)
    assert (dict(own.metrics), further) == ({name: 0.5}, ())


def test_what_a_trial_says_of_its_own_row_twice_is_no_further_row() -> None:
    own, further = separated(PROBLEM, order(), outcome({"throughput": 1.0, "throughput@clients=2": 9.0}), 8)
    assert (own.metrics["throughput"], further) == (1.0, ())


def test_a_failed_trial_has_measured_nothing() -> None:
    failed = Outcome(End.FAILED, 10.0, 0.1, {"throughput@clients=4": 8.0}, reason=FailureReason.JOB, detail="crashed")
    assert separated(PROBLEM, order(), failed, 8) == (failed, ())


def test_a_trial_that_was_stopped_during_a_further_load_keeps_its_own_row() -> None:
    told = {"throughput": 5.0, "throughput@clients=4": 8.0, "measuring_s@clients=4": 30.0}
    own, further = separated(PROBLEM, order(), outcome(told, end=End.TIMEOUT), 8)
    assert own.end is End.FINISHED
    assert len(further) == 1


@pytest.mark.parametrize("storage", [None, "sqlite:///{}/studies.db"])
def test_a_study_learns_all_rows_of_a_trial(storage: str | None, tmp_path) -> None:  # type: ignore[no-untyped-def]
    url = None if storage is None else storage.format(tmp_path)
    study = lynceus.create_study(
        space=SPACE,
        objective="minimize price / throughput",
        constraints=["ttft <= 50"],
        budget=lynceus.Budget(usd=5.0, trials=2),
        policy="sweep",
        study_name="ramp",
        storage=url,
    )
    trial = study.ask()
    assert trial is not None
    told = {"throughput": 10.0, "ttft": 20.0, "measuring_s": 30.0}
    for clients in (1, 2, 4):
        if clients != trial.params["clients"]:
            told |= {f"throughput@clients={clients}": 10.0 * clients, f"ttft@clients={clients}": 20.0 * clients}
            told |= {f"measuring_s@clients={clients}": 30.0}
    study.tell(trial, runtime=190.0, metrics=told)
    assert [one.params["clients"] for one in study.trials].count(4) == 1
    assert len(study.trials) == 3
    assert math.isclose(study.spent_usd, 190.0 * SPACE.price_per_second[study.observations[0].row])
    assert study.ask() is not None, "the further rows do not count against max_trials"
    if url is not None:
        again = lynceus.load_study(study_name="ramp", storage=url)
        assert [one.row for one in again.observations] == [one.row for one in study.observations]
        assert [one.order.plan.purpose for one in again.observations][1:] == [Purpose.SHARED] * 2
