"""Constraints that the user changed while a study goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lynceus.errors import InputError
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem


@dataclass(frozen=True, slots=True)
class LimitChange:
    """The user changed the constraints of a study."""

    started: int
    """Runs ordered or imported until then: runs with a smaller number were ordered under the constraints before."""
    before: tuple[Constraint, ...]
    after: tuple[Constraint, ...]

    def __str__(self) -> str:
        shown = [", ".join(map(str, limits)) or "no constraints" for limits in (self.before, self.after)]
        return f"{shown[0]} → {shown[1]}, before trial {self.started}"


def present_problem(problem: Problem, changes: Sequence[LimitChange]) -> Problem:
    """The problem under the constraints of the last change; itself where these are its own."""
    if not changes or changes[-1].after == problem.constraints:
        return problem
    return problem.with_constraints(changes[-1].after)


def original_problem(problem: Problem, changes: Sequence[LimitChange]) -> Problem:
    """The problem under the constraints with which its study began."""
    return problem.with_constraints(changes[0].before) if changes else problem


def changed_limits(limits: Iterable[Constraint], changed: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Constraints in which each changed one takes the place of that on the same side of the same quantity, or is added.

    >>> limits = Constraint.parse("runtime <= 45m @ 0.95"), Constraint.parse("bytes <= 2MB")
    >>> print(*changed_limits(limits, [Constraint.parse("bytes <= 4.3MB"), Constraint.parse("accuracy >= 0.9")]), sep=", ")
    time <= 45m @ 0.95, bytes <= 4300000, accuracy >= 0.9
    """
    new = {(one.metric, one.at_least): one for one in changed}
    if len(new) < len(changed):
        twice = next(one for one in changed if new[one.metric, one.at_least] is not one)
        raise InputError(f"constraints: {twice.metric} is limited twice; give one of {', '.join(map(str, changed))}.")
    kept = []
    for one in limits:
        found = new.pop((one.metric, one.at_least), one)
        if found not in kept:
            kept.append(found)
    return (*kept, *new.values())
