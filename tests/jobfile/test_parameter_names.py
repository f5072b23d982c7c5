"""Parameters become variables of the job: names that cannot are refused, and misspelt ones in a script are mentioned."""

from __future__ import annotations

import json

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy, prepare

RESERVED = ["PATH", "HOME", "IFS", "BASH_ENV", "LD_PRELOAD", "DYLD_X", "PYTHONPATH", "LYNCEUS_TRIAL", "RANDOM", "_"]


def prepared(run: str, space: str, more: str = "") -> PreparedStudy:
    return prepare(Job.parse(f"name: named\nrun: {run}\nspace: {space}\nprice: 1\nbudget: 1\n{more}"))


@pytest.mark.parametrize(
    ("space", "names"), [("{a: [1], A: [2]}", "'A' and 'a'"), ("{x-y: [1], x_y: [2]}", "'x_y' and 'x-y'")]
)
@pytest.mark.parametrize("run", ["[echo]", "echo"])
def test_parameters_that_would_share_a_variable_are_refused(run: str, space: str, names: str) -> None:
    with pytest.raises(InputError, match=rf"job.yaml:3: space\.\w+: {names} would share the variable LYNCEUS_PARAM_"):
        prepared(run, space)


@pytest.mark.parametrize("name", RESERVED)
@pytest.mark.parametrize("shell", ["shell: true", ""])
def test_names_that_a_script_needs_for_itself_are_refused(name: str, shell: str) -> None:
    with pytest.raises(InputError, match=rf"space\.{name}: a script needs the variable {name} for itself"):
        prepared("echo", f"{{{name}: [1, 2]}}", shell)


@pytest.mark.parametrize("name", RESERVED)
def test_a_list_of_arguments_may_use_any_name(name: str) -> None:
    prepared(f"[echo, '${{{name}}}']", f"{{{name}: [1, 2]}}")


@pytest.mark.parametrize("name", ["a\tb", "a\\u202eb", "a\\nb", "n" * 101, "a  b"])
def test_names_that_are_not_one_printable_line_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="its name is not one line"):
        prepared("[echo]", f'{{"{name}": [1, 2]}}')


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("envs: {threads: '8'}", r"envs\.threads: the parameter 'threads' sets the variable"),
        ("secrets: {threads: env:T}", r"secrets\.threads: the parameter 'threads' sets the variable"),
        ("envs: {LYNCEUS_PARAM_THREADS: '8'}", r"envs\.LYNCEUS_PARAM_THREADS: the parameter 'threads' sets this"),
        ("secrets: {LYNCEUS_PARAM_THREADS: env:T}", r"secrets\.LYNCEUS_PARAM_THREADS: the parameter 'threads' sets"),
    ],
)
def test_a_variable_is_set_by_one_of_parameters_envs_and_secrets(more: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        prepared("echo $threads", "{threads: [1, 2]}", more)


def test_an_environment_variable_may_repeat_its_parameter() -> None:
    prepared("echo $threads", "{threads: [1, 2]}", "envs: {threads: '${threads}'}")


def test_a_study_that_began_with_such_names_can_still_be_read() -> None:
    job = Job.parse("name: old\nrun: echo $HOME\nspace: {HOME: [1], a: [1], A: [2]}\nprice: 1\nbudget: 1")
    assert len(prepare(Job.from_stored(job.stored()), to_run=False).problem.space) == 1


@pytest.mark.parametrize(
    ("script", "misspelt"),
    [
        ("sort --parallel=${thread} data", "thread"),
        ("sort --thread=${thread} data", "thread"),
        ('sort "--parallel=$thraeds" data', "thraeds"),
        ("echo $LYNCEUS_PARAM_THREAD", "LYNCEUS_PARAM_THREAD"),
        ("#!/bin/bash -e\nsort --parallel=${thread}", "thread"),
        ("#!/usr/bin/env bash\nsort --parallel=${thread}", "thread"),
    ],
)
def test_a_misspelt_variable_of_a_script_is_mentioned(script: str, misspelt: str) -> None:
    (note,) = prepared(json.dumps(script), "{threads: [1, 2]}").notes
    meant = "LYNCEUS_PARAM_THREADS" if misspelt.startswith("LYNCEUS") else "threads"
    assert note == f"run: nothing sets the variable {misspelt} of the script. Did you mean '{meant}'?"


@pytest.mark.parametrize(
    "script",
    [
        "thread=4; sort --parallel=$thread",
        "for thread in 1 2; do echo ${thread}; done",
        "read -r thread < file; echo $thread",
        "export thread; echo $thread",
        ". ./settings; echo ${thread}",
        "eval `cat file`; echo ${thread}",
        "echo ${thread:-4}",
        "awk '{print $thread}' data",
        "echo 1 # not ${thread}",
        "echo \\${thread}",
        "#!/usr/bin/perl\nprint $thread;",
        "echo $elsewhere ${threads} $threads $LYNCEUS_PARAM_THREADS",
    ],
)
def test_variables_that_a_script_sets_itself_are_not_mentioned(script: str) -> None:
    assert prepared(json.dumps(script + "\n: $threads"), "{threads: [1, 2]}").notes == ()
