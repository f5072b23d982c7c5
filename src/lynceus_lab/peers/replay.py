"""Replay a table with a peer library, through its own ask and tell."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from lynceus.errors import InfrastructureError
from lynceus.models.state import State
from lynceus.policy.designs import LatinHypercube
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay, Step, Until, target_cno
from lynceus.replay.score import TOLERANCE, true_value
from lynceus.space.column import IntArray
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget
from lynceus_lab.peers.catalog import Peer
from lynceus_lab.peers.process import PeerProcess

_LEAST, _MOST = 1e-9, 1e9
"""Bounds of a value whose logarithm a peer learns."""


def replay_peer(job: ReplayJob, peer: Peer, seed: int, *, until: Until = "optimum") -> Replay:
    """Let a peer explore the table once: the initial samples of our presets, then its own suggestions."""
    target = target_cno(until) * (1 + TOLERANCE)
    process = PeerProcess.of(peer)
    process.send(start=_description(job, peer, seed))
    steps: list[Step] = []
    open_rows = set(range(len(job.problem.space)))
    max_trials = job.problem.budget.trials or len(open_rows)
    spent, cno = 0.0, math.inf
    design = _initial_rows(job, seed)
    while open_rows and len(steps) < max_trials and cno > target:
        began = time.perf_counter()
        modelled = not design
        row = int(process.send(ask=sorted(open_rows))["row"]) if modelled else design.pop(0)
        decision_s = time.perf_counter() - began
        if row not in open_rows:
            raise InfrastructureError(f"peer {peer.name}: it suggested row {row}, which is not open.")
        seconds = float(job.measurements.seconds[row])
        charged = job.problem.cost(row, seconds)
        if spent + charged > job.problem.budget.usd:
            break
        spent += charged
        open_rows.remove(row)
        value = true_value(job.problem, job.measurements, row)
        cno = cno if value is None else min(cno, job.optimum.cno(value))
        process.send(tell={"row": row, **told(job, row), **_scored(job, row)})
        point = job.problem.space.point(row)
        steps.append(Step(point, "COMPLETE", charged, spent, cno, decision_s, row, seconds, seconds, modelled))
    if cno <= target:
        return Replay(peer.name, seed, tuple(steps), "the target was reached", None)
    return Replay(peer.name, seed, tuple(steps), "no configuration or no money was left", cno)


def _scored(job: ReplayJob, row: int) -> dict[str, Any]:
    """The objective of a run, smaller is better, as a logarithm where it is positive, and by how much each limit is broken."""
    problem, measured = job.problem, job.measurements
    seconds = float(measured.seconds[row])
    told = {name: float(values[row]) for name, values in measured.metrics.items()}
    value = problem.value(row, seconds, told)
    told |= {"time": seconds, "cost": problem.cost(row, seconds)}
    broken = [_excess(told[one.metric], one.bound) * (-1 if one.at_least else 1) for one in problem.constraints]
    return {"value": math.log(value) if value > 0 else value, "broken": broken}


def _excess(value: float, bound: float) -> float:
    """ln(value / bound), or the difference where one of them is not positive."""
    return math.log(value / bound) if value > 0 and bound > 0 else value - bound


def _initial_rows(job: ReplayJob, seed: int) -> list[int]:
    """The initial samples of our own presets for this seed."""
    design, rows = LatinHypercube(), []
    observations: Observations = ()
    while (plan := design(State.present(job.problem, observations), None, seed)) is not None:
        rows.append(plan.row)
        seconds = float(job.measurements.seconds[plan.row])
        order = Order(len(observations), plan.row, math.inf, 0.0, Plan(plan.row, why="initial"))
        observations = (*observations, Observation(order, Outcome(End.FINISHED, seconds, 0.0), TrainingTarget(seconds)))
    return rows


def told(job: ReplayJob, row: int) -> dict[str, float]:
    """What peers with one limit are told of a run: a positive value to minimise by its logarithm ("usd"), and a time with a limit
    ("seconds").

    Cost and time where the problem has a deadline only. Otherwise the objective, and the largest quotient of a quantity and its limit,
    whose limit is 1: one constraint that holds where all of them do.
    """
    problem, measured = job.problem, job.measurements
    seconds = float(measured.seconds[row])
    if plain(problem):
        return {"usd": problem.cost(row, seconds), "seconds": seconds}
    metrics = {name: float(values[row]) for name, values in measured.metrics.items() if not np.isnan(values[row])}
    known = {**metrics, "time": seconds, "cost": problem.cost(row, seconds)}
    value = problem.value(row, seconds, metrics) if problem.goal.told_by(metrics) else math.nan
    value = 1.0 / -value if value < 0 else value  # a maximised metric
    quotients = [_quotient(known.get(one.metric, math.nan), one) for one in problem.constraints]
    return {"usd": min(max(value, _LEAST), _MOST) if value > 0 else _MOST, "seconds": max(quotients, default=_LEAST)}


def plain(problem: Problem) -> bool:
    """Whether cost is minimised under at most a deadline: the problem for which peers are described."""
    return problem.kind == "cost" and all(one.metric == "time" for one in problem.constraints)


def _quotient(value: float, limit: Constraint) -> float:
    """Above 1 exactly where a limit is broken; between 1/1000 and 1000, because its logarithm is learned. 10 where nothing was reported."""
    if math.isnan(value):
        return 10.0
    above, below = (limit.bound, value) if limit.at_least else (value, limit.bound)
    raw = above / below if above > 0 and below > 0 else 0.0 if limit.holds(value) else math.inf
    return min(max(raw, 1e-3), 1e3)


def _description(job: ReplayJob, peer: Peer, seed: int) -> dict[str, Any]:
    """What a peer knows about a job: the points, their features, the deadline, but no running times."""
    space = job.problem.space
    deadline = job.problem.deadline_s if plain(job.problem) else 1.0 if job.problem.constraints else math.inf
    free = independent(space.codes)
    return {
        "peer": peer.name,
        "seed": seed,
        "parameters": [
            {"name": one.name, "ordered": type(one).__name__ != "Categorical", "values": len(one.values)}
            for one in (space.parameters[place] for place in free)
        ],
        "codes": space.codes[:, free].tolist(),
        "features": space.features.tolist(),
        "kinds": list(space.feature_kinds),
        "deadline": deadline if math.isfinite(deadline) else None,
    }


def independent(codes: IntArray) -> list[int]:
    """Indices of parameters that identify all points `[rows, parameters]`; the others follow from them, as the disk of a machine does.

    Libraries search the full product of their parameters, so they are given only independent ones.

    >>> independent(np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1]]))
    [0, 1]
    """
    kept = list(range(codes.shape[1]))
    for place in reversed(kept):
        rest = [other for other in kept if other != place]
        if rest and len(np.unique(codes[:, rest], axis=0)) == len(codes):
            kept = rest
    return kept
