"""A trial as the user sees it."""

from __future__ import annotations

import enum
import math
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from lynceus.errors import InfrastructureError, InputError
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration, parse_money
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome
from lynceus.trial.record import OpenRun
from lynceus.trial.text import clean_line, clean_name

_E = TypeVar("_E", bound=enum.StrEnum)


class TrialState(enum.StrEnum):
    """The state of a trial: Optuna's states, and TIMEOUT for runs that were stopped (the model learns a lower bound)."""

    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    TIMEOUT = "TIMEOUT"
    FAIL = "FAIL"


ENDS = {TrialState.COMPLETE: End.FINISHED, TrialState.TIMEOUT: End.TIMEOUT, TrialState.FAIL: End.FAILED}
STATES = {end: state for state, end in ENDS.items()}
"""The state of a trial by how its run ended."""


@dataclass(frozen=True)
class Trial:
    """One configuration to run."""

    number: int
    params: Mapping[str, object]
    timeout: float | None
    """Stop the run after so many seconds; None: let it finish."""
    why: str
    """Why this configuration, in one clause."""
    price_usd_per_hour: float
    max_charge_usd: float | None
    """The most that this trial can be charged; reserved in the budget until it is told."""

    @classmethod
    def of(cls, problem: Problem, order: Order) -> Trial:
        """An order as the user sees it."""
        unlimited = math.isinf(order.timeout_s)
        return cls(
            number=order.number,
            params=problem.space.point(order.row),
            timeout=None if unlimited else order.timeout_s,
            why=order.plan.why,
            price_usd_per_hour=float(problem.price[order.row]) * 3600,
            max_charge_usd=None if unlimited else order.reserved_usd,
        )


@dataclass(frozen=True)
class TrialSummary:
    """A trial with what is known of it: how it ended, or that it runs."""

    number: int
    params: Mapping[str, object]
    state: TrialState
    runtime_s: float | None
    """None while it runs, as in the fields below."""
    cost_usd: float | None
    """What a run of this configuration costs; None also when the run did not finish."""
    charged_usd: float | None
    """What this trial was charged."""
    keeps_constraints: bool | None
    metrics: Mapping[str, float]
    reason: str | None = None
    """Why it failed, if it did."""
    detail: str = ""
    why: str = ""
    """Why this configuration was tried."""
    started_s: float | None = field(default=None, compare=False)
    """When it was started, seconds since the epoch; None if that is not known, as for imported ones."""
    ended_s: float | None = field(default=None, compare=False)
    """When its end was recorded; None while it runs."""


def summary_of(problem: Problem, seen: Observation) -> TrialSummary:
    """A trial that has settled."""
    outcome, row = seen.outcome, seen.row
    done = outcome.end is End.FINISHED
    return TrialSummary(
        seen.order.number,
        problem.space.point(row),
        STATES[outcome.end],
        outcome.seconds,
        problem.cost(row, outcome.seconds) if done else None,
        outcome.charged_usd,
        problem.meets_constraints(row, outcome.seconds, outcome.metrics) if done else None,
        dict(outcome.metrics),
        None if outcome.reason is None else str(outcome.reason),
        outcome.detail,
        seen.order.plan.why,
        seen.started_s,
        seen.ended_s,
    )


def open_trial(problem: Problem, run: OpenRun) -> TrialSummary:
    """A trial that runs."""
    order, started_s = run.order, run.ordered_s if run.launched_s is None else run.launched_s
    params, why = problem.space.point(order.row), order.plan.why
    return TrialSummary(
        order.number, params, TrialState.RUNNING, None, None, None, None, {}, why=why, started_s=started_s
    )


