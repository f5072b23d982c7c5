"""Arrow's trees over pairs of runs."""

from dataclasses import replace

import numpy as np
import pytest

from jobs_scale import scaling_job
from lynceus.situation import Situation
from lynceus.surrogate.metric_trees import MetricTrees, _extra_trees, reported

SMALL = MetricTrees(trees=5)


def told(job, rows, metrics=None):
    """A history in which runs reported metrics."""
    history = job.finished(rows)
    if metrics is not None:
        history = tuple(replace(one, outcome=replace(one.outcome, metrics=metrics(one.row))) for one in history)
    return Situation.present(job.problem, history)


def test_a_belief_is_a_function_of_what_was_told_and_of_the_seed():
    job = scaling_job()
    situation = told(job, [0, 3, 7, 10])
    one, again, other = SMALL(situation, 3), SMALL(situation, 3), SMALL(situation, 4)
    assert one.mean.shape == (1, 12, 1)
    assert np.array_equal(one.mean, again.mean)
    assert not np.array_equal(one.mean, other.mean)
    assert (one.std >= 0).all()


def test_it_learns_the_direction_of_scale_out():
    job = scaling_job()
    situation = told(job, [0, 1, 3, 5, 6, 7, 9, 11])
    belief = MetricTrees(trees=40)(situation, 0)
    assert np.corrcoef(belief.mean[0, :, 0], np.log(job.measured.seconds))[0, 1] > 0.9


def test_metrics_that_tell_the_time_are_used():
    job = scaling_job()
    plain = told(job, [0, 2, 6, 9])
    telling = told(job, [0, 2, 6, 9], lambda row: {"cpu": float(row % 5), "io": 1.0})
    assert reported(plain, plain.rows).shape == (4, 0)
    table = reported(telling, telling.rows)
    assert table.mean(axis=0) == pytest.approx([0, 0])
    assert table[:, 0].std() == pytest.approx(1.0)
    assert not np.array_equal(SMALL(plain, 0).mean, SMALL(telling, 0).mean)


def test_a_run_that_reported_nothing_is_average():
    job = scaling_job()
    situation = told(job, [0, 2, 6], lambda row: {"cpu": float(row)} if row else {})
    assert reported(situation, situation.rows)[0, 0] == 0.0


def test_without_observations_it_says_what_is_missing():
    job = scaling_job()
    with pytest.raises(ValueError, match="at least one observation"):
        SMALL(Situation.present(job.problem, ()), 0)


def test_trees_with_leaves_of_one_know_every_example_by_heart():
    luck = np.random.default_rng(1)
    examples, target = luck.normal(size=(60, 4)), luck.normal(size=60)
    answers = _extra_trees(examples, target, examples[::-1], 7, 1, luck)
    assert answers == pytest.approx(np.tile(target[::-1], (7, 1)))


def test_a_leaf_holds_as_many_examples_as_it_must():
    luck = np.random.default_rng(2)
    examples, asked = luck.normal(size=(40, 3)), luck.normal(size=(200, 3))
    counted = 2.0 ** np.arange(40)  # a mean of some of these tells which, and so how many
    for answer in np.unique(_extra_trees(examples, counted, asked, 5, 4, luck)):
        sizes = [size for size in range(1, 41) if int(answer * size).bit_count() == size and answer * size % 1 == 0]
        assert max(sizes) >= 4
    assert _extra_trees(examples, counted, asked, 2, 21, luck) == pytest.approx(counted.mean())


def test_a_tree_splits_where_the_target_does():
    luck = np.random.default_rng(3)
    examples = luck.uniform(size=(300, 2))
    asked = np.array([[0.1, 0.5], [0.9, 0.5]])
    answers = _extra_trees(examples, (examples[:, 0] > 0.5).astype(float), asked, 25, 2, luck)
    assert answers == pytest.approx(np.tile([0.0, 1.0], (25, 1)))
