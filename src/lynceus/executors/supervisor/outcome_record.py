"""The record in `outcome.json`: how a run ended."""

from __future__ import annotations

import time
from typing import Literal, TypedDict

End = Literal["finished", "capped", "failed"]
Reason = Literal["infra", "preempted", "oom", "job", "user"]
"""The values of `lynceus.trial.outcome.FailureReason`, which nodes cannot import."""


class _Always(TypedDict):
    v: int
    end: End
    reason: Reason | None
    """None unless the run failed."""
    seconds: float
    """How long the job really ran, until it ended or was told to stop; perhaps longer than its timeout."""
    metrics: dict[str, float]
    trace: list[tuple[float, float]]
    """(seconds, progress) pairs."""
    detail: str
    """One sentence for the user."""
    ended_s: float
    """Seconds since the epoch."""


class OutcomeRecord(_Always, total=False):
    """How a run ended. Files of earlier versions may lack `reason`, `detail` and `ended_s`: use `get`."""

    usage: dict[str, float]
    """Peak memory, processor time and disk traffic: the fields of `lynceus.trial.usage.Usage`."""
    node: str
    began_s: float
    """Seconds since the epoch; only where a supervisor ran the job."""
    stopping_s: float
    """From when the job was told to stop until its last process was gone: the grace period, or less."""
    exit: int
    """The job's exit code, or minus the signal that killed it."""
    outside: bool
    """Whether something outside Lynceus stopped the job: a scheduler may know why."""
    free: bool
    """Whether the run is not charged, not even a boot: it never started, or there was no machine."""

    boots: bool
    """SkyPilot: whether a machine was really started for the run."""
    extra_s: float
    """SkyPilot: seconds that are charged beyond `seconds`."""
    cluster: str
    until_s: float
    """SkyPilot: when the machine was last known to exist, seconds since the epoch."""
    paid_until_s: float
    """SkyPilot: up to when the cluster is paid, seconds since the epoch."""


def failed(detail: str, *, reason: Reason = "infra", seconds: float = 0.0) -> OutcomeRecord:
    """The record of a run that failed."""
    return {**_ended("failed", seconds), "reason": reason, "detail": detail}


def not_started(detail: str, *, reason: Reason = "infra") -> OutcomeRecord:
    """The record of a run that never started, and so costs nothing."""
    return {**failed(detail, reason=reason), "free": True}


def timed_out(seconds: float, detail: str = "") -> OutcomeRecord:
    """The record of a run that was stopped by its timeout, or ended after it."""
    return {**_ended("capped", seconds), "detail": detail}


def finished(seconds: float) -> OutcomeRecord:
    """The record of a run that finished."""
    return _ended("finished", seconds)


def _ended(end: End, seconds: float) -> OutcomeRecord:
    return {
        "v": 1,
        "end": end,
        "reason": None,
        "seconds": seconds,
        "metrics": {},
        "trace": [],
        "detail": "",
        "ended_s": time.time(),
    }
