"""What a load measured, as metrics: times in milliseconds, rates per second.

For each of `ttft` (time to first token), `itl` (between two tokens), `tpot` (mean time per further token of a request) and `latency` (of
whole requests) there are `mean_`, `p50_`, `p90_`, `p95_` and `p99_`. `throughput` counts output tokens, `total_throughput` those of the
prompts as well.
"""

from __future__ import annotations

import math

from lynceus.executors.serving.errors import MeasurementError
from lynceus.executors.serving.openai_load import Exchange, Load

MEASURING = "measuring_s"
"""The metric with the seconds of a measurement, without the start of the server; `executors.serve` has the same name."""
_PERCENTILES = (50, 90, 95, 99)


def metrics_of(exchanges: list[Exchange], load: Load, max_errors: float) -> dict[str, float]:
    """The metrics of all requests that arrived after the warm-up; `MeasurementError` if too many failed or none was answered."""
    counted = [one for one in exchanges if one.arrived >= load.warmup_s]
    # Clients that were still waiting for their first answers when the warm-up ended: a very slow server, and that is the measurement.
    counted = counted or [one for one in exchanges if one.ended >= load.warmup_s]
    if not counted:
        raise MeasurementError(
            f"no request was sent in {load.stop_after_s:g} s; raise serve.load.rate or serve.stop_after"
        )
    broken = [one for one in counted if one.error]
    if len(broken) > max_errors * len(counted):
        raise MeasurementError(f"{len(broken)} of {len(counted)} requests failed: {_commonest(broken)}")
    good = [one for one in counted if not one.error]
    if not any(one.tokens for one in good):
        raise MeasurementError(f"none of {len(counted)} requests was answered within {load.request_timeout_s:g} s")
    window_s = load.stop_after_s - load.warmup_s
    tokens = sum(_tokens_within(one, load.warmup_s, load.stop_after_s) for one in exchanges if not one.error)
    finished = [one for one in good if not one.unfinished]
    inside = sum(
        load.warmup_s <= one.ended < load.stop_after_s for one in exchanges if not one.error and not one.unfinished
    )
    found = {
        "throughput": tokens / window_s,
        "requests_per_s": inside / window_s,
        "requests": float(len(counted)),
        "error_share": (len(counted) - len(finished)) / len(counted),
    }
    prompts = [one.prompt_tokens for one in finished if one.prompt_tokens]
    if prompts:
        found["total_throughput"] = found["throughput"] + found["requests_per_s"] * sum(prompts) / len(prompts)
    for name, seconds in _times(good).items():
        found.update(_summary(name, seconds))
    return found


def _times(exchanges: list[Exchange]) -> dict[str, list[float]]:
    """Seconds by kind. A request that was not finished counts with what it had taken until then, which is less than the truth."""
    found: dict[str, list[float]] = {"ttft": [], "itl": [], "tpot": [], "latency": []}
    for one in exchanges:
        found["ttft"].append((one.tokens[0] if one.tokens else one.ended) - one.arrived)
        found["latency"].append(one.ended - one.arrived)
        found["itl"] += [after - before for before, after in zip(one.tokens, one.tokens[1:])]  # noqa: B905 - Python 3.8
        count = one.output_tokens or len(one.tokens)
        if count > 1 and len(one.tokens) > 1:
            found["tpot"].append((one.tokens[-1] - one.tokens[0]) / (count - 1))
    return found


def _tokens_within(one: Exchange, start: float, end: float) -> float:
    """Tokens that arrived in a window; a piece of text may be several tokens, of which the server says the sum."""
    pieces = sum(start <= moment < end for moment in one.tokens)
    each = one.output_tokens / len(one.tokens) if one.output_tokens and one.tokens else 1.0
    return pieces * each


def _summary(name: str, seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ordered = sorted(1000.0 * one for one in seconds)
    found = {f"mean_{name}": sum(ordered) / len(ordered)}
    found.update({f"p{share}_{name}": percentile(ordered, share) for share in _PERCENTILES})
    return found


def percentile(ordered: list[float], share: float) -> float:
    """Linear between the two nearest of sorted values.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([5.0], 99)
    (2.5, 5.0)
    """
    place = (len(ordered) - 1) * share / 100.0
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _commonest(broken: list[Exchange]) -> str:
    errors = [one.error for one in broken]
    return max(sorted(set(errors)), key=errors.count)
