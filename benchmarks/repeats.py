"""What repetitions during a search bring where runs differ: `confirm: {kind: repeat-best, during_search: true}` against the default.

    python -m benchmarks.repeats --noise 0.3 --seeds 5
    python -m benchmarks.repeats --noise measured --families c3o_single serverless

Each search ends when the policy stops. Shares of searches whose answer is within 10 % of the optimum (by the table), or breaks the
deadline; dollars spent, and dollars with the excess cost of the next 100 runs, both in runs of the optimum (geometric means; an answer
that breaks the deadline costs as much as twice the optimum). Paired by seed: both policies meet the same noise, trial by trial. Needs the
measured jobs (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

import numpy as np

from lynceus.policy.confirmation import RepeatBest
from lynceus.policy.presets import preset
from lynceus.replay.job import load_job
from lynceus.replay.run import replay
from lynceus.replay.shipped import shipped_jobs
from lynceus_lab.worlds import Noise

NEAR = 1.1
FUTURE_RUNS = 100


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", default="0.3", help="the spread of ln time, or: measured")
    parser.add_argument("--families", nargs="*", default=["scout", "cherrypick", "c3o_single"])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    measured = arguments.noise == "measured"
    world = None if measured else Noise(float(arguments.noise))
    policies = {
        "at the end only": preset("lynceus"),
        "during the search": replace(preset("lynceus"), confirm=RepeatBest(during_search=True)),
    }
    print(f"{'family':12}{'repeats':20}{'searches':>9}{'near':>7}{'broken':>8}{'spent':>8}{'regret':>8}{'trials':>8}")
    for family in arguments.families:
        jobs = [load_job(name) for name in shipped_jobs() if name.startswith(f"{family}/")]
        for name, policy in policies.items():
            rows = []
            for job in jobs:
                for seed in range(arguments.seeds):
                    done = replay(job, policy, seed, until="end", noise="measured" if measured else "none", world=world)
                    cno = math.inf if done.cno_at_stop is None else done.cno_at_stop
                    spent = done.steps[-1].spent_usd / job.optimum.cost_usd
                    regret = spent + FUTURE_RUNS * ((cno if math.isfinite(cno) else 2.0) - 1.0)
                    rows.append((cno <= NEAR, math.isinf(cno), spent, regret, len(done.steps)))
            near, broken, spent, regret, trials = np.array(rows, dtype=float).T
            means = [float(np.exp(np.log(values).mean())) for values in (spent, regret)]
            line = f"{len(rows):9d}{near.mean():7.0%}{broken.mean():8.0%}{means[0]:8.1f}{means[1]:8.1f}{trials.mean():8.1f}"
            print(f"{family:12}{name:20}{line}", flush=True)


if __name__ == "__main__":
    main()
