"""What a history saves, and what a wrong one costs: python -m benchmarks.history [--jobs scout] [--history relatives] [--seeds 10].

Counted is the money until a configuration within 10 % of the optimum has run, in multiples of the optimum's cost, with and without the
history and paired by seed. Histories are whole tables: of *relatives* (the same algorithm), of *others* (all other algorithms, named as
if they were relatives), or of the job itself with its times *misleading* (six times as long wherever it costs at most 25 % more than the
best), *shuffled* or *inverted*. Needs the measured tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lynceus.policy.informed import FromHistory
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.problem.history import PastJob
from lynceus.replay.job import ReplayJob, load_job, table_as_history
from lynceus.replay.run import replay

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
LEVEL = 1.1
KINDS = ("relatives", "others", "misleading", "shuffled", "inverted")


def families(jobs: str) -> dict[str, str]:
    """Jobs by the name of their algorithm."""
    if jobs == "multicloud":
        return {f"multicloud/{one.stem}": one.stem.split("-", 1)[1] for one in sorted((DATA / jobs).glob("*-*.csv"))}
    if jobs == "c3o_single":
        return {f"c3o_single/sort_0{place}": "sort" for place in range(4)}
    return {f"scout/{one.stem}": one.stem.split("_")[0] for one in sorted((DATA / "scout").glob("*.csv"))}


def histories(jobs: str, kind: str) -> dict[str, list[str]]:
    """The past jobs of every job that has some."""
    family = families(jobs)
    if kind == "relatives" and jobs == "scout":
        found: dict[str, list[str]] = {}
        with open(DATA / "history" / "siblings.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(f"scout/{row['job']}", []).append(f"scout/{row['sibling']}")
        return found
    if kind in ("relatives", "others"):
        same = kind == "relatives"
        chosen = {
            one: [other for other in family if other != one and (family[other] == family[one]) is same]
            for one in family
        }
        return {one: others for one, others in chosen.items() if others}
    return {one: [one] for one in family}


def past(job: ReplayJob, names: Sequence[str], kind: str) -> tuple[PastJob, ...]:
    """The histories, changed as their kind says."""
    found = tuple(table_as_history(name) for name in names)
    if kind in ("relatives", "others"):
        return found
    (own,), seconds = found, np.array(found[0].seconds)
    if kind == "misleading":
        cost = seconds * job.problem.price
        best = cost[seconds <= job.problem.deadline_s].min()
        seconds = np.where(cost <= 1.25 * best, 6.0 * seconds, seconds)
    elif kind == "shuffled":
        seconds = np.random.default_rng(0).permutation(seconds)
    else:
        seconds = seconds.max() * seconds.min() / seconds
    return (replace(own, name="past", seconds=tuple(map(float, seconds))),)


def spent(job: ReplayJob, policy: Policy, seed: int) -> float:
    """Dollars until the level is reached, in multiples of the optimum's cost."""
    return replay(job, policy, seed, until=LEVEL).steps[-1].spent_usd / job.optimum.cost_usd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", choices=("scout", "multicloud", "c3o_single"), default="scout")
    parser.add_argument("--history", choices=KINDS, default="relatives")
    parser.add_argument("--seeds", type=int, default=10)
    for name in ("share", "patience", "least", "chance"):
        given = getattr(FromHistory, name)
        parser.add_argument(f"--{name}", type=type(given), default=given, help="of the part from-history")
    options = parser.parse_args()
    plain = preset("lynceus")
    limits = {name: getattr(options, name) for name in ("share", "patience", "least", "chance")}
    learning = replace(plain, choose=FromHistory(plain.choose, **limits))
    without, informed, ratios = [], [], {}
    for name, names in histories(options.jobs, options.history).items():
        job = load_job(name, deadline_quantile=0.5)
        knowing = replace(job, problem=replace(job.problem, history=past(job, names, options.history)))
        alone = [spent(job, plain, seed) for seed in range(options.seeds)]
        told = [spent(knowing, learning, seed) for seed in range(options.seeds)]
        without, informed = without + alone, informed + told
        ratios[name] = float(np.mean(told) / np.mean(alone))
        print(f"{name}: {np.mean(alone):.1f} → {np.mean(told):.1f}, {ratios[name]:.2f}×", flush=True)
    worst = max(ratios, key=lambda name: ratios[name])
    middle, high = ((np.quantile(without, q), np.quantile(informed, q)) for q in (0.5, 0.9))
    print(
        f"{options.jobs}, {options.history}, {options.seeds} seeds: p50 {middle[0]:.1f} → {middle[1]:.1f}, p90 {high[0]:.1f} → "
        f"{high[1]:.1f}, geometric mean {np.exp(np.mean(np.log(list(ratios.values())))):.2f}, worst {ratios[worst]:.2f} ({worst})"
    )


if __name__ == "__main__":
    main()
