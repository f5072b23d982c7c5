"""Results of load generators that others wrote, as metrics of ours."""

import json

import pytest

from lynceus.executors.serving.load_results import Table, metrics_in

VLLM = """
============ Serving Benchmark Result ============
Successful requests:                     95
Failed requests:                         5
Request rate configured (RPS):           10.00
Benchmark duration (s):                  131.78
Request throughput (req/s):              0.76
Output token throughput (tok/s):         777.04
Peak output token throughput (tok/s):    1386.00
Total Token throughput (tok/s):          2331.11
---------------Time to First Token----------------
Mean TTFT (ms):                          21727.85
Median TTFT (ms):                        21310.34
P99 TTFT (ms):                           43883.54
---------------Inter-token Latency----------------
P99 ITL (ms):                            22.5
----------------End-to-end Latency----------------
P99 E2EL (ms):                           50000.00
==================================================
INFO 12:00:01 engine.py: Running: 3 reqs
"""


def test_the_table_of_vllm_and_its_relatives() -> None:
    table = Table()
    for line in VLLM.splitlines():
        table.add(line)
    assert table.metrics == {
        "requests": 100.0,
        "error_share": 0.05,
        "requests_per_s": 0.76,
        "throughput": 777.04,
        "total_throughput": 2331.11,
        "mean_ttft": 21727.85,
        "p50_ttft": 21310.34,
        "p99_ttft": 43883.54,
        "p99_itl": 22.5,
        "p99_latency": 50000.0,
    }


def test_the_table_of_sglang_has_other_words_for_latency() -> None:
    table = Table()
    table.add("Median E2E Latency (ms):                 606.86    ")
    table.add("Total throughput (tok/s):                2121.89   ")
    assert table.metrics == {"p50_latency": 606.86, "total_throughput": 2121.89}


def test_lines_that_are_no_row_are_nothing() -> None:
    table = Table()
    for line in ("", "P99 TTFT (ms): [result]", "P99 TTFT (s): 3", "Mean:  4", "a" * 10_000, "Listening: 8000"):
        table.add(line)
    assert table.metrics == {}


def test_json_of_vllm_and_of_sglang() -> None:
    found = metrics_in(
        json.dumps({"output_throughput": 5.5, "p99_ttft_ms": 7, "completed": 9, "failed": 1, "date": "now", "on": True})
    )
    assert found == {"throughput": 5.5, "p99_ttft": 7.0, "requests": 10.0, "error_share": 0.1}
    lines = '{"output_throughput": 1}\n{"output_throughput": 2, "median_e2e_latency_ms": 3}\n'
    assert metrics_in(lines) == {"throughput": 2.0, "p50_latency": 3.0}, "the last line of a file that grows"


def test_json_of_guidellm() -> None:
    def spread(mean: float) -> dict[str, object]:
        return {"successful": {"mean": mean, "percentiles": {"p50": mean, "p99": 2 * mean, "p999": 9 * mean}}}

    metrics = {
        "time_to_first_token_ms": spread(10.0),
        "request_latency": spread(1.5),
        "output_tokens_per_second": spread(300.0),
        "request_totals": {"successful": 9, "errored": 1, "incomplete": 0, "total": 10},
    }
    found = metrics_in(json.dumps({"benchmarks": [{"metrics": metrics}]}))
    assert found["p99_ttft"] == 20.0
    assert found["p99_latency"] == 3000.0, "seconds there, milliseconds here"
    assert (found["throughput"], found["error_share"]) == (300.0, 0.1)


def test_json_of_nvidia() -> None:
    text = json.dumps(
        {
            "time_to_first_token": {"unit": "ms", "avg": 5.0, "p99": 9.0},
            "request_latency": {"unit": "s", "avg": 1.0, "p99": 2.0},
            "output_token_throughput": {"unit": "tokens/sec", "avg": 100.0},
        }
    )
    found = metrics_in(text)
    assert (found["p99_ttft"], found["p99_latency"], found["throughput"]) == (9.0, 2000.0, 100.0)


@pytest.mark.parametrize("text", ["", "[]", "3", "not json", '"text"', "[1, 2]", "{", "\n\n"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        metrics_in(text)


def test_odd_shapes_of_known_files_give_nothing() -> None:
    assert metrics_in('{"benchmarks": [3]}') == {}
    assert metrics_in('{"benchmarks": [{"metrics": {"request_latency": []}}]}') == {}
    assert metrics_in('{"time_to_first_token": {"avg": "fast"}, "x": NaN}') == {}
