"""`lynceus plan`: what a search may cost, before anything runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lynceus.cli.arguments import JobFileArgument, ParallelOption, PolicyOption, StorageOption, check_file_given
from lynceus.cli.output import Output, OutputOption, console, counted, fact_table, params_text, print_json, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from lynceus.analysis.forecast import Forecast, PlannedBaseline
    from lynceus.jobfile.prepared_study import PreparedStudy
    from lynceus.problem.problem import Problem
    from lynceus.trial.shared_budget import SharedBudget


def plan(
    file: JobFileArgument,
    policy: PolicyOption = None,
    parallel: ParallelOption = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the space, the prices, and the expected and worst-case cost and time, before anything runs."""
    from lynceus.analysis.forecast import forecast
    from lynceus.analysis.shared_budgets import SharedBudgetUse
    from lynceus.jobfile.checks import check_objective
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.history import notes_of
    from lynceus.library.job_budgets import job_budgets

    check_file_given(file, "plan", storage)
    prepared = prepare_file(file, policy)
    check_objective(prepared.job)
    width = parallel or prepared.parallel
    shared, notes = job_budgets(prepared.job, storage), notes_of(prepared, storage)
    if output is Output.JSON:
        found = forecast(prepared.problem, prepared.policy, parallel=width)
        facts = {"name": prepared.job.name, "policy": prepared.policy.name, "forecast": found, "notes": notes}
        print_json(facts | {"shared_budgets": [SharedBudgetUse.of(one) for one in shared]})
    else:
        console().print(plan_text(prepared, width, shared, notes))


def plan_text(
    prepared: PreparedStudy, parallel: int, shared: Sequence[SharedBudget], notes: Sequence[str]
) -> RenderableType:
    """The plan as a table with notes."""
    from rich.console import Group

    from lynceus.analysis.forecast import forecast
    from lynceus.analysis.shared_budgets import budget_notes

    found = forecast(prepared.problem, prepared.policy, parallel=parallel)
    table = fact_table()
    budgets = [("shared", str(one)) for one in shared]
    for name, text in [*_problem_facts(prepared, parallel), *budgets, *_cost_facts(found)]:
        table.add_row(name, safe(text))
    notes = [*notes, *([found.warning] if found.warning else []), *budget_notes(shared, found.worst_spend_usd)]
    return Group(f"[bold]{safe(prepared.job.name)}[/]", table, *(f"[yellow]note:[/] {safe(note)}" for note in notes))


def _problem_facts(prepared: PreparedStudy, parallel: int) -> list[tuple[str, str]]:
    from lynceus.jobfile.machines import price_sources

    problem = prepared.problem
    sizes = " × ".join(f"{one.name} ({len(one.values)})" for one in problem.space.parameters)
    constraints = ", ".join(str(constraint) for constraint in problem.constraints) or "no constraints"
    return [
        ("space", f"{counted(len(problem.space), 'configuration')}: {sizes}"),
        *(("prices", source) for source in price_sources(prepared.job)),
        ("objective", f"{problem.objective}; {constraints}"),
        ("budget", f"{_budget(problem)} (hard limit; open trials count with the most that they can cost)"),
        ("policy", f"{prepared.policy.name}, {counted(parallel, 'trial')} at a time"),
    ]


def _budget(problem: Problem) -> str:
    from lynceus.problem.units import format_duration, format_money

    budget = problem.budget
    parts = [] if math.isinf(budget.usd) else [format_money(budget.usd)]
    parts += [counted(budget.trials, "trial")] if budget.trials else []
    parts += [f"{format_duration(budget.wall_clock_s)} of wall clock"] if budget.wall_clock_s else []
    return ", ".join(parts)


def _cost_facts(found: Forecast) -> list[tuple[str, str]]:
    from lynceus.problem.units import format_duration, format_money

    def usd(low: float, high: float) -> str:
        lowest, highest = format_money(low), format_money(high)
        return lowest if lowest == highest else f"{lowest} to {highest}"

    price = f"{usd(found.price_low, found.price_high)} per hour"
    price += f" (median {format_money(found.price_median)})" if found.price_low < found.price_high else ""
    run = f"at most {format_duration(found.run_limit_s)}: {usd(found.run_low_usd, found.run_high_usd)}"
    expected = f"{format_money(found.expected_spend_usd)} in {format_duration(found.expected_time_s)}"
    return [
        ("price", price),
        ("one run", run),
        ("expected", f"{expected}, about {counted(found.expected_trials, 'trial')}"),
        ("worst case", f"{format_money(found.worst_spend_usd)}; {format_duration(found.worst_time_s)}"),
        ("basis", found.basis),
        *_baseline_fact(found.baseline),
        ("future use", _future(found)),
    ]


def _future(found: Forecast) -> str:
    """How often the result will be used, and what that asks of it."""
    from lynceus.cli.best import uses_text
    from lynceus.problem.units import format_money

    text = uses_text(found.future)
    if not math.isnan(found.break_even_usd):
        text += f"; the expected cost pays for itself if each saves {format_money(found.break_even_usd)}"
    return text if found.counts_uses else f"{text}; the policy does not stop by it"


def _baseline_fact(baseline: PlannedBaseline | None) -> list[tuple[str, str]]:
    from lynceus.problem.units import format_duration, format_money

    if baseline is None:
        return []
    how = "predicted as a range, since it is not run: give its runtime, or measure: true"
    if baseline.measure:
        how = "measured by the first trial"
    elif baseline.runtime_s is not None and baseline.cost_usd is not None:
        how = f"{format_duration(baseline.runtime_s)} and {format_money(baseline.cost_usd)} a run (given)"
    return [("baseline", f"{params_text(baseline.params)}: {how}")]
