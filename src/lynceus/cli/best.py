"""`lynceus best`: the configuration to use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import (
    Output,
    OutputOption,
    console,
    counted,
    echo,
    fact_table,
    objective_text,
    params_text,
    percent,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.analysis.answer import Answer
    from lynceus.problem.problem import Problem


def best(
    study: StudyArgument = None,
    deadline: Annotated[str | None, typer.Option(help="The answer for another deadline, such as 30m.")] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the configuration to use, what a run costs and saves, and how certain that is.

    Exit code 3: no configuration is known to meet every constraint.
    """
    from lynceus.analysis.answer import answer
    from lynceus.analysis.whatif import with_deadline
    from lynceus.library.study_context import study_context
    from lynceus.problem.units import parse_duration

    one = named_study(study, storage)
    problem = one.study.problem
    if deadline is not None:
        problem = with_deadline(problem, parse_duration(deadline, "--deadline"))
    found = answer(study_context(one), problem)
    if output is Output.JSON:
        print_json(found)
    elif found is None:
        constraints = ", ".join(str(constraint) for constraint in problem.constraints) or "no constraints"
        echo(f"{one.name}: none of the {len(one.study.observations)} trials so far is known to meet {constraints}.")
    else:
        print_answer(console(), problem, found)
    if found is None:
        raise typer.Exit(exit_codes.INFEASIBLE)


def print_answer(out: Console, problem: Problem, found: Answer) -> None:
    """Print an answer as a table."""
    table = fact_table()
    table.add_row("configuration", f"[bold green]{safe(params_text(found.params))}[/]")
    if found.command is not None:
        table.add_row("command", safe(found.command))
    for name, text in _facts(problem, found):
        table.add_row(safe(name), safe(text))
    out.print(table)


def _facts(problem: Problem, found: Answer) -> list[tuple[str, str]]:
    """(name, sentence) pairs."""
    from lynceus.problem.units import format_duration, format_money

    how = "measured" if found.measured else "predicted"
    if found.noise is not None:
        how = f"expected; runs differ by about {percent(found.noise)}"
    facts = [("cost of a run", found.cost_basis), ("time of a run", f"{format_duration(found.runtime_s)} ({how})")]
    if problem.kind == "metric":
        facts.append((problem.objective.metric, objective_text(str(problem.objective), found.value)))
    if found.baseline is not None:
        facts.append(("saving", _saving(found)))
    facts.append(("certainty", _certainty(problem, found)))
    search = (
        f"{format_money(found.spent_usd)} for {counted(found.trials, 'trial')}, {found.stopped_early} stopped early"
    )
    return [*facts, ("search", search)]


def _saving(found: Answer) -> str:
    from lynceus.problem.units import format_money

    if math.isnan(found.baseline_usd):
        return "the cost of the baseline configuration is not known yet"
    how = "measured" if found.baseline_measured else "predicted"
    against = f"the baseline's {format_money(found.baseline_usd)} ({how})"
    if found.saving <= 0:
        return f"none against {against}"
    saved = format_money(found.baseline_usd - found.cost_usd)
    runs = counted(math.ceil(found.pays_back_after_runs), "run")
    return f"{saved} a run, {percent(found.saving)} of {against}; the search pays for itself after {runs}"


def _certainty(problem: Problem, found: Answer) -> str:
    if not problem.constraints:
        return f"{counted(found.runs, 'finished run')}; there are no constraints"
    seen = (
        f"{found.feasible_runs} of {counted(found.runs, 'run')} met every constraint" if found.runs else "not run yet"
    )
    if math.isnan(found.probability):
        return seen
    return f"{seen}; the model predicts a {percent(found.probability)} chance that a run meets every constraint"
