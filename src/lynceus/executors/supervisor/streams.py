"""Limits on statistics of what a job streams (`p99(latency) <= 200`), and when their answer is clear before the job ends.

Each value is on the right side of the bound or not. p99 <= bound says that at most a share p0 = 1 % is not. After s of n values on the
wrong side, the likelihood ratio of a Beta(½, ½) mixture against p0,

    M = B(½ + s, ½ + n − s) / B(½, ½) / (p0^s (1 − p0)^(n − s)),

is a martingale under p0: it ever reaches 1/α with a probability of at most α, however often one looks (Ville's inequality; Robbins 1970).
So a limit counts as broken, or as met, once M >= 1/α and s/n lies on that side of p0, with an error rate of α for all looks together.
Values are taken as independent. Python 3.8 without packages: it runs on nodes.
"""

from __future__ import annotations

import math
import random
import re
from typing import Any

ALPHA = 0.01
"""The chance that a limit which holds is ever declared broken, or one that does not is declared met."""
_MOST_VALUES = 65536
"""Values of a stream that are kept; of more, a fair sample."""
_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class StreamLimit:
    """A limit on a statistic of one stream."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.name: str = record["name"]
        """As the limit names it: `p99(latency)`."""
        statistic, _, rest = self.name.partition("(")
        self.metric = rest.rstrip(")")
        self._at_least: bool = record["at_least"]
        self._bound: float = record["bound"]
        self._statistic = statistic
        self._values: list[float] = []
        self._count = self._wrong = 0
        self._random = random.Random(0)

    def add(self, value: float) -> None:
        """Take a value."""
        self._count += 1
        self._wrong += (value < self._bound) if self._at_least else (value > self._bound)
        if len(self._values) < _MOST_VALUES:
            self._values.append(value)
        else:
            place = self._random.randrange(self._count)
            if place < _MOST_VALUES:
                self._values[place] = value

    def forget(self) -> None:
        """Start again without values."""
        self._values, self._count, self._wrong = [], 0, 0

    @property
    def value(self) -> float | None:
        """The statistic of what was streamed so far; None before the first value."""
        if not self._values:
            return None
        if self._statistic in ("mean", "min", "max"):
            return {
                "mean": math.fsum(self._values) / len(self._values),
                "min": min(self._values),
                "max": max(self._values),
            }[self._statistic]
        count, share = len(self._values), quantile(self._statistic)
        # The nearest rank: at most the allowed share of the values is then on the wrong side of it.
        rank = math.floor(share * count + 1e-9) if self._at_least else math.ceil(share * count - 1e-9) - 1
        return sorted(self._values)[min(max(rank, 0), count - 1)]

    @property
    def met(self) -> bool | None:
        """Whether the limit is met beyond doubt (True) or broken beyond doubt (False); None while it is open."""
        if self._statistic == "mean":
            return None
        allowed = self._allowed()
        if allowed is None:
            return None
        if allowed == 0.0:
            return False if self._wrong else None
        if log_evidence(self._wrong, self._count, allowed) < -math.log(ALPHA):
            return None
        return self._wrong < allowed * self._count

    def _allowed(self) -> float | None:
        """The share of values that may be on the wrong side; None where no share decides (`max(x) >= 5`)."""
        if self._statistic in ("min", "max"):
            return 0.0 if (self._statistic == "min") == self._at_least else None
        share = quantile(self._statistic)
        return share if self._at_least else 1.0 - share

    @property
    def evidence(self) -> str:
        """What the values say, for the user."""
        side = "below" if self._at_least else "above"
        return f"{self._wrong} of {self._count} values are {side} the limit on {self.name}"


def quantile(statistic: str) -> float:
    """The share of a statistic such as p99 or median."""
    if statistic == "median":
        return 0.5
    matched = _QUANTILE.fullmatch(statistic)
    if matched is None:
        raise ValueError(f"{statistic} is no statistic of a stream")
    return float(matched[1]) / 100.0


def log_evidence(wrong: int, count: int, allowed: float) -> float:
    """ln M against a share `allowed` of values on the wrong side."""
    right = count - wrong
    mixture = math.lgamma(wrong + 0.5) + math.lgamma(right + 0.5) - math.lgamma(count + 1.0) - math.log(math.pi)
    return mixture - wrong * math.log(allowed) - right * math.log1p(-allowed)


class Streams:
    """All limits on what a run streams."""

    def __init__(self, limits: list[dict[str, Any]], ends_when: str = "never") -> None:
        """`ends_when` is `never`, `broken`, or `clear`: also when all are met, because the run has nothing else to tell."""
        self._limits = [StreamLimit(one) for one in limits]
        self._ends_when = ends_when if limits else "never"
        self.metrics = {one.metric for one in self._limits}

    def add(self, metric: str, value: float) -> None:
        """Take a value of a stream."""
        for one in self._limits:
            if one.metric == metric:
                one.add(value)

    def forget(self, metric: str) -> None:
        """Drop the values of a metric, because some cannot be read."""
        for one in self._limits:
            if one.metric == metric:
                one.forget()

    def statistics(self) -> dict[str, float]:
        """What is known of each limited statistic."""
        return {one.name: one.value for one in self._limits if one.value is not None}

    def broken(self) -> str:
        """The evidence for a limit that is broken beyond doubt; empty while there is none."""
        if self._ends_when == "never":
            return ""
        return next((one.evidence for one in self._limits if one.met is False), "")

    def all_met(self) -> bool:
        """Whether the run may end, because every limit is met beyond doubt and nothing else is to be measured."""
        return self._ends_when == "clear" and all(one.met is True for one in self._limits)
