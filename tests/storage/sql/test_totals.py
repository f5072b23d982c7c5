"""Totals computed by the database equal the same sums over the trials."""

import math

import numpy as np
import pytest

from lynceus.storage.sql.storage import Storage
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget


def random_observation(number: int, rng: np.random.Generator) -> Observation:
    order = Order(number, int(rng.integers(50)), math.inf, 1.0, Plan(0, why="because"))
    end = [End.FINISHED, End.FINISHED, End.TIMEOUT, End.FAILED][rng.integers(4)]
    metrics = {"accuracy": float(rng.normal()), "odd name's": 1e-300} if rng.random() < 0.8 else {}
    metrics |= {"loss": math.inf} if rng.random() < 0.2 else {}
    reason = FailureReason.OOM if end is End.FAILED else None
    outcome = Outcome(end, float(rng.lognormal(3.0)), float(rng.lognormal(-3.0)), metrics, reason=reason)
    return Observation(order, outcome, TrainingTarget(outcome.seconds, metrics) if end is End.FINISHED else None)


def test_totals_of_a_study(storage: Storage) -> None:
    for name in ("nightly", "another"):
        storage.create_study(name, document={}, fingerprint="f", policy={})
    rng = np.random.default_rng(3)
    observations = [random_observation(number, rng) for number in range(40)]
    journal = storage.journal("nightly")
    journal.imported(observations, [{}] * len(observations))
    for number, reserved in ((40, 0.25), (41, 1.5)):
        journal.ordered(Order(number, 0, 60.0, reserved, Plan(0, why="because")), {})
    storage.journal("another").imported([random_observation(0, rng)], [{}])

    totals = storage.totals("nightly")
    assert (totals.settled, totals.running, totals.reserved_usd) == (40, 2, 1.75)
    assert totals.spent_usd == pytest.approx(sum(seen.outcome.charged_usd for seen in observations), rel=1e-12)
    assert totals.stopped_early == sum(seen.outcome.end is End.TIMEOUT for seen in observations)
    assert totals.failed == sum(seen.outcome.end is End.FAILED for seen in observations)


@pytest.mark.parametrize("names", [["accuracy", "loss", "odd name's"], ["accuracy"], []], ids=len)
def test_comparable_runs_are_finished_or_timed_out(storage: Storage, names: list[str]) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={})
    rng = np.random.default_rng(3)
    observations = [random_observation(number, rng) for number in range(40)]
    storage.journal("nightly").imported(observations, [{}] * len(observations))
    found = storage.comparable_runs("nightly", names)
    assert [run.order.number for run in found] == [
        seen.order.number for seen in observations if seen.outcome.end is not End.FAILED
    ]
    for run in found:
        seen = observations[run.order.number]
        metrics = {name: value for name, value in seen.outcome.metrics.items() if name in names}
        assert (run.row, run.outcome.end, run.outcome.seconds) == (seen.row, seen.outcome.end, seen.outcome.seconds)
        assert run.outcome.metrics == metrics
    assert any("loss" in run.outcome.metrics for run in found) == ("loss" in names)
    assert any(not run.outcome.metrics for run in found)


def test_an_open_trial_without_a_timeout_reserves_an_infinite_amount(storage: Storage) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={})
    assert storage.totals("nightly").spent_usd == 0.0
    storage.journal("nightly").ordered(Order(0, 0, math.inf, math.inf, Plan(0, why="because")), {})
    assert storage.totals("nightly").reserved_usd == math.inf
