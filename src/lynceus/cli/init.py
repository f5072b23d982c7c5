"""`lynceus init`: a commented job file from a few questions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.output import echo, write_file
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.jobfile.init_template import Answers


def init(
    file: Annotated[Path, typer.Argument(help="The job file to write.")] = Path("job.yaml"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; take the answers from the options.")] = False,
    name: Annotated[str | None, typer.Option(help="The name of the study.")] = None,
    command: Annotated[str, typer.Option(help="The command of the job; ${name} stands for a parameter.")] = "",
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="A parameter: 'threads=1, 2, 4' or 'level=1..9'.")
    ] = None,
    price: Annotated[str, typer.Option(help="Dollars per hour: a number or an expression over parameters.")] = "",
    deadline: Annotated[str | None, typer.Option(help="The longest that a production run may take.")] = None,
    budget: Annotated[str | None, typer.Option(help="Dollars for the whole search.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    template: Annotated[
        str | None,
        typer.Option(
            help="Start from a job file for vllm, sglang, triton, torchserve or training instead of questions."
        ),
    ] = None,
) -> None:
    """Write a commented job file from a few questions, or from a template.

    Looks into the folder first: for a Spark, PyTorch or dbt project, a Makefile, or a Python program with options, it proposes a command
    and parameters. Editors with a YAML language server, such as VS Code, complete and check the file as you write.
    """
    from lynceus.jobfile.init_template import Answers, job_template
    from lynceus.jobfile.job import Job
    from lynceus.jobfile.prepared_study import prepare

    if file.exists() and not force:
        raise InputError(f"{file}: the file exists already; choose another name, or replace it with --force.")

    if template is not None:
        _write_template(file, template, name, alone=not (command or parameter or price))
        return

    def check(answers: Answers) -> None:
        prepare(Job.parse(job_template(answers), file.resolve().parent, str(file)))

    proposed = _proposal(file) if not command and not parameter else Answers()
    parameters = dict(_parameter(text) for text in parameter) if parameter else dict(proposed.parameters)
    price_text = price or (proposed.price if proposed.command else _default_price(parameters))
    given = {"name": name, "command": command, "deadline": deadline, "budget": budget}
    chosen: dict[str, Any] = {field: value for field, value in given.items() if value}
    answers = replace(proposed, parameters=parameters, price=price_text, **chosen)
    if yes:
        check(answers)
    else:
        answers = _ask(answers, check, ask_parameters=not parameter, price=price, proposed=proposed)
    _write(file, job_template(answers))
    echo(f"Wrote {file}. Check it, then run: lynceus plan {file}, and: lynceus run {file}")


def _write_template(file: Path, template: str, name: str | None, *, alone: bool) -> None:
    from lynceus.jobfile.init_template import named_template
    from lynceus.jobfile.job import Job

    if not alone:
        raise InputError(
            "--template is a whole job file; leave out --command, --parameter and --price, and edit the file."
        )
    text = named_template(template, name)
    Job.parse(text, file.resolve().parent, str(file))
    _write(file, text)
    echo(f"Wrote {file}. Edit model, prices and limits, then run: lynceus check {file}, and: lynceus run {file}")


def _write(file: Path, text: str) -> None:
    """The job file, and beside it the schema by which editors complete and check it."""
    from lynceus.jobfile.init_template import SCHEMA, with_schema
    from lynceus.jobfile.json_schema import job_schema

    write_file(file, with_schema(text).encode())
    schema = file.parent / SCHEMA
    schema.parent.mkdir(exist_ok=True)
    write_file(schema, job_schema().encode())


def _proposal(file: Path) -> Answers:
    """Answers that fit the folder of the job file; what was found there is said."""
    from lynceus.jobfile.init_template import Answers
    from lynceus.jobfile.project_look import look

    found = look(file.resolve().parent)
    if found is None:
        return Answers()
    echo(f"This folder has {found.found}; the job file starts from that.")
    if found.answers.to_edit:
        echo(f"Add values to {' and '.join(found.answers.to_edit)}: how far they go is not known.")
    if found.to_replace:
        echo(f"Replace {' and '.join(found.to_replace)} in its command.")
    return found.answers


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


def _ask(
    answers: Answers, check: Callable[[Answers], None], *, ask_parameters: bool, price: str, proposed: Answers
) -> Answers:
    """Ask one question after the other; an answer that `check` refuses is asked for again, and the others are kept.

    A proposed command and its price are offered as long as its parameters are kept.
    """
    from lynceus.jobfile.init_template import default_command

    def ask(answers: Answers, field: str, question: str, default: str) -> Answers:
        while True:
            given = replace(answers, **{field: _prompt(question, default)})
            if _accepted(given, check):
                return given

    # Command and price may name parameters that are still to come: until they are asked for, valid ones stand in.
    command = answers.command
    answers = replace(answers, command="", price=_default_price(dict(answers.parameters)))
    check(answers)
    answers = ask(answers, "name", "Name of the job", answers.name)
    if ask_parameters:
        answers = _ask_parameters(answers, check)
    if proposed.command and dict(answers.parameters) == dict(proposed.parameters):
        price = price or proposed.price
    elif command == proposed.command:
        command = ""
    command = command or default_command(answers.parameters)
    answers = ask(answers, "command", "Command (${name} stands for a value)", command)
    answers = ask(answers, "price", "Dollars per hour (a number or an expression)", price or answers.price)
    answers = ask(answers, "deadline", "Longest time of a production run", answers.deadline)
    return ask(answers, "budget", "Budget of the search", answers.budget)


def _prompt(question: str, default: str, *, show: bool = True) -> Any:
    """The answer to a question; an error where nobody is there to answer."""
    try:
        return typer.prompt(question, default=default, show_default=show)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        raise InputError(
            "init: nobody answers the questions; use a terminal, or add -y with --command, --parameter, --price, --deadline and --budget."
        ) from None


def _ask_parameters(answers: Answers, check: Callable[[Answers], None]) -> Answers:
    """Ask for parameters until an empty line; without any, those of `answers` stay."""
    kept = "; ".join(f"{name}={values}" for name, values in answers.parameters.items())
    echo("Parameters, one per line: 'threads=1, 2, 4' or 'level=1..9'; end with an empty line.")
    echo(f"An empty line at once keeps: {kept}")
    asked: dict[str, str] = {}
    while text := _prompt(f"Parameter {len(asked) + 1}", "", show=False):
        try:
            name, values = _parameter(text)
        except InputError as error:
            echo(f"lynceus: {error}", err=True)
            continue
        more = {**asked, name: values}
        given = replace(answers, parameters=more, price=_default_price(more))
        if _accepted(given, check):
            asked, answers = more, given
    return answers


def _accepted(answers: Answers, check: Callable[[Answers], None]) -> bool:
    """Whether a job file with these answers is valid; otherwise says why."""
    try:
        check(answers)
    except InputError as error:
        reason = re.sub(r"^\S+?:\d+: ", "", str(error))  # the file is not written yet
        echo(f"lynceus: {reason} Answer again.", err=True)
        return False
    return True
