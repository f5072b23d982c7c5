"""The trade between time and money, as far as it has been paid for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lynceus.history import End, History
from lynceus.problem import Problem


@dataclass(frozen=True)
class Point:
    """A finished run as a point in the plane of time and cost."""

    number: int
    row: int
    params: Mapping[str, object]
    seconds: float
    cost_usd: float
    """Dollars of a production run, boot included."""
    keeps_limits: bool


def finished_points(problem: Problem, history: History) -> list[Point]:
    """Every finished run."""
    return [
        Point(
            seen.order.number,
            seen.row,
            problem.space.point(seen.row),
            seen.outcome.seconds,
            problem.cost(seen.row, seen.outcome.seconds),
            problem.meets_limits(seen.row, seen.outcome.seconds, seen.outcome.metrics),
        )
        for seen in history
        if seen.outcome.end is End.FINISHED
    ]


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both time and cost, fastest first.

    Sorted by time, a point is on the front when it is cheaper than everything faster.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (one.seconds, one.cost_usd, one.number)):
        if not front or point.cost_usd < front[-1].cost_usd:
            front.append(point)
    return front
