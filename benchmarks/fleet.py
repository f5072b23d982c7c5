"""Twelve multicloud jobs under one budget against twelve separate studies: python -m benchmarks.fleet [--seeds 10].

Counted is the money until every job has run a configuration within 10 % of its optimum: of the fleet all that it has spent by then, of
the separate studies the sum of what each has spent until it got there. Needs the measured tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.replay.job import ReplayJob, load_job
from lynceus.replay.run import replay
from lynceus.replay.score import true_value
from lynceus.study.fleet import Fleet, FleetJob
from lynceus.study.study import Study
from lynceus.trial.outcome import End, Observation
from lynceus.trial.record import RequestedState

JOBS = [
    f"multicloud/{data}-{algorithm}"
    for data in ("buzz", "creditcard", "santander")
    for algorithm in ("kmeans", "linear_regression", "standard_scaler", "xgboost")
]
LEVEL = 1.1


def separate(jobs: list[ReplayJob], seed: int) -> float:
    """Dollars of one study after the other, each until it is within the level."""
    return sum(replay(job, preset("lynceus"), seed, until=LEVEL).steps[-1].spent_usd for job in jobs)


def together(jobs: list[ReplayJob], seed: int) -> float:
    """Dollars of the fleet until every job is within the level."""
    clock, policy = SimulatedClock(), replace(preset("lynceus"), stop=Never())
    members = []
    for job in jobs:
        problem = replace(job.problem, deterministic=True)
        study = Study(problem, policy, seed=seed, name=job.name, clock=clock)
        members.append(FleetJob(study, TableExecutor(problem, job.measurements, clock, seed=seed)))
    open_jobs = {job.name: job for job in jobs}

    def settled(one: FleetJob, seen: Observation) -> None:
        job = open_jobs.get(one.study.name)
        if job is not None and seen.outcome.end is End.FINISHED:
            value = true_value(job.problem, job.measurements, seen.row)
            if value is not None and job.optimum.cno(value) <= LEVEL:
                del open_jobs[job.name]

    fleet = Fleet(members, float("inf"), clock)
    fleet.run(settled=settled, requested_state=lambda: RequestedState.RUN if open_jobs else RequestedState.STOP)
    return fleet.spent_usd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    jobs, ratios = [load_job(name) for name in JOBS], []
    for seed in range(options.seeds):
        apart, fleet = separate(jobs, seed), together(jobs, seed)
        ratios.append(fleet / apart)
        print(f"seed {seed}: separate ${apart:.3f}, fleet ${fleet:.3f}, {fleet / apart:.2f}×", flush=True)
    low, high = np.quantile(ratios, [0.1, 0.9])
    print(f"{len(ratios)} seeds: the fleet takes {np.median(ratios):.2f}× of the money (p10 {low:.2f}, p90 {high:.2f})")


if __name__ == "__main__":
    main()
