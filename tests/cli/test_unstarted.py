"""Starts that fail before the first trial leave neither a study nor files behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_jobs import JOB
from local_runs import PATIENCE_S
from lynceus.library.unstarted import remove_empty_storage
from lynceus.storage.access_token import Role
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import TokenStore
from lynceus.trial.shared_budget import Account

NO_PROGRAM = JOB.replace(JOB[JOB.index("run:") : JOB.index("space:")], "run: [there-is-no-such-program]\n")
TOO_POOR = JOB.replace("100 USD", "0.0000001 USD")
NO_SECRET = JOB + "secrets: {TOKEN: 'env:THERE_IS_NO_SUCH_VARIABLE'}\n"
NO_EXECUTOR = JOB + "executor: {kind: slurm}\n"


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (NO_PROGRAM, "there is no program 'there-is-no-such-program'"),
        (TOO_POOR, "pays for no useful run"),
        (NO_SECRET, "THERE_IS_NO_SUCH_VARIABLE"),
        (JOB + "colour: red\n", "colour"),
    ],
    ids=["program", "budget", "secret", "field"],
)
def test_a_bad_job_leaves_nothing(here: Path, lynceus, job: str, said: str) -> None:
    (here / "job.yaml").write_text(job)
    code, out, err = lynceus("run", "job.yaml", "-y")
    assert (code != 0, said in out + err) == (True, True), out + err
    assert os.listdir(here) == ["job.yaml"]


def test_an_executor_that_is_not_there_leaves_nothing(here: Path, lynceus, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "job.yaml").write_text(NO_EXECUTOR)
    monkeypatch.setenv("PATH", str(here / "nothing"))
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert code != 0
    assert "nothing was kept" in err, err
    assert os.listdir(here) == ["job.yaml"]


def test_a_failed_start_leaves_other_studies_alone(here: Path, lynceus, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    (here / "other.yaml").write_text(NO_EXECUTOR.replace("name: toy", "name: other"))
    monkeypatch.setenv("PATH", str(here / "nothing"))
    assert lynceus("run", "other.yaml", "-y")[0] != 0
    with Storage("sqlite:///lynceus.db", create=False) as storage:
        assert [(record.name, record.trials) for record in storage.studies()] == [("toy", 6)]
    assert len(list((here / ".lynceus").iterdir())) == 1


@pytest.mark.parametrize("made", [None, "budget", "token"])
def test_a_failed_start_keeps_what_others_put_into_its_new_storage(here: Path, made: str | None) -> None:
    """While it was about to start, somebody has set a budget or made a token there."""
    url = "sqlite:///lynceus.db"
    with Storage(url) as storage:
        if made == "budget":
            BudgetStore(storage).set(Account.parse("owner:ana"), 5.0, by="boss")
        if made == "token":
            TokenStore(storage).add("ana", Role.VIEWER, by="boss")
    remove_empty_storage(url)
    assert (here / "lynceus.db").exists() is (made is not None)


@pytest.mark.parametrize(
    "delay_s", [0.0, pytest.param(0.4, marks=pytest.mark.slow), pytest.param(0.7, marks=pytest.mark.slow)]
)
def test_ctrl_c_before_the_first_trial_leaves_nothing(here: Path, delay_s: float) -> None:
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    search = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until = time.monotonic() + PATIENCE_S
    while not (here / "lynceus.db").exists() and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(delay_s)
    search.send_signal(signal.SIGINT)
    out, _ = search.communicate(timeout=PATIENCE_S)
    assert search.returncode == 130
    if " starts: " in out:
        assert "lynceus resume toy" in out
        pytest.skip("the first trial was quicker")
    assert os.listdir(here) == ["job.yaml"], out
    assert "lynceus resume" not in out
