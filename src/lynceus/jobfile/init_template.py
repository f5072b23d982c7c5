"""The commented job file that `lynceus init` writes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lynceus.errors import InputError, did_you_mean

_FOLDER = Path(__file__).parent / "templates"
SCHEMA = ".lynceus/job.schema.json"
"""Beside the job file."""
_RANGE = re.compile(r"\s*(-?\d+)\s*(?:\.\.|-|to)\s*(-?\d+)\s*")


@dataclass(frozen=True)
class Answers:
    """The user's answers to `lynceus init`."""

    name: str = "my-job"
    command: str = ""
    """The command that starts the job; empty: a Python program with one option per parameter."""
    parameters: Mapping[str, str] = field(default_factory=lambda: {"threads": "1, 2, 4", "level": "1..9"})
    """By name: values separated by commas, or a range such as `1..9`."""
    price: str = "0.05 * threads"
    deadline: str = "10m"
    budget: str = "1 USD"
    to_edit: tuple[str, ...] = ()
    """Parameters of which only one value is known."""


def job_template(answers: Answers) -> str:
    """A valid job file with a comment for every decision.

    >>> "threads: [1, 2, 4]" in job_template(Answers())
    True
    """
    space = "\n".join(
        f"  {json.dumps(name) if not name.isidentifier() else name}: {_values(text, name)}{_hint(answers, name)}"
        for name, text in answers.parameters.items()
    )
    return _TEMPLATE.format(
        name=answers.name,
        run=json.dumps(_arguments(answers.command or default_command(answers.parameters)), ensure_ascii=False),
        space=space,
        price=json.dumps(answers.price),
        deadline=answers.deadline,
        budget=answers.budget,
    )


def with_schema(text: str) -> str:
    """A job file whose first line tells the YAML language server of an editor where its schema is.

    >>> with_schema("name: a\\n").splitlines()[0]
    '# yaml-language-server: $schema=.lynceus/job.schema.json'
    """
    return f"# yaml-language-server: $schema={SCHEMA}\n{text}"


def template_names() -> list[str]:
    """The job files that come with Lynceus, for well-known servers and for training.

    >>> template_names()
    ['sglang', 'torchserve', 'training', 'triton', 'vllm']
    """
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def named_template(template: str, name: str | None = None) -> str:
    """A job file that comes with Lynceus; `name` replaces the name of its study."""
    if template not in template_names():
        known = ", ".join(template_names())
        raise InputError(
            f"--template is {template!r}; choose one of {known}.{did_you_mean(template, template_names())}"
        )
    text = (_FOLDER / f"{template}.yaml").read_text(encoding="utf-8")
    return text if name is None else text.replace(f"\nname: {template}\n", f"\nname: {json.dumps(name)}\n", 1)


def default_command(parameters: Iterable[str]) -> str:
    """A typical command that takes its parameters as options.

    >>> default_command(["threads", "level"])
    'python3 job.py --threads ${threads} --level ${level}'
    """
    return " ".join(["python3 job.py", *(f"--{name} ${{{name}}}" for name in parameters)])


def _arguments(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise InputError(f"The command {command!r} cannot be split into arguments: {error}.") from None
    if not arguments:
        raise InputError("The command is empty; write what starts your job, such as 'python3 train.py'.")
    return arguments


def _values(text: str, name: str) -> str:
    ranged = _RANGE.fullmatch(text)
    if ranged:
        return f"{{int: [{ranged[1]}, {ranged[2]}]}}"
    values = [part.strip() for part in text.split(",") if part.strip()]
    if any(".." in value for value in values):
        raise InputError(
            f"The parameter {name!r} is {text!r}; write a range as '1..9', with whole numbers, or list the values."
        )
    if not values:
        raise InputError(f"The parameter {name!r} has no values; write them as '1, 2, 4' or '1..9'.")
    return f"[{', '.join(_scalar(value) for value in values)}]"


def _hint(answers: Answers, name: str) -> str:
    """A comment on a parameter that still has the only value that was known."""
    alone = name in answers.to_edit and "," not in answers.parameters[name] and ".." not in answers.parameters[name]
    return "  # its default; edit this: add the other values that your program takes" if alone else ""


def _scalar(text: str) -> str:
    plain_number = re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", text)
    plain_word = re.fullmatch(r"[A-Za-z][\w.\-]*", text) and text.lower() not in ("true", "false", "null")
    return text if plain_number or plain_word else json.dumps(text, ensure_ascii=False)


_TEMPLATE = """\
# A job file for Lynceus. `lynceus check FILE` validates it, `lynceus plan FILE` estimates the cost, `lynceus run FILE` runs the search.
version: 1
name: {name}                  # the name of the study

# The command of one run: a list of arguments. ${{parameter}} is replaced by a value of the configuration.
# The job also gets the values as environment variables LYNCEUS_PARAM_<NAME> and as JSON in the file $LYNCEUS_PARAMS.
run: {run}
workdir: .                    # where it runs, relative to this file

# The parameters of a configuration: lists of values; ranges {{int: [1, 8]}}, {{int: [16, 256], log: true, steps: 5}},
# {{float: [0.2, 0.8], step: 0.2}}; ordered values {{ordinal: [small, medium, large]}}; {{choice: [a, b], when: "threads > 1"}}.
space:
{space}

# Leave out combinations that make no sense:
# forbid: ["threads == 1 and level > 6"]

price: {price}                # dollars per hour of a configuration: a number or an expression over parameters

objective: cost               # cost, time, or for example: maximize accuracy
constraints:
  - runtime <= {deadline}     # other constraints: "accuracy >= 0.9" for a metric that the job reports

budget:                       # a hard limit for the whole search; running trials count with the most they can cost
  cost: {budget}
  max_trials: 40

trial:
  timeout: auto               # stop runs that can no longer win
  parallel: 1                 # runs at the same time

future: {{runs: 100}}           # how often the result will be used, or {{per_month: 30, months: 6}}: the search stops when it would not pay
# baseline: {{config: {{...}}, runtime: 10m}}     # used until now, to show what the best one saves; measure: true runs it first
# metrics: {{accuracy: "accuracy=([0-9.]+)"}}   # read from the output of jobs that cannot be changed
# secrets: {{API_TOKEN: "env:API_TOKEN"}}       # by reference only; values are never stored
"""
