"""Configurations that were stopped and may run again: what stopped them, a limit or an incumbent, does not hold any more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved
from lynceus.policy.beliefs import noise_was_seen
from lynceus.policy.orders import affordable_seconds
from lynceus.policy.policy import Policy
from lynceus.space.column import FloatArray
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Observation

_ROUNDING = 1e-9
_LONGER = 1.1
"""A configuration that an incumbent stopped runs again only if it may run so many times as long: less would hardly tell anything new."""


def with_reopened_rows(state: State, policy: Policy, changes: Sequence[LimitChange], slots: int = 1) -> State:
    """The state in which configurations may run again that were stopped, if they would run longer now.

    Constraints may have changed. Or the incumbent whose cost stopped them was a lucky run: its repetition missed the limits or cost more.
    Only policies that do not take runs at their word know that, and in a table no run is lucky. Or they were stopped elsewhere, earlier
    than they would be here. `slots`: see `next_step`.
    """
    doubts = (
        not state.problem.deterministic
        and isinstance(policy.answer, BestBelieved)
        and noise_was_seen(state.observations)
    )
    if not changes and not doubts and not any(map(_stopped_elsewhere, state.observations)):
        return state
    runs: dict[int, list[Observation]] = {}
    for seen in state.observations:
        runs.setdefault(seen.row, []).append(seen)
    pending = {order.row for order in state.pending}
    stopped = [
        own
        for row, own in runs.items()
        if not state.open[row]
        and row not in pending
        and (state.problem.testable is None or state.problem.testable[row])
        and not any(map(_closes, own))
    ]
    incumbent = _IncumbentTimeouts.of(state, policy, slots) if doubts else None
    rows = [
        own[0].row
        for own in stopped
        if _limit_allows(state, policy, own, changes)
        or (incumbent is not None and incumbent.allow(own))
        or _longer_than_elsewhere(state, policy, own)
    ]
    if not rows:
        return state
    open_rows = state.open.copy()
    open_rows[rows] = True
    return replace(state, open=open_rows)


def was_stopped(state: State, row: int) -> bool:
    """Whether a configuration was stopped and never finished."""
    own = [seen for seen in state.observations if seen.row == row]
    return any(seen.outcome.end is End.TIMEOUT for seen in own) and not any(map(_closes, own))


def _limit_allows(state: State, policy: Policy, own: Sequence[Observation], changes: Sequence[LimitChange]) -> bool:
    """Whether a configuration may run longer than before the last change of the constraints, and did not use that up yet."""
    if not changes:
        return False
    first = changes[-1].started
    since = sum(seen.order.number >= first and seen.outcome.end is End.TIMEOUT for seen in own)
    longest_s = max(seen.outcome.seconds for seen in own)
    return since < state.problem.repeats and _allowed_s(state, policy, own[0].row) > longest_s * (1 + _ROUNDING)


def _stopped_elsewhere(seen: Observation) -> bool:
    return seen.order.plan.purpose is Purpose.IMPORT and seen.outcome.end is End.TIMEOUT


def _longer_than_elsewhere(state: State, policy: Policy, own: Sequence[Observation]) -> bool:
    """Whether a configuration was only stopped elsewhere, and may run longer here."""
    if not all(_stopped_elsewhere(seen) or seen.outcome.end is End.FAILED for seen in own):
        return False
    return _allowed_s(state, policy, own[0].row) > _LONGER * max(seen.outcome.seconds for seen in own)


@dataclass(frozen=True, eq=False)
class _IncumbentTimeouts:
    """How long configurations may run against the present incumbent; computed once for all of them."""

    state: State
    """Without a margin: it is for a run that was slow by chance. A bound that is only within the margin does not win."""
    policy: Policy
    affordable_s: FloatArray
    """With all the money left `[q]`."""
    fair_share_s: FloatArray
    """With the share of one slot, for runs without a timeout `[q]`."""

    @classmethod
    def of(cls, state: State, policy: Policy, slots: int) -> _IncumbentTimeouts:
        plain, whole = replace(state, margin=1.0), affordable_seconds(state)
        return cls(plain, policy, whole, whole if slots == 1 else affordable_seconds(state, slots))

    def allow(self, own: Sequence[Observation]) -> bool:
        """Whether a stopped configuration could still beat the present incumbent, and there is money to find out."""
        # A run that ended before its timeout was not stopped by an incumbent: it would end there again.
        stopped_s = [max(seen.outcome.seconds, seen.order.timeout_s) for seen in own if seen.outcome.end is End.TIMEOUT]
        if not stopped_s:
            return False
        allowed_s = _allowed_s(self.state, self.policy, own[0].row)
        affordable_s = (self.fair_share_s if math.isinf(allowed_s) else self.affordable_s)[own[0].row]
        return min(allowed_s, float(affordable_s)) > _LONGER * max(stopped_s)


def _closes(seen: Observation) -> bool:
    """Whether a run tells all about its configuration that will ever be asked: it finished, or must not run again."""
    reason = seen.outcome.reason
    closed = reason is not None and (reason.blames_configuration or reason is FailureReason.USER)
    return closed or seen.outcome.end is End.FINISHED


def _allowed_s(state: State, policy: Policy, row: int) -> float:
    """How long a run of this configuration may take now."""
    return policy.timeout.rule(state, Plan(row, why="runs again"))
