"""What a live study costs besides the runs themselves: per trial, and with 10,000 trials in the storage.

    python -m benchmarks.live [--url sqlite:////tmp/bench.db]

The policy is the cheapest there is, and its decision is measured apart: what remains is asking, storing, starting and settling.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from lynceus.durable import continued, open_study
from lynceus.engine import explore
from lynceus.executor import WallClock
from lynceus.executor.command import LocalJob
from lynceus.executor.local import LocalExecutor
from lynceus.ledger.sql import Storage
from lynceus.policy import Policy, preset
from lynceus.problem import Budget, Problem
from lynceus.space import Integer, Space
from lynceus.study import Study

TRIALS, MANY = 60, 10_000


def problem_of(rows: int) -> Problem:
    return Problem(Space.build([Integer("n", 1, rows)], price=0.36), budget=Budget(usd=1e9))


def per_trial(url: str, folder: Path) -> list[tuple[str, float]]:
    """Milliseconds of each step of a trial, and of a whole trial around a job that does nothing."""
    problem = problem_of(4 * TRIALS)
    policy = preset("sweep")
    spent: dict[str, list[float]] = {}

    def timed(name: str, function: Callable[..., object], owner: object) -> None:
        def wrapped(*arguments: object) -> object:
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                spent.setdefault(name, []).append(1000 * (time.perf_counter() - began))

        setattr(owner, name, wrapped)

    with Storage(url) as storage:
        study = open_study(storage, "overhead", problem, policy)
        job = LocalJob(("/bin/true",), workdir=folder)
        with LocalExecutor(problem, job, folder / "runs") as executor:
            for name, owner in (("order", study), ("launch", executor), ("launched", study), ("settle", study)):
                timed(name, getattr(owner, name), owner)
            ends: list[float] = []
            began_cpu = time.process_time()
            explore(
                study,
                executor,
                WallClock(),
                settled=lambda seen: (ends.append(time.perf_counter()), len(ends) == TRIALS and study.stop())[0],
            )
        worker_ms = 1000 * (time.process_time() - began_cpu) / TRIALS
        decision = [1000 * decided(problem, policy, study)]
        whole = [1000 * (later - earlier) for earlier, later in pairwise(ends)]
        job_ms = [1000 * seen.outcome.seconds for seen in study.history]
    rows = [(f"{name} (median)", statistics.median(values)) for name, values in spent.items()]
    rows += [
        ("of which the decision", statistics.median(decision)),
        ("the job itself, fork to exit", statistics.median(job_ms)),
    ]
    rows.append(("CPU of the worker, which load does not stretch", worker_ms))
    rows.append(("whole trial, end to end", statistics.median(whole)))
    return [
        *rows,
        (
            "whole trial without job and decision",
            statistics.median(whole) - statistics.median(decision) - statistics.median(job_ms),
        ),
    ]


def decided(problem: Problem, policy: Policy, study: Study) -> float:
    from lynceus.policy import decide

    began = time.perf_counter()
    decide(problem, policy, study.history, seed=0)
    return time.perf_counter() - began


def with_many(url: str) -> list[tuple[str, float]]:
    """Milliseconds of opening, looking at and asking a study with 10,000 trials."""
    problem = problem_of(2 * MANY)
    rows: list[tuple[str, float]] = []

    def row(name: str, function: Callable[[], object]) -> object:
        began = time.perf_counter()
        result = function()
        rows.append((name, 1000 * (time.perf_counter() - began)))
        return result

    with Storage(url) as storage:
        study = open_study(storage, "many", problem, preset("sweep"))
        row("import all trials", lambda: study.add_trials(({"n": n}, 10.0 + n % 100, {}) for n in range(1, MANY + 1)))
    with Storage(url) as storage:
        row("status: the list of studies", storage.studies)
        again = row("open: read all trials", lambda: continued(storage, "many", problem, preset("sweep")))
        assert isinstance(again, Study)
        order = row("first ask", again.order)
        assert order is not None
        trial = again.trial(order)  # type: ignore[arg-type]
        row("tell", lambda: again.tell(trial, runtime=5.0))
        row("second ask", again.order)
        row("refresh when nothing changed", again.refresh)
        row("status: spent, reserved, best", lambda: (again.spent_usd, again.reserved_usd, again.best_value))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a storage to measure; a new SQLite file by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = arguments.url or f"sqlite:///{folder}/bench.db"
        print(f"storage: {url.split(':')[0]}\n\n{TRIALS} trials of a job that does nothing" + " " * 10 + "ms")
        for name, value in per_trial(url, Path(folder)):
            print(f"  {name:<46}{value:8.1f}")
        print(f"\na study with {MANY:,} trials" + " " * 22 + "ms")
        for name, value in with_many(url):
            print(f"  {name:<46}{value:8.1f}")


if __name__ == "__main__":
    main()
