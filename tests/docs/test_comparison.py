"""What docs/comparison.md tells users to type exists: commands with their options, fields of job files, calls."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from optuna.samplers import BaseSampler

import lynceus
from lynceus.cli.app import app
from lynceus.integrations.optuna import LynceusSampler
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from readers import ROOT, user_environment

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| \d+ \|", line)]
TYPED = sorted({text for row in ROWS for text in re.findall(r"`([^`]+)`", row[-1])})
COMMANDS = [text for text in TYPED if text.startswith("lynceus ")]
FIELDS = [text for text in TYPED if re.match(r"\w+: ", text)]
CALLS = [text for text in TYPED if re.match(r"[\w.]+\(", text)]
JOB = "name: one\nrun: ['true']\nspace: {threads: [1, 2], level: [1, 9], a: [1, 2], b: [1, 64]}\nprice: 1\n"

STUDY_JOB = """\
name: one
run: sleep 0.0"$nodes"
space: {nodes: [1, 2, 3]}
price: 0.1 * nodes
constraints: ["runtime <= 10m"]
budget: {cost: 1 USD, max_trials: 3}
"""


def test_all_thirty_requests_are_answered() -> None:
    assert [int(row[0].strip("| ")) for row in ROWS] == list(range(1, 31))
    assert [row[0] for row in ROWS if "`" not in row[-1]] == [], "each has a line to type"
    assert sorted([*COMMANDS, *FIELDS, *CALLS]) == TYPED, "each line is run below"


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_exists_with_its_options(text: str) -> None:
    command = typer.main.get_command(app)
    words = shlex.split(text)[1:]
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {name for param in command.params for name in param.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a study has ended."""
    made = tmp_path_factory.mktemp("comparison")
    (made / "job.yaml").write_text(STUDY_JOB)
    assert ran("lynceus run job.yaml --yes", made).returncode == 0
    return made


def ran(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = user_environment(Path(sys.executable).parent)
    return subprocess.run(text, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_runs_as_it_is_printed(text: str, folder: Path) -> None:
    done = ran(text.replace("STUDY", "one"), folder)
    assert done.returncode == 0 or (text == "lynceus doctor" and "problem" in done.stdout), done.stderr
    assert done.stdout.strip() or done.stderr.strip()


@pytest.mark.parametrize("text", FIELDS)
def test_a_field_of_a_job_file_is_accepted(text: str) -> None:
    field = yaml.safe_load(text)
    document = yaml.safe_load(JOB) | {"budget": {"cost": "1 USD"}} | field
    prepared = prepare(Job.parse(yaml.safe_dump(document)))
    assert (prepared.job.name, len(prepared.problem.space) > 1) == ("one", True)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_works(call: str) -> None:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.10 * nodes")
    study = lynceus.create_study(space=space, constraints=["runtime <= 10m"], budget="$1")
    made = eval(call, {"study": study, "trial": study.ask(), "LynceusSampler": LynceusSampler})
    assert study.trials[0].metrics == {"accuracy": 0.9} if made is None else isinstance(made, BaseSampler)
