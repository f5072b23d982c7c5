"""`lynceus check`: whether a job file is valid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, check_file_given
from lynceus.cli.output import Output, OutputOption, counted, echo, print_data, print_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.space.table import Space


def check(
    file: Annotated[Path | None, typer.Argument(help="A job file.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of job files, for editors.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Validate a job file: one sentence about its first mistake, with file, line and field."""
    from lynceus.analysis.shared_budgets import SharedBudgetUse
    from lynceus.jobfile.checks import check_objective
    from lynceus.jobfile.json_schema import job_schema
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.history import notes_of
    from lynceus.library.job_budgets import job_budgets

    if schema:
        print_data(job_schema().encode())
        return
    if file is None:
        raise InputError("check: no job file was named; run for example: lynceus check job.yaml.")
    check_file_given(file, "check", storage)
    prepared = prepare_file(file)
    check_objective(prepared.job)
    notes = notes_of(prepared, storage)
    space, shared = prepared.problem.space, job_budgets(prepared.job, storage)
    if output is Output.JSON:
        facts = {"file": str(file), "name": prepared.job.name, "configurations": len(space), "notes": notes}
        print_json(facts | {"shared_budgets": [SharedBudgetUse.of(one) for one in shared]})
        return
    echo(f"{file}: valid. {space_text(space)}")
    for note in notes[len(space.notes) :]:
        echo(f"  note: {note}")
    for one in shared:
        echo(f"  shared budget: {one}")


def space_text(space: Space) -> str:
    """A space in a few lines: the number of configurations, parameters, features and prices."""
    from lynceus.problem.units import format_money
    from lynceus.space.parameter import values_listed

    hourly = space.price_per_second * 3600.0
    low, high = format_money(float(hourly.min())), format_money(float(hourly.max()))
    lines = [f"{counted(len(space), 'configuration')}, {low if low == high else f'{low} to {high}'} per hour"]
    for parameter in space.parameters:
        condition = f" when {parameter.when}" if parameter.when else ""
        lines.append(f"  {parameter.name} ({type(parameter).__name__.lower()}): {values_listed(parameter)}{condition}")
    names = {parameter.name for parameter in space.parameters}
    further = [name for name in space.feature_names if name not in names]
    lines += [f"  further features: {', '.join(further)}"] if further else []
    return "\n".join([*lines, *(f"  note: {note}" for note in space.notes)])
