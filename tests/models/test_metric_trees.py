"""Arrow's trees over pairs of runs."""

from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.metric_trees import MetricTrees, _extra_trees, reported
from lynceus.models.state import State
from scale_out_job import scaling_job

SMALL = MetricTrees(trees=5)


def observed(job, rows, metrics=None):
    """A state in which runs reported metrics."""
    observations = job.finished(rows)
    if metrics is not None:
        observations = tuple(
            replace(one, outcome=replace(one.outcome, metrics=metrics(one.row))) for one in observations
        )
    return State.present(job.problem, observations)


def test_a_prediction_depends_on_observations_and_seed_only():
    job = scaling_job()
    state = observed(job, [0, 3, 7, 10])
    one, again, other = SMALL(state, 3), SMALL(state, 3), SMALL(state, 4)
    assert one.mean.shape == (1, 12, 1)
    assert np.array_equal(one.mean, again.mean)
    assert not np.array_equal(one.mean, other.mean)
    assert (one.std >= 0).all()


def test_it_learns_the_direction_of_scale_out():
    job = scaling_job()
    state = observed(job, [0, 1, 3, 5, 6, 7, 9, 11])
    prediction = MetricTrees(trees=40)(state, 0)
    assert np.corrcoef(prediction.mean[0, :, 0], np.log(job.measured.seconds))[0, 1] > 0.9


def test_reported_metrics_are_used():
    job = scaling_job()
    plain = observed(job, [0, 2, 6, 9])
    reporting = observed(job, [0, 2, 6, 9], lambda row: {"cpu": float(row % 5), "io": 1.0})
    assert reported(plain, plain.rows).shape == (4, 0)
    table = reported(reporting, reporting.rows)
    assert table.mean(axis=0) == pytest.approx([0, 0])
    assert table[:, 0].std() == pytest.approx(1.0)
    assert not np.array_equal(SMALL(plain, 0).mean, SMALL(reporting, 0).mean)


def test_a_run_without_metrics_counts_as_average():
    job = scaling_job()
    state = observed(job, [0, 2, 6], lambda row: {"cpu": float(row)} if row else {})
    assert reported(state, state.rows)[0, 0] == 0.0


def test_without_observations_it_is_an_error():
    job = scaling_job()
    with pytest.raises(ValueError, match="at least one observation"):
        SMALL(State.present(job.problem, ()), 0)


def test_trees_with_leaves_of_one_reproduce_every_example():
    rng = np.random.default_rng(1)
    examples, target = rng.normal(size=(60, 4)), rng.normal(size=60)
    outputs = _extra_trees(examples, target, examples[::-1], 7, 1, rng)
    assert outputs == pytest.approx(np.tile(target[::-1], (7, 1)))


def test_a_leaf_holds_at_least_the_smallest_number_of_examples():
    rng = np.random.default_rng(2)
    examples, queries = rng.normal(size=(40, 3)), rng.normal(size=(200, 3))
    counted = 2.0 ** np.arange(40)  # the mean of a subset identifies the subset, and so its size
    for output in np.unique(_extra_trees(examples, counted, queries, 5, 4, rng)):
        sizes = [size for size in range(1, 41) if int(output * size).bit_count() == size and output * size % 1 == 0]
        assert max(sizes) >= 4
    assert _extra_trees(examples, counted, queries, 2, 21, rng) == pytest.approx(counted.mean())


def test_a_tree_splits_where_the_target_does():
    rng = np.random.default_rng(3)
    examples = rng.uniform(size=(300, 2))
    queries = np.array([[0.1, 0.5], [0.9, 0.5]])
    outputs = _extra_trees(examples, (examples[:, 0] > 0.5).astype(float), queries, 25, 2, rng)
    assert outputs == pytest.approx(np.tile([0.0, 1.0], (25, 1)))
