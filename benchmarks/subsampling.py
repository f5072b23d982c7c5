"""Sub-sampling, measured: the tables of Mendes 2019 (text on Nephele and Fabulinus), the dollars both need, seconds per decision.

    python -m benchmarks.subsampling tables                   # feasible configurations, best fractions, ranks between fractions
    python -m benchmarks.subsampling speed                    # seconds of one decision over 1,152 candidate runs
    python -m benchmarks.subsampling nephele --seeds 50 --out nephele.jsonl
    python -m benchmarks.subsampling fabulinus --seeds 10 --out fabulinus.jsonl
    python -m benchmarks.subsampling report nephele.jsonl fabulinus.jsonl

The two campaigns append one JSON line per seed and continue where they stopped. They need the published tables (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.problems import decide
from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.analysis.rank_agreement import rank_agreements
from lynceus.executors.interface import Request
from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.models import fabolas as fabolas_module
from lynceus.models.fabolas import Fabolas
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.designs import Amount, LatinHypercube
from lynceus.policy.multi_fidelity import PUBLISHED_START
from lynceus.policy.next_step import observe
from lynceus.policy.planners.data_fraction import OnShares
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.promising import Promising
from lynceus.policy.planners.simple import FirstOf, Uniform
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.problem.data_fraction import row_shares
from lynceus.replay.job import ReplayJob, load_job
from lynceus.replay.run import replay
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget
from lynceus.trial.stop import Stopped

JOBS = ("cnn", "rnn")
INITIAL_USD = {"cnn": 5.0, "rnn": 2.0}
BUDGET_USD = {"cnn": 20.0, "rnn": 5.0}
LEVEL = {"cnn": 10.0, "rnn": 2.0}
"""CNO at which the paper compares the cost of the systems."""
CHEAPER = {"cnn": (0.3552, 0.5834, 0.8824), "rnn": (0.40, 0.80, 0.797)}
"""Published savings of Fabulinus over Fabolas, EIc and EI."""


def tables() -> None:
    print("| table | feasible, all fractions | feasible, all data | best fraction | cost ratio without samples |")
    print("|---|---|---|---|---|")
    for name in JOBS:
        job, full = load_job(f"subsampling/{name}"), load_job(f"subsampling/{name}-full")
        feasible = _feasible(job)
        shares = row_shares(job.problem)
        share = shares[job.optimum.row]
        ratio = full.optimum.cost_usd / job.optimum.cost_usd
        print(f"| {name} | {feasible.sum()} | {feasible[shares == 1].sum()} | {share:g} | {ratio:.2f}× |")
    print("\n| table | within the bound on cost, all data | of these with accuracy ≥ 0.85 |\n|---|---|---|")
    for name in JOBS:
        job = load_job(f"subsampling/{name}-accuracy")
        feasible = _feasible(job) & (row_shares(job.problem) == 1)
        accurate = feasible & (job.measurements.metrics["accuracy"] >= 0.85)
        print(f"| {name} | {feasible.sum()} | {accurate.sum()} |")
    print("\n| table | fraction | rank correlation with all data: accuracy | time |\n|---|---|---|---|")
    for name in JOBS:
        job = load_job(f"subsampling/{name}-accuracy")
        observations = _observations(job, range(len(job.problem.space)))
        by_share: dict[float, dict[str, float]] = {}
        for one in rank_agreements(job.problem, observations):
            by_share.setdefault(one.fraction, {})[one.quantity] = one.correlation
        for share, found in sorted(by_share.items()):
            print(f"| {name} | {share:g} | {found['accuracy']:.2f} | {found['time']:.2f} |")


def speed(repeats: int = 5) -> None:
    """CPU seconds and wall seconds of one decision after 60 and 100 runs on samples."""
    job = load_job("subsampling/rnn-accuracy")
    rng = np.random.default_rng(0)
    samples = rng.permutation(np.flatnonzero(row_shares(job.problem) < 1))
    systems: dict[str, Policy] = {
        name: preset(name) for name in ("fabulinus", "fabulinus-2019", "fabolas", "trimtuner-gp", "trimtuner")
    }
    systems["fabulinus, look-ahead 1"] = preset("fabulinus", lookahead=1)
    systems["fabulinus, 8 steps of MCMC"] = replace(preset("fabulinus"), surrogate=Fabolas(chain=8))
    print("| system | runs known | CPU s | wall s |\n|---|---|---|---|")
    for name, policy in systems.items():
        for known in (60, 100):
            observations = _observations(job, samples[:known].tolist())
            cpu, wall = [], []
            for seed in range(repeats):
                fabolas_module._fit_all.cache_clear()
                began = time.process_time(), time.perf_counter()
                plan = decide(job.problem, replace(_without_start(policy), stop=Never()), observations, seed=seed)
                cpu.append(time.process_time() - began[0])
                wall.append(time.perf_counter() - began[1])
                assert isinstance(plan, Order)
            print(f"| {name} | {known} | {np.median(cpu):.2f} | {np.median(wall):.2f} |", flush=True)


def nephele(seeds: int, out: Path) -> None:
    """Dollars until the incumbent's cost fell under a level, with and without samples (Fig. 1, 2)."""
    for name in JOBS:
        start = LatinHypercube(Amount(usd=INITIAL_USD[name]))
        per_dollar, per_run = (Lookahead(ConstrainedImprovement(), per=per) for per in ("dollar", "run"))
        trees = Trees(trees=5)
        everything, whole = load_job(f"subsampling/{name}"), load_job(f"subsampling/{name}-full")
        systems = (
            (everything, Policy("nephele", FirstOf((start, Promising(per_dollar), Uniform())), trees)),
            (whole, Policy("lynceus", FirstOf((start, per_dollar)), trees)),
            (whole, Policy("cherrypick", FirstOf((start, per_run)), trees)),
            (everything, Policy("random, any fraction", FirstOf((start, Uniform())))),
            (whole, Policy("random, all data", FirstOf((start, Uniform())))),
        )
        for job, policy in systems:
            bounded = replace(job, problem=job.problem.with_budget(BUDGET_USD[name]))
            for seed in _missing(out, name, policy.name, seeds):
                done = replay(bounded, policy, seed)
                steps = [[step.spent_usd, step.cno * job.optimum.cost_usd] for step in done.steps]
                _append(out, {"job": name, "system": policy.name, "seed": seed, "steps": steps})


