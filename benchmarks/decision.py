"""How long one decision takes: python -m benchmarks.decision [--growth] [--plot FILE].

Depth 0 to 3 on 384 configurations with 40 observations and 10 trees, compared with one scikit-learn forest on the same data;
large spaces with a shortlist, and how often the shortlist finds the row of the full look-ahead; start-up; memory.
The smallest of several repetitions is printed next to the median, because the machine may be busy.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import problems
from benchmarks.problems import decide
from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.trees import Trees, kernel_threads
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.shortlist import TopRows
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never

CONSOLE = Console(width=110)


def timed(work: Callable[[], object], least: int = 3, most_s: float = 3.0) -> tuple[float, float]:
    """Smallest and median seconds of repeated calls, after one that warms up."""
    work()
    taken: list[float] = []
    began = time.perf_counter()
    while len(taken) < least or (time.perf_counter() - began < most_s and len(taken) < 200):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken), float(np.median(taken))


def planner(depth: int, shortlist: int | None = None) -> Policy:
    """The published planner alone, without its initial design, so that every decision uses the model."""
    lookahead = Lookahead(
        ConstrainedImprovement(), depth=depth, shortlist=None if shortlist is None else TopRows(shortlist)
    )
    return Policy("benchmark", lookahead, Trees())


def default_planner() -> Policy:
    """The default policy without its first run."""
    policy = preset("lynceus")
    return replace(policy, choose=policy.choose.choosers[-1], stop=Never())  # type: ignore[attr-defined]


def decision(configurations: int, runs: int, policy: Policy) -> tuple[float, float]:
    task, times = problems.problem(configurations)
    seen = problems.observations(task, times, runs)
    return timed(lambda: decide(task, policy, seen, seed=1))


def depths() -> None:
    from sklearn.ensemble import RandomForestRegressor

    task, times = problems.problem(384)
    seen = problems.observations(task, times, 40)
    rows = np.array([each.row for each in seen])
    costs = np.array([task.cost(each.row, each.outcome.seconds) for each in seen])
    features = task.space.features

    def forest() -> object:
        return RandomForestRegressor(n_estimators=10, random_state=1).fit(features[rows], costs).predict(features)

    reference, _ = timed(forest)
    table = Table(title=f"One decision: 384 configurations, 40 observations, 10 trees, {kernel_threads()} threads")
    for heading in ("look-ahead", "smallest ms", "median ms", "target ms", "× one scikit-learn forest fit + predict"):
        table.add_column(heading, justify="right")
    for depth, wanted in enumerate((1, 20, 100, 400)):
        least, middle = decision(384, 40, planner(depth))
        table.add_row(str(depth), f"{least * 1e3:.2f}", f"{middle * 1e3:.2f}", str(wanted), f"{least / reference:.2f}")
    default, middle = decision(384, 40, default_planner())
    table.add_row("default policy", f"{default * 1e3:.2f}", f"{middle * 1e3:.2f}", "100", f"{default / reference:.2f}")
    table.add_row("scikit-learn", f"{reference * 1e3:.2f}", "", "", "1.00")
    CONSOLE.print(table)


def large() -> None:
    table = Table(title="Large spaces, 40 observations")
    for heading in ("configurations", "look-ahead", "shortlist", "smallest s", "median s", "target s"):
        table.add_column(heading, justify="right")
    for configurations, depth, shortlist in ((5_000, 2, 32), (50_000, 0, None), (50_000, 2, 32)):
        least, middle = decision(configurations, 40, planner(depth, shortlist))
        wanted = "1" if (configurations, depth) != (50_000, 2) else "–"
        table.add_row(f"{configurations:,}", str(depth), str(shortlist or "–"), f"{least:.3f}", f"{middle:.3f}", wanted)
    least, middle = decision(50_000, 40, default_planner())
    table.add_row("50,000", "default policy", "–", f"{least:.3f}", f"{middle:.3f}", "1")
    CONSOLE.print(table)


def agreement(states: int = 20) -> None:
    table = Table(
        title=f"How often a shortlist finds the row of the full look-ahead (depth 2, {states} states of 384 rows)"
    )
    for heading in ("shortlist", "same row", "score of its row / best score, mean"):
        table.add_column(heading, justify="right")
    task, times = problems.problem(384)
    for size in (8, 16, 32, 64):
        same, scores = [], []
        for seed in range(states):
            seen = problems.observations(task, times, 12 + 2 * seed, seed=seed)
            full = decide(task, planner(2), seen, seed=seed)
            short = decide(task, planner(2, size), seen, seed=seed)
            same.append(full.row == short.row)  # type: ignore[union-attr]
            scores.append(short.plan.score / full.plan.score)  # type: ignore[union-attr]
        table.add_row(str(size), f"{np.mean(same):.0%}", f"{np.mean(scores):.3f}")
    CONSOLE.print(table)


def start_up() -> None:
    first = (
        "from benchmarks import problems; from benchmarks.decision import planner; from benchmarks.problems import decide;"
        "task, times = problems.problem(384); decide(task, planner(2), problems.observations(task, times, 12), seed=1)"
    )
    table = Table(title="A new process, smallest of 5 (seconds, the interpreter's own start included)")
    table.add_column("what")
    table.add_column("s", justify="right")
    table.add_column("target s", justify="right")
    for what, code, wanted in (
        ("python -c pass", "pass", "–"),
        ("import lynceus", "import lynceus", "0.5"),
        ("first decision, look-ahead 2", first, "1"),
    ):
        least = min(_wall([sys.executable, "-c", code]) for _ in range(5))
        table.add_row(what, f"{least:.2f}", wanted)
    CONSOLE.print(table)


def memory() -> None:
    table = Table(title="Largest resident memory of a process that decides once (40 observations)")
    for heading in ("configurations", "look-ahead", "MB", "target MB"):
        table.add_column(heading, justify="right")
    for configurations, depth, shortlist, wanted in (
        (384, 2, None, 500),
        (384, 3, None, 500),
        (50_000, 0, None, 2000),
        (50_000, 2, 32, 2000),
    ):
        code = (
            "from benchmarks.decision import decision, peak_kb, planner;"
            f"decision({configurations}, 40, planner({depth}, {shortlist})); print(peak_kb())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        table.add_row(f"{configurations:,}", str(depth), f"{int(done.stdout) / 1024:.0f}", str(wanted))
    CONSOLE.print(table)


def growth(plot: str | None) -> None:
    table = Table(title="Growth of one decision, smallest seconds")
    observations = (12, 40, 100, 300)
    for heading in ("configurations", "look-ahead", *(f"{n} observations" for n in observations)):
        table.add_column(heading, justify="right")
    lines: dict[str, list[float]] = {}
    for configurations in (384, 5_000, 50_000):
        for depth in range(4):
            shortlist = None if configurations == 384 else 32
            row = [decision(configurations, n, planner(depth, shortlist))[0] for n in observations]
            lines[f"{configurations:,} · look-ahead {depth}"] = row
            table.add_row(f"{configurations:,}", str(depth), *(f"{value:.4f}" for value in row))
    CONSOLE.print(table)
    if plot:
        _draw(plot, observations, lines)


def _draw(path: str, observations: tuple[int, ...], lines: dict[str, list[float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    styles = {"384": "-", "5,000": "--", "50,000": ":"}
    colours = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
    for name, values in lines.items():
        size, depth = name.split(" · ")
        axes.plot(observations, values, styles[size], color=colours[int(depth[-1])], marker="o", label=name)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="observations",
        ylabel="seconds per decision",
        title="Growth of one decision (larger spaces with a shortlist of 32)",
    )
    axes.set_xticks(observations, [str(n) for n in observations])
    axes.grid(alpha=0.3, which="both")
    axes.minorticks_off()
    figure.legend(fontsize=8, ncols=3, loc="outside lower center")
    figure.savefig(path, dpi=120)


def _wall(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


def peak_kb() -> int:
    """Largest resident memory of this process; getrusage would also count the parent's at the moment of the fork."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def machine() -> str:
    """The machine in one line."""
    load, versions = os.getloadavg()[0], f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {versions}, load {load:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--growth", action="store_true", help="also measure growth with configurations, observations and depth"
    )
    parser.add_argument("--plot", help="draw the growth to this file")
    given = parser.parse_args()
    CONSOLE.print(machine())
    depths()
    large()
    agreement()
    start_up()
    memory()
    if given.growth or given.plot:
        growth(given.plot)


if __name__ == "__main__":
    main()
