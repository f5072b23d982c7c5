"""The commented job file that `lynceus init` writes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lynceus.errors import InputError

_RANGE = re.compile(r"\s*(-?\d+)\s*(?:\.\.|-|to)\s*(-?\d+)\s*")


@dataclass(frozen=True)
class Answers:
    """What a person said about their job."""

    name: str = "my-job"
    command: str = ""
    """What starts the job; empty: a Python program with an option per parameter."""
    parameters: Mapping[str, str] = field(default_factory=lambda: {"threads": "1, 2, 4", "level": "1..9"})
    """By name: values with commas between them, or a range such as `1..9`."""
    price: str = "0.05 * threads"
    deadline: str = "10m"
    budget: str = "1 USD"


def starter(answers: Answers) -> str:
    """A job file that `lynceus check` accepts, with a comment for every decision.

    >>> "threads: [1, 2, 4]" in starter(Answers())
    True
    """
    space = "\n".join(
        f"  {json.dumps(name) if not name.isidentifier() else name}: {_values(text, name)}"
        for name, text in answers.parameters.items()
    )
    return _TEMPLATE.format(
        name=answers.name,
        run=json.dumps(_arguments(answers.command or usual_command(answers.parameters)), ensure_ascii=False),
        space=space,
        price=json.dumps(answers.price),
        deadline=answers.deadline,
        budget=answers.budget,
    )


def usual_command(parameters: Iterable[str]) -> str:
    """A guess at how a job takes its parameters.

    >>> usual_command(["threads", "level"])
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
    if not values:
        raise InputError(f"The parameter {name!r} has no values; write them as '1, 2, 4' or '1..9'.")
    return f"[{', '.join(_scalar(value) for value in values)}]"


def _scalar(text: str) -> str:
    plain_number = re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", text)
    plain_word = re.fullmatch(r"[A-Za-z][\w.\-]*", text) and text.lower() not in ("true", "false", "null")
    return text if plain_number or plain_word else json.dumps(text, ensure_ascii=False)


_TEMPLATE = """\
# A job for Lynceus. `lynceus check FILE` validates it, `lynceus plan FILE` says what the search may cost, `lynceus run FILE` searches.
version: 1
name: {name}                  # the study; results are found under this name

# What one run of the job is: a list of arguments. ${{parameter}} stands for a value of the configuration.
# The values also reach the job as environment variables LYNCEUS_PARAM_<NAME> and as JSON in the file $LYNCEUS_PARAMS.
run: {run}
workdir: .                    # where it runs, relative to this file

# What a configuration chooses. Lists of values; ranges {{int: [1, 8]}}, {{int: [16, 256], log: true, steps: 5}},
# {{float: [0.2, 0.8], step: 0.2}}; ordered words {{ordinal: [small, medium, large]}}; {{choice: [a, b], when: "threads > 1"}}.
space:
{space}

# Combinations that make no sense are left out:
# forbid: ["threads == 1 and level > 6"]

price: {price}                # dollars per hour of a configuration: a number or an expression over parameters

objective: cost               # cost, time, or for example: maximize accuracy
constraints:
  - runtime <= {deadline}     # other limits: "accuracy >= 0.9" for a metric that the job reports

budget:                       # a hard cap for the whole search; runs under way count with the most they can cost
  cost: {budget}
  max_trials: 40

trial:
  timeout: auto               # stop runs that can no longer win
  parallel: 1                 # runs at the same time

# baseline: {{...}}             # the configuration used until now, to tell what the winner saves
# metrics: {{accuracy: "accuracy=([0-9.]+)"}}   # read from the output of jobs that cannot be changed
# secrets: {{API_TOKEN: "env:API_TOKEN"}}       # by reference only; never stored
"""
