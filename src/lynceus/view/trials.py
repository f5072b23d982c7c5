"""Trials as columns: ten thousand of them are one small document, and a page asks only for those it does not have yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from lynceus.history import End, History, Observation
from lynceus.insight.calibration import intervals
from lynceus.plain import Document, short
from lynceus.problem import Problem

STATES = {End.FINISHED: 0, End.CAPPED: 1, End.FAILED: 2}
"""Positions in the list `states` of the document: COMPLETE, TIMEOUT, FAIL."""


def trial_columns(problem: Problem, history: History, first: int = 0) -> Document:
    """Settled trials in the order of settling, from the one at position `first` on; one list per quantity.

    `keeps`: kept every limit; `answer`: may be recommended, too; `other`: could be under a later deadline. Runs that did not
    come to their end have none of these, and no cost. `whys` holds texts once, `why` their places; `details` and `reasons` are by
    position.
    """
    seen = history[first:]
    whys: dict[str, int] = {}
    columns: Document = {
        "first": first,
        "number": [one.order.number for one in seen],
        "row": [one.row for one in seen],
        "state": [STATES[one.outcome.end] for one in seen],
        "runtime_s": [short(one.outcome.seconds) for one in seen],
        "charged_usd": [short(one.outcome.charged_usd) for one in seen],
        **_finished(problem, seen),
        "why": [whys.setdefault(one.order.plan.why, len(whys)) for one in seen],
        "params": _codes(problem, seen),
        "metrics": _metrics(seen),
        "details": {str(place): one.outcome.detail for place, one in enumerate(seen) if one.outcome.detail},
        "reasons": {str(place): str(one.outcome.reason) for place, one in enumerate(seen) if one.outcome.reason},
    }
    return columns | {"whys": list(whys)} | _predicted(problem, seen)


def _finished(problem: Problem, seen: History) -> dict[str, list[Any]]:
    """What only runs that came to their end can tell."""
    in_time = problem.with_limits(tuple(limit for limit in problem.limits if limit.metric != "time"))
    found: dict[str, list[Any]] = {"cost_usd": [], "keeps": [], "answer": [], "other": []}
    for one in seen:
        row, seconds, metrics = one.row, one.outcome.seconds, one.outcome.metrics
        done = one.outcome.end is End.FINISHED
        found["cost_usd"].append(short(problem.cost(row, seconds)) if done else None)
        found["keeps"].append(int(problem.meets_limits(row, seconds, metrics)) if done else None)
        found["answer"].append(int(problem.answer_value(row, seconds, metrics) is not None) if done else None)
        found["other"].append(int(in_time.answer_value(row, seconds, metrics) is not None) if done else None)
    return found


def _codes(problem: Problem, seen: History) -> dict[str, list[int]]:
    """For each parameter the place of its value among its values; -1 where it is inactive."""
    codes = problem.space.codes[np.array([one.row for one in seen], dtype=np.int64)]
    return {parameter.name: codes[:, place].tolist() for place, parameter in enumerate(problem.space.parameters)}


def _metrics(seen: History) -> dict[str, list[float | None]]:
    names = dict.fromkeys(name for one in seen for name in one.outcome.metrics)
    return {name: [short(one.outcome.metrics.get(name)) for one in seen] for name in names}


def _predicted(problem: Problem, seen: History) -> dict[str, list[float | None]]:
    """What the model said of each run before it started: the 80 % interval and its middle, in seconds."""
    told = intervals(problem, [one.order for one in seen])
    judged = [one.outcome.end is not End.FAILED for one in seen]
    return {
        name: [short(value) if shown else None for value, shown in zip(told[:, place].tolist(), judged, strict=True)]
        for place, name in enumerate(("low_s", "middle_s", "high_s"))
    }


def incumbent(problem: Problem, history: History) -> tuple[Observation, float] | None:
    """The first run that nothing has beaten, with its goal in its own unit and sign."""
    best: tuple[Observation, float] | None = None
    for one in history:
        if one.outcome.end is not End.FINISHED:
            continue
        value = problem.answer_value(one.row, one.outcome.seconds, one.outcome.metrics)
        if value is not None and (best is None or value < best[1]):
            best = one, value
    if best is None:
        return None
    return best[0], -best[1] if problem.goal.maximise else best[1]
