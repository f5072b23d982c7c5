"""Statistics, compared with NumPy, SciPy and Monte Carlo."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus_lab.statistics import (
    Estimate,
    across_jobs,
    clusters,
    estimate,
    holm,
    outcome_of,
    quantiles,
    ratio,
    signed_rank,
    statistic,
    written,
)

NUMBERS = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=30)


@given(NUMBERS, st.sampled_from([0.1, 0.5, 0.9]))
def test_quantiles_equal_those_of_numpy(values, q):
    assert quantiles(np.array(values), q) == pytest.approx(np.quantile(values, q))


@given(NUMBERS, st.integers(0, 5))
def test_seeds_that_did_not_reach_the_level_count_as_infinite(values, missing):
    sample = np.array([*values, *[math.inf] * missing])
    p50 = float(statistic(sample, "p50"))
    assert math.isinf(p50) == (missing > 0 and math.ceil(0.5 * (len(sample) - 1)) >= len(values))
    assert float(statistic(sample, "share")) == pytest.approx(len(values) / len(sample))
    assert float(statistic(sample, "found")) == pytest.approx(np.mean(values))


def test_a_ratio_is_a_geometric_mean_over_jobs():
    above = [{0: 2.0, 1: 2.0}, {0: 8.0, 1: 8.0}]
    below = [{0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}]
    assert ratio(above, below, "p50").value == pytest.approx(4.0)


def test_only_common_seeds_are_compared():
    found = ratio([{0: 2.0, 1: 4.0, 7: 1000.0}], [{0: 1.0, 1: 2.0, 8: 1e-9}], "p90")
    assert (found.value, found.seeds) == (pytest.approx(2.0), 2)
    assert ratio([{0: 1.0}], [{1: 1.0}], "p50").seeds == 0


def test_pairing_removes_common_variation():
    rng = np.random.default_rng(0)
    common = np.exp(rng.normal(0, 2, 50))
    above, below = dict(enumerate(1.5 * common)), dict(enumerate(common))
    found = ratio([above], [below], "p50")
    assert found.low == pytest.approx(1.5)
    assert found.high == pytest.approx(1.5)


def test_intervals_have_their_nominal_coverage():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        found = estimate([dict(enumerate(rng.exponential(1.0, 60)))], "p50")
        hits += found.low <= math.log(2) <= found.high
    assert 0.88 <= hits / 200 <= 1.0


def test_one_seed_has_no_interval():
    assert math.isnan(estimate([{0: 3.0}], "p90").low)


def test_holm_correction():
    raw = [0.04, 0.001, 0.03, 0.5]
    corrected = holm(raw)
    assert corrected == pytest.approx([0.09, 0.004, 0.09, 0.5])
    assert all(one >= other for one, other in zip(corrected, raw, strict=True))


def test_the_signed_rank_test_detects_a_shift():
    rng = np.random.default_rng(2)
    common = rng.normal(0, 1, 40)
    below = dict(enumerate(np.exp(common)))
    assert signed_rank(dict(enumerate(np.exp(common + 0.5 + 0.1 * rng.normal(size=40)))), below) < 1e-6
    assert signed_rank(below, below) == 1.0
    assert signed_rank(dict(enumerate(np.exp(common + rng.normal(size=40)))), below) > 0.01


def test_a_seed_in_which_only_one_reached_the_level_is_the_largest_difference():
    above = dict.fromkeys(range(12), 1.0)
    below = dict(above)
    assert signed_rank({**above, **dict.fromkeys(range(8), math.inf)}, below) < 0.05
    both = dict.fromkeys(range(12), math.inf)
    assert signed_rank(both, both) == 1.0


@pytest.mark.parametrize(
    ("found", "word"),
    [(Estimate(0.5, 0.4, 0.9, 9), "win"), (Estimate(2, 1.1, 3, 9), "loss"), (Estimate(0.9, 0.7, 1.2, 9), "tie")],
)
def test_wins_and_losses_need_the_whole_interval(found, word):
    assert outcome_of(found) == word


def test_the_test_across_jobs_is_exact():
    """The exact distribution of signed ranks, from all signs of six jobs."""
    ratios = np.array([0.5, 0.7, 1.2, 0.4, 0.9, 0.3])
    logs = np.log(ratios)
    ranks = np.argsort(np.argsort(np.abs(logs))) + 1
    signs = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
    sums = signs @ ranks
    seen = min(ranks[logs > 0].sum(), ranks[logs < 0].sum())
    assert across_jobs(named(ratios)) == pytest.approx(min(1.0, 2 * (sums <= seen).mean()))
    assert across_jobs(named([0.1, 0.1001, 0.1002, 0.1003])) == pytest.approx(0.125), "four jobs never suffice"
    assert across_jobs(named([1.0, 1.0])) == 1.0
    assert across_jobs(named([math.inf, 2, 3, 4, 5, 6])) == across_jobs(named([9, 2, 3, 4, 5, 6]))
    assert across_jobs(named([2, 3, 4, 5, 6, math.nan])) == across_jobs(named([2, 3, 4, 5, 6]))
    assert across_jobs({}) == 1.0


def named(ratios):
    return {f"job {place}": ratio for place, ratio in enumerate(ratios)}


def test_sizes_of_one_algorithm_are_one_cluster():
    """Log ratios are averaged per algorithm before they are ranked."""
    ratios = {"s/a_huge_spark": 0.25, "s/a_bigdata_spark": 1.0, "s/a_bigdata_hadoop": 2.0, "s/b_huge_x": math.inf}
    ratios |= {"s/c": 3.0, "s/d": 0.2, "s/e": 0.3}
    joined = {"a": 0.5 ** (1 / 3), "b": math.inf, "c": 3.0, "d": 0.2, "e": 0.3}
    assert across_jobs(ratios) == across_jobs(joined)
    assert clusters(ratios) == 5
    assert clusters({**ratios, "s/e": math.nan}) == 4


def test_a_job_on_which_neither_reached_the_level_is_left_out():
    never, got = {0: math.inf, 1: math.inf, 2: math.inf}, {0: 1.0, 1: 2.0, 2: 3.0}
    twice = {seed: 2 * value for seed, value in got.items()}
    found = ratio([twice, never], [got, never], "p90")
    assert (found.value, found.low, found.high) == (pytest.approx(2.0),) * 3
    assert (found.jobs, found.undecided) == (1, 1)
    alone = ratio([never], [never], "p50")
    assert math.isnan(alone.value)
    assert (alone.jobs, alone.undecided) == (0, 1)


def test_draws_without_a_value_are_dropped():
    """Two of four seeds reached the level, so some draws contain none of them; the interval is that of the others."""
    sample = np.array([1.0, 3.0, math.inf, math.inf])
    found = estimate([dict(enumerate(sample))], "found")
    drawn = statistic(sample[np.random.default_rng(0).integers(0, 4, (4000, 4))], "found")
    known = drawn[~np.isnan(drawn)]
    assert (found.value, found.seeds) == (2.0, 2)
    assert (found.low, found.high) == (np.quantile(known, 0.025), np.quantile(known, 0.975))
    once = estimate([{0: 1.0, 1: math.inf}], "found")
    assert once.seeds == 1
    assert math.isnan(once.low), "one seed has no interval"


def test_undecided_draws_leave_a_job_out_of_them():
    """Where one side is infinite in most draws, those with a number decide."""
    rare = {0: 1.0, 1: math.inf}
    found = ratio([{0: 2.0, 1: 2.0}, rare], [{0: 1.0, 1: 1.0}, {0: 1.0, 1: 1.0}], "p50")
    assert math.isinf(found.value)
    assert found.low == pytest.approx(math.sqrt(2.0))


@pytest.mark.parametrize("value", [0.25, math.inf, -math.inf])
def test_numbers_round_trip_through_json(value):
    assert float(json.loads(json.dumps(written(value), allow_nan=False))) == value


def test_nan_is_not_infinity():
    assert math.isnan(float(written(math.nan)))


def test_a_ratio_of_policies_that_each_failed_on_one_job_is_undefined() -> None:
    never, got = {0: math.inf, 1: math.inf}, {0: 1.0, 1: 2.0}
    assert math.isnan(ratio([never, got], [got, never], "p50").value)
