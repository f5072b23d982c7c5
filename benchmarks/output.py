"""What a supervisor costs a job that prints 200 MB, against a plain redirect of the same job to a file.

    python -m benchmarks.output

Both are best of several, taken in turn, because everything takes longer on a busy machine. `metric` is a job whose last line holds a
metric that a regular expression finds; `secret` is one with a secret, which is masked in what is kept. The bound is 2.
Expressions without a fixed text in them, and output that consists of reports, are read line by line: they are slower and not measured here.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request
from lynceus.executors.local import LocalExecutor
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space

BOUND = 2.0
_POLL_S = 0.002
_LAST = "printf 'accuracy=0.5\\n'"


@dataclass(frozen=True)
class Case:
    """A job that prints a lot."""

    script: str
    """Prints `$BYTES` bytes, then a line with a metric."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


CASES = {
    "short lines": Case(f"yes 'step 17 of 90000' | head -c $BYTES; {_LAST}"),
    "metric": Case(f"yes 'epoch 3, loss 0.25' | head -c $BYTES; {_LAST}", {"accuracy": r"accuracy=([0-9.]+)"}),
    "metric in every line": Case(f"yes 'accuracy=0.25' | head -c $BYTES; {_LAST}", {"accuracy": r"accuracy=([0-9.]+)"}),
    "one long line": Case(f"head -c $BYTES /dev/zero | tr '\\000' x; {_LAST}"),
    "secret": Case(f"yes 'connected as someone' | head -c $BYTES; {_LAST}", secrets={"TOKEN": "kV9-17xyz/abc"}),
}


def plain_s(case: Case, folder: Path, size: int) -> float:
    """Seconds of the job with its output in a file."""
    path = folder / "plain"
    began = time.perf_counter()
    with path.open("wb") as file:
        subprocess.run(["/bin/sh", "-e", "-c", case.script], env=_environment(size), stdout=file, check=True)
    spent = time.perf_counter() - began
    path.unlink()
    return spent


def supervised_s(case: Case, folder: Path, size: int, number: int) -> float:
    """Seconds of the job as its supervisor measures them."""
    space = Space.build([Integer("n", 1, 1)], price=1.0)
    job = JobCommand(case.script, env=_environment(size), metrics=case.metrics, secrets=case.secrets)
    executor = LocalExecutor(Problem(space, budget=Budget(usd=1.0)), job, folder / "runs")
    try:
        ticket = executor.launch(Request("output", number, 0, {"n": 1}, 600.0, False))
        while (outcome := executor.collect(ticket)) is None:
            time.sleep(_POLL_S)
    finally:
        executor.close()
    found = dict(outcome.metrics)
    assert not case.metrics or found == {"accuracy": 0.5}, f"{outcome.detail}: {found}"
    kept = Path(ticket, "stdout").stat().st_size
    assert kept < 2 << 20, f"{kept} bytes of output were kept"
    return outcome.seconds


def _environment(size: int) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "BYTES": str(size)}


def ratio(case: Case, folder: Path, size: int, times: int) -> tuple[float, float]:
    """The best time of each: plain, supervised."""
    runs: tuple[list[float], list[float]] = ([], [])
    measure: tuple[Callable[[int], float], ...] = (
        lambda _: plain_s(case, folder, size),
        lambda number: supervised_s(case, folder, size, number),
    )
    for number in range(times):
        for spent, one in zip(runs, measure, strict=True):
            spent.append(one(number))
    return min(runs[0]), min(runs[1])


def main() -> int:
    """Print both times for each case; fails if the bound is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    given = parser.parse_args()
    print(f"{given.mb} MB of output, best of {given.times}; load average {os.getloadavg()[0]:.1f}")
    worst = 0.0
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            plain, supervised = ratio(CASES[name], Path(folder), given.mb * 1_000_000, given.times)
        worst = max(worst, supervised / plain)
        print(f"{name:22} redirect {plain:6.3f} s   supervised {supervised:6.3f} s   {supervised / plain:5.2f}x")
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
