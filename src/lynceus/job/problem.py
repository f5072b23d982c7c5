"""From a job file to the problem alone: what those need who only look at a study."""

from __future__ import annotations

import math
from dataclasses import replace

from lynceus.errors import InputError
from lynceus.fraction import Fraction
from lynceus.job.configurations import price_table, space_of
from lynceus.job.job import Job
from lynceus.job.machines import with_machines, with_restarts
from lynceus.job.sections import FractionSection
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.space.column import nearest
from lynceus.units import format_duration, format_money

_SHORTEST_S = 1.0
"""Money for less than this buys hardly more than the start of a process; a shorter deadline says that the job is quicker."""


def problem_of(job: Job) -> Problem:
    """The space with goal, limits, money and tariff."""
    job = with_prices(job)
    space, spec = space_of(job), job.spec
    with job.at("objective"):
        goal = Goal.parse(spec.objective)
    limits = []
    for place, text in enumerate(spec.constraints):
        with job.at("constraints", place):
            limits.append(Limit.parse(text))
    with job.at("budget"):
        usd = math.inf if spec.budget.cost is None else spec.budget.cost
        budget = Budget(usd, spec.budget.max_trials, spec.budget.wall_clock)
    billing = spec.billing
    tariff = Tariff(billing.granularity, billing.minimum, billing.boot, billing.fee, tuple(billing.warm))
    with job.at("billing", "warm"):
        problem = Problem(space, goal, tuple(limits), budget, tariff)
    if spec.fraction is not None:
        with job.at("fraction"):
            problem = _with_fraction(problem, spec.fraction)
    with job.at("resources"):
        problem = with_restarts(problem, spec.resources)
    with job.at("budget"):
        _some_run_fits(problem)
    return problem


def with_prices(job: Job) -> Job:
    """The job with the catalogs that it reads, as they are today unless it has them already."""
    job = with_machines(job)
    return replace(job, table=price_table(job)) if job.spec.prices is not None and job.table is None else job


def _with_fraction(problem: Problem, given: FractionSection) -> Problem:
    names = [parameter.name for parameter in problem.space.parameters]
    if given.column not in names:
        hint = nearest(given.column, names) or f" Parameters are {', '.join(names)}."
        raise InputError(f"{given.column!r} is no parameter of the space.{hint}")
    return problem.with_fraction(Fraction(given.column, given.test, given.answer))


def _some_run_fits(problem: Problem) -> None:
    cheapest = float(problem.price.min())
    least = problem.tariff.charge(0.0, cheapest)
    if problem.budget.usd < least:
        raise InputError(
            f"{format_money(problem.budget.usd)} do not even pay the start of the cheapest configuration ({format_money(least)}); "
            "raise budget.cost."
        )
    shortest_s = min(_SHORTEST_S, problem.deadline_s)
    least = problem.tariff.charge(shortest_s, cheapest)
    if problem.budget.usd < least:
        raise InputError(
            f"{format_money(problem.budget.usd)} buy no useful run: already {format_duration(shortest_s)} of the cheapest configuration "
            f"cost {format_money(least)}; raise budget.cost."
        )
