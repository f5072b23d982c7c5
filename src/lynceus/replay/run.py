"""One replay: a policy explores a measured table with one random seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from lynceus.errors import InputError
from lynceus.executors.simulation import World
from lynceus.executors.table import MeasuredNoise, SimulatedClock, TableExecutor
from lynceus.models.past_pairs import PastPairs, runs_of_history
from lynceus.models.state import feasible_runs
from lynceus.policy.answer import BestBelieved, BestSeen
from lynceus.policy.informed import can_learn, informed
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import Iterations, Never
from lynceus.replay.job import ReplayJob
from lynceus.replay.score import TOLERANCE, Reached, reached, true_value
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.nan_equality import NanEquality
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation
from lynceus.trial.record import RequestedState
from lynceus.trial.trial import STATES

Until = Literal["optimum", "end"] | float
"""Replay until the optimum has been run (later trials change no measured quantity), until the policy stops, or until a CNO.
Only `end` applies the policy's stopping rule: the cost of reaching a result and the time of stopping are separate questions.
A number of iterations is a budget and always applies."""


@dataclass(frozen=True, slots=True, eq=False)
class Step(NanEquality):
    """One trial of a replay."""

    params: Mapping[str, object]
    state: str
    """COMPLETE, TIMEOUT or FAIL."""
    charged_usd: float
    spent_usd: float
    """All charges so far."""
    cno: float
    """CNO of the best feasible run so far, or of the current recommendation if the policy recommends what its model predicts;
    infinite while there is none, and where a recommendation violates a constraint."""
    decision_s: float
    """Seconds that the policy needed to choose this trial."""
    row: int = -1
    """The configuration's row in the table."""
    seconds: float = math.nan
    """Running time."""
    target_s: float = math.nan
    """The running time that the model was trained on: measured, or estimated for a stopped run; NaN when the run was not used."""
    modelled: bool = False
    """Whether a model chose it; initial samples and random choices are not modelled."""
    advised: int = -1
    """The row that a policy which recommends predictions would recommend now; -1: none, or it recommends the best run."""


@dataclass(frozen=True, slots=True)
class Replay:
    """All trials of one seed, in the order in which they ended."""

    policy: str
    seed: int
    steps: tuple[Step, ...]
    reason: str
    """Why it ended."""
    cno_at_stop: float | None
    """CNO of the recommendation when the policy stopped by itself; infinite: it recommended no configuration, or an infeasible
    one; None: the replay ended earlier, at the requested CNO."""

    def reached(self, level: float) -> Reached:
        """When the CNO was first at most `level`."""
        return reached([step.cno for step in self.steps], [step.spent_usd for step in self.steps], level)


def replay(
    job: ReplayJob,
    policy: Policy,
    seed: int,
    *,
    until: Until = "optimum",
    parallel: int = 1,
    noise: MeasuredNoise = "none",
    world: World | None = None,
) -> Replay:
    """Let a policy explore the table once; `noise` draws the measured repeats of a row, `world` adds made-up noise, failures and the like.

    Noise does not affect the score: the CNO is that of the configuration that looks best so far, computed from the table itself.
    """
    clock = SimulatedClock()
    if until != "end" and not isinstance(policy.stop, Iterations):
        policy = replace(policy, stop=Never())
    if noise == "measured" and job.measurements.repeats is None:
        raise InputError(
            f"noise: {job.name} has no repeated runs; name the column with their times under 'repeats' in the job file, or replay "
            "without measured noise."
        )
    # A table has one time per configuration: repeating a run would tell nothing, unless there is noise.
    problem = replace(job.problem, deterministic=world is None and noise == "none")
    study = Study(problem, fitted(policy, job), seed=seed, name=job.name, clock=clock)
    recorder = _Recorder(job, study, target_cno(until))
    executor = TableExecutor(job.problem, job.measurements, clock, noise=noise, world=world, seed=seed)
    explore(
        study,
        executor,
        clock,
        parallel=parallel,
        ordered=recorder.ordered,
        settled=recorder.settled,
        requested_state=recorder.requested_state,
    )
    if recorder.reached_target:
        at_optimum = recorder.target_cno == 1.0
        reason = "the optimum was run" if at_optimum else f"a CNO of {recorder.target_cno:g} was reached"
        return Replay(policy.name, seed, tuple(recorder.steps), reason, None)
    return Replay(policy.name, seed, tuple(recorder.steps), study.reason or "", _final_cno(job, study))


