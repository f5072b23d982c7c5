"""Problems and observations of any size for the benchmarks: a scale-out job whose times follow a formula."""

from __future__ import annotations

import numpy as np

from lynceus.models.state import State
from lynceus.policy.next_step import search_step
from lynceus.policy.policy import Policy
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.derived import Computed, Mapped
from lynceus.space.parameter import Categorical, Float, Integer
from lynceus.space.table import Space
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget
from lynceus.trial.stop import Stopped


def space(configurations: int) -> Space:
    """A space of about this many rows: 4 machine types × nodes × three job parameters."""
    nodes, rates, batches, modes = {
        384: (8, 3, 2, 2),
        1_100: (11, 5, 5, 1),
        5_000: (16, 5, 4, 4),
        20_000: (25, 10, 5, 4),
        50_000: (32, 14, 7, 4),
        1_000_000: (50, 50, 25, 4),
    }[configurations]
    cores = Mapped("cores", "vm", {"small": 1, "medium": 2, "large": 4, "huge": 8})
    price = Mapped("vm_price", "vm", {"small": 0.023, "medium": 0.046, "large": 0.093, "huge": 0.186}, feature=False)
    return Space.build(
        [
            Categorical("vm", ["small", "medium", "large", "huge"]),
            Integer("nodes", 2, 2 * nodes, step=2),
            Float("rate", 1e-5, 1e-1, steps=rates, log=True),
            Integer("batch", 16, 16 * 2 ** (batches - 1), steps=batches, log=True),
            Categorical("mode", [f"mode-{i}" for i in range(modes)]),
        ],
        derived=[cores, price, Computed("total_cores", "nodes * cores")],
        price="nodes * vm_price",
    )


def seconds(table: Space, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A time for every row: parallel work, communication, a badly chosen rate, noise."""
    noise = np.random.default_rng(seed).lognormal(0.0, 0.1, len(table))
    total = np.asarray(table.column("total_cores"), dtype=float)
    nodes = np.asarray(table.column("nodes"), dtype=float)
    rate = np.log10(np.asarray(table.column("rate"), dtype=float))
    return (30 + 4000 / total + 2.0 * nodes) * (1 + 0.6 * (rate + 3) ** 2) * noise


def problem(configurations: int) -> tuple[Problem, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """The problem with the deadline at the median time, and the times."""
    table = space(configurations)
    times = seconds(table)
    return Problem(table, constraints=(Constraint("time", float(np.median(times))),)), times


def observations(
    task: Problem, times: np.ndarray[tuple[int], np.dtype[np.float64]], runs: int, seed: int = 1
) -> tuple[Observation, ...]:
    """Finished runs of random rows."""
    rows = np.random.default_rng(seed).choice(len(times), runs, replace=False)
    seen = []
    for number, row in enumerate(rows):
        order = Order(number, int(row), np.inf, 0.0, Plan(int(row), why="benchmark"))
        took = float(times[row])
        seen.append(Observation(order, Outcome(End.FINISHED, took, task.cost(int(row), took)), TrainingTarget(took)))
    return tuple(seen)


def capped_runs(
    task: Problem, times: np.ndarray[tuple[int], np.dtype[np.float64]], runs: int, first: int, seed: int = 1
) -> tuple[Observation, ...]:
    """Runs of `first` and of random rows, each stopped at the deadline or at the cost of the best one before it: most are stopped."""
    rows = np.random.default_rng(seed).choice(len(times), runs, replace=False)
    best, seen = np.inf, []
    for number, row in enumerate([first, *rows[rows != first].tolist()][:runs]):
        timeout_s = min(task.deadline_s, best / float(task.price[row]))
        took = min(float(times[row]), timeout_s)
        end = End.FINISHED if took < timeout_s else End.TIMEOUT
        usd = task.cost(row, took)
        best = min(best, usd) if end is End.FINISHED else best
        target = TrainingTarget(took)
        if end is End.TIMEOUT:
            target = TrainingTarget(1.3 * took, censored=True, bound_s=took)
        order = Order(number, row, timeout_s, usd, Plan(row, why="benchmark"))
        seen.append(Observation(order, Outcome(end, took, usd), target))
    return tuple(seen)


def decide(task: Problem, policy: Policy, seen: Observations, *, seed: int) -> Order | Stopped:
    """What the policy alone would do after these observations."""
    return search_step(State.present(task, seen), policy, seed=seed)
