"""A list of arguments with `$threads` is refused: the shell would find no such variable, and the job would ignore its parameters."""

from __future__ import annotations

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

JOB = "version: 1\nname: bare\nrun: {run}\nspace: {{threads: [1, 2]}}\nprice: 1\nbudget: {{cost: 1 USD}}\n"


def test_an_unset_shell_variable_in_an_argument_is_refused() -> None:
    with pytest.raises(InputError, match=r"run\.2: \$threads is not set .* \"\$LYNCEUS_PARAM_THREADS\""):
        prepare(Job.parse(JOB.format(run="[sh, -c, 'sort --parallel=$threads data.txt']")))


@pytest.mark.parametrize(
    ("run", "more"),
    [
        ("[sort, '--parallel=${threads}']", ""),
        ("[sh, -c, 'sort --parallel=$LYNCEUS_PARAM_THREADS $HOME/data.txt']", ""),
        ("[sh, -c, 'sort --parallel=$threads data.txt']", "envs: {threads: '${threads}'}\n"),
        ("'sort --parallel=$threads data.txt'", ""),
    ],
)
def test_variables_that_are_set_are_accepted(run: str, more: str) -> None:
    prepare(Job.parse(JOB.format(run=run) + more))


def test_a_variable_that_no_shell_replaces_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        InputError, match=r"run\.1: \$threads is not replaced in a list .* \"\$\{threads\}\" with braces"
    ):
        prepare(Job.parse(JOB.format(run="[sort, '--parallel=$threads']")))
    conditional = JOB.format(run="[sort, $level]").replace(
        "[1, 2]", "[1, 2], level: {choice: [a, b], when: threads > 1}"
    )
    with pytest.raises(InputError, match=r"run\.1: \$level .* read LYNCEUS_PARAM_LEVEL from its environment"):
        prepare(Job.parse(conditional))


@pytest.mark.parametrize(
    ("run", "noted"),
    [
        ("[sort, $LYNCEUS_PARAM_THREADS, data.txt]", True),
        ("[sh, -c, 'sort $LYNCEUS_PARAM_THREADS']", False),
        ("[ssh, host, 'sort $LYNCEUS_PARAM_THREADS']", False),
        ("[sort, $LYNCEUS_PARAM_OTHER]", False),
    ],
)
def test_a_name_of_the_environment_that_no_shell_replaces_gets_a_note(run: str, noted: bool) -> None:
    said = 'run.1: $LYNCEUS_PARAM_THREADS is not replaced in a list of arguments; write "${threads}".'
    assert (said in prepare(Job.parse(JOB.format(run=run))).notes) == noted
