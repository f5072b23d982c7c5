"""`lynceus whatif`: the answer for other limits and prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.at_input import print_inputs
from lynceus.cli.limits import ConstraintOption, given_limits
from lynceus.cli.output import Output, OutputOption, console, objective_text, params_text, percent, print_json, safe

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.analysis.pareto import Point
    from lynceus.analysis.whatif import Choice, WhatIf


def whatif(
    study: StudyArgument = None,
    deadline: Annotated[str | None, typer.Option(help="Deadlines, separated by commas: 20m,30m,60m.")] = None,
    constraint: ConstraintOption = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="Other prices: dollars per hour as an expression; 'price' is the present one. May be repeated."
        ),
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(help="Other inputs, run or not: 240GB, or size=240GB,files=8000. May be repeated."),
    ] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the answer for other limits or prices, from the runs that are already paid for, and the front of cost against time."""
    from lynceus.analysis.at_input import target_input
    from lynceus.analysis.whatif import constraint_cases, deadline_case, price_case, unchanged, whatifs
    from lynceus.library.study_context import study_context
    from lynceus.problem.units import parse_duration

    one = named_study(study, storage)
    problem = one.study.problem
    texts = [part.strip() for part in (deadline or "").split(",") if part.strip()]
    cases = [unchanged(problem)]
    cases += [deadline_case(problem, parse_duration(text, "--deadline")) for text in texts]
    cases += constraint_cases(problem, given_limits(one.study, constraint, together=False))
    cases += [price_case(problem, text) for text in price or ()]
    found = whatifs(study_context(one), cases, [target_input(one.study, text, "--input") for text in input or ()])
    if output is Output.JSON:
        print_json(found)
        return
    out = console()
    print_answers(out, str(problem.objective), found.answers)
    print_inputs(out, found.inputs)
    print_front(out, found.front)


def print_answers(out: Console, objective: str, answers: Sequence[WhatIf]) -> None:
    """Print one row per changed problem."""
    from rich.table import Table

    metric = objective.split(maxsplit=1)[1]
    own_column = [] if metric in ("cost", "time") else [metric]  # cost and time have their columns already
    table = Table(
        "if", "best known", *map(safe, own_column), "time", "cost of a run", "feasible", "perhaps better, not tried"
    )
    for one in answers:
        undecided = f" ({one.undecided} stopped runs cannot tell)" if one.undecided else ""
        if one.measured is None:
            cells = [f"none{undecided}", *["—"] * (3 + len(own_column))]
        else:
            value = [objective_text(objective, one.measured.value)] if own_column else []
            near = "none yet; nearest: " if one.shortfall else ""
            cells = [near + safe(params_text(one.measured.params)) + undecided, *value, *_numbers(one.measured)]
        table.add_row(safe(one.label), *cells, safe(_untried(objective, one.predicted)))
    out.print(table)
    for one in answers:
        if one.shortfall is not None:
            limits = ", ".join(one.constraints)
            out.print(
                f"{one.label}: no configuration is known yet that keeps {limits}: {one.shortfall}.",
                markup=False,
                style="yellow",
                soft_wrap=True,
            )


def _untried(objective: str, choice: Choice | None) -> str:
    if choice is None:
        return ""
    value = objective_text(objective, choice.value)
    return f"{params_text(choice.params)}: {value} predicted, {percent(choice.probability)} feasible"


def _numbers(choice: Choice) -> list[str]:
    from lynceus.problem.units import format_duration, format_money

    return [format_duration(choice.runtime_s), format_money(choice.cost_usd), percent(choice.probability)]


def print_front(out: Console, front: Sequence[Point]) -> None:
    """Print the front of cost against time."""
    from rich.table import Table

    from lynceus.problem.units import format_duration, format_money

    if not front:
        return
    out.print(
        "[dim]cost against time: the finished runs that no other beats in both, as measured (above: as expected of a further run)[/]"
    )
    table = Table("#", "configuration", "time", "cost of a run")
    for point in front:
        cells = safe(params_text(point.params)), format_duration(point.runtime_s), format_money(point.cost_usd)
        table.add_row(str(point.number), *cells)
    out.print(table)
