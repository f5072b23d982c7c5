"""`execute`: real processes under the local executor, really killed commands, really stopped canaries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_runs import eventually
from lynceus.errors import InputError
from lynceus.library.leftovers import find_leftovers
from lynceus.library.open_study import open_record
from lynceus.library.recurring import execution, steering
from lynceus.library.recurring.execution import Watcher, collect_abandoned, execute
from lynceus.library.recurring.recurring_job import RecurringJob, adopt_job
from lynceus.recurring.action import Action, ActionKind
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End, FailureReason

JOB = """\
name: search
run: [sh, -c, 'echo $LYNCEUS_JOB $LYNCEUS_JOB_VERSION $LYNCEUS_RUN_ID $LYNCEUS_INPUT_SIZE "$@"; sleep "$2"', job, 'n=${n}', '${pause}']
space: {n: [1, 2], pause: [0, 30]}
price: 3600 * n
constraints: ["runtime <= 10m"]
budget: 1000000
trial: {grace: 100ms}
"""


@pytest.fixture
def job(url: str, tmp_path: Path) -> RecurringJob:
    (tmp_path / "job.yaml").write_text(JOB)
    given = {"source": str(tmp_path / "job.yaml"), "params": {"n": 1, "pause": 0}}
    return adopt_job("nightly", storage=url, by="ana", **given)


def test_a_run_has_the_adopted_configuration_and_is_recorded_once(job: RecurringJob) -> None:
    printed: list[str] = []
    watcher = Watcher(output=lambda stream, text: printed.append(text))
    done = execute(job, input="2 GB", run_id="a", extra=["--date", "2026 11 18", "${n}"], watcher=watcher)
    assert "".join(printed) == "nightly 1 a 2000000000 n=1 0 --date 2026 11 18 1\n"
    assert (done.recorded, done.run.end, done.run.size, done.config.version) == (True, End.FINISHED, 2e9, 1)
    (run,) = job.runs
    assert (run, run.price_usd_per_hour) == (done.run, 3600.0)
    assert run.cost_usd == pytest.approx(run.seconds)
    notes: list[str] = []
    again = execute(job, input="2 GB", run_id="a", watcher=Watcher(note=notes.append))
    assert again.run.seconds == run.seconds, "the same id is the same run, and is not run again"
    assert notes == ["nightly: run a finished before; a run id is not run again."]
    assert job.runs == (run,)


def test_no_host_repeats_what_another_one_ran(
    job: RecurringJob, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a task that a scheduler tries again elsewhere, nor a run whose directory was removed since."""
    monkeypatch.setattr(execution, "_KEPT_RUNS", 1)
    first = job.execute(task="report")
    job.execute(task="another"), job.execute(task="third")
    runs = job.runs
    assert job.execute(task="report") == first
    (tmp_path / ".lynceus").rename(tmp_path / "other-host")
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "other-home"))
    other = RecurringJob("nightly", url)
    assert other.execute(task="report") == first
    done = execute(other, run_id="third")
    assert (done.recorded, done.run, done.config.params) == (True, runs[2], {"n": 1, "pause": 0})
    assert not (tmp_path / ".lynceus").exists(), "nothing was started"
    assert job.runs == runs


def test_what_never_started_may_be_repeated(job: RecurringJob) -> None:
    job.record(0.0, run_id="a", state="FAIL", reason="infra")
    notes: list[str] = []
    done = execute(job, run_id="a", watcher=Watcher(note=notes.append))
    assert (done.run.run_id, done.run.end) == ("a-again", End.FINISHED)
    assert notes == ["nightly: run a was recorded, but never started; the adopted version runs now."]
    assert execute(job, run_id="a").run == done.run
    assert [run.run_id for run in job.runs] == ["a", "a-again"]


