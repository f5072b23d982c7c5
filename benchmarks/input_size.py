"""The winner at an input that never ran, from runs at other inputs: python -m benchmarks.input_size [--seeds 50] [--whole] [--deadline].

Every case has runs at smaller (or other) inputs, those that a search of the default policy made there or the whole table, and a measured
table at the target. The winner named for the target is scored by what it really costs there: CNO, infinite where it misses the deadline.
With --deadline the searches and the answers are under the papers' deadlines, the median time of each table: then the optimum often is the
slowest row in time, which no prediction can know to be in time. Without, the cheapest configuration is wanted.
Needs the measured tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import csv
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.input_size import predict_at_input
from lynceus.policy.input_answer import best_at_input
from lynceus.policy.presets import preset
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space import Categorical, Ordinal, Space
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
Z80 = 1.2815515655446004
"""80 % of a normal distribution lie within so many standard deviations."""


@dataclass(frozen=True)
class Table:
    """One job on one input, measured on every configuration of a space."""

    input: JobInput
    space: Space
    seconds: np.ndarray[Any, np.dtype[np.float64]]

    def problem(self, *, deadline: bool) -> Problem:
        """Under the papers' deadline, or without one."""
        median_s = float(np.sort(self.seconds)[round(len(self.seconds) / 2)])
        limits = (Constraint("time", median_s),) if deadline else ()
        return Problem(self.space, constraints=limits, deterministic=True, input=self.input)


@dataclass(frozen=True)
class Case:
    family: str
    name: str
    sources: tuple[Table, ...]
    target: Table


