"""The results of other load generators, as the metrics that our own load reports: see `measurements`.

Known are the tables that `vllm bench serve`, `sglang.bench_serving` and TensorRT-LLM print, the JSON files of these, of guidellm and of
NVIDIA's genai-perf and aiperf. The numbers of any other JSON object keep their names.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

_ROW = re.compile(r"\s*([A-Z][A-Za-z0-9 .\-]*?)(?: \(([a-z/]+)\))?:\s+(-?\d+(?:\.\d+)?)\s*")
_TIMES = {"TTFT": "ttft", "TPOT": "tpot", "ITL": "itl", "E2EL": "latency", "E2E Latency": "latency"}
_STATISTIC = re.compile(r"(Mean|Median|P\d+(?:\.\d+)?) (TTFT|TPOT|ITL|E2EL|E2E Latency)")
_RATES = {
    "Request throughput": "requests_per_s",
    "Output token throughput": "throughput",
    "Total token throughput": "total_throughput",
    "Total Token throughput": "total_throughput",
    "Total throughput": "total_throughput",
    "Successful requests": "successful",
    "Failed requests": "failed",
}
_KEYS = {
    "request_throughput": "requests_per_s",
    "output_throughput": "throughput",
    "output_token_throughput": "throughput",
    "total_token_throughput": "total_throughput",
    "total_throughput": "total_throughput",
    "completed": "successful",
    "failed": "failed",
}
_KEY_STATISTIC = re.compile(r"(mean|median|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|e2e_latency)_ms")
_GUIDELLM_TIMES = {
    "time_to_first_token_ms": ("ttft", 1.0),
    "inter_token_latency_ms": ("itl", 1.0),
    "time_per_output_token_ms": ("tpot", 1.0),
    "request_latency": ("latency", 1000.0),
}
_GUIDELLM_RATES = {
    "output_tokens_per_second": "throughput",
    "tokens_per_second": "total_throughput",
    "requests_per_second": "requests_per_s",
}
_NVIDIA_TIMES = {"time_to_first_token": "ttft", "inter_token_latency": "itl", "request_latency": "latency"}
_MILLISECONDS = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 0.001, "ns": 1e-6}
_MOST_METRICS = 500


class Table:
    """Rows such as `P99 TTFT (ms):   12.3` in the lines that a load generator prints; the last of each counts."""

    def __init__(self) -> None:
        self._found: dict[str, float] = {}

    def add(self, line: str) -> None:
        """Take a line, whatever it is."""
        row = _ROW.fullmatch(line)
        if row is None:
            return
        name, value = row.group(1).strip(), float(row.group(3))
        time = _STATISTIC.fullmatch(name)
        if time is not None and row.group(2) == "ms":
            self._found[f"{_statistic(time.group(1))}_{_TIMES[time.group(2)]}"] = value
        elif name in _RATES:
            self._found[_RATES[name]] = value

    @property
    def metrics(self) -> dict[str, float]:
        """What the table says; empty if no line belonged to one."""
        return _with_errors(self._found)


def metrics_in(text: str) -> dict[str, float]:
    """The metrics of a JSON file, or of the last line of a JSONL file; ValueError if it is neither."""
    try:
        document = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        document = json.loads(lines[-1] if lines else "")
    if isinstance(document, list) and document:
        document = document[-1]
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if isinstance(document.get("benchmarks"), list) and document["benchmarks"]:
        return _of_guidellm(document["benchmarks"][-1])
    if any(isinstance(document.get(name), dict) for name in _NVIDIA_TIMES):
        return _of_nvidia(document)
    return _of_keys(document)


def _of_keys(document: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in document.items():
        if not _is_number(value) or len(found) >= _MOST_METRICS:
            continue
        time = _KEY_STATISTIC.fullmatch(key)
        if time is not None:
            kind = "latency" if time.group(2).startswith("e2e") else time.group(2)
            found[f"{_statistic(time.group(1))}_{kind}"] = float(value)
        else:
            found[_KEYS.get(key, key)] = float(value)
    return _with_errors(found)


def _of_guidellm(benchmark: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    metrics = benchmark.get("metrics", {}) if isinstance(benchmark, dict) else {}
    for key, (name, factor) in _GUIDELLM_TIMES.items():
        good = _inside(metrics, key, "successful")
        _put(found, f"mean_{name}", good.get("mean"), factor)
        for statistic, value in (good.get("percentiles") or {}).items():
            if re.fullmatch(r"p\d+", str(statistic)):
                _put(found, f"{_statistic(statistic)}_{name}", value, factor)
    for key, name in _GUIDELLM_RATES.items():
        _put(found, name, _inside(metrics, key, "successful").get("mean"), 1.0)
    totals = _inside(metrics, "request_totals")
    if _is_number(totals.get("successful")):
        found["successful"] = float(totals["successful"])
        found["failed"] = sum(float(totals[key]) for key in ("errored", "incomplete") if _is_number(totals.get(key)))
    return _with_errors(found)


def _of_nvidia(document: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, name in _NVIDIA_TIMES.items():
        values = _inside(document, key)
        factor = _MILLISECONDS.get(str(values.get("unit", "ms")), 1.0)
        _put(found, f"mean_{name}", values.get("avg"), factor)
        for statistic, value in values.items():
            if re.fullmatch(r"p\d+", statistic):
                _put(found, f"{_statistic(statistic)}_{name}", value, factor)
    for key, name in (("output_token_throughput", "throughput"), ("request_throughput", "requests_per_s")):
        _put(found, name, _inside(document, key).get("avg"), 1.0)
    return found


def _statistic(word: str) -> str:
    return {"mean": "mean", "median": "p50"}.get(word.lower(), word.lower())


def _inside(document: Any, *path: str) -> dict[str, Any]:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _put(found: dict[str, float], name: str, value: Any, factor: float) -> None:
    if _is_number(value):
        found[name] = float(value) * factor


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _with_errors(found: dict[str, float]) -> dict[str, float]:
    """Numbers of requests as their sum and the share that failed."""
    found = dict(found)
    good, bad = found.pop("successful", None), found.pop("failed", 0.0)
    if good is not None and good + bad > 0:
        found["requests"], found["error_share"] = good + bad, bad / (good + bad)
    return found
