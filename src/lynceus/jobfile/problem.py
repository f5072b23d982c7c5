"""From a job file to the problem, without policy and executor."""

from __future__ import annotations

import math
from dataclasses import replace

from lynceus.errors import InputError, did_you_mean
from lynceus.jobfile.job import Job
from lynceus.jobfile.machines import with_machines, with_preemption
from lynceus.jobfile.sections.space import FractionSection
from lynceus.jobfile.space import price_table, space_of
from lynceus.problem.baseline import Baseline
from lynceus.problem.budget import Budget
from lynceus.problem.data_fraction import Fraction
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration, format_money

_SHORTEST_USEFUL_S = 1.0
"""A shorter run is hardly more than the start of a process, unless the deadline says that the job is faster."""


def with_catalogs(job: Job) -> Job:
    """The job with the machines and prices of the catalogs that it names, as they are now; unchanged when it has them."""
    job = with_machines(job)
    return replace(job, table=price_table(job)) if job.spec.prices is not None and job.table is None else job


def problem_of(job: Job) -> Problem:
    """The space with objective, constraints, budget and billing; the job's catalogs must have been read (`with_catalogs`)."""
    space, spec = space_of(job), job.spec
    with job.at("objective"):
        objective = Objective.parse(spec.objective)
        _ = Problem(space, objective).goal.formula  # its mistakes belong to this field
    constraints = []
    for place, text in enumerate(spec.constraints):
        with job.at("constraints", place):
            constraints.append(Constraint.parse(text, spec.units))
    with job.at("budget"):
        usd = math.inf if spec.budget.cost is None else spec.budget.cost
        budget = Budget(usd, spec.budget.max_trials, spec.budget.wall_clock)
    # Where a program runs the trials itself, there is no process of ours that could go on after its timeout.
    billing = replace(spec.billing.billing(), grace_s=spec.trial.grace if job.has_command else 0.0)
    with job.at("billing", "warm"):
        problem = Problem(space, objective, tuple(constraints), budget, billing, units=spec.units)
    if spec.fraction is not None:
        with job.at("fraction"):
            problem = _with_fraction(problem, spec.fraction)
    with job.at("resources"):
        problem = with_preemption(problem, spec.resources)
    with job.at("budget"):
        _check_budget(problem)
    future = None if spec.future is None else spec.future.future_use()
    given = None if spec.input is None else JobInput.read(spec.input)
    return replace(_with_baseline(problem, job), future=future, history=job.past or (), input=given)


def _with_baseline(problem: Problem, job: Job) -> Problem:
    section = job.spec.baseline
    if section is None:
        return problem
    written = job.document.tree.value["baseline"]
    # Alone, or under the field `config`.
    with job.at("baseline", *(["config"] if written.keys() != section.config.keys() else [])):
        row = problem.space.row(section.config)
    with job.at("baseline"):
        return replace(problem, baseline=Baseline(row, section.runtime, section.measure))


def _with_fraction(problem: Problem, section: FractionSection) -> Problem:
    names = [parameter.name for parameter in problem.space.parameters]
    if section.column not in names:
        hint = did_you_mean(section.column, names) or f" Parameters are {', '.join(names)}."
        raise InputError(f"{section.column!r} is not a parameter of the space.{hint}")
    return Fraction(section.column, section.test, section.answer).apply(problem)


def _check_budget(problem: Problem) -> None:
    """Refuse a budget that no useful run fits into."""
    usd, cheapest = problem.budget.usd, float(problem.price.min())
    start_usd = problem.billing.charge(0.0, cheapest)
    if usd < start_usd:
        raise InputError(
            f"{format_money(usd)} does not even pay for starting the cheapest configuration ({format_money(start_usd)}); "
            "raise budget.cost."
        )
    shortest_s = min(_SHORTEST_USEFUL_S, problem.deadline_s)
    shortest_usd = problem.billing.largest_charge(shortest_s, cheapest)
    if usd < shortest_usd:
        grace_s = problem.billing.grace_s
        grace = f" and a grace period of {format_duration(grace_s)}" if grace_s else ""
        raise InputError(
            f"{format_money(usd)} pays for no useful run: {format_duration(shortest_s)} of the cheapest configuration{grace} "
            f"costs {format_money(shortest_usd)}; raise budget.cost{', or shorten trial.grace' if grace_s else ''}."
        )