def rows_of(path: str) -> list[dict[str, str]]:
    with open(DATA / path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(rows: Sequence[dict[str, str]], given: JobInput, columns: Sequence[str], features: Sequence[str]) -> Table:
    numbers = {name: [_cell(row[name]) for row in rows] for name in (*columns, *features)}
    parameters = [
        Categorical(name, list(dict.fromkeys(numbers[name]))) if isinstance(numbers[name][0], str)
        else Ordinal(name, sorted(set(numbers[name])))
        for name in columns
    ]  # fmt: skip
    price = [float(row["price_usd_per_hour"]) for row in rows]
    space = Space.from_table({**numbers, "usd": price}, parameters, features=[*columns, *features], price="usd")
    return Table(given, space, np.array([float(row["time_s"]) for row in rows]))


def _cell(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def cases() -> Iterator[Case]:
    """c3o smallest → largest, Scout huge → bigdata, serverless inputs (each from the nine others)."""
    for job, varied, rest in (
        ("sort", ("vm_type", "nodes"), ()),
        ("grep", ("nodes",), ("p_occurrence",)),
        ("kmeans", ("nodes",), ("features", "k")),
    ):
        groups: dict[tuple[str, ...], dict[float, list[dict[str, str]]]] = {}
        for row in rows_of(f"c3o/{job}.csv"):
            if job != "sort" and row["vm_type"] != {"grep": "m4.2xlarge", "kmeans": "r4.2xlarge"}[job]:
                continue
            groups.setdefault(tuple(row[name] for name in rest), {}).setdefault(float(row["data_size_gb"]), []).append(
                row
            )
        for key, sizes in groups.items():
            if len(sizes) < 2:
                continue
            small, large = min(sizes), max(sizes)
            tables = [
                table(sizes[size], JobInput.read({"size": size * 1e9}), varied, ("slots", "memory_mb"))
                for size in (small, large)
            ]
            yield Case("c3o", f"{job} {' '.join(key)} {small:g}→{large:g} GB", (tables[0],), tables[1])
    sizes_gb = {
        "kmeans": ("spark15", 200.9, 401.6),
        "pagerank": ("spark", 2.993, 6.104),
        "wordcount-large": ("hadoop", None, None),
    }
    for job, (system, small_gb, large_gb) in sizes_gb.items():
        tables = [
            table(
                rows_of(f"scout/{job}_{scale}_{system}.csv"),
                JobInput.read({"size": gb * 1e9} if gb else {"scale": scale}),
                ("vm_family", "vm_size", "nodes"),
                ("vm_vcpus", "vm_ram_gb", "vm_ghz", "vm_ebs_mbps"),
            )
            for scale, gb in (("huge", small_gb), ("bigdata", large_gb))
        ]
        yield Case("scout", f"{job} huge→bigdata", (tables[0],), tables[1])
    for job in ("ocr", "transcode"):
        rows = rows_of(f"serverless_inputs/{job}.csv")
        names = list(dict.fromkeys(row["input"] for row in rows))
        tables = [
            table(
                [row for row in rows if row["input"] == name],
                JobInput.read({"file": name}),
                ("vm_family", "cpu_millis"),
                (),
            )
            for name in names
        ]
        for place, one in enumerate(tables):
            yield Case("serverless_inputs", f"{job} {names[place]}", tuple(tables[:place] + tables[place + 1 :]), one)


def whole(one: Table) -> Observations:
    """Every configuration, measured once."""
    found = []
    for row, seconds in enumerate(one.seconds.tolist()):
        order = Order(row, row, math.inf, 0.0, Plan(row, "measured"), input=one.input)
        found.append(Observation(order, Outcome(End.FINISHED, seconds, 0.0), TrainingTarget(seconds)))
    return tuple(found)


def searched(one: Table, seed: int, *, deadline: bool) -> Observations:
    """What a search of the default policy runs there until it stops."""
    problem, clock = one.problem(deadline=deadline), SimulatedClock()
    study = Study(problem, preset("lynceus"), seed=seed, clock=clock)
    explore(study, TableExecutor(problem, Measurements(one.seconds), clock, seed=seed), clock)
    return study.observations


@dataclass(frozen=True)
class Score:
    cno: float
    covered: float
    """Share of the configurations whose time lies in its 80 % interval."""
    winner_covered: bool


def scored(case: Case, observations: Observations, *, deadline: bool) -> Score:
    target = case.target
    problem = target.problem(deadline=deadline)
    believed = predict_at_input(problem, observations, target.input)
    assert believed is not None
    row = best_at_input(problem, believed.prediction)
    costs = np.where(target.seconds <= problem.deadline_s, target.seconds * problem.price, np.inf)
    mean, std = believed.prediction.mean[0, :, 0], believed.prediction.std[0, :, 0]
    inside = np.abs(np.log(target.seconds) - mean) <= Z80 * std
    return Score(float(costs[row] / costs.min()), float(inside.mean()), bool(inside[row]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--whole", action="store_true", help="the whole tables of the sources instead of searches")
    parser.add_argument("--deadline", action="store_true", help="under the papers' deadlines instead of none")
    parser.add_argument("--family", default="")
    parser.add_argument("--each", action="store_true", help="a line per case")
    options = parser.parse_args()
    found: dict[str, list[Score]] = {}
    kept: dict[tuple[int, int], Observations] = {}
    for case in cases():
        if options.family not in case.family:
            continue
        own = []
        for seed in range(1 if options.whole else options.seeds):
            runs: list[Observation] = []
            for source in case.sources:
                key = (hash((source.input, source.seconds.tobytes())), seed)
                if key not in kept:
                    kept[key] = whole(source) if options.whole else searched(source, seed, deadline=options.deadline)
                runs += [
                    replace(seen, order=replace(seen.order, number=len(runs) + i)) for i, seen in enumerate(kept[key])
                ]
            own.append(scored(case, tuple(runs), deadline=options.deadline))
        found.setdefault(case.family, []).extend(own)
        if options.each:
            middle, covered = np.median([one.cno for one in own]), np.mean([one.covered for one in own])
            print(f"{case.name:40} CNO p50 {middle:6.3f} p90 {quantile(own):6.3f} covered {covered:.2f}", flush=True)
    for family, scores in found.items():
        winners = np.mean([one.winner_covered for one in scores])
        print(
            f"{family}: CNO p50 {np.median([one.cno for one in scores]):.3f}, p90 {quantile(scores):.3f}, missed deadlines "
            f"{np.mean([math.isinf(one.cno) for one in scores]):.0%}; 80 % intervals cover {np.mean([one.covered for one in scores]):.0%} "
            f"of the configurations, {winners:.0%} of the winners ({len(scores)} answers)",
            flush=True,
        )


def quantile(scores: Sequence[Score]) -> float:
    return float(np.quantile([one.cno for one in scores], 0.9, method="inverted_cdf"))


if __name__ == "__main__":
    main()
