"""Cost against time: the finished runs that no other run beats in both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations


@dataclass(frozen=True)
class Point:
    """A finished run in the plane of time and cost."""

    number: int
    row: int
    params: Mapping[str, object]
    runtime_s: float
    cost_usd: float
    """Dollars of a production run, boot included."""
    keeps_constraints: bool
    """Whether it met every constraint and may be recommended."""


def cost_time_front(problem: Problem, observations: Observations) -> list[Point]:
    """The front of cost against time, fastest first, among runs that a later deadline would make feasible."""
    free = without_deadline(problem)
    return pareto_front(point for point in finished_points(free, observations) if point.keeps_constraints)


def without_deadline(problem: Problem) -> Problem:
    """The same problem without constraints on time."""
    return problem.with_constraints(constraint for constraint in problem.constraints if constraint.metric != "time")


def finished_points(problem: Problem, observations: Observations) -> list[Point]:
    """Every finished run."""
    return [
        Point(
            seen.order.number,
            seen.row,
            problem.space.point(seen.row),
            seen.outcome.seconds,
            problem.cost(seen.row, seen.outcome.seconds),
            problem.answer_value(seen.row, seen.outcome.seconds, seen.outcome.metrics) is not None,
        )
        for seen in observations
        if seen.outcome.end is End.FINISHED
    ]


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other point beats in both time and cost, fastest first.

    Sorted by time, a point is on the front when it is cheaper than everything faster.
    """
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (one.runtime_s, one.cost_usd, one.number)):
        if not front or point.cost_usd < front[-1].cost_usd:
            front.append(point)
    return front
