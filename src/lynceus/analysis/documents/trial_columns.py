"""Trials as columns: ten thousand of them are one small document, and a page asks only for those it does not have yet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lynceus.analysis.calibration import intervals
from lynceus.analysis.documents.json import Document, short
from lynceus.analysis.pareto import without_deadline
from lynceus.analysis.progress import ProgressPoint
from lynceus.analysis.trial_rows import objective_value
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, Observations

STATES = {End.FINISHED: 0, End.TIMEOUT: 1, End.FAILED: 2}
"""Positions in the list `states` of the document: COMPLETE, TIMEOUT, FAIL."""


def trial_columns(
    problem: Problem, observations: Observations, points: Sequence[ProgressPoint], first: int = 0
) -> Document:
    """Settled trials in the order of settling, from position `first` on; one list per quantity.

    `keeps`: met every constraint; `other`: could be recommended under a later deadline. These and the cost
    are null for runs that did not finish; `bound_usd` is the cost of a run that ends where a stopped one was: a bound. `points` are the
    progress of the study: `best_value` and `best_trial` are the incumbent after each trial. `why` holds positions in
    `whys`, which holds each text once; `details` and `reasons` are by position.
    """
    seen = observations[first:]
    whys: dict[str, int] = {}
    after = points[first : len(observations)]
    columns: Document = {
        "first": first,
        "number": [one.order.number for one in seen],
        "row": [one.row for one in seen],
        "state": [STATES[one.outcome.end] for one in seen],
        "runtime_s": [short(one.outcome.seconds) for one in seen],
        "charged_usd": [short(one.outcome.charged_usd) for one in seen],
        **_finished(problem, seen),
        "best_value": [short(point.best_value) for point in after],
        "best_trial": [point.best_trial for point in after],
        "why": [whys.setdefault(one.order.plan.why, len(whys)) for one in seen],
        "params": _codes(problem, seen),
        "metrics": _metrics(seen) | _formula(problem, seen),
        "details": {str(place): one.outcome.detail for place, one in enumerate(seen) if one.outcome.detail},
        "reasons": {str(place): str(one.outcome.reason) for place, one in enumerate(seen) if one.outcome.reason},
    }
    return columns | {"whys": list(whys)} | _moments(seen) | _predicted(problem, seen)


def _finished(problem: Problem, seen: Observations) -> dict[str, list[Any]]:
    """What only finished and stopped runs tell."""
    free = without_deadline(problem)
    found: dict[str, list[Any]] = {"cost_usd": [], "bound_usd": [], "keeps": [], "other": []}
    for one in seen:
        row, seconds, metrics = one.row, one.outcome.seconds, one.outcome.metrics
        done = one.outcome.end is End.FINISHED
        found["cost_usd"].append(short(problem.cost(row, seconds)) if done else None)
        stopped = one.outcome.end is End.TIMEOUT
        found["bound_usd"].append(short(problem.cost(row, seconds)) if stopped else None)
        found["keeps"].append(int(problem.meets_constraints(row, seconds, metrics)) if done else None)
        found["other"].append(int(free.answer_value(row, seconds, metrics) is not None) if done else None)
    return found


def _codes(problem: Problem, seen: Observations) -> dict[str, list[int]]:
    """For each parameter the position of its value among its values; -1 where it is inactive."""
    codes = problem.space.codes[np.array([one.row for one in seen], dtype=np.int64)]
    return {parameter.name: codes[:, place].tolist() for place, parameter in enumerate(problem.space.parameters)}


def _metrics(seen: Observations) -> dict[str, list[float | None]]:
    names = dict.fromkeys(name for one in seen for name in one.outcome.metrics)
    return {name: [short(one.outcome.metrics.get(name)) for one in seen] for name in names}


def _formula(problem: Problem, seen: Observations) -> dict[str, list[float | None]]:
    """The objective of each finished run under its text, where it is a formula: pages do not compute."""
    if problem.goal.formula is None:
        return {}
    return {problem.objective.metric: [short(objective_value(problem, one)) for one in seen]}


def _moments(seen: Observations) -> Document:
    """When runs started and ended, in seconds since `epoch_s`, which keeps the numbers short; null where it is not known."""
    epoch_s = math.floor(min((one.started_s for one in seen if one.started_s is not None), default=0.0))

    def since(moment_s: float | None) -> float | None:
        return None if moment_s is None else round(moment_s - epoch_s, 2)

    return {
        "epoch_s": epoch_s,
        "started_s": [since(one.started_s) for one in seen],
        "ended_s": [since(one.ended_s) if one.started_s is not None else None for one in seen],
    }


def _predicted(problem: Problem, seen: Observations) -> dict[str, list[float | None]]:
    """What the model predicted of each run before it started: the 80 % interval and its median, in seconds."""
    found = intervals(problem, [one.order for one in seen])
    judged = [one.outcome.end is not End.FAILED for one in seen]
    return {
        name: [short(value) if shown else None for value, shown in zip(found[:, place].tolist(), judged, strict=True)]
        for place, name in enumerate(("low_s", "middle_s", "high_s"))
    }
