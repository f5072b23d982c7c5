"""A fleet under one budget against separate studies: python -m benchmarks.fleet [--seeds 10] [--jobs scout] [--alone] [--bound].

Three ways to count, all until every job has run a configuration within 10 % of its optimum:

- *stopped*: a job stops at that very moment, in the fleet and alone. Nobody knows it, but it is the same for both.
- *running on*: only the separate studies stop then. A fleet goes on with jobs that are solved until the last one is.
- *by themselves*: both end by the stopping rule of the policy; how many jobs are within 10 % in the end is counted beside the money.

Jobs of one algorithm (or model) are declared as one family; --alone gives every job a family of its own, so that nothing is shared. --bound
replaces the fleet by separate studies that know the whole tables of their relatives from the start: more than any fleet can learn. Needs
the measured tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.models.state import State
from lynceus.policy.interfaces import Stop
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.replay.job import ReplayJob, load_job, table_as_history
from lynceus.replay.run import replay
from lynceus.replay.score import true_value
from lynceus.study.fleet import Fleet, FleetJob
from lynceus.study.study import Study
from lynceus.trial.order import Plan
from lynceus.trial.outcome import End, Observation
from lynceus.trial.record import RequestedState

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
LEVEL = 1.1


def fleets() -> dict[str, dict[str, str]]:
    """The fleets by name: job → family."""
    return {
        "multicloud": {
            f"multicloud/{data}-{algorithm}": algorithm
            for data in ("buzz", "creditcard", "santander")
            for algorithm in ("kmeans", "linear_regression", "standard_scaler", "xgboost")
        },
        "scout": {
            f"scout/{one.stem}": one.stem.split("_")[0]
            for one in sorted((DATA / "scout").glob("*.csv"))
            if "_" in one.stem
        },
        "llm_serving": {
            str(DATA / "llm_serving" / "specs" / f"argonne_{model}_{tokens}.loose.yaml"): model
            for model in ("mistral-7b", "mixtral-8x7b", "qwen2-72b", "qwen2-7b")
            for tokens in (128, 512, 2048)
        },
    }


@dataclass(frozen=True)
class Solved:
    """Stops a job that is within the level."""

    unsolved: dict[str, ReplayJob]
    job: str

    def __call__(self, state: State, plan: Plan | None) -> str | None:
        return None if self.job in self.unsolved else "it is solved"


@dataclass(frozen=True)
class Result:
    usd: float
    solved: int
    """Jobs within the level."""


def separate(jobs: list[ReplayJob], seed: int, *, by_themselves: bool) -> Result:
    """One study after the other, each until it is within the level or stops by itself."""
    found = [replay(job, preset("lynceus"), seed, until="end" if by_themselves else LEVEL) for job in jobs]
    within = sum(min(step.cno for step in one.steps) <= LEVEL for one in found)
    return Result(sum(one.steps[-1].spent_usd for one in found), within)


def knowing_all(jobs: list[ReplayJob], families: dict[str, str]) -> list[ReplayJob]:
    """The jobs with the whole tables of their relatives as history."""
    found = []
    for job, (name, family) in zip(jobs, families.items(), strict=True):
        past = [table_as_history(other) for other, own in families.items() if own == family and other != name]
        found.append(replace(job, problem=replace(job.problem, history=tuple(past))))
    return found


def together(jobs: list[ReplayJob], families: list[str], seed: int, count: str) -> Result:
    """The fleet until every job is within the level, or all have stopped by themselves."""
    clock, unsolved, members = SimulatedClock(), {job.name: job for job in jobs}, []
    for job, family in zip(jobs, families, strict=True):
        problem, policy = replace(job.problem, deterministic=True), preset("lynceus")
        stops: dict[str, Stop] = {"stopped": Solved(unsolved, job.name), "running on": Never()}
        study = Study(
            problem, replace(policy, stop=stops.get(count, policy.stop)), seed=seed, name=job.name, clock=clock
        )
        members.append(FleetJob(study, TableExecutor(problem, job.measurements, clock, seed=seed), family))

    def settled(one: FleetJob, seen: Observation) -> None:
        job = unsolved.get(one.study.name)
        if job is not None and seen.outcome.end is End.FINISHED:
            value = true_value(job.problem, job.measurements, seen.row)
            if value is not None and job.optimum.cno(value) <= LEVEL:
                del unsolved[job.name]

    def wanted() -> RequestedState:
        return RequestedState.RUN if unsolved or count == "by themselves" else RequestedState.STOP

    fleet = Fleet(members, float("inf"), clock)
    fleet.run(settled=settled, requested_state=wanted)
    return Result(fleet.spent_usd, len(jobs) - len(unsolved))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", default="multicloud")
    parser.add_argument("--count", choices=("stopped", "running on", "by themselves"), default="stopped")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--bound", action="store_true")
    options = parser.parse_args()
    families = fleets()[options.jobs]
    jobs, ratios, all_solved = [load_job(name) for name in families], [], []
    names = list(families) if options.alone else list(families.values())
    knowing, own_end = knowing_all(jobs, families), options.count == "by themselves"
    for seed in range(options.seeds):
        apart = separate(jobs, seed, by_themselves=own_end)
        if options.bound:
            fleet = separate(knowing, seed, by_themselves=own_end)
        else:
            fleet = together(jobs, names, seed, options.count)
        ratios.append(fleet.usd / apart.usd)
        all_solved.append((apart.solved, fleet.solved))
        print(
            f"seed {seed}: separate ${apart.usd:.3f} ({apart.solved} solved), fleet ${fleet.usd:.3f} ({fleet.solved} solved), "
            f"{ratios[-1]:.2f}×",
            flush=True,
        )
    low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    alone, shared = np.mean(all_solved, axis=0)
    print(
        f"{options.jobs}, {options.count}, {len(ratios)} seeds: the fleet takes {middle:.2f}× of the money "
        f"(p10 {low:.2f}, p90 {high:.2f}); within 10 % of {len(jobs)}: {alone:.1f} separately, {shared:.1f} in the fleet"
    )


if __name__ == "__main__":
    main()
