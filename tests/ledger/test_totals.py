"""Sums that a database makes, against the same sums over the trials themselves."""

import math

import numpy as np
import pytest

from lynceus.history import End, Observation, Order, Outcome, Plan, Reason, Told
from lynceus.ledger.sql import Storage


def settled(number: int, rng: np.random.Generator) -> Observation:
    order = Order(number, int(rng.integers(50)), math.inf, 1.0, Plan(0, why="because"))
    end = [End.FINISHED, End.FINISHED, End.CAPPED, End.FAILED][rng.integers(4)]
    metrics = {"accuracy": float(rng.normal()), "odd name's": 1e-300} if rng.random() < 0.8 else {}
    metrics |= {"loss": math.inf} if rng.random() < 0.2 else {}
    reason = Reason.OOM if end is End.FAILED else None
    outcome = Outcome(end, float(rng.lognormal(3.0)), float(rng.lognormal(-3.0)), metrics, reason=reason)
    return Observation(order, outcome, Told(outcome.seconds, metrics) if end is End.FINISHED else None)


def test_the_sums_of_a_study(storage: Storage) -> None:
    for name in ("nightly", "another"):
        storage.create_study(name, document={}, fingerprint="f", policy={})
    rng = np.random.default_rng(3)
    history = [settled(number, rng) for number in range(40)]
    ledger = storage.ledger("nightly")
    ledger.imported(history, [{}] * len(history))
    for number, reserved in ((40, 0.25), (41, 1.5)):
        ledger.ordered(Order(number, 0, 60.0, reserved, Plan(0, why="because")), {})
    storage.ledger("another").imported([settled(0, rng)], [{}])

    totals = storage.totals("nightly")
    assert (totals.settled, totals.running, totals.reserved_usd) == (40, 2, 1.75)
    assert totals.spent_usd == pytest.approx(sum(seen.outcome.charged_usd for seen in history), rel=1e-12)
    assert totals.stopped_early == sum(seen.outcome.end is End.CAPPED for seen in history)
    assert totals.failed == sum(seen.outcome.end is End.FAILED for seen in history)

    names = ["accuracy", "loss", "odd name's"]
    expected = [
        (seen.order.number, seen.row, seen.outcome.seconds, {k: seen.outcome.metrics[k] for k in names if k in seen.outcome.metrics})
        for seen in history
        if seen.outcome.end is End.FINISHED
    ]  # fmt: skip
    finished = storage.finished("nightly", names)
    assert [(run.number, run.row, run.seconds, run.metrics) for run in finished] == expected
    assert any("loss" in run.metrics for run in finished)
    assert any(not run.metrics for run in finished)


def test_an_open_trial_without_a_cap_reserves_everything(storage: Storage) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={})
    assert storage.totals("nightly").spent_usd == 0.0
    storage.ledger("nightly").ordered(Order(0, 0, math.inf, math.inf, Plan(0, why="because")), {})
    assert storage.totals("nightly").reserved_usd == math.inf
