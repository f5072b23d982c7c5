"""What docs/comparison.md tells users to type exists: commands with their options, fields of job files, calls."""

from __future__ import annotations

import re
import shlex

import pytest
import typer
import yaml

import lynceus
from lynceus.cli.app import app
from lynceus.jobfile.job import Job
from readers import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
TYPED = sorted({text for row in ROWS for text in re.findall(r"`([^`]+)`", row[-1])})
JOB = "name: one\nrun: ['true']\nspace: {threads: [1, 2], level: [1, 9], a: [1, 2], b: [1, 64]}\nprice: 1\n"


def test_all_thirty_requests_are_answered() -> None:
    assert [int(row[0].strip("| ")) for row in ROWS] == list(range(1, 31))
    assert all(row[-1].rstrip(" |") for row in ROWS)


@pytest.mark.parametrize("text", [text for text in TYPED if text.startswith("lynceus ")])
def test_a_command_exists_with_its_options(text: str) -> None:
    command = typer.main.get_command(app)
    words = shlex.split(text)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {name for param in command.params for name in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("text", [text for text in TYPED if re.match(r"\w+: ", text) and "skypilot" not in text])
def test_a_field_of_a_job_file_is_accepted(text: str) -> None:
    field = yaml.safe_load(text)
    document = yaml.safe_load(JOB) | {"budget": {"cost": "1 USD"}} | field
    assert Job.parse(yaml.safe_dump(document)).name == "one"


def test_the_call_works() -> None:
    (call,) = [text for text in TYPED if text.startswith("study.")]
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.10 * nodes")
    study = lynceus.create_study(space=space, constraints=["runtime <= 10m"], budget="$1")
    eval(call, {"study": study, "trial": study.ask()})
    assert study.trials[0].metrics == {"accuracy": 0.9}
