"""Scores, compared with numbers computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.replay.job import load_job
from lynceus.replay.run import Replay, Step
from lynceus.replay.score import Optimum, Reached, reached, true_value
from lynceus.replay.summary import Quantiles, summarise


def replayed(seed: int, *trials: tuple[float, float, str]) -> Replay:
    """A replay with (charge, cno, state) per trial."""
    spent, steps = 0.0, []
    for charge, cno, state in trials:
        spent += charge
        steps.append(Step({}, state, charge, spent, cno, 0.01))
    return Replay("p", seed, tuple(steps), "", None)


def test_the_optimum_is_the_best_row_that_meets_every_constraint(write_job):
    spec = "table: toy.csv\nparameters: [vm, nodes]\nprice: usd\nmetrics: {accuracy: acc}\n"
    # costs: 0.05, 0.04, 0.06, 0.05, 0.12, 0.08; times: 1800, 720, 540, 600, 720, 240; accuracies 90, 80, 90, 95, 70, 99
    for more, row in [
        ("", 1),
        ("deadline: 15m\nconstraints: [accuracy >= 0.85]", 3),
        ("constraints: [accuracy >= 0.97]", 5),
        ("objective: time", 5),
        ("objective: time\nconstraints: [cost <= $0.05]", 3),
        ("objective: maximize accuracy\nconstraints: [cost <= $0.06]", 3),
    ]:
        assert load_job(write_job(spec=spec + more)).optimum.row == row, more


def test_a_row_that_violates_a_constraint_has_no_value(toy):
    assert true_value(toy.problem, toy.measurements, 0) is None
    assert true_value(toy.problem, toy.measurements, 5) == pytest.approx(0.08)


def test_cno_of_costs_of_maximised_metrics_and_without_a_quotient():
    assert Optimum(0, 2.0, 1, 1).cno(3.0) == 1.5
    assert Optimum(0, -0.9, 1, 1).cno(-0.6) == pytest.approx(1.5)
    assert Optimum(0, 0.0, 1, 1).cno(0.1) == math.inf
    assert Optimum(0, 0.0, 1, 1).cno(0.0) == 1.0


def test_rounding_errors_do_not_change_the_cno():
    assert Optimum(0, 0.3, 1, 1).cno(0.1 + 0.2) == 1.0
    assert reached([1.1 + 4e-16], [1.0], 1.1) == Reached(1.0, 1)


def test_summary():
    inf = math.inf
    replays = [
        replayed(0, (1.0, inf, "TIMEOUT"), (2.0, 1.9, "COMPLETE"), (3.0, 1.05, "COMPLETE"), (4.0, 1.0, "COMPLETE")),
        replayed(1, (1.0, 1.0, "COMPLETE")),
        replayed(2, (5.0, inf, "TIMEOUT"), (5.0, 1.5, "COMPLETE")),
    ]
    summary = summarise(replays, optimum_usd=0.5)
    two, tenth, one = summary.levels
    assert two.usd == Quantiles(3.0, pytest.approx(3.0 + 0.8 * 7.0))
    assert two.multiples.p50 == 6.0
    assert two.trials.p50 == 2.0
    assert (two.unreached, tenth.unreached, one.unreached) == (0, 1, 1)
    assert tenth.usd == Quantiles(6.0, inf)
    assert one.usd == Quantiles(10.0, inf)
    assert summary.stopped.p50 == 1.0
    assert summary.cno_at_stop is None


@given(st.lists(st.floats(0, 1e6) | st.just(math.inf), min_size=1, max_size=30))
def test_quantiles_include_infinite_values(values):
    quantiles = Quantiles.of(values)
    for q, found in ((0.5, quantiles.p50), (0.9, quantiles.p90)):
        place = q * (len(values) - 1)
        low, high = sorted(values)[math.floor(place)], sorted(values)[math.ceil(place)]
        assert low <= found <= high
        if not math.isinf(found):
            assert found == pytest.approx(low + (place - math.floor(place)) * (high - low))
