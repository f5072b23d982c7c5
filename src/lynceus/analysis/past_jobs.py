"""What a study learnt from earlier jobs: how much each counts, which trials they suggested, and what that saved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.analysis.study_context import StudyContext
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.interfaces import Surrogate
from lynceus.models.past_curves import credibility
from lynceus.models.past_match import match
from lynceus.models.state import State, feasible_runs
from lynceus.models.transfer import past_weights, posteriors, usable_history
from lynceus.policy.informed import FromHistory
from lynceus.policy.other_inputs import SearchHere, search_here
from lynceus.policy.past_systems import reads_history
from lynceus.policy.stopping import Never
from lynceus.problem.history import PastJob
from lynceus.problem.problem import Problem
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import Observation
from lynceus.trial.record import RequestedState

_NEAR = 1.1
"""A search has found the best configuration when a run costs at most 10 % more."""
_MOST_ROWS = 2_000
"""In larger spaces nothing is imagined: it would take too long."""
_MOST_TRIALS = 60
"""After so many imagined trials the search without a history is given up; it has spent at least so much."""


@dataclass(frozen=True)
class PastJobWeight:
    """An earlier job, and how much it counts now."""

    name: str
    source: str
    runs: int
    """Its runs that this study stores."""
    weight: float
    """The probability that this job resembles it, from 0 to 1, after all trials."""
    credibility: float
    """How far it was believed before any trial, from 0 to 1."""
    note: str | None
    """Why it does not count; None where it does."""


@dataclass(frozen=True)
class PastJobs:
    """What a study learnt from earlier jobs."""

    jobs: list[PastJobWeight]
    suggested: int
    """Trials that they suggested."""
    suggested_usd: float
    """What these were charged."""
    saved_usd: float | None
    """What the search without a history would have spent more until a run within 10 % of the best. That search is imagined: its runs take
    what was measured, or what the model predicts where nothing was. Negative: the history cost so much. None where it cannot be said."""


def past_jobs(context: StudyContext) -> PastJobs | None:
    """What earlier jobs told, the runs of this one on other inputs among them; None for a study without a history."""
    study = context.study
    here = search_here(study.problem, study.policy, study.observations, 0)
    if not here.problem.history:
        return None
    suggested = [seen for seen in here.observations if seen.order.plan.purpose is Purpose.HISTORY]
    return PastJobs(
        _weights(here),
        len(suggested),
        sum(seen.outcome.charged_usd for seen in suggested),
        saved_usd(here, study.seed) if suggested else None,
    )


def _weights(here: SearchHere) -> list[PastJobWeight]:
    problem, policy = here.problem, here.policy
    usable = usable_history(problem)
    weights = past_weights(posteriors(State.present(problem, here.observations))) if usable else {}
    learns = isinstance(policy.choose, FromHistory)
    found = []
    for job in problem.history:
        note = None
        if not learns:
            how = "weighs all of it in its own way" if reads_history(policy) else "does not learn from history"
            note = f"policy {policy.name} {how}"
        elif not job.related:
            note = "of another family"
        elif job not in usable:
            note = _unused(problem, job)
        weight = weights.get(job.name, 0.0) if note is None else 0.0
        found.append(
            PastJobWeight(job.name, job.source, len(job.seconds), weight, credibility(problem.space, job), note)
        )
    return sorted(found, key=lambda one: -one.weight)


def _unused(problem: Problem, job: PastJob) -> str:
    """Why a related job does not count."""
    return (
        "it does not report what the objective needs" if match(problem.space, job).used else "too few runs to compare"
    )


def saved_usd(here: SearchHere, seed: int) -> float | None:
    """Dollars that the history saved; see `PastJobs.saved_usd`."""
    problem, policy = here.problem, here.policy
    runs = feasible_runs(problem, here.observations)
    if (
        not runs
        or not isinstance(policy.choose, FromHistory)
        or policy.surrogate is None
        or problem.metrics
        or len(problem.space) > _MOST_ROWS
    ):
        return None
    level = _NEAR * min(value for _, value in runs)
    own = _spent_until(problem, here.observations, level)
    imagined = replace(problem, history=(), baseline=None, deterministic=True)
    plain = replace(policy, choose=policy.choose.otherwise, stop=Never())
    clock, measured = SimulatedClock(), Measurements(_times(here, policy.surrogate, seed))
    search = Study(imagined, plain, seed=seed, clock=clock)

    def enough() -> RequestedState:
        there = any(value <= level for _, value in feasible_runs(problem, search.observations))
        return RequestedState.STOP if there or len(search.observations) >= _MOST_TRIALS else RequestedState.RUN

    explore(search, TableExecutor(imagined, measured, clock), clock, requested_state=enough)
    return sum(seen.outcome.charged_usd for seen in search.observations) - own


def _spent_until(problem: Problem, observations: tuple[Observation, ...], level: float) -> float:
    spent = 0.0
    for seen in observations:
        spent += seen.outcome.charged_usd
        if any(value <= level for _, value in feasible_runs(problem, (seen,))):
            break
    return spent


def _times(here: SearchHere, surrogate: Surrogate, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What every configuration takes: as measured, or as the model expects after all trials; stopped runs took at least as long."""
    state = State.present(here.problem, here.observations)
    seconds = surrogate(state, seed).seconds(here.problem)[0].copy()
    for row, target, bound in zip(state.rows, state.seconds, state.bound_s, strict=True):
        seconds[row] = target if math.isnan(bound) else max(seconds[row], bound * 1.01)
    return np.asarray(np.maximum(seconds, 1e-3))