def member(kind: type[_E], text: str, field: str) -> _E:
    """A member of an enumeration by its value; an error lists the known values."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"tell: {field} {text!r} is unknown; use one of {', '.join(kind)}.") from None


def told_outcome(
    problem: Problem,
    order: Order,
    *,
    runtime: float | str | None,
    state: TrialState | str,
    reason: FailureReason | str | None,
    charged: float | str | None,
    metrics: Mapping[str, float],
    progress: Sequence[tuple[float, float]],
    detail: str,
) -> Outcome:
    """What a program tells of a trial, checked, with its charge. `charged` replaces the computed one."""
    state = member(TrialState, str(state), "state")
    if state is TrialState.RUNNING:
        raise InputError(f"tell: trial {order.number} is running already; tell COMPLETE, TIMEOUT or FAIL.")
    if runtime is None and state is not TrialState.FAIL:
        raise InputError(f"tell: trial {order.number} needs its running time, for example runtime='12m'.")
    seconds = 0.0 if runtime is None else parse_duration(runtime, f"tell: the runtime of trial {order.number}")
    if seconds == 0.0 and state is TrialState.COMPLETE:
        raise InputError(
            f"tell: trial {order.number} is said to have completed in 0 seconds; give the measured running time."
        )
    blame = None
    if state is TrialState.FAIL:
        blame = member(FailureReason, str(reason or "job").lower(), "reason")
    elif reason is not None:
        raise InputError(
            f"tell: reason {str(reason)!r} came with state {state}; only a trial that failed has a reason."
        )
    price = float(problem.price[order.row])
    usd = (
        problem.billing.charge(seconds, price, boots=order.boots)
        if charged is None
        else parse_money(charged, "tell: charged")
    )
    reported, pairs = checked_metrics(metrics, order.number), checked_progress(progress, order.number)
    return Outcome(ENDS[state], seconds, usd, reported, pairs, blame, clean_line(detail))


def run_measured(
    trial: Trial, run: Callable[[Trial], float | Mapping[str, float]]
) -> tuple[float, TrialState, dict[str, float]]:
    """Run a trial by a function; a command that `subprocess` ended at the trial's timeout counts as stopped by it."""
    started = time.monotonic()
    try:
        return measured(trial, run(trial))
    except subprocess.TimeoutExpired as error:
        # The error may name what was left of the timeout when the wait began.
        if trial.timeout is None or max(error.timeout, time.monotonic() - started) < trial.timeout:
            raise
        return trial.timeout, TrialState.TIMEOUT, {}


@contextmanager
def told_on_error(trial: Trial, tell: Callable[..., None]) -> Iterator[None]:
    """Tell a trial as failed, with the time until then, when what is done in this block raises; the error goes on.

    An error is the job's failure. An interrupt, or the end of the program, is not: the configuration may run again.
    """
    started = time.monotonic()
    try:
        yield
    except BaseException as error:
        reason = FailureReason.JOB if isinstance(error, Exception) else FailureReason.INFRA
        if isinstance(error, MemoryError):
            reason = FailureReason.OOM
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        try:
            tell(trial, runtime=time.monotonic() - started, state=TrialState.FAIL, reason=reason, detail=said)
        except InputError:
            pass  # it was told already, or by another program
        except InfrastructureError as lost:
            error.add_note(f"Trial {trial.number} stays open, because it could not be told as failed: {lost}")
        raise


def measured(trial: Trial, result: float | Mapping[str, float]) -> tuple[float, TrialState, dict[str, float]]:
    """What a function that ran a trial returned, as running time in seconds, state and metrics."""
    values = dict(result) if isinstance(result, Mapping) else {"runtime": float(result)}
    if "runtime" not in values:
        raise InputError(
            f"optimize: the function returned {sorted(values)} for trial {trial.number}; it must return 'runtime' in seconds."
        )
    runtime = values.pop("runtime")
    stopped = trial.timeout is not None and runtime >= trial.timeout
    return runtime, TrialState.TIMEOUT if stopped else TrialState.COMPLETE, values


def checked_metrics(metrics: Mapping[str, float], number: int) -> dict[str, float]:
    """Finite numbers by name; names are one short line, whoever wrote them."""
    for name, value in metrics.items():
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"tell: metric {name!r} of trial {number} is {value!r}; report a finite number.")
    return {clean_name(str(name)): float(value) for name, value in metrics.items()}


def checked_progress(progress: Sequence[tuple[float, float]], number: int) -> tuple[tuple[float, float], ...]:
    """Progress as pairs of finite numbers; anything else is an input error."""
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
