"""Studies from a storage: with a job file, with a job without a command, and created by a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.jobfile.checks import check_runnable, check_startable
from lynceus.jobfile.command_line import command_line
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.job import Job
from lynceus.jobfile.json_schema import job_schema
from lynceus.jobfile.prepared_study import prepare, prepare_file
from lynceus.jobfile.stored_study import job_and_problem, prepared_of
from lynceus.jobfile.winner_export import env_file, skypilot_task
from lynceus.policy.retries import RetryRules
from lynceus.storage.sql.storage import Storage

JOB = "name: asked\nrun: [train, '--n=${n}']\nspace: {n: [1, 2]}\nprice: 1\nbudget: 1 USD\n"
NO_COMMAND_0_1 = "echo 'This study has no command: programs ask for its trials and tell how they went.' >&2; exit 1"


def without_command(run: str | None) -> Job:
    """A job as the server stores it: today without `run`, in version 0.1 with a sentence in its place."""
    stored = Job.parse(JOB).stored()
    del stored["job"]["run"]
    return Job.from_stored({**stored, "job": stored["job"] | ({} if run is None else {"run": run})})


@pytest.mark.parametrize("run", [None, NO_COMMAND_0_1])
def test_a_stored_job_may_have_no_command(run: str | None) -> None:
    job = without_command(run)
    assert not job.has_command
    assert "run" not in job.stored()["job"]
    prepared = prepare(job)
    assert len(prepared.problem.space) == 2
    for use in (
        lambda: command_line(job, {"n": 1}),
        lambda: skypilot_task(prepared, 0, ""),
        lambda: check_startable(job),
    ):
        with pytest.raises(InputError, match="study 'asked' has no command, because a program runs its trials"):
            use()
    assert "LYNCEUS_PARAM_N=1" in env_file(prepared, 0, "")


def test_a_job_file_must_have_a_command() -> None:
    with pytest.raises(InputError, match="the field 'run' is missing; add it"):
        Job.parse(JOB.replace("run: [train, '--n=${n}']\n", ""))
    assert json.loads(job_schema())["oneOf"] == [{"required": ["run"]}, {"required": ["serve"]}]


def test_a_study_of_a_program_has_its_own_retry_rules_and_no_command(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules = RetryRules(retries_infra=1, max_failures=0, confirm_best=2, retries_preempted=4, parallel=3)
    space = lynceus.Space.build([lynceus.Integer("n", 1, 3)], price="0.1 * n")
    lynceus.create_study(space=space, study_name="odd name!", storage="sqlite:///a.db", retry_rules=rules)
    with Storage("sqlite:///a.db") as storage:
        record = storage.load_study("odd name!")
    prepared = prepared_of(record)
    assert (prepared.retry_rules, prepared.parallel, prepared.problem.baseline) == (rules, 3, None)
    assert (prepared.job.name, prepared.job.has_command, prepared.job.spec.space) == ("odd name!", False, {})
    job, problem = job_and_problem(record)
    assert (job.has_command, problem.space) == (False, space)
    with executor_of(prepared, {}) as executor:  # to stop runs and to clean up
        ticket = executor.launch(Request("odd name!", 0, 0, {"n": 1}, 60.0, True, "id"))
        executor.cancel(ticket)
    assert (tmp_path / ".lynceus").is_dir()


def test_a_study_can_be_read_where_its_working_directory_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "job" / "job.yaml"
    file.parent.mkdir()
    file.write_text(JOB)
    with Storage(f"sqlite:///{tmp_path}/a.db") as storage:
        prepared = prepare_file(file)
        record = storage.create_study(
            "asked",
            document=prepared.job.stored(),
            fingerprint="",
            policy={"name": "x", "choose": ["by-price"]},
            seed=0,
        )
    file.unlink()
    file.parent.rmdir()
    read = prepared_of(record)
    assert read.problem.space == prepared.problem.space
    with pytest.raises(InputError, match=r"workdir: the folder .* does not exist"):
        check_runnable(read.job)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("objective: cots", "objective: 'cots' is neither cost, time nor a name under 'metrics'. Did you mean 'cost'?"),
        ("secrets: {A: env:LYNCEUS_NOT_SET}", "secrets.A: the variable LYNCEUS_NOT_SET is not set"),
        ("notify: {webhook: env:LYNCEUS_NOT_SET}", "notify.webhook.0: the variable LYNCEUS_NOT_SET is not set"),
        ("notify: {mail: {to: a@b, password: file:nowhere}}", "notify.mail.password: the file nowhere does not exist"),
        ("notify: {apprise: [env:LYNCEUS_NOT_SET]}", "notify.apprise.0: the variable LYNCEUS_NOT_SET is not set"),
    ],
)
def test_what_would_fail_later_is_refused_before_the_start(tmp_path: Path, more: str, message: str) -> None:
    job = prepare(Job.parse(JOB + more, tmp_path)).job
    with pytest.raises(InputError) as caught:
        check_startable(job)
    assert message in str(caught.value)


def test_a_complete_job_can_start(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LYNCEUS_SET", "http://x")
    job = JOB.replace("run: [train", "run: [true")
    check_startable(Job.parse(job + "secrets: {A: env:LYNCEUS_SET}\nnotify: {webhook: env:LYNCEUS_SET}", tmp_path))
