"""Metrics of a load, from requests whose times are known."""

import math
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.serving.errors import MeasurementError
from lynceus.executors.serving.measurements import metrics_of, percentile
from lynceus.executors.serving.openai_load import Exchange, Load


def exchange(arrived: float, *tokens: float, ended: float | None = None, **others: object) -> Exchange:
    moments = array("d", tokens)
    return Exchange(arrived, moments, tokens[-1] if ended is None else ended, **others)  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentiles_are_those_of_numpy(values: list[float], share: float) -> None:
    assert percentile(sorted(values), share) == pytest.approx(float(np.percentile(values, share)), rel=1e-9, abs=1e-9)


def test_times_and_rates() -> None:
    load = Load(stop_after_s=10.0, rate=1.0)
    sent = [exchange(0.0, 0.1, 0.2, 0.4), exchange(5.0, 5.3, 5.4, 5.5)]
    found = metrics_of(sent, load, 0.0)
    assert found["throughput"] == pytest.approx(0.6)
    assert found["requests_per_s"] == pytest.approx(0.2)
    assert found["mean_ttft"] == pytest.approx(200.0)
    assert found["p50_itl"] == pytest.approx(100.0)
    assert found["mean_tpot"] == pytest.approx((150.0 + 100.0) / 2)
    assert found["mean_latency"] == pytest.approx(450.0)
    assert found["error_share"] == 0.0


def test_pieces_count_as_the_tokens_that_the_server_reports() -> None:
    load = Load(stop_after_s=1.0, rate=1.0)
    found = metrics_of([exchange(0.0, 0.1, 0.2, output_tokens=10, prompt_tokens=7)], load, 0.0)
    assert found["throughput"] == pytest.approx(10.0)
    assert found["total_throughput"] == pytest.approx(17.0)
    assert found["mean_tpot"] == pytest.approx(100.0 / 9)


def test_the_warm_up_and_what_comes_late_do_not_count() -> None:
    load = Load(stop_after_s=3.0, rate=1.0, warmup_s=1.0)
    found = metrics_of([exchange(0.5, 0.9, 1.5), exchange(2.0, 2.5, 3.5)], load, 0.0)
    assert found["requests"] == 1.0
    assert found["throughput"] == pytest.approx(1.0), "two tokens arrived between 1 s and 3 s"
    assert found["mean_ttft"] == pytest.approx(500.0)


def test_a_server_so_slow_that_every_request_began_in_the_warm_up_is_measured() -> None:
    load = Load(stop_after_s=5.0, concurrency=1, warmup_s=1.0)
    found = metrics_of([exchange(0.0, 4.0, 6.0)], load, 0.0)
    assert (found["requests"], found["p99_ttft"]) == (1.0, 4000.0)
    assert found["throughput"] == pytest.approx(0.25)


def test_an_unfinished_request_counts_with_what_it_took() -> None:
    load = Load(stop_after_s=1.0, rate=1.0, request_timeout_s=9.0)
    waiting = exchange(0.5, ended=9.5, unfinished=True)
    found = metrics_of([exchange(0.0, 0.1), waiting], load, 0.0)
    assert found["p99_ttft"] == pytest.approx(100.0 + 0.99 * 8900.0)
    assert found["error_share"] == 0.5


def test_too_many_errors_are_refused_with_the_commonest() -> None:
    load = Load(stop_after_s=1.0, rate=1.0)
    sent = [exchange(0.0, 0.1), exchange(0.0, ended=0.1, error="HTTP 500"), exchange(0.0, ended=0.1, error="HTTP 500")]
    with pytest.raises(MeasurementError, match="2 of 3 requests failed: HTTP 500"):
        metrics_of(sent, load, 0.5)
    assert metrics_of(sent, load, 0.7)["error_share"] == pytest.approx(2 / 3)


def test_nothing_sent_and_nothing_answered() -> None:
    load = Load(stop_after_s=1.0, rate=1.0)
    with pytest.raises(MeasurementError, match="no request was sent in 1 s"):
        metrics_of([], load, 0.0)
    with pytest.raises(MeasurementError, match="none of 1 requests was answered within 60 s"):
        metrics_of([exchange(0.0, ended=60.0, unfinished=True)], load, 0.0)


@given(st.integers(1, 30), st.integers(1, 8))
def test_every_metric_is_finite(requests: int, tokens: int) -> None:
    load = Load(stop_after_s=100.0, rate=1.0)
    sent = [exchange(float(one), *(one + 0.1 * (place + 1) for place in range(tokens))) for one in range(requests)]
    found = metrics_of(sent, load, 0.0)
    assert all(math.isfinite(value) and value >= 0 for value in found.values())
    assert found["throughput"] == pytest.approx(requests * tokens / 100.0)
