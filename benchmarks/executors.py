"""What an executor costs in seconds per trial, for a job that does nothing.

    python -m benchmarks.executors local slurm

`one` is a trial from its launch until its outcome is known, one after another; `four` is the same with four trials at a time, per trial.
It includes the job itself (a millisecond), but neither decisions nor the storage. The load average before and after is printed,
because everything takes longer on a busy machine.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Executor, Request
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.registry import executor_plugin
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

_POLL_S = 0.01


@contextmanager
def local(folder: Path) -> Iterator[dict[str, Any]]:
    """No backend to start."""
    yield {"kind": "local"}


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, Any]]:
    """Four nodes on loopback; the executor polls the controller twice a second only when an outcome is missing."""
    import slurm_bench

    with slurm_bench.slurm(folder / "slurm") as bench:
        os.environ["SLURM_CONF"] = bench.environment["SLURM_CONF"]
        yield {"kind": "slurm", "python": sys.executable, "memory": "100 MB"}


@contextmanager
def ray(folder: Path) -> Iterator[dict[str, Any]]:
    """A head and two further nodes on this machine; joining the cluster is part of the first trial, not of the median."""
    import ray_bench

    with ray_bench.bench(num_cpus=2) as cluster:
        for _ in range(2):
            cluster.add(num_cpus=2)
        yield {"kind": "ray", "address": cluster.address}


@contextmanager
def skypilot(folder: Path) -> Iterator[dict[str, Any]]:
    """Its API server, an sshd and the Slurm on loopback; clusters stay warm, so only the first trial of each starts one."""
    import skypilot_bench

    with skypilot_bench.skypilot_bench(folder / "sky") as bench:
        os.environ |= bench.environment
        resources = {"infra": "slurm/bench/main", "cpus": 1, "memory": 1}
        yield {"kind": "skypilot", "python": str(skypilot_bench.PYTHON), "resources": resources, "keep_warm": "30m"}


BACKENDS: dict[str, Callable[[Path], Any]] = {"local": local, "slurm": slurm, "ray": ray, "skypilot": skypilot}
"""Name → a context that starts the backend and gives the section `executor` of a job file."""


def measured(executor: Executor, trials: int, width: int, first: int) -> list[float]:
    """Seconds of each trial, `width` of them at a time."""
    waiting = [
        Request("bench", first + number, 0, {"n": 1}, 600.0, boots=True, identity="bench") for number in range(trials)
    ]
    began: dict[str, float] = {}
    took = []
    while waiting or began:
        while waiting and len(began) < width:
            moment = time.perf_counter()
            began[executor.launch(waiting.pop())] = moment
        for ticket in list(began):
            if executor.collect(ticket) is not None:
                took.append(time.perf_counter() - began.pop(ticket))
        time.sleep(_POLL_S)
    return took


def rows(name: str, trials: int) -> tuple[float, float]:
    """Seconds per trial: one at a time (median), and four at a time (elapsed time divided by trials)."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        problem = Problem(Space.build([Integer("n", 1, 2)], price=1.0), budget=Budget(usd=1e9))
        with BACKENDS[name](folder) as section:
            plugin = executor_plugin(section.pop("kind"))
            context = ExecutorContext(problem, JobCommand(("true",), workdir=folder), folder / "runs")
            with closing(plugin.make(context, plugin.options.model_validate(section))) as executor:  # type: ignore[type-var]
                one = statistics.median(measured(executor, trials, 1, 0))
                began = time.perf_counter()
                measured(executor, trials, 4, trials)
                return one, (time.perf_counter() - began) / trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="*", default=["local", "slurm"], choices=[*BACKENDS], metavar="BACKEND")
    parser.add_argument("--trials", type=int, default=12)
    options = parser.parse_args()
    print("| executor | one at a time, s per trial | four at a time, s per trial | load |\n|---|---|---|---|")
    for name in options.backends:
        before = os.getloadavg()[0]
        one, four = rows(name, options.trials)
        print(f"| {name} | {one:.2f} | {four:.2f} | {before:.1f} to {os.getloadavg()[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
