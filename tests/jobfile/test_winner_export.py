"""Exports for other tools run there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

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
space: {{threads: [3], level: [7]}}
price: 1
budget: {{cost: 1 USD}}
"""
BARE = {"PATH": os.environ["PATH"], "HOME": "/home/someone", "threads": "99", "LYNCEUS_PARAM_LEVEL": "99"}
"""The environment of another machine, in which values of parameters replace what it has of the same name."""


def _printed(script: str, variables: dict[str, str]) -> str:
    return subprocess.run(["sh", "-c", script], env=BARE | variables, capture_output=True, check=True, text=True).stdout


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("threads", "99")


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
    assert set(task["envs"]) == {"LYNCEUS_PARAM_THREADS", "LYNCEUS_PARAM_LEVEL"}


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
        (command_line(prepared.job, prepared.problem.space.point(0)), {}),
        (task["run"], task["envs"]),
    ):
        ended = subprocess.run(["bash", "-c", line], env=BARE | variables, capture_output=True, check=False, text=True)
        assert (ended.stdout, ended.stderr, ended.returncode) == ("7 3 1", "", 7)


@pytest.mark.parametrize(
    "job",
    [
        'run: [sh, -c, \'printf "%s/%s" "$LYNCEUS_PARAM_THREADS" "$LEVEL"\']\nenvs: {LEVEL: \'${level}\'}',
        "run: [sh, -c, 'printf \"%s/%s\" \"$1\" \"$2\"', sh, '${threads}', '${level}']",
        "run: [sh, show.sh]",
        'run: \'printf "%s/%s" "${threads}" "$level"\'',
        "run: 'sh show.sh'",
        'run: |\n  #!/bin/sh\n  # threads\n  printf "%s/%s" "${threads}" "$LYNCEUS_PARAM_LEVEL"',
        "run: 'printf \"%s/%s\" ${threads} ${level}'\nshell: true",
        'run: |\n  printf %s/ ${threads}\n  printf %s "$LYNCEUS_PARAM_LEVEL"\nshell: true',
        'run: \'printf "%s/%s" "$THREADS_TEXT" "$level"\'\nshell: true\nenvs: {THREADS_TEXT: \'${threads}\'}',
    ],
)
def test_the_recommended_command_runs_that_configuration_in_any_shell(job: str, tmp_path: Path) -> None:
    show = 'printf "%s/%s" "${threads:-$LYNCEUS_PARAM_THREADS}" "$LYNCEUS_PARAM_LEVEL"'
    (tmp_path / "show.sh").write_text(
        show if "[sh, show.sh]" not in job else show.replace("${threads:-", "").replace("THREADS}", "THREADS")
    )
    prepared = prepare(
        Job.parse(f"{job}\nname: copied\nspace: {{threads: [3], level: [7]}}\nprice: 1\nbudget: 1", tmp_path)
    )
    line = command_line(prepared.job, prepared.problem.space.point(0))
    others = BARE | {"level": "99", "LEVEL": "99", "LYNCEUS_PARAM_THREADS": "99", "THREADS_TEXT": "99"}
    ended = subprocess.run(["sh", "-c", line], env=others, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert ended.stdout == "3/7", line


def test_the_recommended_command_hides_a_variable_that_its_configuration_lacks() -> None:
    script = 'printf "%s/%s" "${threads}" "${codec-none}"'
    text = f"run: {script!r}\nname: copied\nspace:\n  threads: [3]\n  codec: {{choice: [a], when: threads > 3}}\nprice: 1\nbudget: 1"
    line = command_line(prepare(Job.parse(text)).job, {"threads": 3})
    others = BARE | {"codec": "zstd"}
    assert subprocess.run(["sh", "-c", line], env=others, capture_output=True, check=True).stdout == b"3/none"
