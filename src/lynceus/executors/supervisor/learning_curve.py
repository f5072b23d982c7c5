"""Whether a training will still reach its target: its learning curve, extrapolated with an error rate.

The curve of a metric over progress or time is y = c + a g(x) + noise, for many shapes g: powers x^-b, exponentials e^-kx, and logistic
curves for trainings that start slowly. Given g, the line is fitted by weighted least squares in closed form, and its prediction at the end
is normal. The shapes are averaged with their likelihoods, so that curves which fit equally well and disagree about the end say that the
end is not known yet. What is measured of its calibration is in docs/algorithms.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

_FEWEST = 5
"""Points before the first verdict."""
_AGREEING = 2
"""Verdicts in a row before a run is stopped."""
_MOST_POINTS = 200
_INFLATION = 2.0
"""Of the noise: curves bend in ways that no shape has. Chosen on trainings of another kind than those that judge it."""
_POWERS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
_RATES = (0.3, 0.6, 1.0, 2.0, 4.0, 8.0)
_MIDDLES, _SLOPES = (0.5, 1.0, 1.5, 2.2, 3.2, 4.5), (0.15, 0.3, 0.6)
_LATE = math.log(0.25)
"""How much less likely each logistic shape is at the start: most trainings learn fastest at first."""


class LearningCurve:
    """What a job reports of one metric while it trains, and whether it can still reach a target by the end."""

    def __init__(self, metric: str, target: float, *, above: bool, end_s: float, error_rate: float = 0.05) -> None:
        self._metric, self._target, self._sign = metric, target, 1.0 if above else -1.0
        self._end_s, self._error_rate = end_s, error_rate
        """`end_s`: when the run is stopped anyway, seconds."""
        self._points: list[tuple[float, float, float]] = []
        """Seconds, progress (0 if the job reports none) and value."""
        self._progress, self._judged, self._hopeless = 0.0, 0, 0

    def add(self, name: str, value: float, seconds: float) -> None:
        """Take what a job reports; other metrics are ignored."""
        if name == "progress":
            self._progress = value
        elif name == self._metric:
            self._points.append((max(seconds, 1e-3), self._progress, value))
            if len(self._points) > _MOST_POINTS:
                self._points = self._points[1::2]

    def verdict(self) -> str:
        """Why the run need not go on; empty as long as it may reach its target."""
        if len(self._points) < _FEWEST or len(self._points) == self._judged:
            return ""
        self._judged = len(self._points)
        points, end = self._over_x()
        if (
            math.isinf(end)
            or end <= points[-1][0] * 1.01
            or self._sign * (self._points[-1][2] - self._target) >= 0
            or self._accelerates(points)
        ):
            self._hopeless = 0
            return ""
        curves = extrapolated(points, end, abs(self._target - self._points[-1][2]))
        chance = sum(one.share * _above(self._sign * (self._target - one.mean), one.std) for one in curves)
        self._hopeless = self._hopeless + 1 if chance < self._error_rate else 0
        if self._hopeless < _AGREEING:
            return ""
        return (
            f"{self._metric} was {self._points[-1][2]:.4g} and will be about {_mean(curves):.4g} at the end, so that it reaches "
            f"{self._target:g} with a chance of {100 * chance:.1g} %"
        )

    def _accelerates(self, points: list[tuple[float, float]]) -> bool:
        """Whether the second half of the curve gained much more than the first, beyond noise: no shape knows where such a curve bends."""
        middle = min(points, key=lambda one: abs(one[0] - (points[0][0] + points[-1][0]) / 2))
        first, second = self._sign * (middle[1] - points[0][1]), self._sign * (points[-1][1] - middle[1])
        return second > max(1.5 * first, 3.0 * _noise([value for _, value in points], 0.0))

    def _over_x(self) -> tuple[list[tuple[float, float]], float]:
        """The curve over progress, if every point has one, or over time; and where it ends."""
        seconds, progress, _ = self._points[-1]
        rising = all(before[1] < after[1] for before, after in zip(self._points, self._points[1:]))  # noqa: B905
        if rising and self._points[0][1] > 0:
            return [(one[1], one[2]) for one in self._points], min(1.0, progress * self._end_s / seconds)
        return [(one[0], one[2]) for one in self._points], self._end_s


def requested_curves(request: Mapping[str, Any], timeout_s: float) -> list[LearningCurve]:
    """The curves that the request of a run has watched."""
    return [
        LearningCurve(
            one["metric"],
            one["target"],
            above=one["above"],
            end_s=min(timeout_s, one["end_s"] or timeout_s),
            error_rate=one["error_rate"],
        )
        for one in request.get("curves", ())
    ]


class Extrapolation(NamedTuple):
    """The value at the end, if the curve has one of the shapes."""

    share: float
    """The probability of the shape."""
    mean: float
    std: float


def extrapolated(points: list[tuple[float, float]], end: float, scale: float) -> list[Extrapolation]:
    """The value at `end` by every shape, from (x, value) points with x > 0. How far curves still go is of the order of `scale`.

    >>> found = extrapolated([(x, 0.9 - 0.5 / x) for x in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)], 12.0, 0.1)
    >>> abs(sum(one.share * one.mean for one in found) - 0.858) < 0.05
    True
    """
    last, spread = points[-1][0], max(y for _, y in points) - min(y for _, y in points)
    weights = [0.2 + 0.8 * x / last for x, _ in points]
    noise = _INFLATION * _noise([value for _, value in points], scale)
    fits = [_fitted(shape, points, weights, end, noise, scale + spread) for shape in _shapes()]
    best = max(likelihood for _, _, likelihood in fits)
    shares = [math.exp(likelihood - best) for _, _, likelihood in fits]
    total = sum(shares)
    return [
        Extrapolation(share / total, mean, math.sqrt(variance))
        for share, (mean, variance, _) in zip(shares, fits)  # noqa: B905 - Python 3.8
    ]


def _mean(curves: list[Extrapolation]) -> float:
    return sum(one.share * one.mean for one in curves)


def _shapes() -> list[tuple[str, float, float]]:
    powers = [("power", power, 0.0) for power in _POWERS]
    exponentials = [("exponential", rate, 0.0) for rate in _RATES]
    return [*powers, *exponentials, *(("logistic", middle, slope) for middle in _MIDDLES for slope in _SLOPES)]


def _g(shape: tuple[str, float, float], x: float) -> float:
    """A shape at x, in units of the last point's x."""
    kind, first, second = shape
    if kind == "power":
        return float(x**-first)
    if kind == "exponential":
        return math.exp(-first * x)
    return 1.0 / (1.0 + math.exp(min((x - first) / second, 500.0)))


