"""A list of arguments that leaves a shell to look for `$threads` would search with a job that ignores its parameters."""

from __future__ import annotations

import pytest

from lynceus.errors import InputError
from lynceus.job.job import Job
from lynceus.job.prepare import prepare

JOB = "version: 1\nname: bare\nrun: {run}\nspace: {{threads: [1, 2]}}\nprice: 1\nbudget: {{cost: 1 USD}}\n"


def test_a_bare_name_in_an_argument_is_refused() -> None:
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
def test_names_that_are_set_are_accepted(run: str, more: str) -> None:
    prepare(Job.parse(JOB.format(run=run) + more))
