"""A fleet: many jobs under one budget. Every trial goes to the job that is expected to save most, and all learn from each other.

A fleet has no state of its own. Its jobs are studies with their own journals, so that a fleet which was killed goes on by opening them
again: open trials are taken over, and what all of them have spent is read from their records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lynceus.executors.interface import Clock, Executor
from lynceus.policy.fleet_turn import Turn, expected_saving, next_turn, trial_scale
from lynceus.policy.future_use import future_use
from lynceus.policy.informed import can_learn, informed
from lynceus.policy.orders import ROUNDING
from lynceus.problem.history import FEWEST_RUNS, PastJob
from lynceus.problem.problem import Problem
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.incumbents import incumbent
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation
from lynceus.trial.past_job import past_jobs
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import Stopped, StopReason

_BROKE: Order | Stopped = Stopped(StopReason.BUDGET, "the budget of the fleet is used up")
_STALE = 6
"""A decision is made anew after so many trials of other jobs, from which it could learn."""


@dataclass(frozen=True, eq=False)
class FleetJob:
    """One job of a fleet."""

    study: Study
    executor: Executor
    family: str = ""
    """Jobs of one family learn from each other, jobs of different ones do not."""

    @property
    def uses(self) -> float:
        """How often its result will be used."""
        return future_use(self.study.problem, self.study.policy).count


@dataclass
class _Decision:
    """What a job would do next, as of some trials."""

    study: Study
    step: Order | Stopped
    """Stopped: its search is over, or nothing that is left of the money starts a trial."""
    own: int
    others: int
    left_usd: float


class Fleet:
    """Jobs that share a budget in dollars."""

    def __init__(self, jobs: Sequence[FleetJob], budget_usd: float, clock: Clock) -> None:
        self.jobs, self._budget_usd, self._clock = tuple(jobs), budget_usd, clock
        self._decisions: dict[int, _Decision] = {}

    @property
    def spent_usd(self) -> float:
        """What all jobs were charged."""
        return sum(job.study.spent_usd for job in self.jobs)

    @property
    def left_usd(self) -> float:
        """What is left of the budget after everything charged and reserved."""
        return self._budget_usd - self.spent_usd - sum(job.study.reserved_usd for job in self.jobs)

    def run(
        self,
        *,
        settled: Callable[[FleetJob, Observation], None] | None = None,
        requested_state: Callable[[], RequestedState] | None = None,
    ) -> None:
        """Run trials, one at a time, until no job has a trial that the money left pays, or the caller requests the end.

        Trials that a killed fleet left open are finished first.
        """
        for job in self.jobs:
            if job.study.pending:
                self._explore(job, job.study, 0, settled, requested_state)
        while (requested_state is None or requested_state() is RequestedState.RUN) and (
            turn := self.turn()
        ) is not None:
            study = self._decisions[turn.job].study
            started = study.record.started
            self._explore(self.jobs[turn.job], study, 1, settled, requested_state)
            if study.record.started == started:  # it was stopped, or its shared budget used, since this was decided
                self._decisions.pop(turn.job)
        for one in self._decisions.values():
            if isinstance(one.step, Stopped) and one.step.kind not in (StopReason.BUDGET, StopReason.USER):
                one.study.ask()  # writes down why its search is over; that the fleet's money is gone ends no study

    def why_over(self, place: int) -> str:
        """Why a job of the fleet runs nothing more, as a clause; empty where it was not decided, or would run something."""
        decision = self._decisions.get(place)
        return decision.step.reason if decision is not None and isinstance(decision.step, Stopped) else ""

    def turn(self) -> Turn | None:
        """The next trial of the fleet; None when there is none."""
        turns = []
        for place in range(len(self.jobs)):
            decision = self._decided(place)
            if isinstance(decision.step, Order):
                study = decision.study
                best = incumbent(study.problem, study.observations)
                value = None if best is None else best.value
                saving = expected_saving(study.problem, decision.step, self.jobs[place].uses, value)
                scale, trials = trial_scale(study.problem), study.record.started
                family = self.jobs[place].family
                turns.append(Turn(place, decision.step, saving, study.spent_usd, scale, trials, family))
        return next_turn(turns)

    def _decided(self, place: int) -> _Decision:
        """What a job would do next; kept while nothing has changed that matters much."""
        own = len(self.jobs[place].study.observations)
        family = self.jobs[place].family
        others = sum(len(job.study.observations) for job in self.jobs if job.family == family) - own
        kept, left = self._decisions.get(place), self.left_usd
        if kept is not None and kept.own == own and others - kept.others < _STALE:
            # Money that is gone changes a decision only if it does not suffice any more, or there is more of it again.
            if isinstance(kept.step, Stopped) and left <= kept.left_usd:
                return kept
            if isinstance(kept.step, Order) and kept.step.reserved_usd <= left:
                return kept
        job = self.jobs[place]
        study, step = job.study, _BROKE
        if left > ROUNDING * self._budget_usd or not math.isfinite(self._budget_usd):
            study = self._informed(place, left)
            step = study.next_step().decision
        self._decisions[place] = _Decision(study, step, own, others, left)
        return self._decisions[place]

    def _informed(self, place: int, left_usd: float) -> Study:
        """A study of the fleet with the money left, and with the runs of all other jobs as its history."""
        study = self.jobs[place].study
        problem: Problem = replace(study.problem, history=(*study.problem.history, *self._histories(place)))
        usd = min(problem.budget.usd, study.spent_usd + study.reserved_usd + left_usd - study.record.added_usd)
        policy = study.policy
        return Study(
            problem.with_budget(usd),
            informed(policy) if can_learn(policy, problem) else policy,
            seed=study.seed,
            name=study.name,
            journal=study.journal,
            clock=self._clock,
            retry_rules=study.retry_rules,
        )

    def _histories(self, place: int) -> list[PastJob]:
        """The relatives that have run often enough to be learnt from."""
        found: list[PastJob] = []
        for other, job in enumerate(self.jobs):
            if job.family != self.jobs[place].family:
                continue
            runs = sum(
                seen.outcome.end is not End.FAILED and seen.outcome.seconds > 0 for seen in job.study.observations
            )
            if other != place and runs >= FEWEST_RUNS:
                found += past_jobs(job.study.name, job.study.problem, job.study.observations, "the same fleet")
        return found

    def _explore(
        self,
        job: FleetJob,
        study: Study,
        trials: int,
        settled: Callable[[FleetJob, Observation], None] | None,
        requested_state: Callable[[], RequestedState] | None,
    ) -> None:
        """Let a study order so many trials and finish what it has open."""
        ordered: list[Order] = []

        def wanted() -> RequestedState:
            asked = RequestedState.RUN if requested_state is None else requested_state()
            done = RequestedState.STOP if len(ordered) >= trials else RequestedState.RUN
            return max((asked, done), key=list(RequestedState).index)

        explore(
            study,
            job.executor,
            self._clock,
            ordered=ordered.append,
            settled=None if settled is None else lambda seen: settled(job, seen),
            requested_state=wanted,
        )
