"""Optuna's and BoTorch's Gaussian processes on the families of measured jobs: python -m benchmarks.peer_families --store FILE.

The median deadline, or the limits of the job files. A search ends within 10 % of the optimum, after 100 trials, or when it would cost more
than three times what the sweep has spent (same seed); a search that ends without a result counts as infinitely expensive.
Needs the measured jobs (LYNCEUS_DATA) and the peers (`make peers`). Results are lines of JSON; only missing ones are run.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from lynceus.policy.presets import preset
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay, replay
from lynceus_lab.cell import loaded
from lynceus_lab.families_file import AS_GIVEN, Case, Families, load_families
from lynceus_lab.peers.catalog import peer_named
from lynceus_lab.peers.replay import replay_peer

LEVEL = 1.1
TRIALS = 100
TIMES_THE_SWEEP = 3.0
OURS = "lynceus"
Key = tuple[str, str, int]


def run(job: ReplayJob, name: str, seed: int) -> Replay:
    if name in ("sweep", OURS):
        return replay(job, preset(name), seed, until=LEVEL)
    return replay_peer(job, peer_named(name), seed, until=LEVEL)


def limited(job: ReplayJob, usd: float) -> ReplayJob:
    budget = replace(job.problem.budget, usd=usd, trials=TRIALS)
    return replace(job, problem=replace(job.problem, budget=budget))


def chosen(families: Families, most: int | None) -> Iterator[Case]:
    """The cases at the median deadline, at most so many of a family, spread over its jobs."""
    by_family: dict[str, list[Case]] = defaultdict(list)
    for case in families.cases:
        if case.deadline in ("0.5", AS_GIVEN):
            by_family[case.family].append(case)
    for cases in by_family.values():
        step = 1 if most is None else max(1, -(-len(cases) // most))
        yield from cases[::step]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="*", default=["optuna-gp", "botorch-cei"])
    parser.add_argument("--families", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, help="at most so many jobs of a family")
    parser.add_argument("--store", type=Path, required=True)
    given = parser.parse_args()
    families = load_families(families=given.families)
    cases = list(chosen(families, given.jobs))
    known = dict(read(given.store))
    for seed in range(given.seeds):
        for case in cases:
            source = families.cases[case]
            job = loaded(source.job, source.options)
            for name in ("sweep", OURS, *given.peers):
                if (case.job, name, seed) in known:
                    continue
                within = job
                if name not in ("sweep", OURS):
                    within = limited(job, TIMES_THE_SWEEP * known[case.job, "sweep", seed] * (1 + 1e-9))
                usd = run(within, name, seed).reached(LEVEL).usd
                known[case.job, name, seed] = usd
                with given.store.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([case.job, name, seed, usd if math.isfinite(usd) else "inf"]) + "\n")
    table(known, cases, given.peers, given.seeds)


def read(store: Path) -> Iterator[tuple[Key, float]]:
    """What earlier calls have found."""
    if store.is_file():
        for line in store.read_text(encoding="utf-8").splitlines():
            job, name, seed, usd = json.loads(line)
            yield (job, name, seed), float(usd)


def table(known: dict[Key, float], cases: list[Case], peers: list[str], seeds: int) -> None:
    """Median money by family, relative to ours; a search that found nothing counts with the money it was allowed (a lower bound)."""
    print(
        "| family | jobs | "
        + " | ".join(f"{peer}: × ours (at least) | searches that found it" for peer in peers)
        + " |"
    )
    print("|---|---|" + "---|---|" * len(peers))
    totals: dict[str, list[float]] = defaultdict(list)
    for family in dict.fromkeys(case.family for case in cases):
        own = [case for case in cases if case.family == family]
        cells = [family, str(len(own))]
        for peer in peers:
            logs, found = [], []
            for case in own:
                pairs = [
                    (known[case.job, peer, seed], known[case.job, OURS, seed], known[case.job, "sweep", seed])
                    for seed in range(seeds)
                    if (case.job, peer, seed) in known
                ]
                if not pairs:
                    continue
                theirs = [usd if math.isfinite(usd) else TIMES_THE_SWEEP * sweep for usd, _, sweep in pairs]
                logs.append(math.log(np.median(theirs) / np.median([ours for _, ours, _ in pairs])))
                found += [math.isfinite(usd) for usd, _, _ in pairs]
            cells += [f"{math.exp(np.mean(logs)):.2f}", f"{np.mean(found):.0%}"] if logs else ["", ""]
            totals[peer] += [float(np.mean(logs))] if logs else []
        print("| " + " | ".join(cells) + " |")
    print("| **all** | | " + " | ".join(f"{math.exp(np.mean(totals[peer])):.2f} | " for peer in peers) + "|")


if __name__ == "__main__":
    main()