def test_arguments_need_a_run_in_list_form(url: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: x\nrun: 'true'\nspace: {n: [1]}\nprice: n\nbudget: 1\n")
    job = adopt_job("script", source=str(tmp_path / "job.yaml"), params={"n": 1}, storage=url)
    with pytest.raises(InputError, match=r"appended to a run in list form, and its run is a script"):
        execute(job, extra=["x"])
    assert execute(job).run.end is End.FINISHED


def test_a_canary_is_stopped_at_its_cap_and_the_adopted_version_runs(
    job: RecurringJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.set(mode="apply", allowance_usd=1.0)
    slow = Action(ActionKind.CANARY, "try it", {"n": 2, "pause": 30}, timeout_s=0.4, reserved_usd=0.5)
    answers = [slow]
    monkeypatch.setattr(
        steering, "next_action", lambda *given: answers.pop() if answers else Action(ActionKind.KEEP, "fine")
    )
    notes: list[str] = []
    done = execute(job, run_id="a", watcher=Watcher(note=notes.append))
    canary, run = job.runs
    assert (canary.run_id, canary.canary, canary.end, canary.version) == ("a", True, End.TIMEOUT, 2)
    assert 0.3 < canary.seconds < 20
    assert (run.run_id, run.canary, run.end, run.version) == ("a-again", False, End.FINISHED, 1)
    assert (done.run, notes) == (run, ["nightly: the canary was stopped at its timeout; the adopted version runs now."])
    assert job.history.open_canary is None
    assert job.execute(task="a") == run, "the task is done, although its canary was stopped"
    assert len(job.runs) == 2


def test_the_user_can_end_a_run(job: RecurringJob) -> None:
    adopt_job("nightly", params={"n": 1, "pause": 30}, storage=job.store.storage)
    done = execute(job, run_id="a", watcher=Watcher(stopped=lambda: True))
    assert (done.run.end, done.run.reason) == (End.FAILED, FailureReason.USER)
    assert len(job.runs) == 1


@pytest.mark.parametrize("ends", [True, False])
def test_a_run_whose_command_was_killed_goes_on_and_is_recorded(job: RecurringJob, url: str, ends: bool) -> None:
    adopt_job("nightly", params={"n": 1, "pause": 0 if ends else 30}, storage=job.store.storage)
    script = (
        "import os, signal, sys\n"
        "from lynceus.library.recurring.execution import Watcher, execute\n"
        "from lynceus.library.recurring.recurring_job import RecurringJob\n"
        "def kill(stream, text):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "execute(RecurringJob('nightly', sys.argv[1]), run_id='a', watcher=Watcher(output=kill))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, url], check=False)
    assert done.returncode == -signal.SIGKILL
    assert job.runs == ()
    if ends:
        eventually(lambda: collect_abandoned(job) == 1)
        (run,) = job.runs
        assert (run.run_id, run.end, run.version) == ("a", End.FINISHED, 2)
        assert job.host is not None
        assert job.host.runs("nightly") == []
        return
    assert collect_abandoned(job) == 0, "it still runs"
    assert job.host is not None
    (kept,) = job.host.runs("nightly")
    assert kept.ticket is not None
    assert kept.abandoned
    Path(kept.ticket, "cancel").touch()
    eventually(lambda: collect_abandoned(job) == 1)
    assert [run.reason for run in job.runs] == [FailureReason.USER]


def test_runs_in_production_are_nobody_elses_leftovers(job: RecurringJob, url: str, tmp_path: Path) -> None:
    """`lynceus gc --strangers` must not end them."""
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.open_study import create_or_open

    one = create_or_open(prepare_file(tmp_path / "job.yaml"), url)
    execute(job, run_id="a")
    with Storage(url, create=False) as storage:
        study = open_record(storage, storage.load_study(one.name))
        found, _ = find_leftovers([study], outputs=True, strangers=True)
    assert [each.leftover.study for each in found] == []


def test_old_outputs_are_removed_and_others_are_not(
    job: RecurringJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_KEPT_RUNS", 2)
    for number in range(4):
        execute(job, run_id=str(number))
    (folder,) = [path for path in (tmp_path / ".lynceus").iterdir() if path.is_dir()]
    assert len([path for path in folder.iterdir() if path.name.isdigit()]) == 2
    assert [run.run_id for run in job.runs] == ["0", "1", "2", "3"]


def test_the_environment_is_that_of_the_caller(job: RecurringJob, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[Any] = []
    monkeypatch.setitem(os.environ, "LYNCEUS_INPUT_SIZE", "7")
    execute(job, input="3 GB", watcher=Watcher(output=lambda stream, text: printed.append(text)))
    assert " 3000000000 n=1" in "".join(printed)


def test_a_run_that_could_not_be_recorded_does_not_start(job: RecurringJob, tmp_path: Path) -> None:
    for run_id in ("x" * 200, "a\nb", ""):
        with pytest.raises(InputError, match=r"run id .*: give 1 to 200 printable characters"):
            execute(job, run_id=run_id)
    with pytest.raises(InputError, match="run id"):
        job.config(run_id="x" * 201)
    assert not (tmp_path / ".lynceus").exists()


def test_a_day_without_data_does_not_keep_the_job_from_running(job: RecurringJob) -> None:
    for number, empty in enumerate(("0", "0 B", 0)):
        done = execute(job, input=empty, run_id=f"empty-{number}")
        assert (done.recorded, done.run.end, done.run.size) == (True, End.FINISHED, None)
    with pytest.raises(InputError, match="its unit is missing"):
        execute(job, input="50", run_id="b")


def test_schedulers_may_have_long_names(job: RecurringJob) -> None:
    """Airflow's names of a DAG, a task and a DAG run have up to 250 characters each."""
    task = "reports/" + "nightly_" * 40 + "/scheduled__2026-11-18T02:00:00+00:00"
    run = job.execute(task=task)
    assert job.execute(task=task) == run
    other = job.execute(task=task + "x")
    assert (other.run_id != run.run_id, job.runs) == (True, (run, other))
    assert len(execution.task_run_id(job, "x" * 150)) == 150
