"""Values of parameters reach a job whatever variables the caller or a node has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lynceus.executors.command import JobCommand, absent_variables, environment, is_reserved
from lynceus.executors.interface import Request
from lynceus.executors.run_directory import prepare
from lynceus.executors.supervisor.bundle import write_runner

SHOW = 'printf "%s %s %s %s" "${threads-}" "$LYNCEUS_PARAM_THREADS" "${codec-none}" "${LYNCEUS_PARAM_CODEC-none}"'
OTHERS = {"threads": "99", "LYNCEUS_PARAM_THREADS": "99", "codec": "zstd", "LYNCEUS_PARAM_CODEC": "zstd"}
"""Variables of the same names, as a caller, an outer search or a node may have."""


def test_values_replace_the_variables_of_the_caller(tmp_path: Path) -> None:
    job = JobCommand(SHOW, workdir=tmp_path, conditional=("codec",))
    record = prepare(tmp_path / "run", Request("study", 0, 0, {"threads": 2}, 60.0, True, "id"), job)
    given = environment(job, record, {"PATH": os.environ["PATH"], **OTHERS})
    assert subprocess.run(["sh", "-c", SHOW], env=given, capture_output=True, check=True).stdout == b"2 2 none none"


def test_values_replace_the_variables_of_a_node(tmp_path: Path) -> None:
    job, there = JobCommand(SHOW, workdir=tmp_path, conditional=("codec",)), tmp_path / "run"
    record = prepare(there, Request("study", 0, 0, {"threads": 2}, 60.0, True, "id"), job)
    given = {
        "environment": environment(job, record, {}),
        "secrets": [],
        "without": absent_variables(job, record["params"]),
    }
    command = [sys.executable, "-I", "-S", str(write_runner(tmp_path / "tools")), "run", str(there), "-"]
    subprocess.run(command, input=json.dumps(given), text=True, env=os.environ | OTHERS, cwd="/", check=True)
    assert (there / "stdout").read_text() == "2 2 none none"


def test_a_parameter_never_replaces_what_a_shell_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    job = JobCommand("true")
    request = {"params": {"PATH": "/nowhere", "threads": 2}, "study": "s", "number": 0, "run": "r"}
    given = environment(job, request)
    assert (given["PATH"], given["LYNCEUS_PARAM_PATH"], given["threads"]) == (os.environ["PATH"], "/nowhere", "2")


def test_every_variable_that_bash_sets_by_itself_is_reserved() -> None:
    """A value under such a name would not arrive."""
    listing = subprocess.run(["bash", "-c", "compgen -v"], env={}, capture_output=True, check=True, text=True).stdout
    harmless = {"TERM", "PS1", "PS2", "COLUMNS", "LINES", "HISTFILE", "HISTSIZE", "HISTFILESIZE", "MAILCHECK"}
    assert [name for name in listing.split() if not is_reserved(name) and name not in harmless] == []
