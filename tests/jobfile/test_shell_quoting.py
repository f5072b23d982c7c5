"""A value such as `a; rm -rf b` never becomes a command: only `shell: true` inserts values into a script, quoted."""

from __future__ import annotations

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

JOB = "version: 1\nname: inserted\nrun: {run}\nspace: {{file: ['a; b', c]}}\nprice: 1\nbudget: {{cost: 1 USD}}\n"


@pytest.mark.parametrize(
    ("run", "place"),
    [
        ("[bash, -c, 'sort ${file}']", 2),
        ("[/bin/sh, -c, 'sort ${file}']", 2),
        ("[dash, -ec, 'sort ${file}']", 2),
        ("[zsh, -lc, 'sort ${file}']", 2),
        ("[bash, -o, pipefail, -e, -c, 'sort ${file}']", 5),
        ("[bash, -c, -e, --, 'sort ${file}']", 4),
        ("[nice, -n, '5', /usr/bin/ksh, -c, 'sort ${file}']", 5),
    ],
)
def test_values_are_not_inserted_into_the_text_of_a_shell(run: str, place: int) -> None:
    sentence = (
        rf"run\.{place}: \$\{{file\}} would be inserted unquoted .* \"\$LYNCEUS_PARAM_FILE\" .*script.*shell: true"
    )
    with pytest.raises(InputError, match=sentence):
        prepare(Job.parse(JOB.format(run=run)))


@pytest.mark.parametrize(
    "run",
    [
        "[bash, -c, 'sort \"$1\"', name, '${file}']",
        "[bash, -c, 'sort \"$LYNCEUS_PARAM_FILE\"']",
        "[bash, sort.sh, -c, '${file}']",
        "[python, -c, 'print(1)', '${file}']",
        "'sort ${file}'\nshell: true",
        "'sort \"${file}\"'",
    ],
)
def test_values_that_no_shell_runs_are_accepted(run: str) -> None:
    prepare(Job.parse(JOB.format(run=run)))
