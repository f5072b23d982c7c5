"""Constraints that are given while a study goes on: what they may be, and what they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lynceus.errors import InputError, did_you_mean, expect
from lynceus.problem.objective import Constraint
from lynceus.study.view import StudyView
from lynceus.trial.limit_change import LimitChange, changed_limits


def checked_constraints(
    given: Sequence[str | Constraint], where: str, units: Mapping[str, str]
) -> tuple[Constraint, ...]:
    """Constraints from texts such as `runtime <= 45m @ 0.95`; `units` of metrics by name."""
    expect(given, (list, tuple), where, "a list such as ['runtime <= 45m']")
    for one in given:
        expect(one, (str, Constraint), f"{where}: one of them", "a text such as 'runtime <= 45m', or a Constraint,")
    return tuple(one if isinstance(one, Constraint) else Constraint.parse(one, units) for one in given)


def new_limits(study: StudyView, changed: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """All constraints of a study after a change; an error for a quantity that no trial has reported."""
    problem = study.problem
    reported = {name for seen in study.observations for name in seen.outcome.metrics}
    known = dict.fromkeys(["time", "cost", *problem.metrics, *sorted(reported)])
    for one in changed:
        if one.metric not in known:
            hint = did_you_mean(one.metric, known) or f" Known are {', '.join(known)}."
            raise InputError(
                f"constraints: no trial of study {study.name!r} has reported {one.metric!r}; limit what trials report.{hint}"
            )
    return changed_limits(problem.constraints, changed)


def limit_change(study: StudyView, changed: Sequence[Constraint]) -> LimitChange | None:
    """What to write down of changed constraints; None when they are those that hold already."""
    before, after = study.problem.constraints, new_limits(study, changed)
    return None if before == after else LimitChange(study.record.started, before, after)
