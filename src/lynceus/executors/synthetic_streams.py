"""Synthetic streams of values for replays: what a measured run might have streamed, given its published median and 95th percentile.

Tables of measured deployments hold quantiles of latencies, not the latencies. Log-normal values with these two quantiles stand for them, so
that ending a measurement early can be replayed. They are made up, and results from them are to be called synthetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lynceus.executors.supervisor.streams import StreamLimit

if TYPE_CHECKING:
    from lynceus.executors.interface import Request
    from lynceus.space.column import FloatArray

_Z95 = 1.6448536269514722
"""The 95th percentile of the standard normal distribution."""


@dataclass(frozen=True, eq=False)
class SyntheticStream:
    """Log-normal values at even intervals."""

    median: FloatArray
    """`[q]`"""
    p95: FloatArray
    """`[q]`, not below the median."""
    every_s: float
    """Seconds between two values."""
    start_s: float = 0.0
    """Seconds of a run before the first value."""

    def values(self, row: int, seconds: float, rng: np.random.Generator) -> FloatArray:
        """What a run of so many seconds streams."""
        count = max(int((seconds - self.start_s) / self.every_s), 0)
        spread = np.log(self.p95[row] / self.median[row]) / _Z95
        return np.asarray(self.median[row] * np.exp(rng.normal(0.0, max(spread, 0.0), count)))

    def moment(self, place: int) -> float:
        """When the value at a place of the stream is there, in seconds of the run."""
        return self.start_s + (place + 1) * self.every_s


@dataclass(frozen=True)
class EarlyEnd:
    """A run whose answer was clear before its end."""

    seconds: float
    met: bool
    """Whether all limits are met; otherwise one is broken."""
    statistics: Mapping[str, float]
    """What was known of the limited statistics then."""
    detail: str


def early_end(streams: Mapping[str, SyntheticStream], request: Request, full_s: float, seed: int) -> EarlyEnd | None:
    """When a run of `full_s` seconds ends early, by the same test as live runs; None: it does not."""
    if request.ends_when == "never":
        return None
    limits = [StreamLimit({"name": one.metric, "bound": one.bound, "at_least": one.at_least}) for one in request.limits]
    limits = [one for one in limits if one.metric in streams]
    drawn: dict[str, list[tuple[float, float]]] = {}
    for name in dict.fromkeys(one.metric for one in limits):
        rng = np.random.default_rng([seed, request.row, request.number, len(drawn)])
        stream = streams[name]
        drawn[name] = [
            (stream.moment(place), value)
            for place, value in enumerate(stream.values(request.row, full_s, rng).tolist())
        ]
    for moment, name, value in sorted((at, name, value) for name, pairs in drawn.items() for at, value in pairs):
        for one in limits:
            if one.metric == name:
                one.add(value)
        broken = next((one for one in limits if one.met is False), None)
        clear = request.ends_when == "clear" and len(limits) == len(request.limits) and all(one.met for one in limits)
        if moment < full_s and (broken is not None or clear):
            statistics = {one.name: one.value for one in limits if one.value is not None}
            detail = (
                "every limit is met beyond doubt"
                if broken is None
                else f"{broken.evidence}, so it is broken beyond doubt"
            )
            return EarlyEnd(moment, broken is None, statistics, f"ended early: {detail}")
    return None
