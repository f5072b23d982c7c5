"""How a decision of the default policy grows with trials and configurations: python -m benchmarks.growth [--live].

The whole decision through `next_step`, in a process of its own per line. Processor seconds are printed next to the clock's, because the
machine may be busy. Nearly all runs are stopped at the incumbent's cost, as in a real search. With --live runs may differ, and the
incumbent was repeated.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace

from rich.table import Table

from benchmarks import problems
from benchmarks.decision import CONSOLE, machine, peak_kb
from lynceus.models import subset_of_data
from lynceus.policy.next_step import next_step
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.policy.stopping import Never
from lynceus.trial.order import Order
from lynceus.trial.outcome import End
from lynceus.trial.record import Record

CASES = (
    (1_100, 50, None),
    (1_100, 400, 0.3),
    (1_100, 800, None),
    (5_000, 2_000, 1.0),
    (20_000, 10_000, 2.0),
    (1_000_000, 10, 3.0),
)
"""Configurations, trials and the goal in seconds."""


def measure(configurations: int, trials: int, *, live: bool, repetitions: int = 3) -> tuple[float, float, int]:
    """Seconds by the clock and of the processor, the smallest of several, and the largest memory in kB."""
    task, times = problems.problem(configurations)
    task = replace(task, deterministic=not live)
    policy, rules = replace(preset("lynceus"), stop=Never()), RetryRules()
    start = next_step(task, policy, rules, Record("growth"), seed=1).decision
    assert isinstance(start, Order)
    seen = problems.capped_runs(task, times, trials, start.row)
    if live:
        best = min((one for one in seen if one.outcome.end is End.FINISHED), key=lambda one: one.outcome.charged_usd)
        seen = (*seen[:-1], replace(best, order=replace(best.order, number=trials - 1)))
    taken = []
    for _ in range(repetitions + 1):
        subset_of_data._subset.cache_clear()
        clock, processor = time.perf_counter(), time.process_time()
        next_step(task, policy, rules, Record("growth", observations=seen), seed=1)
        taken.append((time.perf_counter() - clock, time.process_time() - processor))
    return min(one for one, _ in taken[1:]), min(two for _, two in taken[1:]), peak_kb()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", action="store_true", help="runs may differ, and the incumbent was repeated")
    live = parser.parse_args().live
    CONSOLE.print(machine())
    table = Table(title="One decision of the default policy" + (", live" if live else ""))
    for heading in ("configurations", "trials", "s", "processor s", "goal s", "MB"):
        table.add_column(heading, justify="right")
    for configurations, trials, goal in CASES:
        code = f"from benchmarks.growth import measure; print(*measure({configurations}, {trials}, live={live}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        clock, processor, kilobytes = map(float, done.stdout.split())
        wanted = "–" if goal is None else f"{goal:g}"
        table.add_row(
            f"{configurations:,}", f"{trials:,}", f"{clock:.2f}", f"{processor:.2f}", wanted, f"{kilobytes / 1024:.0f}"
        )
    CONSOLE.print(table)


if __name__ == "__main__":
    main()
