"""A script that is not in the working directory: `check` mentions it, and `run` refuses it before money is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.checks import check_startable
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

JOB = "version: 1\nname: scripts\nrun: {run}\nspace: {{n: [1, 2]}}\nprice: 1\nbudget: {{cost: 1 USD}}\n"


@pytest.mark.parametrize("run", ["[python3, work.py, '${n}']", "[/bin/sh, work.sh]", "[bash, deep/work.sh]"])
def test_a_missing_script_is_noted_and_not_started(run: str, tmp_path: Path) -> None:
    job = Job.parse(JOB.format(run=run), folder=tmp_path)
    assert [note for note in prepare(job).notes if "there is no file" in note and "cannot run here" in note]
    with pytest.raises(
        InputError, match=r":3: run: there is no file '.*work\.\w+' in .*; create it, or correct run or workdir"
    ):
        check_startable(job)


@pytest.mark.parametrize(
    ("run", "more"),
    [
        ("[python3, there.py]", ""),
        ("[python3, -m, work.py]", ""),
        ("[python3, 'work-${n}.py']", ""),
        ("[sh, -c, work.sh]", ""),
        ("[cat, work.py]", ""),
        ("[python3, work.py]", "setup: 'echo > work.py'\n"),
        ("[python3, work.py]", "executor: {kind: slurm}\n"),
    ],
)
def test_nothing_is_said_of_files_that_may_be_there(run: str, more: str, tmp_path: Path) -> None:
    (tmp_path / "there.py").touch()
    job = Job.parse(JOB.format(run=run) + more, folder=tmp_path)
    assert not [note for note in prepare(job).notes if "there is no file" in note]
    check_startable(job)
