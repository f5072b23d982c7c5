"""Runs that were made elsewhere, as free knowledge: finished, stopped and failed ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lynceus.errors import InputError, expect
from lynceus.policy.next_step import observe
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import FailureReason, Observation, Observations
from lynceus.trial.trial import TrialState, told_outcome


@dataclass(frozen=True)
class PastRun:
    """One run that was made elsewhere."""

    params: Mapping[str, object]
    runtime: float | str | None = None
    """Seconds, or a text such as `12m`; None only for a run that failed."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    state: TrialState | str = TrialState.COMPLETE
    """`COMPLETE`, `TIMEOUT` (it was stopped: its true time is longer) or `FAIL`."""
    reason: FailureReason | str | None = None
    """Whose fault a failure was; `job` by default."""
    detail: str = ""


Past = PastRun | tuple[Mapping[str, object], float | str, Mapping[str, float]]
"""A past run, or a finished one as (configuration, runtime, metrics)."""


def imported(
    problem: Problem, policy: Policy, known: Observations, number: int, past: Iterable[Past]
) -> list[Observation]:
    """Observations of past runs, with numbers from `number` on. Nothing is charged."""
    found: list[Observation] = []
    for place, given in enumerate(past, number):
        one = given if isinstance(given, PastRun) else _finished(given)
        expect(one.params, Mapping, "add_trial: params", "a mapping such as {'nodes': 4}")
        row = problem.space.row(dict(one.params))
        seconds = None if one.runtime is None else parse_duration(one.runtime, "add_trial: runtime")
        if seconds == 0.0 and str(one.state) != TrialState.FAIL:
            raise InputError("add_trial: a run of 0 seconds came; give the measured running time.")
        plan = Plan(row, why="imported", stoppable=False, purpose=Purpose.IMPORT)
        timeout_s = math.inf if seconds is None or str(one.state) != TrialState.TIMEOUT else seconds
        order = Order(place, row, timeout_s, 0.0, plan, input=problem.input)
        outcome = told_outcome(
            problem,
            order,
            runtime=seconds,
            state=one.state,
            reason=one.reason,
            charged=0.0,
            metrics=one.metrics,
            progress=(),
            detail=one.detail,
        )
        found.append(observe(problem, policy, (*known, *found), order, outcome))
    return found


def _finished(given: Any) -> PastRun:
    expect(given, tuple, "add_trials: one of them", "a PastRun, or a tuple (params, runtime, metrics),")
    params, runtime, metrics = given
    return PastRun(params, runtime, metrics)
