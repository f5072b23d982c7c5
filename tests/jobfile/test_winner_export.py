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
from lynceus.jobfile.winner_export import env_file, shell_line, skypilot_task
from lynceus.trial.text import clean_text

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


HOSTILE = (
    "it's",
    "two words",
    "'; touch pwned; '",
    '$(touch pwned) `touch pwned` ${HOME} $HOME "q" !! a!b',
    "back\\slash \\n %s \\033 * ~ # & | > pwned",
    "tab\there",
    "line one\nline two\n",
    "\x1b[31mred\x1b[0m \r\n \x7f",
    "naïve ✓ 日本 \u202eright",
    "-n",
    "=",
    "",
)
"""Values that a shell, a terminal or a careless quotation would change."""
FORMS = {
    "arguments": "run: [sh, show.sh, '${text}']",
    "a variable of arguments": "run: [sh, show.sh]",
    "a variable in a shell of arguments": "run: [sh, -c, 'printf %s \"$LYNCEUS_PARAM_TEXT\"']",
    "envs": "run: [sh, -c, 'printf %s \"$TEXT\"']\nenvs: {TEXT: '${text}'}",
    "a script": "run: 'printf %s \"$text\"'",
    "a script of several lines": 'run: |\n  # $text\n  printf %s \\\n    "$LYNCEUS_PARAM_TEXT"\n',
    "a script that a program reads": "run: 'sh show.sh'",
    "an interpreter": 'run: |\n  #!/bin/sh\n  printf %s "$text"\n',
    "inserted plainly": "run: 'printf %s ${text}'\nshell: true",
    "inserted in quotes": "run: 'printf %s \"${text}\"'\nshell: true",
    "inserted in single quotes": "run: |\n  printf %s '${text}'\nshell: true",
}
SHELLS = {"sh": ["sh"], "bash": ["bash"], "interactive bash": ["bash", "--norc", "--noprofile", "-i"]}


@pytest.mark.parametrize("form", FORMS)
def test_a_pasted_line_runs_exactly_that_configuration_for_any_value(form: str, tmp_path: Path) -> None:
    """All lines of a form are pasted one after another into each shell; between them stands a mark."""
    (tmp_path / "show.sh").write_text('printf %s "${1-$LYNCEUS_PARAM_TEXT}"')
    values = [one for one in HOSTILE if one or form != "inserted plainly"]
    space = f"space:\n  text: {json.dumps(values)}\n  codec: {{choice: [a], when: \"text == 'never'\"}}"
    job = prepare(Job.parse(f"{FORMS[form]}\n{space}\nname: copied\nprice: 1\nbudget: 1", tmp_path)).job
    lines = [command_line(job, {"text": value}) for value in values]
    assert all(clean_text(line) == line for line in lines), "a terminal would not show it as it is"
    pasted = "".join(f"{line}\nprintf '<next>'\n" for line in lines)
    others = BARE | {"text": "99", "TEXT": "99", "LYNCEUS_PARAM_TEXT": "99", "HISTFILE": ""}
    for shell in SHELLS.values():
        ended = subprocess.run(shell, input=pasted.encode(), env=others, cwd=tmp_path, capture_output=True, check=False)
        assert ended.stdout.decode().split("<next>")[:-1] == values, (shell, ended.stderr)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("run", ["[sh, show.sh]", "'sh show.sh'", "'sh show.sh \"${codec-}\"'"])
def test_a_parameter_that_a_configuration_lacks_is_unset_also_for_programs(run: str, tmp_path: Path) -> None:
    (tmp_path / "show.sh").write_text('printf "%s/%s" "$LYNCEUS_PARAM_THREADS" "${LYNCEUS_PARAM_CODEC-none}"')
    space = "space:\n  threads: [3]\n  codec: {choice: [a], when: threads > 3}"
    prepared = prepare(Job.parse(f"run: {run}\n{space}\nname: copied\nprice: 1\nbudget: 1", tmp_path))
    others = BARE | {"codec": "stale", "LYNCEUS_PARAM_CODEC": "stale"}
    task = yaml.safe_load(skypilot_task(prepared, 0, "why"))
    for line, variables in (
        (command_line(prepared.job, {"threads": 3}), {}),
        (shell_line(prepared, 0, "why"), {}),
        (f"set -a\n{env_file(prepared, 0, 'why')}\nsh show.sh", {}),
        (task["run"], task["envs"]),
    ):
        ended = subprocess.run(
            ["sh", "-c", line], env=others | variables, cwd=tmp_path, capture_output=True, check=True
        )
        assert ended.stdout == b"3/none", line


def test_the_environment_file_holds_any_value() -> None:
    text = f"run: [sh, show.sh]\nspace: {{text: {json.dumps(HOSTILE)}}}\nname: copied\nprice: 1\nbudget: 1"
    prepared = prepare(Job.parse(text))
    for row in range(len(prepared.problem.space)):
        script = f'set -a\n{env_file(prepared, row, "why")}\nprintf %s "$LYNCEUS_PARAM_TEXT"'
        ended = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
        assert ended.stdout.decode() == prepared.problem.space.point(row)["text"]


def test_a_pasted_line_has_the_secrets_and_files_that_every_run_has(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from a file\n")
    script = 'printf "%s/%s/" "$FIRST" "$SECOND"; cat "$LYNCEUS_PARAMS"; echo "{}" >> "$LYNCEUS_RESULT"; echo x > "$LYNCEUS_SCRATCH/x"'
    text = f"run: {json.dumps(script)}\nsecrets: {{FIRST: 'env:MY_TOKEN', SECOND: 'file:token'}}\n"
    text += "space:\n  threads: [3]\n  codec: {choice: [a], when: threads > 3}\nname: copied\nprice: 1\nbudget: 1"
    line = command_line(prepare(Job.parse(text, tmp_path)).job, {"threads": 3})
    others = BARE | {"MY_TOKEN": "from my shell", "TMPDIR": str(tmp_path)}
    ended = subprocess.run(["sh", "-c", line], env=others, cwd="/", capture_output=True, check=True, text=True)
    assert (ended.stdout, ended.stderr) == ('from my shell/from a file/{"threads": 3}', "")
    assert "from" not in line, "a secret is shown"
