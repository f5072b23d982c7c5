"""A made-up space with a wall of memory: python -m benchmarks.walls [--seeds 50] [--reason oom|job] [--known].

304 of 512 configurations run out of memory after ten minutes. Counted are the trials behind the wall after the first five, and the
pauses. No column says how much memory a machine has, unless --known gives it. Searches end by themselves, or after 60 trials.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import lynceus
from lynceus.policy.next_step import next_step, observe
from lynceus.problem.objective import Constraint
from lynceus.space.column import BoolArray, FloatArray
from lynceus.space.parameter import Parameter
from lynceus.trial.outcome import End, FailureReason, Observations, Outcome
from lynceus.trial.record import Record
from lynceus.trial.stop import Stopped, StopReason

PARAMETERS: list[Parameter] = [
    lynceus.Categorical("family", ("c", "m", "r", "x")),
    lynceus.Ordinal("size", (1, 2, 4, 8)),
    lynceus.Ordinal("nodes", (1, 2, 4, 8)),
    lynceus.Ordinal("batch", (16, 32, 64, 128, 256, 512, 1024, 2048)),
]
WALLS = {"memory": (1.0, 0.0, 1.0), "cluster": (1.0, 0.7, 0.4), "machines": (0.4, 1.0, 0.0), "batch": (0.3, 0.0, 1.0)}
"""Constants are chosen on the other walls, and judged on `memory`."""
PRICE = "(0.04 if family == 'c' else 0.05 if family == 'm' else 0.065 if family == 'r' else 0.09) * size * nodes"
MEMORY = lynceus.Computed(
    "memory_gib", "(2 if family == 'c' else 4 if family == 'm' else 8 if family == 'r' else 16) * size"
)


@dataclass(frozen=True, eq=False)
class Job:
    """A job on every configuration of the space."""

    space: lynceus.Space
    wall: BoolArray
    """Rows that run out of memory `[q]`."""
    seconds: FloatArray

    @classmethod
    def make(cls, *, known: bool, wall: tuple[float, float, float] = (1.0, 0.0, 1.0)) -> Job:
        """`wall` has the exponents of a machine's memory, of the machines and of what a batch needs in what must suffice."""
        space = lynceus.Space.build(PARAMETERS, price=PRICE, derived=[MEMORY] if known else [])
        points = [space.point(row) for row in range(len(space))]
        size, nodes, batch = (
            np.array([float(str(one[name])) for one in points]) for name in ("size", "nodes", "batch")
        )
        memory = np.array([{"c": 2, "m": 4, "r": 8, "x": 16}[str(one["family"])] for one in points]) * size
        room = memory ** wall[0] * nodes ** wall[1] / (2 + batch / 50) ** wall[2]
        seconds = 20_000 / (size * nodes) ** 0.75 * (1 + 60 / batch)
        return cls(space, np.asarray(room < np.sort(room)[304]), np.asarray(seconds))


def search(job: Job, seed: int, reason: FailureReason) -> tuple[Observations, int]:
    """The observations of a study, and how often it paused."""
    limit = Constraint("time", float(np.quantile(job.seconds[~job.wall], 0.5)))
    problem = lynceus.Problem(job.space, constraints=(limit,), budget=lynceus.Budget(usd=1e4, trials=60))
    policy, rules = lynceus.preset("lynceus"), lynceus.RetryRules()
    seen: Observations = ()
    paused = resumed = 0
    while True:
        record = Record("walls", observations=seen, resumed_at=resumed)
        decision = next_step(problem, policy, rules, record, seed=seed).decision
        if isinstance(decision, Stopped):
            if decision.kind is not StopReason.PAUSED:
                return seen, paused
            paused, resumed = paused + 1, len(seen)
            continue
        row, full_s = decision.row, float(job.seconds[decision.row])
        ran_s = min(600.0 if job.wall[row] else full_s, decision.timeout_s)
        charged = problem.billing.charge(ran_s, float(problem.price[row]))
        outcome = Outcome(End.FINISHED if full_s <= decision.timeout_s else End.TIMEOUT, ran_s, charged)
        if job.wall[row]:
            outcome = Outcome.failed(reason, "it broke", seconds=ran_s, charged_usd=charged)
        seen = (*seen, observe(problem, policy, seen, decision, outcome))


def cno(job: Job, seen: Observations) -> float:
    """Cost of the best run over that of the best configuration."""
    deadline_s = float(np.quantile(job.seconds[~job.wall], 0.5))
    costs = np.where(job.wall | (job.seconds > deadline_s), np.inf, job.seconds * job.space.price_per_second)
    found = [costs[one.row] for one in seen if one.outcome.end is End.FINISHED]
    return float(min(found, default=np.inf) / costs.min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--reason", choices=["oom", "job"], default="oom")
    parser.add_argument("--known", action="store_true", help="a column says how much memory a machine has")
    parser.add_argument("--wall", choices=list(WALLS), default="memory")
    options = parser.parse_args()
    job = Job.make(known=options.known, wall=WALLS[options.wall])
    lost, after, pauses, first, cnos = [], [], 0, [], []
    for seed in range(options.seeds):
        seen, paused = search(job, seed, FailureReason(options.reason))
        lost.append(sum(bool(job.wall[one.row]) for one in seen[5:]))
        first.append(sum(bool(job.wall[one.row]) for one in seen[:5]))
        after.append(len(seen[5:]))
        cnos.append(cno(job, seen))
        pauses += paused
        print(f"seed {seed}: {first[-1]} of the first 5, {lost[-1]} of {after[-1]} after, {paused} pauses", flush=True)
    share = sum(lost) / max(sum(after), 1)
    print(
        f"{options.reason}, wall {options.wall}, memory {'known' if options.known else 'unknown'}, {options.seeds} seeds: {sum(lost)} of "
        f"{sum(after)} trials after the first five behind the wall ({share:.1%}), {pauses} pauses, CNO in the end {np.mean(cnos):.3f}"
    )


if __name__ == "__main__":
    main()
