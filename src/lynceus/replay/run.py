"""One replay: a policy, a seed, a table, and what each trial brought."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from lynceus.engine import explore
from lynceus.errors import InputError
from lynceus.executor import Clock, PretendedClock, TableExecutor
from lynceus.executor.worlds import World
from lynceus.history import End, Observation, Order
from lynceus.policy import BestSeen, Policy
from lynceus.replay.job import ReplayJob
from lynceus.replay.score import TOLERANCE, Reached, reached, true_value
from lynceus.situation import feasible_runs
from lynceus.stopping import Never
from lynceus.study import STATES, Study
from lynceus.surrogate.past_pairs import PastPairs

Until = Literal["optimum", "end"] | float
"""Replay until the optimum has been run (nothing that is measured changes afterwards), until the policy stops, or until a CNO.
Only `end` asks the policy's stopping rule: how much money it takes to get somewhere is one question, when it gives up another."""


@dataclass(frozen=True, slots=True)
class Step:
    """One trial of a replay."""

    params: Mapping[str, object]
    state: str
    """COMPLETE, TIMEOUT or FAIL."""
    charged_usd: float
    spent_usd: float
    """All charges so far."""
    cno: float
    """Of the best run so far that finished and kept every limit, or, of a policy that recommends what it predicts, of what it would
    recommend now; infinite while there is none, and where a prediction breaks a limit."""
    decision_s: float
    """Seconds that the policy thought about this trial."""
    row: int = -1
    """The configuration's place in the table."""
    seconds: float = math.nan
    """How long it ran."""
    told_s: float = math.nan
    """The time that the model was told: measured, or estimated for a run that was stopped; NaN when it was told nothing."""
    modelled: bool = False
    """Whether a model was asked for it; initial samples and random picks are not."""
    advised: int = -1
    """The row that a policy which recommends what it predicts would recommend now; -1: none, or it recommends the best run."""


@dataclass(frozen=True, slots=True)
class Replay:
    """All trials of one seed, in the order in which they settled."""

    policy: str
    seed: int
    steps: tuple[Step, ...]
    reason: str
    """Why it ended."""
    cno_at_stop: float | None
    """CNO of what the policy recommended when it stopped by itself; infinite: nothing, or a configuration that breaks a
    limit; nothing: it was not asked, because the replay ended at the optimum."""

    def reached(self, level: float) -> Reached:
        """When the CNO first was at most `level`."""
        return reached([step.cno for step in self.steps], [step.spent_usd for step in self.steps], level)


class TimedStudy(Study):
    """A study that notes how long each order took, and takes no more orders once the judge has seen enough."""

    def __init__(self, job: ReplayJob, policy: Policy, seed: int, clock: Clock) -> None:
        super().__init__(job.problem, policy, seed=seed, name=job.name, clock=clock)
        self.enough = False
        self.thought_s: dict[int, float] = {}

    def order(self, slots: int = 1) -> Order | None:
        """The next order, timed."""
        if self.enough:
            return None
        began = time.perf_counter()
        order = super().order(slots)
        if order is not None:
            self.thought_s[order.number] = time.perf_counter() - began
        return order


def replay(
    job: ReplayJob,
    policy: Policy,
    seed: int,
    *,
    until: Until = "optimum",
    parallel: int = 1,
    world: World | None = None,
) -> Replay:
    """Let a policy explore the table once, perhaps in a harder world than the table's.

    Where runs are noisy the judge is not: the CNO is that of the configuration which looks best so far, as the table has it.
    """
    clock = PretendedClock()
    if until != "end":
        policy = replace(policy, stop=Never())
    study = TimedStudy(job, fitted(policy, job), seed, clock)
    steps: list[Step] = []
    best, spent, cno = math.inf, 0.0, math.inf
    predicts = not isinstance(policy.answer, BestSeen)
    goal = {"optimum": 1.0, "end": 0.0}[until] if isinstance(until, str) else until

    def settled(seen: Observation) -> None:
        nonlocal best, spent, cno
        spent += seen.outcome.charged_usd
        advised = -1
        if predicts:
            advised, cno = _advice(job, study)
        for row, value in () if predicts else feasible_runs(job.problem, (seen,)):
            if value < best:
                best, truth = value, true_value(job.problem, job.measurements, row)
                cno = math.inf if truth is None else job.optimum.cno(truth)
        steps.append(
            Step(
                job.problem.space.point(seen.row),
                str(STATES[seen.outcome.end]),
                seen.outcome.charged_usd,
                spent,
                cno,
                study.thought_s[seen.order.number],
                seen.row,
                seen.outcome.seconds,
                math.nan if seen.told is None else seen.told.seconds,
                seen.order.plan.expected is not None,
                advised,
            )
        )
        study.enough = cno <= goal * (1 + TOLERANCE)

    executor = TableExecutor(job.problem, job.measurements, clock, world=world, seed=seed)
    explore(study, executor, clock, parallel=parallel, settled=settled)
    if study.enough:
        reason = "the optimum was run" if goal == 1.0 else f"a CNO of {goal:g} was reached"
        return Replay(policy.name, seed, tuple(steps), reason, None)
    return Replay(policy.name, seed, tuple(steps), study.reason or "", _recommended_cno(job, study))


def fitted(policy: Policy, job: ReplayJob) -> Policy:
    """The policy with what the job's file knows: where progress aims, unless the policy names it, and runs of other jobs."""
    if isinstance(policy.surrogate, PastPairs) and policy.surrogate.past is None:
        if job.past is None:
            raise InputError(
                f"policy: {policy.name!r} learns from runs of other jobs, and {job.name} has none; name their table under "
                "'past' in the job's file (and set LYNCEUS_DATA to its folder), or choose another policy."
            )
        policy = replace(policy, surrogate=replace(policy.surrogate, past=job.past))
    fill = policy.timeout.fill
    default = next((field.default for field in fields(fill) if field.name == "target"), None)  # type: ignore[arg-type]
    if job.target is None or default is None or getattr(fill, "target") != default:  # noqa: B009
        return policy
    aimed = replace(fill, target=job.target)  # type: ignore[type-var]
    return replace(policy, timeout=replace(policy.timeout, fill=aimed))


def _recommended_cno(job: ReplayJob, study: Study) -> float:
    return _advice(job, study)[1] if any(seen.outcome.end is End.FINISHED for seen in study.history) else math.inf


def _advice(job: ReplayJob, study: Study) -> tuple[int, float]:
    """The row that is recommended now and its CNO; −1 and infinite when there is none."""
    advice = study.recommend()
    value = None if advice is None else true_value(job.problem, job.measurements, advice.row)
    return -1 if advice is None else advice.row, math.inf if value is None else job.optimum.cno(value)