def _fitted(
    shape: tuple[str, float, float],
    points: list[tuple[float, float]],
    weights: list[float],
    end: float,
    noise: float,
    scale: float,
) -> tuple[float, float, float]:
    """Prediction at the end, its variance, and the log likelihood of a shape, with a normal prior on a: the curve's whole way is about
    `scale`."""
    last, n = points[-1][0], len(points)
    gs, ys = [_g(shape, x / last) for x, _ in points], [y for _, y in points]
    at_end = _g(shape, end / last)
    # In units of the way that the shape goes from the first point to the end.
    way = (at_end - gs[0]) or 1.0
    gs, at_end = [(g - gs[0]) / way for g in gs], 1.0
    total = sum(weights)
    mean_g = sum(w * g for w, g in zip(weights, gs)) / total  # noqa: B905
    mean_y = sum(w * y for w, y in zip(weights, ys)) / total  # noqa: B905
    variance = noise**2
    precision = sum(w * (g - mean_g) ** 2 for w, g in zip(weights, gs)) / variance + 1.0 / scale**2  # noqa: B905
    slope = sum(w * (g - mean_g) * (y - mean_y) for w, g, y in zip(weights, gs, ys)) / variance / precision  # noqa: B905
    errors = sum(w * (y - mean_y - slope * (g - mean_g)) ** 2 for w, g, y in zip(weights, gs, ys))  # noqa: B905
    # The noise is at least that of single values, and whatever the shape leaves over.
    left_over = max(errors / max(n - 2, 1), variance)
    predicted = mean_y + slope * (at_end - mean_g)
    spread = left_over / variance * (1.0 / total * variance + (at_end - mean_g) ** 2 / precision)
    evidence = (_LATE if shape[0] == "logistic" else 0.0) - 0.5 * (
        errors / variance + slope**2 / scale**2 + math.log(precision * scale**2)
    )
    return predicted, left_over + spread, evidence


def _noise(values: list[float], scale: float) -> float:
    """The noise of single values, from their second differences: a smooth curve has almost none."""
    seconds = [values[i] - 2 * values[i + 1] + values[i + 2] for i in range(len(values) - 2)]
    spread = max(values) - min(values)
    return max(math.sqrt(sum(one**2 for one in seconds) / len(seconds) / 6.0), 1e-2 * spread, 1e-3 * scale, 1e-12)


def _above(distance: float, std: float) -> float:
    """The chance that a normal value is so far above its mean."""
    return 0.5 * math.erfc(distance / (std * math.sqrt(2.0)))
