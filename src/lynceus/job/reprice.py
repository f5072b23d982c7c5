"""Newer prices for a study: what changed since its own were fixed, and the same study at today's prices.

Facts stay: how long runs took, and what was charged for them then. What is computed from facts is computed again: the model hears times,
so its beliefs in dollars, the best configuration and the recommendation follow the prices of today.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.errors import InputError
from lynceus.job.configurations import price_table
from lynceus.job.job import Job
from lynceus.job.machines import spots_of
from lynceus.job.problem import problem_of
from lynceus.prices.store import catalogs
from lynceus.problem import Problem
from lynceus.space import BoolArray


@dataclass(frozen=True)
class Repriced:
    """A job at other prices."""

    job: Job
    changes: tuple[str, ...]
    """What changed, for people; empty when nothing did."""


def at_todays_prices(stored: Job, file: Job | None = None) -> Repriced:
    """The job of a study with the same machines at today's prices; with the prices that its job file says by now, if given."""
    job, changes = stored if file is None else replace(file, machines=stored.machines, table=stored.table), []
    resources = stored.spec.resources
    if stored.machines is not None:
        machines, changed = stored.machines.repriced(resources.wanted(), catalogs(), spots_of(resources))
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
    """Whether two problems ask the same of the same configurations, at whatever prices."""
    left, right = one.space, other.space
    return (
        left.parameters == right.parameters
        and np.array_equal(left.codes, right.codes)
        and left.feature_names == right.feature_names
        and np.array_equal(left.features, right.features)
        and (one.goal, one.limits, one.tariff, one.fraction, one.repeats)
        == (other.goal, other.limits, other.tariff, other.fraction, other.repeats)
        and (None if one.restarts is None else one.restarts.facts())
        == (None if other.restarts is None else other.restarts.facts())
        and _same(one.testable, other.testable)
        and _same(one.answerable, other.answerable)
    )


def repriced_problem(stored: Job, found: Repriced) -> Problem:
    """The problem at the new prices; refused when more than prices would change."""
    problem = problem_of(found.job)
    if not same_but_prices(problem_of(stored), problem):
        raise InputError(
            f"study {stored.name!r}: more than prices differs (space, objective, limits or billing); "
            "give the job another name, or restore what else was changed."
        )
    return problem


def _same(one: BoolArray | None, other: BoolArray | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
