"""Traces → one number per seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lynceus.lab.spec import Quantity
from lynceus.lab.statistics import BySeed
from lynceus.replay import Replay, ReplayJob
from lynceus.replay.score import TOLERANCE

FUTURE_RUNS = 100
"""Runs of a job after its exploration, over which regret is counted."""
NEAR = 0.01
MEANS: Mapping[Quantity, str] = MappingProxyType(
    {
        "dfo": "distance from the optimum",
        "nex": "runs",
        "spent": "dollars in all",
        "decision": "seconds per decision",
        "error": "error of estimates",
        "violations": "recommended what breaks a limit",
    }
)
"""Quantities of which every table shows the mean over seeds, with their names for people."""
NAMES: Mapping[Quantity, str] = MappingProxyType(
    {
        **MEANS,
        "dfo": "distance from the optimum (CNO − 1)",
        "money": "dollars until CNO {level:g}",
        "trials": "runs until CNO {level:g}",
        "settled": "dollars until CNO {level:g} for good",
        "distance": "CNO − 1 after {level:g} mean costs",
        "regret": f"dollars of exploring, and of {FUTURE_RUNS} runs too dear",
        "broken": "share of recommendations that break a limit",
    }
)
"""Every quantity for the axis of a picture; `level` is the CNO or the money that is asked for."""


def by_seed(job: ReplayJob, replays: Sequence[Replay], quantity: Quantity, level: float = 1.1) -> BySeed:
    """A quantity of every replay; seeds in which it is not defined (no run was stopped, no decision made) are left out."""
    found = {replay.seed: value_of(job, replay, quantity, level) for replay in replays}
    return {seed: value for seed, value in found.items() if not math.isnan(value)}


def value_of(job: ReplayJob, replay: Replay, quantity: Quantity, level: float) -> float:
    """One number of one replay; NaN where it is not defined."""
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
        thought = [step.decision_s for step in steps if step.modelled]
        return float(np.mean(thought)) if thought else math.nan
    return estimation_error(job, replay)


def final_cno(replay: Replay) -> float:
    """CNO of what was recommended at the end; where nobody asked, because a goal had been reached, that of the last run."""
    if replay.cno_at_stop is not None:
        return replay.cno_at_stop
    return replay.steps[-1].cno if replay.steps else math.inf


def regret_usd(job: ReplayJob, replay: Replay) -> float:
    """What an exploration cost, and what the next runs of the job cost more than they need to with what it recommended."""
    spent, excess = (value_of(job, replay, quantity, math.nan) for quantity in ("spent", "dfo"))
    return spent + FUTURE_RUNS * excess * job.optimum.cost_usd


def distance(job: ReplayJob, replay: Replay, means: float) -> float:
    """CNO − 1 of the best known once `means` times the mean cost of a configuration had been spent; infinite: nothing was known.

    Nobody cares about less than `NEAR`, and ratios of distances would be ratios of nothing.
    """
    problem = job.problem
    usd = means * float(problem.tariff.charges(job.measurements.seconds, problem.price).mean())
    known = [step.cno for step in replay.steps if step.spent_usd <= usd * (1 + TOLERANCE)]
    return max(known[-1] - 1.0, NEAR) if known else math.inf


def settled(replay: Replay, level: float) -> float:
    """Dollars from which on the CNO stayed at most `level`; infinite if the replay ends above it."""
    usd = math.inf
    for step in replay.steps:
        if step.cno > level * (1 + TOLERANCE):
            usd = math.inf
        elif math.isinf(usd):
            usd = step.spent_usd
    return usd


def estimation_error(job: ReplayJob, replay: Replay) -> float:
    """Mean of |told − true| / true over the runs that were stopped and of which the model was told something."""
    told = np.array([step.told_s for step in replay.steps if step.state == "TIMEOUT"])
    true = np.array([job.measurements.seconds[step.row] for step in replay.steps if step.state == "TIMEOUT"])
    known = np.isfinite(told)
    return float(np.mean(np.abs(told[known] - true[known]) / true[known])) if known.any() else math.nan
