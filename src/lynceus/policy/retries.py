"""Retry rules: what a study does when runs fail. Pure functions, so that a resumed study decides as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lynceus.errors import InputError, counted
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Observation, Observations

_INFRA, _BLAMED, _PREEMPTED = range(3)
"""Failures that are counted separately."""
_FAILURES = {
    FailureReason.INFRA: "infrastructure failure",
    FailureReason.OOM: "out-of-memory failure",
    FailureReason.JOB: "job failure",
    FailureReason.USER: "user stop",
    FailureReason.PREEMPTED: "spot interruption",
}


@dataclass(frozen=True, slots=True)
class RetryRules:
    """What a study does when runs fail, and before it recommends a configuration."""

    retries_infra: int = 2
    """Retries of a configuration after failures of machines, which are not its fault."""
    retries_job: int = 0
    """Retries after the job itself failed (job, oom); then the configuration is never suggested again."""
    max_failures: int = 5
    """After so many failures in a row the study pauses; 0: never. Failures that tell which configurations to avoid count half."""
    confirm_best: int | None = None
    """Repeated runs of the best configuration before it is recommended, paid from a reserved part of the budget; None: as the policy
    decides."""
    retries_preempted: int = 2
    """Retries after a spot interruption; then the configuration moves to its on-demand twin, if it has one."""
    parallel: int = 1
    """Trials that all workers together keep open: a run without a timeout leaves the others their share of the budget."""

    def __post_init__(self) -> None:
        for name in ("retries_infra", "retries_job", "max_failures", "confirm_best", "retries_preempted"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"trial: {name} is {getattr(self, name)}; give 0 or more.")
        if self.parallel < 1:
            raise InputError(f"trial: parallel is {self.parallel}; give at least 1.")


def with_retries(observations: Observations, rules: RetryRules, resumed_at: int = 0) -> Observations:
    """The observations with the reason of every failure as the policy should treat it.

    A failure that may be retried reads as infra: the row is open again, nothing is learnt. One whose retries are used up closes its
    row: as the configuration's fault when it was, otherwise like a decision of the user, from which nothing is learnt. Failures of the
    job that made the study pause, before it was last resumed, do not count: the user has mended the job since. Failures elsewhere that
    were not the configuration's fault close nothing here.
    """
    if not any(seen.outcome.end is End.FAILED for seen in observations):
        return observations
    failures: Counter[tuple[int, int]] = Counter()
    mended = _mended(observations, rules, resumed_at)
    read: list[Observation] = []
    for place, seen in enumerate(observations):
        reason = seen.outcome.reason
        elsewhere = _imported(seen) and reason is not None and not reason.blames_configuration
        if place in mended or elsewhere:
            seen = replace(seen, outcome=replace(seen.outcome, reason=FailureReason.INFRA))
        elif reason is not None and reason is not FailureReason.USER:
            blamed = reason.blames_configuration
            retries = rules.retries_job if blamed else rules.retries_infra
            kind = _BLAMED if blamed else _INFRA
            if reason is FailureReason.PREEMPTED:
                retries, kind = rules.retries_preempted, _PREEMPTED
            failures[seen.row, kind] += 1
            again = failures[seen.row, kind] <= retries
            effective = FailureReason.INFRA if again else (reason if blamed else FailureReason.USER)
            if effective is not reason:
                seen = replace(seen, outcome=replace(seen.outcome, reason=effective))
        read.append(seen)
    return tuple(read)


def _mended(observations: Observations, rules: RetryRules, resumed_at: int) -> set[int]:
    """Places of failures of the job, among so many failures in a row that the study paused, before it was last resumed.

    Those of a job that had never run until then, too: with few configurations, none is left before the study would pause.
    """
    before = [(place, seen) for place, seen in enumerate(observations[:resumed_at]) if not _imported(seen)]
    if rules.max_failures > 0 and not _worked(tuple(seen for _, seen in before)):
        return {place for place, seen in before if seen.outcome.reason is FailureReason.JOB}
    mended: set[int] = set()
    streak: list[int] = []
    for place, seen in enumerate(observations[:resumed_at]):
        reason = seen.outcome.reason
        if reason is FailureReason.PREEMPTED or _imported(seen):
            continue
        streak = [] if _breaks(seen) else [*streak, place]
        if _too_many([observations[one] for one in streak], _worked(observations[:place]), rules):
            mended.update(one for one in streak if observations[one].outcome.reason is FailureReason.JOB)
    return mended


def _imported(seen: Observation) -> bool:
    """Whether a run was made elsewhere."""
    return seen.order.plan.purpose is Purpose.IMPORT


def _breaks(seen: Observation) -> bool:
    """Whether a run ends a series of failures: it did not fail, or the user ended it."""
    return seen.outcome.end is not End.FAILED or seen.outcome.reason is FailureReason.USER


def _worked(observations: Observations) -> bool:
    """Whether the job has run on some configuration."""
    return any(seen.outcome.end is not End.FAILED for seen in observations)


def _too_many(streak: Sequence[Observation], worked: bool, rules: RetryRules) -> bool:
    """Whether so many failures in a row mean that something is wrong with the job, not with its configurations.

    The search learns from out of memory, and from other failures of a job that `worked` elsewhere, which configurations to avoid, so that
    these count half.
    """
    understood = sum(
        seen.outcome.reason is FailureReason.OOM or (worked and seen.outcome.reason is FailureReason.JOB)
        for seen in streak
    )
    return rules.max_failures > 0 and len(streak) - understood / 2 >= rules.max_failures


def pause_reason(observations: Observations, resumed_at: int, rules: RetryRules) -> str | None:
    """Why the study should pause: its last runs all failed.

    Failures before the last resume do not count, and neither do spot interruptions, the price of cheap machines, nor imported runs.
    """
    last: list[Observation] = []
    for seen in observations[resumed_at:]:
        if seen.outcome.reason is not FailureReason.PREEMPTED and not _imported(seen):
            last = [] if _breaks(seen) else [*last, seen]
    if not last or not _too_many(last, _worked(observations), rules):
        return None
    kinds = Counter("failure" if seen.outcome.reason is None else _FAILURES[seen.outcome.reason] for seen in last)
    kinds_text = ", ".join(counted(count, kind) for kind, count in kinds.most_common())
    detail = last[-1].outcome.detail
    newest = f"; the last: {detail}" if detail else ""
    which = "last trial" if len(last) == 1 else f"last {len(last)} trials"
    return f"the {which} failed ({kinds_text}){newest}"


def on_demand_move(
    problem: Problem, observations: Observations, pending: tuple[Order, ...], rules: RetryRules
) -> Plan | None:
    """The on-demand twin of a configuration that was interrupted too often on spot machines, if it still has to run.

    `observations` is what really happened, before `with_retries`; a twin that failed is retried like any other configuration.
    """
    if problem.preemption is None:
        return None
    counted = Counter(seen.row for seen in observations if seen.outcome.reason is FailureReason.PREEMPTED)
    for row, interruptions in counted.items():
        twin = int(problem.preemption.twin[row])
        if twin < 0 or interruptions <= rules.retries_preempted or any(order.row == twin for order in pending):
            continue
        runs = [seen for seen in with_retries(observations, rules) if seen.row == twin]
        if all(seen.outcome.reason is FailureReason.INFRA for seen in runs):
            why = f"moved to on-demand machines after {interruptions} interruptions"
            return Plan(twin, why=why, purpose=Purpose.MOVE)
    return None
