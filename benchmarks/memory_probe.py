"""What a memory probe saves on the Scout jobs: python -m benchmarks.memory_probe [--seeds 50] [--factor 5] [--jobs kmeans].

The published probes (five samples of the input of each job on one machine) are fitted as `probe:` fits its own, and searches with and
without them are paired by seed. Counted is the money until a configuration within 10 % of the optimum has run. A job without a usable
probe counts as 1. --factor multiplies the predicted need, to see what a wrong probe costs. Needs the measured tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from lynceus.models.memory_need import MemoryNeed, memory_need, need_as_history
from lynceus.policy.presets import preset
from lynceus.replay.job import ReplayJob, load_job
from lynceus.replay.run import replay

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
LEVEL = 1.1


def needs() -> dict[str, MemoryNeed | None]:
    """The need of each Scout job; None without a probe whose input is known."""
    with open(DATA / "memory_probe" / "jobs.csv", encoding="utf-8", newline="") as file:
        jobs = {row["job"]: row["full_input_gb"] for row in csv.DictReader(file)}
    samples = defaultdict(list)
    with open(DATA / "memory_probe" / "probes.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            samples[row["job"]].append([float(row[name]) for name in ("sample_gb", "peak_memory_mb", "runtime_s")])
    found: dict[str, MemoryNeed | None] = {}
    for job, whole_gb in jobs.items():
        gb, peak_mb, seconds = zip(*samples[job], strict=True) if samples[job] else ((), (), ())
        shares = [one / float(whole_gb) for one in gb] if whole_gb else []
        found[job] = memory_need(shares, [one * 1e6 for one in peak_mb], seconds) if shares else None
    return found


def spent(job: ReplayJob, seed: int) -> float:
    """Dollars until the level is reached, in multiples of the optimum's cost; all of them where it never is."""
    found = replay(job, preset("lynceus"), seed, until=LEVEL)
    return (found.steps[-1].spent_usd if found.steps else 0.0) / job.optimum.cost_usd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--jobs", default="")
    parser.add_argument("--kept", type=Path, help="a file with what was measured already, so that a campaign can go on")
    options = parser.parse_args()
    kept = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else {}
    ratios = []
    for name, need in needs().items():
        if options.jobs not in name:
            continue
        job = load_job(f"scout/{name}" if (DATA / "scout").exists() else name)
        past = (
            None
            if need is None
            else need_as_history(job.problem.space, replace(need, bytes=need.bytes * options.factor))
        )
        if past is None:
            ratios.append(1.0)
            print(f"{name}: no usable probe", flush=True)
            continue
        informed = replace(job, problem=replace(job.problem, history=(past,)))
        pairs = []
        for seed in range(options.seeds):
            for key, one in ((f"{name} none {seed}", job), (f"{name} {options.factor:g} {seed}", informed)):
                if key not in kept:
                    kept[key] = spent(one, seed)
                    if options.kept:
                        options.kept.write_text(json.dumps(kept))
            pairs.append((kept[f"{name} none {seed}"], kept[f"{name} {options.factor:g} {seed}"]))
        without, probed = (np.array(one) for one in zip(*pairs, strict=True))
        ratio = float(np.median(probed) / np.median(without))
        ratios.append(ratio)
        print(
            f"{name}: p50 {np.median(without):.1f} → {np.median(probed):.1f} ({ratio:.2f}×), p90 {np.quantile(without, 0.9):.1f} → "
            f"{np.quantile(probed, 0.9):.1f}",
            flush=True,
        )
    print(
        f"geometric mean of the ratios at p50 over {len(ratios)} jobs: {np.exp(np.mean(np.log(ratios))):.2f}, largest {max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
