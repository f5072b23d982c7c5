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