def fabulinus(seeds: int, runs: int, out: Path, names: Sequence[str], jobs: Sequence[str]) -> None:
    """Accuracy on all data of the recommendation, 0 where it violates the bound on cost, against dollars (Fig. 4, 5)."""
    for name in jobs:
        job = load_job(f"subsampling/{name}-accuracy")
        for label in names:
            policy = _system(label)
            for seed in _missing(out, name, label, seeds):
                _append(out, {"job": name, "system": label, "seed": seed, "steps": trace(job, policy, seed, runs)})


def trace(job: ReplayJob, policy: Policy, seed: int, runs: int) -> list[list[float]]:
    """(dollars spent, AccuracyC of the recommendation, 1 feasible / 0 not / −1 none, seconds of the decision) after every run."""
    problem, accuracy = job.problem, job.measurements.metrics["accuracy"]
    executor = TableExecutor(problem, job.measurements, clock := SimulatedClock())
    observations: Observations = ()
    steps, spent = [], 0.0
    for number in range(runs):
        began = time.perf_counter()
        order = decide(problem, policy, observations, seed=seed)
        seconds = time.perf_counter() - began
        if isinstance(order, Stopped):
            break
        ticket = executor.launch(Request(job.name, number, order.row, {}, order.timeout_s, order.boots))
        while (outcome := executor.collect(ticket)) is None:
            clock.sleep(1.0)
        spent += outcome.charged_usd
        observations = (*observations, observe(problem, policy, observations, order, outcome))
        row = policy.answer(State.present(problem, observations), policy.surrogate, seed)
        feasible = row is not None and bool(_feasible(job)[row])
        steps.append(
            [
                spent,
                float(accuracy[row]) if feasible and row is not None else 0.0,
                -1.0 if row is None else float(feasible),
                seconds,
            ]
        )
    return steps


