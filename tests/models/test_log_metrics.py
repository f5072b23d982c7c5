"""Metrics by their logarithm: where they are positive, and what is believed before any was reported."""

from dataclasses import replace

import numpy as np
import pytest

from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.log_metrics import LogMetrics
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.testing import check_surrogate
from lynceus.testing.job import small_job

JOB = small_job("accuracy >= 0.85", objective="minimize price / accuracy")
MODEL = LogMetrics(GaussianProcess())


def seen() -> State:
    return State.present(JOB.problem, JOB.finished(JOB.order_of_runs[:6]))


@pytest.mark.parametrize("model", [MODEL, LogMetrics(Trees(trees=5, target="log time"))])
def test_it_meets_the_contract_of_surrogates(model: LogMetrics) -> None:
    check_surrogate(model)


def test_positive_metrics_are_modelled_by_their_logarithm() -> None:
    state = seen()
    prediction = MODEL(state, 1)
    assert prediction.logs == (True,)
    inner = GaussianProcess()(replace(state, metrics=np.log(state.metrics), logs=(True,)), 1)
    np.testing.assert_array_equal(prediction.mean, inner.mean)
    np.testing.assert_array_equal(prediction.metric(0).quantile(0.5), np.exp(inner.mean[:, :, 1]))


def test_metrics_with_other_values_or_limits_stay_as_they_are() -> None:
    state = seen()
    metrics = state.metrics.copy()
    metrics[2] = 0.0
    assert MODEL(replace(state, metrics=metrics), 1).logs == (False,)
    below = small_job("accuracy >= -1")
    assert MODEL(State.present(below.problem, below.finished(below.order_of_runs[:6])), 1).logs == (False,)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_metric_that_nobody_reported_may_or_may_not_keep_its_limit_in_any_unit(scale: float) -> None:
    job = small_job(f"accuracy >= {0.85 * scale}", "drift <= -2")
    state = State.present(job.problem, job.finished(job.order_of_runs[:6]))
    silent = replace(state, metrics=np.full_like(state.metrics, np.nan))
    prediction = MODEL(silent, 1)
    for constraint in job.problem.constraints:
        np.testing.assert_allclose(prediction.meets(constraint, job.problem), 0.5)


def test_a_pending_run_is_expected_to_report_the_median() -> None:
    from lynceus.models.state import expected_result
    from lynceus.trial.order import Order, Plan

    prediction = MODEL(seen(), 1)
    order = Order(6, 3, 10.0, 1.0, Plan(3, why="", expected=prediction.expected(3)))
    found = expected_result(JOB.problem, order)
    assert found is not None
    assert found[1] == pytest.approx(float(prediction.metric(0).quantile(0.5)[0, 3]))
