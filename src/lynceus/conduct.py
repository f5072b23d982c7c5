"""How a study deals with failures and with luck: retries, the pause after many failures, the confirmation of the best.

Pure functions of the history, like the policies: an interrupted study that is resumed conducts itself in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median_high, median_low

import numpy as np

from lynceus.errors import InputError
from lynceus.history import End, History, Observation, Order, Plan, Reason
from lynceus.problem import Problem
from lynceus.situation import Situation, feasible_runs

CONFIRMS = "confirms the best"
"""How the reason of an order begins that re-runs the best configuration."""
RESERVED_SHARE = 0.10
"""Share of the budget that waits for the confirmation while no feasible configuration is known."""
LARGEST_SHARE = 0.25
"""Most of the budget that the confirmation may hold back."""
MOVED = "moved to on-demand machines"
"""How the reason of an order begins that runs an interrupted configuration on machines that stay."""
_INFRA, _BLAMED, _PREEMPTED = range(3)
"""Failures that are counted apart."""
MARGIN = 1.5
"""A re-run may cost so many times what the best run cost."""


@dataclass(frozen=True, slots=True)
class Conduct:
    """What a study does when runs fail, and before it recommends."""

    retries_infra: int = 2
    """How often a configuration is tried again after failures of machines, which are not its fault."""
    retries_job: int = 0
    """How often it is tried again after it failed by itself (job, oom); then it is never suggested again."""
    max_failures: int = 5
    """After so many failures in a row the study pauses; 0: never."""
    confirm_best: int = 0
    """Re-runs of the best configuration before it is recommended, paid from a slice of the budget kept for them."""
    retries_preempted: int = 2
    """How often it is tried again after the cloud took its machines back; then it is moved to its on-demand twin, if it has one."""
    parallel: int = 1
    """Trials that all workers together mean to have open: a run that nothing else caps leaves the others their share of the money."""

    def __post_init__(self) -> None:
        for name in ("retries_infra", "retries_job", "max_failures", "confirm_best", "retries_preempted"):
            if getattr(self, name) < 0:
                raise InputError(f"trial: {name} is {getattr(self, name)}; give 0 or more.")
        if self.parallel < 1:
            raise InputError(f"trial: parallel is {self.parallel}; give at least 1.")


def as_seen(history: History, conduct: Conduct) -> History:
    """The history with the reason of every failure as the policy should take it: worth another try, or not.

    A failure that may be retried reads as infra (the row is open again, nothing is learnt); one whose tries are used up closes its
    row: as the configuration's fault when it was, otherwise like a person's decision, from which nothing is learnt.
    """
    if not any(seen.outcome.end is End.FAILED for seen in history):
        return history
    failures: Counter[tuple[int, int]] = Counter()
    read: list[Observation] = []
    for seen in history:
        reason = seen.outcome.reason
        if reason is not None and reason is not Reason.USER:
            blamed = reason.blames_configuration
            retries = conduct.retries_job if blamed else conduct.retries_infra
            kind = _BLAMED if blamed else _INFRA
            if reason is Reason.PREEMPTED:
                retries, kind = conduct.retries_preempted, _PREEMPTED
            failures[seen.row, kind] += 1
            again = failures[seen.row, kind] <= retries
            taken = Reason.INFRA if again else (reason if blamed else Reason.USER)
            if taken is not reason:
                seen = replace(seen, outcome=replace(seen.outcome, reason=taken))
        read.append(seen)
    return tuple(read)


def failing(history: History, resumed_at: int, conduct: Conduct) -> str | None:
    """Why the study should pause: its last runs all failed. Failures before it was last resumed do not count, and neither do
    interruptions of spot machines: they are what such machines are cheap for."""
    counted_runs = [seen for seen in history[resumed_at:] if seen.outcome.reason is not Reason.PREEMPTED]
    last = counted_runs[-conduct.max_failures :] if conduct.max_failures else []
    if not conduct.max_failures or len(last) < conduct.max_failures:
        return None
    if any(seen.outcome.end is not End.FAILED or seen.outcome.reason is Reason.USER for seen in last):
        return None
    kinds = Counter(str(seen.outcome.reason) for seen in last)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    detail = last[-1].outcome.detail
    newest = f"; the last: {detail}" if detail else ""
    return f"the last {len(last)} trials failed ({counted}){newest}"


def held_back_usd(problem: Problem, history: History, conduct: Conduct) -> float:
    """Dollars of the budget that wait for the confirmation of the best."""
    total = problem.budget.usd
    left = conduct.confirm_best - _confirmations(history)
    if left <= 0 or math.isinf(total):
        return 0.0
    best = _best_row(problem, history)
    if best is None:
        return RESERVED_SHARE * total
    cost = max(seen.outcome.charged_usd for seen in history if seen.row == best)
    return min(left * MARGIN * cost, LARGEST_SHARE * total)


def confirmation(problem: Problem, history: History, pending: tuple[Order, ...], conduct: Conduct) -> Order | None:
    """The next re-run of what is best by the median of its runs; nothing when it has been confirmed, or cannot be paid."""
    done = _confirmations(history) + len(pending)
    row = _best_row(problem, history)
    if done >= conduct.confirm_best or row is None:
        return None
    situation = Situation.present(problem, history, pending)
    left = float(situation.left[0])
    price = float(problem.price[row])
    affordable = float(problem.tariff.seconds_for(np.asarray(left), np.asarray(price)))
    # Slower than its own worst run by half is as good as refuted; so is a run that breaks the limits.
    slowest = max(seen.outcome.seconds for seen in history if seen.row == row)
    cap_s = min(affordable, max(float(problem.ceiling_s[row]), 0.0), 2 * MARGIN * slowest)
    if cap_s < slowest:
        return None
    plan = Plan(row, why=f"{CONFIRMS} ({done + 1} of {conduct.confirm_best})", stoppable=False)
    reserved = min(problem.tariff.charge(cap_s, price), max(left, 0.0))
    return Order(len(history) + len(pending), row, cap_s, reserved, plan)


def to_be_moved(problem: Problem, history: History, pending: tuple[Order, ...], conduct: Conduct) -> Plan | None:
    """The on-demand twin of a configuration that was interrupted too often on spot machines, if it waits to be run.

    `history` is what really happened, see `as_seen`; a twin that failed is tried again like any other configuration.
    """
    if problem.restarts is None:
        return None
    counted = Counter(seen.row for seen in history if seen.outcome.reason is Reason.PREEMPTED)
    for row, interruptions in counted.items():
        twin = int(problem.restarts.twin[row])
        if twin < 0 or interruptions <= conduct.retries_preempted or any(order.row == twin for order in pending):
            continue
        runs = [seen for seen in as_seen(history, conduct) if seen.row == twin]
        if all(seen.outcome.reason is Reason.INFRA for seen in runs):
            return Plan(twin, why=f"{MOVED} after {interruptions} interruptions")
    return None


def typical(history: History) -> History:
    """The history in which a configuration that finished several times appears once, as its median run.

    A re-run that did not come to its end counts as slower than all others; when that is the median, the row has no finished run.
    """
    runs: dict[int, list[Observation]] = {}
    for seen in history:
        if seen.outcome.end is not End.FAILED:
            runs.setdefault(seen.row, []).append(seen)
    several = {row: seen for row, seen in runs.items() if len(seen) > 1 and _finished(seen)}
    if not several:
        return history
    kept = [seen for seen in history if seen.row not in several or seen.outcome.end is End.FAILED]
    for same in several.values():
        finished = _finished(same)
        times = [one.outcome.seconds if one.outcome.end is End.FINISHED else math.inf for one in same]
        middle = median_high(times)  # of two runs the slower one: a single lucky run proves nothing
        if math.isinf(middle):
            kept.append(next(one for one in same if one.outcome.end is End.CAPPED))
            continue
        names = set.intersection(*(set(one.outcome.metrics) for one in finished))
        metrics = {name: median_low([one.outcome.metrics[name] for one in finished]) for name in sorted(names)}
        example = next(one for one in finished if one.outcome.seconds == middle)
        kept.append(replace(example, outcome=replace(example.outcome, metrics=metrics)))
    return tuple(kept)


def _finished(runs: Iterable[Observation]) -> list[Observation]:
    return [seen for seen in runs if seen.outcome.end is End.FINISHED]


def _confirmations(history: History) -> int:
    return sum(
        seen.order.plan.why.startswith(CONFIRMS) and seen.outcome.reason not in (Reason.INFRA, Reason.PREEMPTED)
        for seen in history
    )


def _best_row(problem: Problem, history: History) -> int | None:
    runs = feasible_runs(problem, typical(history))
    return min(runs, key=lambda run: run[1])[0] if runs else None