def _system(label: str) -> Policy:
    if label == "fabulinus, published start":
        policy = preset("fabulinus")
        assert isinstance(policy.choose, FirstOf)
        return replace(policy, choose=FirstOf((OnShares("samples", PUBLISHED_START), *policy.choose.choosers[1:])))
    return preset(label)


def report(paths: Iterable[Path]) -> None:
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for name in JOBS:
        costs = {
            k: v
            for k, v in _by_system(lines, name).items()
            if k in ("nephele", "lynceus", "cherrypick") or "random" in k
        }
        if costs:
            _report_costs(name, costs)
        accuracies = {k: v for k, v in _by_system(lines, name).items() if k not in costs}
        if accuracies:
            _report_accuracies(name, accuracies)


def _report_costs(name: str, systems: Mapping[str, list[list[list[float]]]]) -> None:
    everything = load_job(f"subsampling/{name}").optimum.cost_usd
    whole = load_job(f"subsampling/{name}-full").optimum.cost_usd
    levels = ((LEVEL[name], "best of all fractions"), (LEVEL[name], "best of the system's own space"))
    for level, title in (*levels, (1.0, "best of the system's own space")):
        print(f"\n{name}: dollars until the incumbent costs at most {level:g} × the {title}")
        print(
            "| system | seeds | mean | median | p90 | never | times Nephele's mean (95 %) |\n|---|---|---|---|---|---|---|"
        )
        reached = {}
        for system, runs in systems.items():
            own = whole if system in ("lynceus", "cherrypick", "random, all data") else everything
            bound = level * (own if "own" in title else everything)
            reached[system] = np.array(
                [_first(steps, lambda cost, bound=bound: cost <= bound * (1 + 1e-9)) for steps in runs]
            )
        for system, usd in reached.items():
            times = "" if system == "nephele" else _ratio(usd, reached["nephele"], BUDGET_USD[name])
            capped = np.minimum(usd, BUDGET_USD[name])
            cells = f"{capped.mean():.3g} | {np.median(usd):.3g} | {np.quantile(capped, 0.9):.3g}"
            print(f"| {system} | {len(usd)} | {cells} | {np.isinf(usd).sum()} | {times} |")


def _report_accuracies(name: str, systems: Mapping[str, list[list[list[float]]]]) -> None:
    best = -load_job(f"subsampling/{name}-accuracy").optimum.value
    for level in (0.95, 0.98, 0.99):
        print(f"\n{name}: dollars until AccuracyC is at least {level:g} × the best ({best:.4f})")
        print(
            "| system | seeds | median | p90 | never | Fabulinus cheaper by (medians, 95 %) | feasible recommendations ",
            end="",
        )
        print("| last AccuracyC | median decision s |")
        print("|---|---|---|---|---|---|---|---|---|")
        reached = {
            system: np.array([_first(steps, lambda a, bound=level * best: a >= bound) for steps in runs])
            for system, runs in systems.items()
        }
        for system, usd in reached.items():
            steps = np.array([step for run in systems[system] for step in run])
            advised = steps[steps[:, 2] >= 0, 2]
            last = float(np.mean([run[-1][1] for run in systems[system]]))
            saved = "" if "fabulinus" not in reached or system == "fabulinus" else _saving(reached["fabulinus"], usd)
            p90 = float(np.quantile(usd, 0.9, method="higher"))
            print(
                f"| {system} | {len(usd)} | {np.median(usd):.3g} | {p90:.3g} | {np.isinf(usd).sum()} | {saved} | "
                f"{advised.mean():.1%} | {last:.4f} | {np.median(steps[:, 3]):.2f} |"
            )


def _first(steps: Sequence[Sequence[float]], good: object) -> float:
    return next((step[0] for step in steps if good(step[1])), math.inf)  # type: ignore[operator]


