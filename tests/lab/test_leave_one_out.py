"""Leave one family out, against numbers computed by hand."""

import math

import numpy as np
import pytest

from lynceus_lab.families_file import Case
from lynceus_lab.leave_one_out import (
    by_family,
    leave_one_out,
    mean_of,
    scores,
    worst_case,
    worst_family,
    worst_to_best,
)

A1, A2 = Case("a", "a/one", "0.2"), Case("a", "a/one", "0.5")
B, C = Case("b", "b/one", "0.5"), Case("c", "c/one", "as given")


def constant(value):
    return dict.fromkeys(range(4), value)


NUMBERS = {
    "sweep": {case: constant(10.0) for case in (A1, A2, B, C)},
    "x": {A1: constant(2.0), A2: constant(8.0), B: constant(5.0), C: constant(40.0)},
    "y": {A1: constant(10.0), A2: constant(10.0), B: constant(2.5), C: constant(10.0)},
}


def test_scores_are_geometric_means_over_cases_and_then_over_families():
    found = by_family(scores(NUMBERS, "sweep")["x"])
    assert found["a"].ratios == pytest.approx((0.4, 0.4))  # √(0.2 · 0.8)
    assert (found["a"].cases, found["a"].seeds) == (2, 4)
    whole = mean_of(found.values())
    assert whole.ratios[1] == pytest.approx((0.4 * 0.5 * 4.0) ** (1 / 3))  # three families, not four cases
    assert whole.criterion == pytest.approx(math.log(0.8) / 3)


def test_p50_and_p90_are_those_of_the_seeds_that_both_have_run():
    numbers = {
        "sweep": {B: {0: 1.0, 1: 1.0, 2: 1.0}},
        "x": {B: {0: 1.0, 1: 2.0, 2: 7.0, 3: 99.0}},
    }
    score = scores(numbers, "sweep")["x"][B]
    assert score.ratios == pytest.approx((2.0, 6.0))  # p90: 0.8 of the way from 2 to 7
    (low, high), _ = score.intervals
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(7.0)


def test_each_family_is_scored_with_the_variant_that_the_others_choose():
    compared = scores(NUMBERS, "sweep")
    found = {label: by_family(compared[label]) for label in ("x", "y")}
    chosen = {one.family: one for one in leave_one_out(found, ["a", "b", "c"])}
    # Without a: x has √(0.5 · 4) = 1.41, y √(0.25 · 1) = 0.5. Without c: x has √(0.4 · 0.5) = 0.447, y √(1 · 0.25) = 0.5.
    assert {family: one.variant for family, one in chosen.items()} == {"a": "y", "b": "y", "c": "x"}
    assert chosen["a"].score.ratios == pytest.approx((1.0, 1.0))
    assert chosen["c"].score.ratios == pytest.approx((4.0, 4.0))
    assert math.exp(chosen["c"].criterion) == pytest.approx(math.sqrt(0.2))
    left_out = mean_of(one.score for one in chosen.values())
    assert left_out.ratios[0] == pytest.approx((1.0 * 0.25 * 4.0) ** (1 / 3))


def test_a_variant_that_lacks_a_family_cannot_be_chosen():
    compared = scores({**NUMBERS, "z": {B: constant(0.1), C: constant(0.1)}}, "sweep")
    found = {label: by_family(compared[label]) for label in ("x", "z")}
    assert {one.variant for one in leave_one_out(found, ["a", "b", "c"])} == {"x"}
    assert leave_one_out({"z": found["z"]}, ["a", "b", "c"]) == []
    assert leave_one_out({"x": found["x"]}, ["a"]) == []


def test_a_level_that_is_never_reached_is_infinitely_expensive_and_never_chosen():
    numbers = {**NUMBERS, "z": {case: constant(0.1 if case != B else math.inf) for case in (A1, A2, B, C)}}
    compared = scores(numbers, "sweep")
    assert by_family(compared["z"])["b"].ratios == (math.inf, math.inf)
    found = {label: by_family(compared[label]) for label in ("x", "z")}
    chosen = {one.family: one.variant for one in leave_one_out(found, ["a", "b", "c"])}
    assert chosen == {"a": "x", "b": "z", "c": "x"}


def test_the_worst_family_is_looked_for_at_every_deadline():
    numbers = {"sweep": NUMBERS["sweep"], "x": {A1: constant(30.0), A2: constant(1.0), B: constant(20.0)}}
    of_x = scores(numbers, "sweep")["x"]
    p50, p90 = worst_family(of_x)
    assert (p50.where, p90.where) == ("a at 0.2", "a at 0.2")
    assert p90.ratio == pytest.approx(3.0)
    assert worst_case(of_x).where == "a/one at 0.2"


def test_the_worst_case_is_relative_to_the_best_of_the_rivals_that_were_run():
    numbers = {**NUMBERS, "random": {B: constant(1.0)}}
    worst = worst_to_best(numbers, "x", ["sweep", "random", "bo"])
    assert worst.where == "b/one at 0.5, to random"
    assert worst.ratio == pytest.approx(5.0)
    assert worst_to_best(numbers, "x", ["sweep"]).ratio == pytest.approx(4.0)


def test_the_interval_of_the_mean_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(30):
        numbers = {
            label: {case: dict(enumerate(rng.lognormal(0.0, 0.5, 12))) for case in (A1, A2, B, C)}
            for label in ("sweep", "x")
        }
        whole = mean_of(by_family(scores(numbers, "sweep")["x"]).values())
        (low, high), _ = whole.intervals
        covered += low <= 1.0 <= high
    assert 25 <= covered <= 30
