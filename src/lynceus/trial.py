"""A trial in the user's words, and how it stands."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lynceus.errors import InputError
from lynceus.history import End, Observation, Order
from lynceus.problem import Problem

_E = TypeVar("_E", bound=enum.StrEnum)


class TrialState(enum.StrEnum):
    """How a trial stands: Optuna's states, and TIMEOUT for runs that were stopped (a lower bound was learnt)."""

    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    TIMEOUT = "TIMEOUT"
    FAIL = "FAIL"


ENDS = {TrialState.COMPLETE: End.FINISHED, TrialState.TIMEOUT: End.CAPPED, TrialState.FAIL: End.FAILED}
STATES = {end: state for state, end in ENDS.items()}
"""The state of a trial by how its run ended."""


@dataclass(frozen=True)
class Trial:
    """One configuration to run."""

    number: int
    params: Mapping[str, object]
    timeout: float | None
    """Stop the run after so many seconds; nothing: let it finish."""
    why: str
    """Why this configuration, in one clause."""
    price_usd_per_hour: float
    max_charge_usd: float | None
    """The most that this trial can be charged; set aside in the budget until it is told."""


@dataclass(frozen=True)
class SeenTrial:
    """A trial as it stands: how it went, or that it runs."""

    number: int
    params: Mapping[str, object]
    state: TrialState
    runtime_s: float | None
    """Nothing while it runs, as in the fields below."""
    cost_usd: float | None
    """What a run of this configuration costs; nothing also when the run did not come to its end."""
    charged_usd: float | None
    """What this trial was charged."""
    keeps_limits: bool | None
    metrics: Mapping[str, float]
    reason: str | None = None
    """Whose fault, when it failed."""
    detail: str = ""
    why: str = ""
    """Why this configuration was tried."""


def seen_trial(problem: Problem, seen: Observation) -> SeenTrial:
    """A trial that has settled."""
    outcome, row = seen.outcome, seen.row
    done = outcome.end is End.FINISHED
    return SeenTrial(
        seen.order.number,
        problem.space.point(row),
        STATES[outcome.end],
        outcome.seconds,
        problem.cost(row, outcome.seconds) if done else None,
        outcome.charged_usd,
        problem.meets_limits(row, outcome.seconds, outcome.metrics) if done else None,
        dict(outcome.metrics),
        None if outcome.reason is None else str(outcome.reason),
        outcome.detail,
        seen.order.plan.why,
    )


def open_trial(problem: Problem, order: Order) -> SeenTrial:
    """A trial that runs."""
    params = problem.space.point(order.row)
    return SeenTrial(order.number, params, TrialState.RUNNING, None, None, None, None, {}, why=order.plan.why)


def member(kind: type[_E], text: str, field: str) -> _E:
    """A value of an enumeration by its word, or a sentence with the words there are."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"tell: {field} {text!r} is unknown; use one of {', '.join(kind)}.") from None


def checked_metrics(metrics: Mapping[str, float], number: int) -> dict[str, float]:
    """Finite numbers by name."""
    for name, value in metrics.items():
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"tell: metric {name!r} of trial {number} is {value!r}; report a finite number.")
    return {name: float(value) for name, value in metrics.items()}


def checked_progress(progress: Sequence[tuple[float, float]], number: int) -> tuple[tuple[float, float], ...]:
    """Progress as pairs of finite numbers; anything else is a mistake of the user."""
    try:
        pairs = tuple((float(seconds), float(value)) for seconds, value in progress)
    except (TypeError, ValueError):
        pairs = ((math.nan, math.nan),)
    if not all(math.isfinite(each) for pair in pairs for each in pair):
        raise InputError(
            f"tell: the progress of trial {number} must be (seconds, progress) pairs of finite numbers, "
            "for example [(30, 0.1), (60, 0.2)]."
        )
    return pairs