def _ratio(theirs: np.ndarray, ours: np.ndarray, most: float) -> str:
    """Ratio of mean dollars by bootstrap over seeds; a seed that never reached the level counts with its whole budget."""
    never = "≥ " if np.isinf(theirs).any() else ""
    theirs, ours = np.minimum(theirs, most), np.minimum(ours, most)
    rng = np.random.default_rng(0)
    draws = [rng.choice(theirs, len(theirs)).mean() / rng.choice(ours, len(ours)).mean() for _ in range(2000)]
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{never}{theirs.mean() / ours.mean():.2f} ({low:.2f} to {high:.2f})"


def _saving(ours: np.ndarray, theirs: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    pairs = ((np.median(rng.choice(ours, len(ours))), np.median(rng.choice(theirs, len(theirs)))) for _ in range(2000))
    draws = [1.0 - mine / other if math.isfinite(mine) else -math.inf for mine, other in pairs]
    point = (
        1.0 - float(np.median(ours)) / float(np.median(theirs)) if math.isfinite(float(np.median(ours))) else -math.inf
    )
    low, high = np.quantile(draws, (0.025, 0.975), method="nearest")
    return f"{point:.0%} ({low:.0%} to {high:.0%})"


def _by_system(lines: Iterable[Mapping[str, object]], name: str) -> dict[str, list[list[list[float]]]]:
    systems: dict[str, list[list[list[float]]]] = {}
    for line in lines:
        if line["job"] == name:
            systems.setdefault(str(line["system"]), []).append(line["steps"])  # type: ignore[arg-type]
    return systems


def _feasible(job: ReplayJob) -> np.ndarray:
    metrics = job.measurements.metrics
    return np.array(
        [
            job.problem.meets_constraints(
                row, float(seconds), {name: float(values[row]) for name, values in metrics.items()}
            )
            for row, seconds in enumerate(job.measurements.seconds)
        ]
    )


def _observations(job: ReplayJob, rows: Iterable[int]) -> Observations:
    seen = []
    for number, row in enumerate(rows):
        seconds = float(job.measurements.seconds[row])
        metrics = {name: float(values[row]) for name, values in job.measurements.metrics.items()}
        outcome = Outcome(End.FINISHED, seconds, job.problem.cost(row, seconds), metrics)
        seen.append(
            Observation(
                Order(number, row, math.inf, 0.0, Plan(row, why="given")), outcome, TrainingTarget(seconds, metrics)
            )
        )
    return tuple(seen)


def _without_start(policy: Policy) -> Policy:
    if isinstance(policy.choose, FirstOf):
        return replace(policy, choose=policy.choose.choosers[-1])
    assert isinstance(policy.choose, OnShares)
    assert isinstance(policy.choose.chooser, FirstOf)
    return replace(policy, choose=OnShares(policy.choose.which, policy.choose.chooser.choosers[-1]))


def _missing(out: Path, job: str, system: str, seeds: int) -> list[int]:
    lines = out.read_text().splitlines() if out.is_file() else []
    done = {(line["job"], line["system"], line["seed"]) for line in map(json.loads, lines)}
    return [seed for seed in range(seeds) if (job, system, seed) not in done]


def _append(out: Path, record: Mapping[str, object]) -> None:
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "speed", "nephele", "fabulinus", "report"])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--systems", default="fabulinus;eic-full;ei-full;trimtuner;fabolas;trimtuner-gp")
    parser.add_argument("--jobs", default=";".join(JOBS))
    given = parser.parse_args()
    if given.what in ("nephele", "fabulinus") and given.out is None:
        parser.error("--out is needed: the file that results are appended to")
    if given.what == "nephele":
        nephele(given.seeds, given.out)
    elif given.what == "fabulinus":
        fabulinus(given.seeds, given.runs, given.out, given.systems.split(";"), given.jobs.split(";"))
    elif given.what == "report":
        report(given.files)
    else:
        {"tables": tables, "speed": speed}[given.what]()


if __name__ == "__main__":
    main()
