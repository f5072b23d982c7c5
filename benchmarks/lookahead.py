"""When looking ahead pays: planners with depth 0, 1 and 2 where plans could matter.

    python -m benchmarks.lookahead --seeds 20

Four settings: a hard budget and a limit on runs (CNO at the end, 5 where nothing better was found), machines that are kept warm and
take long to set up (dollars until a run within 10 % of the optimum), and samples of the data (Nephele, the same dollars). Budgets are
multiples of a median price × the deadline. "Path" plans the largest improvement of the whole path; with a budget in dollars only until
a feasible run is known, and per dollar then. Differences and ratios are paired by seed; needs the measured jobs (LYNCEUS_DATA).
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

from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.models.state import feasible_runs
from lynceus.policy.planners.by_budget import ByBudget
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.promising import Promising
from lynceus.policy.planners.shortlist import TopRows
from lynceus.policy.planners.simple import FirstOf
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.replay.job import load_job
from lynceus.replay.shipped import shipped_jobs
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.outcome import Observation
from lynceus.trial.record import RequestedState

ARMS = (("per dollar", 0), ("per dollar", 1), ("per dollar", 2), ("path", 0), ("path", 1), ("path", 2))
"""The others are compared with the first one."""
NEAR, FAR = 1.1, 5.0
MACHINES = ("vm_type", "vcpus")
"""The columns of the tensorflow jobs that make a cluster; the other columns are parameters of the training."""
SAMPLES_USD = {"subsampling/cnn": 20.0, "subsampling/rnn": 10.0}


@dataclass(frozen=True)
class Place:
    """One setting on one job."""

    setting: str
    job: str
    budget: float = math.inf
    """In median prices × the deadline."""
    trials: int | None = None
    setup_s: float = 0.0

    @property
    def hard(self) -> bool:
        """Whether the result at the end of the budget is compared."""
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
    """Whole paths are planned only under hard budgets."""
    return tuple(arm for arm in ARMS if arm[0] == "per dollar" or place.hard)


def with_planner(policy: Policy, objective: str, depth: int) -> Policy:
    """The policy with another planner, which looks ahead from its sixteen most promising rows."""

    def changed(part: object) -> object:
        if isinstance(part, Lookahead):
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
    samples = place.setting == "samples"
    billing = Billing(boot_s=place.setup_s, warm=MACHINES) if place.setup_s else None
    job = load_job(place.job) if samples else load_job(place.job, deadline_quantile=0.5, billing=billing)
    usd = SAMPLES_USD.get(place.job, place.budget * float(np.median(job.problem.ceiling_usd)))
    problem = replace(job.problem, budget=Budget(usd, place.trials))
    policy = with_planner(preset("nephele" if samples else "lynceus", 0), *arm)
    if not place.hard:
        policy = replace(policy, stop=Never())
    clock = SimulatedClock()
    study = Study(problem, policy, seed=seed, name="lookahead", clock=clock)
    spent, reached_usd, best = 0.0, math.inf, FAR

    def settled(seen: Observation) -> None:
        nonlocal spent, reached_usd, best
        spent += seen.outcome.charged_usd
        for _, value in feasible_runs(problem, (seen,)):
            best = min(best, value / job.optimum.cost_usd)
        if best <= NEAR:
            reached_usd = min(reached_usd, spent)

    def requested_state() -> RequestedState:
        return RequestedState.STOP if math.isfinite(reached_usd) and not place.hard else RequestedState.RUN

    began = time.process_time()
    explore(
        study, TableExecutor(problem, job.measurements, clock), clock, settled=settled, requested_state=requested_state
    )
    seconds = (time.process_time() - began) / max(1, len(study.observations))
    return place, arm, seed, best if place.hard else min(reached_usd, usd), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="settings whose names contain this")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    wanted = [place for place in places() if options.only in place.setting]
    found: dict[tuple[str, tuple[str, int]], dict[tuple[str, int], tuple[float, float]]] = {}
    with Pool(options.processes) as pool:
        work = [(place, arm, seed) for place in wanted for arm in arms(place) for seed in range(options.seeds)]
        for place, arm, seed, value, seconds in pool.imap_unordered(measure, work, chunksize=2):
            found.setdefault((place.setting, arm), {})[place.job, seed] = (value, seconds)
    print(
        f"{options.seeds} seeds per job; against the improvement per dollar with depth 0, with the standard error over jobs and seeds\n"
    )
    print(
        "| setting | planner | depth | CNO at the end, mean | difference | within 10 % | dollars, ratio | ms per decision |"
    )
    print("|---|---|---|---|---|---|---|---|")
    order = list(dict.fromkeys(place.setting for place in wanted))
    for setting, arm in sorted(found, key=lambda key: (order.index(key[0]), ARMS.index(key[1]))):
        print(_line(setting, arm, found[setting, arm], found[setting, ARMS[0]]))


def _line(
    setting: str,
    arm: tuple[str, int],
    here: dict[tuple[str, int], tuple[float, float]],
    base: dict[tuple[str, int], tuple[float, float]],
) -> str:
    mine, other = (np.array([one[key][0] for key in sorted(base)]) for one in (here, base))
    error = 1 / math.sqrt(len(mine))
    ms = 1000 * np.mean([seconds for _, seconds in here.values()])
    if setting.startswith("budget") or setting.endswith("runs"):
        difference = mine - other
        cells = f"{mine.mean():.2f} | {difference.mean():+.3f} ± {difference.std() * error:.3f} | {np.mean(mine <= NEAR):.0%} | "
    else:
        ratio = np.log(mine / other)
        cells = f" | | | {math.exp(ratio.mean()):.3f} ± {ratio.std() * error:.3f}"
    return f"| {setting} | {arm[0]} | {arm[1]} | {cells} | {ms:.0f} |"


if __name__ == "__main__":
    main()
