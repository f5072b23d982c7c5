"""Rank agreement between data fractions, against SciPy, and the warning when rankings disagree."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lynceus.analysis.rank_agreement import rank_agreements, spearman
from lynceus.problem.data_fraction import Fraction, row_shares
from shares import small_share_job


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=20))
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    left, right = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert math.isnan(spearman(left, right))
    else:
        assert spearman(left, right) == pytest.approx(float(spearmanr(left, right)[0]), abs=1e-9)


def test_every_fraction_is_compared_with_the_largest_possible_one() -> None:
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    rows = [row for row in range(36) if row_shares(problem)[row] < 1 or row < 9]
    found = {(one.quantity, one.fraction): one for one in rank_agreements(problem, job.finished(rows))}
    assert found["accuracy", 0.05].against == 0.2, "only three configurations ran on all data"
    assert found["accuracy", 0.05].configurations == 12
    assert found["accuracy", 0.05].correlation > 0.8
    assert ("accuracy", 1.0) not in found
    assert found["accuracy", 0.05].warning is None
    everything = rank_agreements(problem, job.finished(range(36)))
    assert {one.against for one in everything} == {1.0}


def test_a_reversed_order_gives_a_warning() -> None:
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    accuracy = np.where(row_shares(problem) == 1.0, -job.measured.metrics["accuracy"], job.measured.metrics["accuracy"])
    turned = replace(job, measured=replace(job.measured, metrics={"accuracy": accuracy}))
    worst = next(one for one in rank_agreements(problem, turned.finished(range(36))) if one.quantity == "accuracy")
    assert worst.correlation < -0.8
    assert worst.warning is not None
    assert "what wins on this sample may not win on all data" in worst.warning


def test_without_a_data_fraction_nothing_is_compared() -> None:
    job = small_share_job()
    assert rank_agreements(job.problem, job.finished(range(36))) == []


def test_a_constant_metric_has_no_ranks() -> None:
    job = small_share_job()
    problem = Fraction("share").apply(job.problem)
    flat = replace(job, measured=replace(job.measured, metrics={"accuracy": np.full(36, 0.5)}))
    found = [one for one in rank_agreements(problem, flat.finished(range(36))) if one.quantity == "accuracy"]
    assert all(math.isnan(one.correlation) and one.warning is None for one in found)
