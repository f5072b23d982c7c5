"""`lynceus init`, `check` and `plan`: everything before money is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import Output, OutputOption, console, print_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lynceus.insight import Forecast
    from lynceus.job.prepare import Prepared
    from lynceus.job.starter import Answers

JobArgument = Annotated[str, typer.Argument(help="A job file.", show_default=True)]


def init(
    file: Annotated[Path, typer.Argument(help="The job file to write.")] = Path("job.yaml"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the answers from the options.")] = False,
    name: Annotated[str, typer.Option(help="The name of the study.")] = "my-job",
    command: Annotated[str, typer.Option(help="What starts the job; ${name} stands for a parameter.")] = "",
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="A parameter: 'threads=1, 2, 4' or 'level=1..9'.")
    ] = None,
    price: Annotated[str, typer.Option(help="Dollars per hour: a number or an expression over parameters.")] = "",
    deadline: Annotated[str, typer.Option(help="The longest that a production run may take.")] = "10m",
    budget: Annotated[str, typer.Option(help="Dollars for the whole search.")] = "1 USD",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a commented job file from a few questions."""
    from lynceus.job import Job
    from lynceus.job.prepare import prepare
    from lynceus.job.starter import Answers, starter

    if file.exists() and not force:
        raise InputError(f"{file}: the file exists already; choose another name, or replace it with --force.")
    parameters = dict(_parameter(text) for text in parameter or ["threads=1, 2, 4", "level=1..9"])
    answers = Answers(name, command, parameters, price or _first_price(parameters), deadline, budget)
    if not yes:
        answers = _asked(answers, asked_before=bool(parameter))
    text = starter(answers)
    prepare(Job.parse(text, file.resolve().parent, str(file)))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: the file cannot be written: {error.strerror}; choose another place.") from None
    typer.echo(f"{file} is written. Look at it, then: lynceus plan {file}, and: lynceus run {file}")


def check(
    file: Annotated[Path | None, typer.Argument(help="A job file.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of job files, for editors.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Validate a job file: one sentence for its first mistake, with file, line and field."""
    from lynceus.job import Job
    from lynceus.job.prepare import checked_objective, prepare
    from lynceus.job.schema import job_schema

    if schema:
        typer.echo(job_schema(), nl=False)
        return
    if file is None:
        raise InputError("check: no job file was named; write for example: lynceus check job.yaml.")
    job = Job.read(file)
    prepared = prepare(job)
    checked_objective(job)
    space = prepared.problem.space
    if output is Output.JSON:
        print_json(
            {"file": str(file), "name": prepared.job.name, "configurations": len(space), "notes": prepared.notes}
        )
        return
    typer.echo(f"{file}: valid. {space.describe()}")
    for note in prepared.notes[len(space.notes) :]:
        typer.echo(f"  note: {note}")


def plan(
    file: Annotated[Path, typer.Argument(help="A job file.")],
    policy: Annotated[str | None, typer.Option(help="Another policy than the job file names.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the space, prices, and the expected and worst-case spend and time, before anything runs."""
    from lynceus.insight import forecast
    from lynceus.job import Job
    from lynceus.job.prepare import checked_objective, prepare

    job = Job.read(file)
    prepared = prepare(job, policy)
    checked_objective(job)
    predicted = forecast(prepared.problem, prepared.policy, parallel=parallel or prepared.parallel)
    if output is Output.JSON:
        print_json({"name": prepared.job.name, "policy": prepared.policy.name, "forecast": predicted})
        return
    console().print(plan_shown(prepared, predicted, parallel or prepared.parallel))


def plan_shown(prepared: Prepared, predicted: Forecast, parallel: int) -> RenderableType:
    """The plan as a person reads it."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    from lynceus.job.machines import price_sources
    from lynceus.units import format_duration, format_money

    problem, usd = prepared.problem, format_money
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    sizes = " × ".join(f"{one.name} ({len(one.values)})" for one in problem.space.parameters)
    table.add_row("space", escape(f"{predicted.configurations:,} configurations: {sizes}"))
    table.add_row(
        "price",
        f"{usd(predicted.price_low)} to {usd(predicted.price_high)} per hour (median {usd(predicted.price_median)})",
    )
    for source in price_sources(prepared.job):
        table.add_row("prices", escape(source))
    limits = ", ".join(str(limit) for limit in problem.limits) or "no limits"
    table.add_row("goal", escape(f"{problem.goal}; {limits}"))
    budget = [usd(problem.budget.usd)] if problem.budget.usd < float("inf") else []
    budget += [f"{problem.budget.trials} trials"] if problem.budget.trials else []
    budget += [f"{format_duration(problem.budget.wall_clock_s)} of wall clock"] if problem.budget.wall_clock_s else []
    table.add_row("budget", f"{', '.join(budget)} (hard cap; open trials count with the most they can cost)")
    table.add_row("policy", escape(f"{prepared.policy.name}, {parallel} trial{'s' * (parallel > 1)} at a time"))
    table.add_row(
        "one run",
        f"at most {format_duration(predicted.run_limit_s)}: {usd(predicted.run_low_usd)} to {usd(predicted.run_high_usd)}",
    )
    table.add_row(
        "expected",
        f"{usd(predicted.expected_spend_usd)} in {format_duration(predicted.expected_time_s)}, about {predicted.expected_trials} trials",
    )
    table.add_row("worst case", f"{usd(predicted.worst_spend_usd)}; {format_duration(predicted.worst_time_s)}")
    table.add_row("basis", escape(predicted.basis))
    said = [*prepared.notes, *([predicted.warning] if predicted.warning else [])]
    notes = [f"[yellow]note:[/] {escape(note)}" for note in said]
    return Group(f"[bold]{escape(prepared.job.name)}[/]", table, *notes)


def _parameter(text: str) -> tuple[str, str]:
    name, sign, values = text.partition("=")
    if not sign or not name.strip():
        raise InputError(
            f"--parameter {text!r}: write a name, '=' and values, such as 'threads=1, 2, 4' or 'level=1..9'."
        )
    return name.strip(), values


def _first_price(parameters: dict[str, str]) -> str:
    """A price that grows with the first parameter that looks like an amount of machines."""
    for name, values in parameters.items():
        first = values.replace("..", ",").split(",")[0].strip()
        if name.isidentifier() and first.isdigit() and int(first) > 0:
            return f"0.05 * {name}"
    return "0.05"


def _asked(answers: Answers, *, asked_before: bool) -> Answers:
    from lynceus.job.starter import Answers, usual_command

    name = typer.prompt("Name of the job", default=answers.name)
    parameters = dict(answers.parameters)
    if not asked_before:
        typer.echo("What can be varied? One parameter per line: 'threads=1, 2, 4' or 'level=1..9'; an empty line ends.")
        parameters = {}
        while text := typer.prompt(f"Parameter {len(parameters) + 1}", default="", show_default=False):
            key, values = _parameter(text)
            parameters[key] = values
        parameters = parameters or dict(answers.parameters)
    command = typer.prompt("Command (${name} stands for a value)", default=answers.command or usual_command(parameters))
    price = typer.prompt("Dollars per hour (a number or an expression)", default=_first_price(parameters))
    deadline = typer.prompt("Longest time of a production run", default=answers.deadline)
    budget = typer.prompt("Budget of the search", default=answers.budget)
    return Answers(name, command, parameters, price, deadline, budget)
