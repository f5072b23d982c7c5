"""Stored studies whose constraints change while they go on."""

from __future__ import annotations

from collections.abc import Sequence

from lynceus.library.open_study import OpenStudy, open_record
from lynceus.problem.objective import Constraint


def change_limits(
    one: OpenStudy, constraints: Sequence[str | Constraint], add_usd: float = 0.0, add_trials: int = 0
) -> OpenStudy:
    """The study under other constraints, for good, and resumed, perhaps with more money or trials: see `Study.resume`."""
    one.study.resume(add_usd, add_trials=add_trials, constraints=list(constraints))
    return open_record(one.storage, one.storage.load_study(one.name))


def limits_note(one: OpenStudy) -> str | None:
    """What to tell the user about the last change of constraints; None without one."""
    changes = one.study.record.limit_changes
    return f"{one.name}: constraints changed: {changes[-1]}. Earlier trials count on." if changes else None
