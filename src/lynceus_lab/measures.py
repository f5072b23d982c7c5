"""From traces to one number per seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay
from lynceus.replay.score import TOLERANCE
from lynceus_lab.experiment_file import Quantity
from lynceus_lab.statistics import BySeed

FUTURE_RUNS = 100
"""Production runs over which regret is counted."""
NEAR = 0.01
"""Smaller distances count as this one, so that ratios of distances stay meaningful."""
MEANS: Mapping[Quantity, str] = MappingProxyType(
    {
        "dfo": "distance from the optimum",
        "nex": "runs",
        "spent": "dollars in all",
        "decision": "seconds per decision",
        "error": "error of estimates",
        "violations": "recommendations that violate a constraint",
    }
)
"""Quantities whose mean over seeds every table shows, with their names."""
NAMES: Mapping[Quantity, str] = MappingProxyType(
    {
        **MEANS,
        "dfo": "distance from the optimum (CNO − 1)",
        "money": "dollars until CNO {level:g}",
        "trials": "runs until CNO {level:g}",
        "settled": "dollars until CNO {level:g} for good",
        "distance": "CNO − 1 after {level:g} mean costs",
        "regret": f"dollars of the search plus excess cost of {FUTURE_RUNS} runs",
        "broken": "share of recommendations that violate a constraint",
    }
)
"""Every quantity for the axis of a figure; `level` is a CNO or an amount of money."""


def by_seed(job: ReplayJob, replays: Sequence[Replay], quantity: Quantity, level: float = 1.1) -> BySeed:
    """A quantity of every replay; seeds without a value (no run was stopped, no decision was made) are left out."""
    found = {replay.seed: value_of(job, replay, quantity, level) for replay in replays}
    return {seed: value for seed, value in found.items() if not math.isnan(value)}


def value_of(job: ReplayJob, replay: Replay, quantity: Quantity, level: float) -> float:
    """One number of one replay; NaN when it is undefined."""
    steps = replay.steps
    if quantity == "money":
        return replay.reached(level).usd
    if quantity == "trials":
        return replay.reached(level).trials
    if quantity == "settled":
        return settled(replay, level)
    if quantity == "broken":
        advised = [math.isinf(step.cno) for step in steps if step.advised >= 0]
        return float(np.mean(advised)) if advised else math.nan
    if quantity == "dfo":
        return final_cno(replay) - 1.0
    if quantity == "violations":
        return float(math.isinf(final_cno(replay)))
    if quantity == "regret":
        return regret_usd(job, replay)
    if quantity == "distance":
        return distance(job, replay, level)
    if quantity == "nex":
        return float(len(steps))
    if quantity == "spent":
        return steps[-1].spent_usd if steps else 0.0
    if quantity == "decision":
        seconds = [step.decision_s for step in steps if step.modelled]
        return float(np.mean(seconds)) if seconds else math.nan
    return estimation_error(job, replay)


def final_cno(replay: Replay) -> float:
    """CNO of the final recommendation; of the last run, if the replay ended at its target CNO."""
    if replay.cno_at_stop is not None:
        return replay.cno_at_stop
    return replay.steps[-1].cno if replay.steps else math.inf


def regret_usd(job: ReplayJob, replay: Replay) -> float:
    """Cost of the search plus the excess cost of the next production runs with its recommendation."""
    spent, excess = (value_of(job, replay, quantity, math.nan) for quantity in ("spent", "dfo"))
    return spent + FUTURE_RUNS * excess * job.optimum.cost_usd


def distance(job: ReplayJob, replay: Replay, means: float) -> float:
    """CNO − 1 of the best known configuration once `means` times the mean cost of a configuration was spent; at least `NEAR`.

    Infinite while no configuration was known.
    """
    problem = job.problem
    usd = means * float(problem.billing.charges(job.measurements.seconds, problem.price).mean())
    known = [step.cno for step in replay.steps if step.spent_usd <= usd * (1 + TOLERANCE)]
    return max(known[-1] - 1.0, NEAR) if known else math.inf


def settled(replay: Replay, level: float) -> float:
    """Dollars after which the CNO stayed at most `level`; infinite if the replay ends above it."""
    usd = math.inf
    for step in replay.steps:
        if step.cno > level * (1 + TOLERANCE):
            usd = math.inf
        elif math.isinf(usd):
            usd = step.spent_usd
    return usd


def estimation_error(job: ReplayJob, replay: Replay) -> float:
    """Mean of |estimated − true| / true over the stopped runs for which the model was given an estimate."""
    estimated = np.array([step.target_s for step in replay.steps if step.state == "TIMEOUT"])
    true = np.array([job.measurements.seconds[step.row] for step in replay.steps if step.state == "TIMEOUT"])
    known = np.isfinite(estimated)
    return float(np.mean(np.abs(estimated[known] - true[known]) / true[known])) if known.any() else math.nan