def target_cno(until: Until) -> float:
    """The CNO at which a replay ends; 0, which no run reaches, when the policy decides."""
    return {"optimum": 1.0, "end": 0.0}[until] if isinstance(until, str) else until


@dataclass
class _Recorder:
    """Scores every trial of a replay as it ends."""

    job: ReplayJob
    study: Study
    target_cno: float
    steps: list[Step] = field(default_factory=list)
    _best: float = math.inf
    """Objective of the run that looks best so far, smaller is better."""
    _cno: float = math.inf
    _spent_usd: float = 0.0
    _deciding_s: float = 0.0
    """Seconds of all decisions before the last one."""
    _decision_s: dict[int, float] = field(default_factory=dict)
    """Seconds of a decision by the number of the trial."""

    def __post_init__(self) -> None:
        self._recommends_predictions = not isinstance(self.study.policy.answer, BestSeen | BestBelieved)

    @property
    def reached_target(self) -> bool:
        """Whether the replay may end."""
        return self._cno <= self.target_cno * (1 + TOLERANCE)

    def requested_state(self) -> RequestedState:
        """Order no more trials once the target is reached; the run loop asks before every decision."""
        self._deciding_s = self.study.deciding_s
        return RequestedState.STOP if self.reached_target else RequestedState.RUN

    def ordered(self, order: Order) -> None:
        """Note how long the decision took."""
        self._decision_s[order.number] = self.study.deciding_s - self._deciding_s

    def settled(self, seen: Observation) -> None:
        """Add a step for a trial that ended."""
        self._spent_usd += seen.outcome.charged_usd
        advised = self._update_cno(seen)
        self.steps.append(
            Step(
                self.job.problem.space.point(seen.row),
                str(STATES[seen.outcome.end]),
                seen.outcome.charged_usd,
                self._spent_usd,
                self._cno,
                self._decision_s[seen.order.number],
                seen.row,
                seen.outcome.seconds,
                math.nan if seen.target is None else seen.target.seconds,
                seen.order.plan.expected is not None,
                advised,
            )
        )

    def _update_cno(self, seen: Observation) -> int:
        """Score the policy after a trial; returns the row that it recommends if it recommends predictions, else -1."""
        job = self.job
        if self._recommends_predictions:
            advised, self._cno = _recommended(job, self.study)
            return advised
        for row, value in feasible_runs(job.problem, (seen,)):
            if value < self._best:
                self._best, truth = value, true_value(job.problem, job.measurements, row)
                self._cno = math.inf if truth is None else job.optimum.cno(truth)
        return -1


def fitted(policy: Policy, job: ReplayJob) -> Policy:
    """The policy with what the job file adds: the progress target, unless the policy names one, and runs of other jobs."""
    if isinstance(policy.surrogate, PastPairs) and policy.surrogate.past is None:
        if job.past is not None:
            policy = replace(policy, surrogate=replace(policy.surrogate, past=job.past))
        elif runs_of_history(job.problem) is None:
            raise InputError(
                f"policy: {policy.name!r} learns from runs of other jobs, and {job.name} has none; name their table under "
                "'past' in the job file (and set LYNCEUS_DATA to its folder), name two jobs under 'history', or choose another policy."
            )
    if can_learn(policy, job.problem):
        policy = informed(policy)
    censored = policy.timeout.censored
    default = next((one.default for one in fields(censored) if one.name == "target"), None)  # type: ignore[arg-type]
    if job.target is None or default is None or getattr(censored, "target") != default:  # noqa: B009
        return policy
    aimed = replace(censored, target=job.target)  # type: ignore[type-var]
    return replace(policy, timeout=replace(policy.timeout, censored=aimed))


def _final_cno(job: ReplayJob, study: Study) -> float:
    finished = any(seen.outcome.end is End.FINISHED for seen in study.observations)
    return _recommended(job, study)[1] if finished else math.inf


def _recommended(job: ReplayJob, study: Study) -> tuple[int, float]:
    """The row that is recommended now and its CNO; -1 and infinity when there is none."""
    recommendation = study.recommend()
    if recommendation is None:
        return -1, math.inf
    value = true_value(job.problem, job.measurements, recommendation.row)
    return recommendation.row, math.inf if value is None else job.optimum.cno(value)
