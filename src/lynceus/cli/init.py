"""`lynceus init`: a commented job file from a few questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import echo, write_file
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.jobfile.init_template import Answers


def init(
    file: Annotated[Path, typer.Argument(help="The job file to write.")] = Path("job.yaml"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; take the answers from the options.")] = False,
    name: Annotated[str, typer.Option(help="The name of the study.")] = "my-job",
    command: Annotated[str, typer.Option(help="The command of the job; ${name} stands for a parameter.")] = "",
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="A parameter: 'threads=1, 2, 4' or 'level=1..9'.")
    ] = None,
    price: Annotated[str, typer.Option(help="Dollars per hour: a number or an expression over parameters.")] = "",
    deadline: Annotated[str, typer.Option(help="The longest that a production run may take.")] = "10m",
    budget: Annotated[str, typer.Option(help="Dollars for the whole search.")] = "1 USD",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented job file from a few questions."""
    from lynceus.jobfile.init_template import Answers, job_template
    from lynceus.jobfile.job import Job
    from lynceus.jobfile.prepared_study import prepare

    if file.exists() and not force:
        raise InputError(f"{file}: the file exists already; choose another name, or replace it with --force.")
    parameters = dict(_parameter(text) for text in parameter or ["threads=1, 2, 4", "level=1..9"])
    answers = Answers(name, command, parameters, price or _default_price(parameters), deadline, budget)
    if not yes:
        answers = _ask(answers, ask_parameters=not parameter)
    text = job_template(answers)
    prepare(Job.parse(text, file.resolve().parent, str(file)))
    write_file(file, text.encode())
    echo(f"Wrote {file}. Check it, then run: lynceus plan {file}, and: lynceus run {file}")


def _parameter(text: str) -> tuple[str, str]:
    name, sign, values = text.partition("=")
    if not sign or not name.strip():
        raise InputError(
            f"--parameter is {text!r}; write a name, '=' and values, such as 'threads=1, 2, 4' or 'level=1..9'."
        )
    return name.strip(), values


def _default_price(parameters: dict[str, str]) -> str:
    """A price that grows with the first parameter that may be a number of machines."""
    for name, values in parameters.items():
        first = values.replace("..", ",").split(",")[0].strip()
        if name.isidentifier() and first.isdigit() and int(first) > 0:
            return f"0.05 * {name}"
    return "0.05"


def _ask(answers: Answers, *, ask_parameters: bool) -> Answers:
    from lynceus.jobfile.init_template import Answers, default_command

    name = typer.prompt("Name of the job", default=answers.name)
    parameters = dict(answers.parameters)
    if ask_parameters:
        echo("Parameters, one per line: 'threads=1, 2, 4' or 'level=1..9'; end with an empty line.")
        parameters = {}
        while text := typer.prompt(f"Parameter {len(parameters) + 1}", default="", show_default=False):
            key, values = _parameter(text)
            parameters[key] = values
        parameters = parameters or dict(answers.parameters)
    command = typer.prompt(
        "Command (${name} stands for a value)", default=answers.command or default_command(parameters)
    )
    price = typer.prompt("Dollars per hour (a number or an expression)", default=_default_price(parameters))
    deadline = typer.prompt("Longest time of a production run", default=answers.deadline)
    budget = typer.prompt("Budget of the search", default=answers.budget)
    return Answers(name, command, parameters, price, deadline, budget)
