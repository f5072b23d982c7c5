"""A production run as a scheduler reports it: checked, with what it cost."""

from __future__ import annotations

import math
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from lynceus.errors import InputError
from lynceus.library.recurring.input_size import parse_size
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration, parse_money
from lynceus.recurring.record import ProductionRun
from lynceus.trial.outcome import End, FailureReason
from lynceus.trial.text import clean_line

STATES = {"COMPLETE": End.FINISHED, "TIMEOUT": End.TIMEOUT, "FAIL": End.FAILED}
"""How a run ended, in the words of trials."""
_SHORTEST_S, _LONGEST_S = 1e-6, 1e9
_AHEAD_S = 86_400.0
"""How far the clock of a scheduler may be ahead."""
_MOST_USD = 1e12


def new_run_id() -> str:
    """An id for a run whose scheduler gives none."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{socket.gethostname()[:60]}-{moment}-{secrets.token_hex(3)}"


def reported_run(
    run_id: str,
    version: int,
    *,
    runtime: float | str | None,
    now_s: float,
    input: float | str | None = None,
    cost: float | str | None = None,
    state: str = "COMPLETE",
    reason: str | None = None,
    ended_s: float | None = None,
    detail: str = "",
) -> ProductionRun:
    """A run from what its scheduler tells; one sentence about what is missing or impossible."""
    if runtime is None:
        raise InputError("record: the running time is missing; give it with --runtime, such as 31m or 90 (seconds).")
    for name, given in (("runtime", runtime), ("cost", cost)):
        if str(given).lstrip(" $").startswith("-"):
            raise InputError(f"{name} is {given!r}, but an amount of at least 0 is needed.")
    seconds = parse_duration(runtime, "runtime")
    if state.upper() not in STATES:
        raise InputError(f"state is {state!r}, but one of {', '.join(STATES)} is needed.")
    end = STATES[state.upper()]
    if end is End.FINISHED and seconds < _SHORTEST_S:
        raise InputError(f"runtime is {runtime}, but a finished run takes time; give its running time, such as 31m.")
    if seconds > _LONGEST_S:
        raise InputError(f"runtime is {runtime!r}, longer than thirty years; give the measured running time.")
    if reason is not None and end is not End.FAILED:
        raise InputError(f"reason is {reason!r}, but only a run with state FAIL has one; leave it out.")
    usd = None if cost is None else parse_money(cost, "cost")
    if usd is not None and usd > _MOST_USD:
        raise InputError(f"cost is {cost!r}, more than {_MOST_USD:g} dollars; give what the run cost.")
    ended = now_s if ended_s is None else ended_s
    if not (math.isfinite(ended) and ended >= 0):
        raise InputError(f"ended is {ended_s!r}, but seconds since the epoch are needed.")
    if ended > now_s + _AHEAD_S:
        raise InputError(f"ended is {ended_s!r}, which is more than a day ahead; give seconds since the epoch.")
    return ProductionRun(
        run_id,
        version,
        seconds,
        ended,
        size=parse_size(input),
        cost_usd=usd,
        started_s=ended - seconds,
        end=end,
        reason=_reason(reason) if end is End.FAILED else None,
        detail=clean_line(detail),
    )


def priced(run: dict[str, Any], problem: Problem, params: Mapping[str, Any]) -> dict[str, Any]:
    """A run (as JSON) with the price of its configuration and, where nobody told its cost, with what its time costs at that price."""
    try:
        row = problem.space.row(dict(params))
    except InputError:  # the space has changed since
        return run
    price = float(problem.price[row])
    usd = run.get("cost_usd")
    charge = problem.billing.charge(float(run["seconds"]), price, boots=True) if usd is None else usd
    return {**run, "price_usd_per_hour": price * 3600, "cost_usd": charge}


def _reason(reason: str | None) -> FailureReason:
    try:
        return FailureReason(reason or "job")
    except ValueError:
        raise InputError(f"reason is {reason!r}, but one of {', '.join(FailureReason)} is needed.") from None
