"""Shortlists: candidates only, in order, at most the requested number, and always with the best."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.models.state import State
from lynceus.policy.interfaces import Shortlist
from lynceus.policy.planners.shortlist import LocalSearch, RandomRows, TopRows
from lynceus.testing.job import small_job

JOB = small_job()
HERE = State.present(JOB.problem, ())
SIZE = len(JOB.problem.space)


def lists(count: int) -> list[Shortlist]:
    return [TopRows(count), RandomRows(count), LocalSearch(count), LocalSearch(count, starts=1, neighbours=2)]


@given(
    which=st.integers(0, 3),
    count=st.integers(1, 30),
    score=st.lists(st.floats(-10, 10), min_size=SIZE, max_size=SIZE),
    candidates=st.lists(st.booleans(), min_size=SIZE, max_size=SIZE).filter(any),
    seed=st.integers(0, 9),
)
def test_the_contract(which: int, count: int, score: list[float], candidates: list[bool], seed: int) -> None:
    scores, mask = np.array(score), np.array(candidates)
    rows = lists(count)[which](HERE, scores, mask, seed)
    assert mask[rows].all(), "only candidates"
    assert len(rows) == len(set(rows.tolist()))
    assert 1 <= len(rows) <= count
    assert rows.tolist() == sorted(rows.tolist())
    assert scores[rows].max() == scores[mask].max(), "the best by the cheap score is always included"
    assert np.array_equal(rows, lists(count)[which](HERE, scores, mask, seed))
    if count >= mask.sum():
        assert np.array_equal(rows, np.flatnonzero(mask)), "a list that is long enough has all candidates"


def test_top_rows_are_the_top() -> None:
    score = np.random.default_rng(0).permutation(SIZE).astype(float)
    rows = TopRows(5)(HERE, score, np.ones(SIZE, dtype=bool), 0)
    assert sorted(score[rows]) == [19.0, 20.0, 21.0, 22.0, 23.0]


def test_random_rows_change_with_seed_and_step() -> None:
    score, mask = np.arange(SIZE, dtype=float), np.ones(SIZE, dtype=bool)
    first = RandomRows(6)(HERE, score, mask, 0)
    assert not np.array_equal(first, RandomRows(6)(HERE, score, mask, 1))
    assert not np.array_equal(first, RandomRows(6)(replace(HERE, started=1), score, mask, 0))


def test_local_search_visits_neighbours() -> None:
    """On a smooth hill, the rows of the list are near its top."""
    space = JOB.problem.space
    top = space.row({"vm": "m", "nodes": 4, "batch": 64})
    scaled = (space.features - space.features.min(axis=0)) / np.ptp(space.features, axis=0)
    distance = np.abs(scaled - scaled[top]).sum(axis=1)
    rows = LocalSearch(8, starts=1)(HERE, -distance, np.ones(SIZE, dtype=bool), 0)
    assert distance[rows].mean() < distance.mean()
    assert top in rows


@pytest.mark.parametrize("shortlist", lists(4), ids=repr)
def test_parts_are_values(shortlist: Shortlist) -> None:
    assert hash(shortlist) == hash(replace(shortlist))  # type: ignore[type-var]
