"""Newer prices for a study: what has changed since its prices were stored, and the same study at today's prices.

Running times and past charges stay as they are. Everything computed from them follows the new prices: models are trained on running
times, so predicted costs, the best configuration and the recommendation use today's prices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.machines import spots_of
from lynceus.jobfile.problem import problem_of
from lynceus.jobfile.space import price_table
from lynceus.prices.store import catalogs
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray


@dataclass(frozen=True)
class Repriced:
    """A job at new prices."""

    job: Job
    changes: tuple[str, ...]
    """What changed, as text; empty when prices are the same."""


def at_todays_prices(stored: Job, file: Job | None = None) -> Repriced:
    """The job of a study with the same machines at today's prices; with the prices of its current job file, if given."""
    job, changes = stored if file is None else replace(file, machines=stored.machines, table=stored.table), []
    resources = stored.spec.resources
    if stored.machines is not None:
        machines, changed = stored.machines.repriced(resources.requirements(), catalogs(), spots_of(resources))
        job, changes = replace(job, machines=machines), [str(one) for one in changed]
    elif stored.table is not None:
        table = price_table(job)
        before = dict(zip(stored.table["instance_type"], stored.table["price_usd_per_hour"], strict=True))
        for name, now in zip(table["instance_type"], table["price_usd_per_hour"], strict=True):
            if name in before and before[name] != now:
                changes.append(f"{name} ${before[name]:.4f} → ${now:.4f}")
        job = replace(job, table=table)
    if file is not None and file.spec.price != stored.spec.price:
        changes.append(f"price: {stored.spec.price} → {file.spec.price}")
    return Repriced(job, tuple(changes))


def same_but_prices(one: Problem, other: Problem) -> bool:
    """Whether two problems differ at most in their prices."""
    left, right = one.space, other.space
    return (
        left.parameters == right.parameters
        and np.array_equal(left.codes, right.codes)
        and left.feature_names == right.feature_names
        and np.array_equal(left.features, right.features)
        and (one.objective, one.constraints, one.fraction, one.repeats)
        == (other.objective, other.constraints, other.fraction, other.repeats)
        and replace(one.billing, grace_s=0.0) == replace(other.billing, grace_s=0.0)
        and (None if one.preemption is None else one.preemption.facts())
        == (None if other.preemption is None else other.preemption.facts())
        and _same(one.testable, other.testable)
        and _same(one.answerable, other.answerable)
    )


def repriced_problem(stored: Job, repriced: Repriced) -> Problem:
    """The problem at the new prices; an error when more than prices would change."""
    problem = problem_of(repriced.job)
    if not same_but_prices(problem_of(stored), problem):
        raise InputError(
            f"study {stored.name!r}: more than prices has changed (space, objective, constraints or billing); "
            "give the job another name, or undo the other changes."
        )
    return problem


def _same(one: BoolArray | None, other: BoolArray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
