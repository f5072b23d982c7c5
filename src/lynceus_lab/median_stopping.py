"""Vizier's median stopping rule, for replays: it watches the progress of a run, which a timeout that is set before the run cannot.

A live run would be stopped by whoever watches it; a replay knows the progress of every run beforehand, so the rule computes the
moment at which a watcher would have stopped it, from that run's progress up to then and from nothing after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.censoring import Discard
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.replay.job import ReplayJob
from lynceus.trial.order import Plan

Traces = tuple[tuple[float, ...], ...]
"""Progress of every row at every tick."""


@dataclass(frozen=True, slots=True)
class MedianStopping:
    """Stop a run at the first tick at which its best progress is below the median of the earlier runs' mean progress up to then.

    (Golovin et al. 2017, "Google Vizier", §3.2.2.) Like the other rules, it leaves the initial design alone.
    """

    tick_s: float = 30.0
    recorded: Traces | None = None
    """Filled in for the job of a replay (`watching`); never written in a policy file."""

    def __call__(self, state: State, plan: Plan) -> float:
        """Seconds until the stop; infinite for a run that keeps up."""
        if not plan.stoppable:
            return math.inf
        if self.recorded is None:
            raise InputError("timeout 'vizier' needs the progress of the replayed table; choose 'tg' for live runs.")
        earlier = [progress for seen in state.observations if (progress := [p for _, p in seen.outcome.trace])]
        own = self.recorded[plan.row]
        for tick in range(1, len(own) + 1 if earlier else 0):
            typical = float(np.median([np.mean(progress[:tick]) for progress in earlier]))
            if max(own[:tick]) < typical:
                return tick * self.tick_s
        return math.inf


VIZIER_TIMEOUT = Timeout(MedianStopping(), Discard())


def watching(policy: Policy, job: ReplayJob) -> Policy:
    """The policy, with the progress of the job's table for a rule that watches it."""
    rule = policy.timeout.rule
    if not isinstance(rule, MedianStopping):
        return policy
    measured = job.measurements
    if measured.progress is None:
        raise InputError(f"timeout 'vizier': {job.name} has no column of progress; choose another timeout.")
    rule = replace(rule, recorded=measured.progress, tick_s=measured.tick_s)
    return replace(policy, timeout=replace(policy.timeout, rule=rule))
