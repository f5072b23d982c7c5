"""What several workers cost and save: dollars and simulated wall clock until a run within 10 % of the optimum.

    python -m benchmarks.parallel --seeds 20

Ratios to one worker, geometric means over the jobs of medians over seeds; needs the measured jobs (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import replace
from multiprocessing import Pool

import numpy as np

from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.models.state import feasible_runs
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.replay.job import load_job
from lynceus.replay.shipped import shipped_jobs
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.outcome import Observation
from lynceus.trial.record import RequestedState

WORKERS = (1, 2, 4, 8)
FAMILIES = ("tensorflow", "cherrypick", "scout")
NEAR = 1.1


def until_near(name: str, workers: int, seed: int) -> tuple[float, float]:
    """(dollars, seconds) until a run within 10 % of the optimum had finished; pending runs are charged to their end."""
    job = load_job(name, deadline_quantile=0.5)
    clock = SimulatedClock()
    study = Study(job.problem, replace(preset("lynceus"), stop=Never()), seed=seed, name=name, clock=clock)
    spent, reached_s = 0.0, math.inf

    def settled(seen: Observation) -> None:
        nonlocal spent, reached_s
        spent += seen.outcome.charged_usd
        if any(value <= NEAR * job.optimum.cost_usd for _, value in feasible_runs(job.problem, (seen,))):
            reached_s = min(reached_s, clock.now() - began)

    began = clock.now()
    explore(
        study,
        TableExecutor(job.problem, job.measurements, clock),
        clock,
        parallel=workers,
        settled=settled,
        requested_state=lambda: RequestedState.STOP if math.isfinite(reached_s) else RequestedState.RUN,
    )
    return spent, reached_s


def cell(task: tuple[str, int, int]) -> tuple[str, int, tuple[float, float]]:
    name, workers, seed = task
    return name, workers, until_near(name, workers, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    jobs = [name for name in shipped_jobs() if name.split("/")[0] in FAMILIES]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with Pool(options.processes) as pool:
        work = [(name, workers, seed) for name in jobs for workers in WORKERS for seed in range(options.seeds)]
        for name, workers, both in pool.imap_unordered(cell, work, chunksize=4):
            found.setdefault((name, workers), []).append(both)
    print(f"{options.seeds} seeds per job; ratios to one worker\n")
    print(
        "| family | workers | dollars, p50 | dollars, p90 | wall clock, p50 | wall clock, p90 |\n|---|---|---|---|---|---|"
    )
    for family in FAMILIES:
        for workers in WORKERS:
            ratios = [_ratios(found, name, workers) for name in jobs if name.startswith(family)]
            means = np.exp(np.mean(np.log(ratios), axis=0))
            print(f"| {family} | {workers} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")


def _ratios(found: dict[tuple[str, int], list[tuple[float, float]]], name: str, workers: int) -> list[float]:
    """Dollars at p50 and p90, then wall clock, of some workers over one."""
    many, one = np.array(found[name, workers]), np.array(found[name, 1])
    return [float(np.quantile(many[:, what], q) / np.quantile(one[:, what], q)) for what in (0, 1) for q in (0.5, 0.9)]


if __name__ == "__main__":
    main()
