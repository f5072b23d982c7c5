"""When looking ahead pays: planners with depth 0, 1 and 2 where plans could matter.

    python -m benchmarks.lookahead --seeds 20

Four situations: a hard budget and a limit on runs (CNO at the end, 5 where nothing better was found), machines that are kept warm and
take long to set up (money until a run within 10 % of the optimum), and samples of the data (Nephele, the same money). Budgets are
multiples of a median price × the deadline. "Path" plans the largest gain of the whole path; with a budget of money only while nothing
feasible is known, and per dollar then. Differences and ratios are paired by seed; needs the measured jobs (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing import Pool

import numpy as np

from lynceus.choose import ByBudget, FirstOf, Promising, Rollout, TopRows
from lynceus.engine import explore
from lynceus.executor import PretendedClock, TableExecutor
from lynceus.history import Observation
from lynceus.ledger import Wish
from lynceus.policy import Policy, preset
from lynceus.problem import Budget, Tariff
from lynceus.replay import load_job, shipped_jobs
from lynceus.situation import feasible_runs
from lynceus.stopping import Never
from lynceus.study import Study

ARMS = (("per dollar", 0), ("per dollar", 1), ("per dollar", 2), ("path", 0), ("path", 1), ("path", 2))
"""The first one is what the others are compared with."""
NEAR, FAR = 1.1, 5.0
MACHINES = ("vm_type", "vcpus")
"""The columns of the tensorflow jobs that make a cluster; the other columns are parameters of the training."""
SAMPLES_USD = {"subsampling/cnn": 20.0, "subsampling/rnn": 10.0}


@dataclass(frozen=True)
class Place:
    """One situation on one job."""

    situation: str
    job: str
    budget: float = math.inf
    """In median prices × the deadline."""
    trials: int | None = None
    setup_s: float = 0.0

    @property
    def hard(self) -> bool:
        """Whether the end of the budget is what is looked at."""
        return math.isfinite(self.budget) or self.trials is not None


def places() -> Iterator[Place]:
    jobs = [name for name in shipped_jobs() if name.split("/")[0] in ("tensorflow", "cherrypick", "scout")]
    for budget in (1.0, 2.0, 3.0, 5.0):
        yield from (Place(f"budget {budget:g} ×", name, budget) for name in jobs)
    for trials in (4, 8, 16):
        yield from (Place(f"{trials} runs", name, trials=trials) for name in jobs)
    for setup_s in (120.0, 600.0, 3600.0):
        yield from (
            Place(f"set-up {setup_s:g} s", name, setup_s=setup_s) for name in jobs if name.startswith("tensorflow")
        )
    yield from (Place("samples", name) for name in SAMPLES_USD)


def arms(place: Place) -> tuple[tuple[str, int], ...]:
    """Whole paths are for those who fear to find nothing."""
    return tuple(arm for arm in ARMS if arm[0] == "per dollar" or place.hard)


def looking(policy: Policy, objective: str, depth: int) -> Policy:
    """The policy with another planner, which looks ahead from its sixteen most promising rows."""

    def changed(part: object) -> object:
        if isinstance(part, Rollout):
            deeper = replace(part, depth=depth, shortlist=TopRows(16) if depth else None)
            return (
                deeper
                if objective == "per dollar"
                else ByBudget(replace(deeper, per="run"), part, runs=math.inf, trials=sys.maxsize)
            )
        if isinstance(part, FirstOf):
            return replace(part, choosers=tuple(changed(one) for one in part.choosers))
        if isinstance(part, Promising):
            return replace(part, chooser=changed(part.chooser))
        return part

    return replace(policy, choose=changed(policy.choose))  # type: ignore[arg-type]


def measure(task: tuple[Place, tuple[str, int], int]) -> tuple[Place, tuple[str, int], int, float, float]:
    """CNO at the end of a hard budget, or dollars until `NEAR`; and seconds per decision."""
    place, arm, seed = task
    samples = place.situation == "samples"
    tariff = Tariff(boot_s=place.setup_s, warm=MACHINES) if place.setup_s else None
    job = load_job(place.job) if samples else load_job(place.job, deadline_quantile=0.5, tariff=tariff)
    usd = SAMPLES_USD.get(place.job, place.budget * float(np.median(job.problem.ceiling_usd)))
    problem = replace(job.problem, budget=Budget(usd, place.trials))
    policy = looking(preset("nephele" if samples else "lynceus", 0), *arm)
    if not place.hard:
        policy = replace(policy, stop=Never())
    clock = PretendedClock()
    study = Study(problem, policy, seed=seed, name="lookahead", clock=clock)
    spent, reached_usd, best = 0.0, math.inf, FAR

    def settled(seen: Observation) -> None:
        nonlocal spent, reached_usd, best
        spent += seen.outcome.charged_usd
        for _, value in feasible_runs(problem, (seen,)):
            best = min(best, value / job.optimum.cost_usd)
        if best <= NEAR:
            reached_usd = min(reached_usd, spent)

    def wish() -> Wish:
        return Wish.STOP if math.isfinite(reached_usd) and not place.hard else Wish.RUN

    began = time.process_time()
    explore(study, TableExecutor(problem, job.measurements, clock), clock, settled=settled, wish=wish)
    seconds = (time.process_time() - began) / max(1, len(study.history))
    return place, arm, seed, best if place.hard else min(reached_usd, usd), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="situations whose names hold this")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    wanted = [place for place in places() if options.only in place.situation]
    found: dict[tuple[str, tuple[str, int]], dict[tuple[str, int], tuple[float, float]]] = {}
    with Pool(options.processes) as pool:
        work = [(place, arm, seed) for place in wanted for arm in arms(place) for seed in range(options.seeds)]
        for place, arm, seed, value, seconds in pool.imap_unordered(measure, work, chunksize=2):
            found.setdefault((place.situation, arm), {})[place.job, seed] = (value, seconds)
    print(
        f"{options.seeds} seeds per job; against the gain per dollar with depth 0, with the standard error over jobs and seeds\n"
    )
    print(
        "| situation | gain | depth | CNO at the end, mean | difference | within 10 % | money, ratio | ms per decision |"
    )
    print("|---|---|---|---|---|---|---|---|")
    order = list(dict.fromkeys(place.situation for place in wanted))
    for situation, arm in sorted(found, key=lambda key: (order.index(key[0]), ARMS.index(key[1]))):
        print(_line(situation, arm, found[situation, arm], found[situation, ARMS[0]]))


def _line(
    situation: str,
    arm: tuple[str, int],
    here: dict[tuple[str, int], tuple[float, float]],
    base: dict[tuple[str, int], tuple[float, float]],
) -> str:
    mine, other = (np.array([one[key][0] for key in sorted(base)]) for one in (here, base))
    error = 1 / math.sqrt(len(mine))
    ms = 1000 * np.mean([seconds for _, seconds in here.values()])
    if situation.startswith("budget") or situation.endswith("runs"):
        difference = mine - other
        words = f"{mine.mean():.2f} | {difference.mean():+.3f} ± {difference.std() * error:.3f} | {np.mean(mine <= NEAR):.0%} | "
    else:
        ratio = np.log(mine / other)
        words = f" | | | {math.exp(ratio.mean()):.3f} ± {ratio.std() * error:.3f}"
    return f"| {situation} | {arm[0]} | {arm[1]} | {words} | {ms:.0f} |"


if __name__ == "__main__":
    main()
