"""Answers for inputs that may never have run, as `lynceus best`, `whatif` and `explain` print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from lynceus.cli import exit_codes
from lynceus.cli.output import (
    Output,
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

    from lynceus.analysis.at_input import InputAnswer, InputChoice
    from lynceus.analysis.study_context import StudyContext
    from lynceus.problem.problem import Problem


def best_for_input(context: StudyContext, text: str, problem: Problem, output: Output) -> None:
    """`lynceus best --input`: exit code 3 where nothing is known, or no configuration is likely to meet the constraints."""
    from lynceus.analysis.at_input import answer_at_input, target_input

    target = target_input(context.study, text, "--input")
    found = answer_at_input(context, target, problem)
    if found is None:
        echo(
            f"{context.study.name}: no trial has ended yet, so nothing is known of {target}.", err=output is Output.JSON
        )
    if output is Output.JSON:
        print_json(found)
    elif found is not None:
        _print_answer(console(), problem, found)
    if found is None or not found.likely:
        raise typer.Exit(exit_codes.INFEASIBLE)


def _print_answer(out: Console, problem: Problem, found: InputAnswer) -> None:
    from lynceus.problem.units import format_duration, format_money

    table, colour = fact_table(), "green" if found.likely else "yellow"
    near = "" if found.likely else "none yet; likeliest: "
    table.add_row(f"for {safe(found.input_text)}", f"{near}[bold {colour}]{safe(params_text(found.params))}[/]")
    low, high = map(format_money, found.cost_interval_usd)
    table.add_row(
        "cost of a run", f"{format_money(found.cost_usd)}, {low} to {high} with a probability of 80 % (predicted)"
    )
    low, high = map(format_duration, found.runtime_interval_s)
    table.add_row(
        "time of a run", f"{format_duration(found.runtime_s)}, {low} to {high} with a probability of 80 % (predicted)"
    )
    if problem.kind == "metric":
        table.add_row(safe(problem.objective.metric), objective_text(str(problem.objective), found.value))
    if problem.constraints:
        limits = ", ".join(map(str, problem.constraints))
        table.add_row(
            "certainty", safe(f"{percent(found.probability)} chance to meet {limits}{_guess(problem, found)}")
        )
    table.add_row(
        "known from", safe(", ".join(f"{counted(count, 'run')} on {name}" for name, count in found.inputs_run.items()))
    )
    table.add_row("when to check", safe(found.check_again))
    out.print(table)
    if found.command is not None:
        out.print("To run it, in the job's working directory:", style="dim", soft_wrap=True)
        echo(found.command)


def _guess(problem: Problem, found: InputAnswer) -> str:
    """What is said of limits on metrics as long as all runs read the same, and not what was asked about."""
    metrics = [one.metric for one in problem.constraints if one.metric not in ("time", "cost")]
    if not metrics or len(found.inputs_run) != 1 or found.input_text in found.inputs_run:
        return ""
    return f"; all runs read {next(iter(found.inputs_run))}, so how {' and '.join(metrics)} grows with the input is a guess"


def print_inputs(out: Console, found: Sequence[InputChoice]) -> None:
    """Print one row per input; nothing without any."""
    from rich.table import Table

    from lynceus.problem.units import format_duration, format_money

    if not found:
        return
    table = Table(
        "input", "best predicted", "time of a run", "80 % interval", "cost of a run", "feasible", "runs of it there"
    )
    table.title, table.title_justify = "over the input, from the runs on all inputs", "left"
    for one in found:
        interval = " to ".join(map(format_duration, one.runtime_interval_s))
        cells = (
            format_duration(one.runtime_s),
            interval,
            format_money(one.cost_usd),
            percent(one.probability),
            str(one.runs),
        )
        near = "" if one.likely else "none yet; likeliest: "
        table.add_row(safe(one.input_text), near + safe(params_text(one.params)), *cells)
    out.print(table)
