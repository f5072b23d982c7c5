"""Exports for other tools run there."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import yaml

from lynceus.jobfile.command_line import command_line
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.winner_export import env_file, skypilot_task

SCRIPT = 'printf "%s/%s/%s" "${threads}" "$LYNCEUS_PARAM_LEVEL" "$HOME"'
JOB = f"""
version: 1
name: exported
run: {SCRIPT!r}
space: {{threads: [3], level: [7], HOME: [nowhere]}}
price: 1
budget: {{cost: 1 USD}}
"""
BARE = {"PATH": os.environ["PATH"], "HOME": "/home/someone"}
"""The environment of another machine; parameters do not replace its variables."""


def _printed(script: str, variables: dict[str, str]) -> str:
    return subprocess.run(["sh", "-c", script], env=BARE | variables, capture_output=True, check=True, text=True).stdout


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")


def test_a_script_finds_its_values_in_a_skypilot_task() -> None:
    task = yaml.safe_load(skypilot_task(prepare(Job.parse(JOB)), 0, "why"))
    assert _printed(task["run"], task["envs"]) == "3/7//home/someone"


def test_a_script_finds_its_values_in_the_environment_file() -> None:
    content = env_file(prepare(Job.parse(JOB)), 0, "why")
    assert _printed(f"set -a\n{content}\n{SCRIPT}", {}) == "3/7//home/someone"


def test_a_list_of_arguments_gets_the_same_variables_as_during_the_search() -> None:
    text = JOB.replace(f"run: {SCRIPT!r}", "run: [train, '--threads=${threads}']")
    task = yaml.safe_load(skypilot_task(prepare(Job.parse(text)), 0, "why"))
    assert task["run"] == "train --threads=3"
    assert set(task["envs"]) == {"LYNCEUS_PARAM_THREADS", "LYNCEUS_PARAM_LEVEL", "LYNCEUS_PARAM_HOME"}


PYTHON = """\
#!/usr/bin/env python3
# It's "quoted" $HOME `x` \\\\n
import os, sys
print(os.environ["LYNCEUS_PARAM_LEVEL"], os.environ["threads"], len(sys.argv), end="")
sys.exit(7)
"""


def test_a_script_with_an_interpreter_line_runs_by_hand_and_in_skypilot() -> None:
    prepared = prepare(Job.parse(JOB.replace(repr(SCRIPT), json.dumps(PYTHON))))
    task = yaml.safe_load(skypilot_task(prepared, 0, "why"))
    for line, variables in (
        (command_line(prepared.job, prepared.problem.space.point(0) | {"HOME": "/home/someone"}), {}),
        (task["run"], task["envs"]),
    ):
        ended = subprocess.run(["bash", "-c", line], env=BARE | variables, capture_output=True, check=False, text=True)
        assert (ended.stdout, ended.stderr, ended.returncode) == ("7 3 1", "", 7)
