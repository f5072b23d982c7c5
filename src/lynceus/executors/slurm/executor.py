"""The Slurm executor: launch, collect, cancel, clean up."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.executors import run_directory as runs
from lynceus.executors.interface import Outage, OwnedResource, Request, ResourceKind
from lynceus.executors.plugin import ExecutorContext, Plugin
from lynceus.executors.polling import PolledAnswer
from lynceus.executors.resources import Resources
from lynceus.executors.slurm.accounting import ask_account
from lynceus.executors.slurm.client import PATIENT_S, RARELY_STARTS, SlurmClient, SlurmJob
from lynceus.executors.slurm.command import UnreachableError
from lynceus.executors.slurm.job_states import add_cause, outcome_from_state, remembered, why_never
from lynceus.executors.slurm.options import SlurmOptions, check_options
from lynceus.executors.slurm.scripts import ENVIRONMENT, job_name, owned_job
from lynceus.executors.slurm.submission import (
    Submission,
    has_started,
    is_job_of,
    read_note,
    write_note,
)
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, Reason, not_started
from lynceus.executors.supervisor.status import last_heartbeat_s, read_outcome
from lynceus.trial.outcome import Outcome

_FILE_SYSTEM_DELAY_S = 3.0
"""How long after a job's end its outcome may still be on its way through a network file system, and its account to slurmdbd."""
_CANCEL_S = 30.0
"""A supervisor that has not stopped its run this long after the grace period is cancelled by Slurm."""
_RARELY_STARTS_S = 60.0
_UNCERTAIN = ("UNKNOWN", "COMPLETED", "FAILED")
"""States in which a supervisor may still be alive."""


class SlurmExecutor:
    """Runs a job in directories below the root, which all nodes share; `root/study-identity/number` is the ticket."""

    def __init__(self, context: ExecutorContext, options: SlurmOptions | None = None) -> None:
        self._context, self._options = context, options or SlurmOptions()
        self._problem, self._job = context.problem, context.job
        self._root = context.root.resolve()
        check_options(self._options, self._problem.space)
        self._client = SlurmClient()
        self._submission = Submission(context, self._options, self._client)
        self._jobs = PolledAnswer(self._client.jobs, self._options.poll, UnreachableError)
        self._ended_s: dict[str, float] = {}
        """Ticket → when its job was first seen to have ended."""
        self._heartbeats: dict[str, tuple[float, float]] = {}
        """Ticket → the last heartbeat of a job that the controller no longer knows, and when it was first seen."""
        self._cancelled_s: dict[str, float] = {}
        """Ticket → when we first saw that its run is cancelled, by our own clock: that of the disk may be another one."""

    def outage(self) -> Outage | None:
        """Which command of Slurm fails, and since when."""
        return self._client.outages.current()

    def close(self) -> None:
        """End commands that wait for the controller; runs continue."""
        self._client.close()

    def launch(self, request: Request) -> str:
        """Prepare the run directory, by which the run can be found again; then submit it. `collect` retries after temporary problems."""
        directory = runs.directory_of(self._root, request)
        resources = Resources() if self._context.resources is None else self._context.resources(request.row)
        runs.prepare(directory, request, self._job, resources=resources)
        ticket = str(directory)
        if not read_note(ticket).get("job") and not has_started(ticket):
            self._submission.attempt(ticket)
            self._jobs.expire()
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """What the supervisor recorded, or, if it could not, what Slurm says."""
        record = read_outcome(ticket)
        request = runs.read_request(ticket)
        if record is None or record.get("outside"):
            record = self._check_job(ticket, request, record)
        if record is None:
            return None
        Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
        self._submission.forget(ticket)
        for kept in (self._ended_s, self._cancelled_s, self._heartbeats):
            kept.pop(ticket, None)
        return runs.to_outcome(self._problem, request, record)

    def _check_job(self, ticket: str, request: dict[str, Any], record: OutcomeRecord | None) -> OutcomeRecord | None:
        note = read_note(ticket)
        if "job" not in note:
            return self._submission.retry(ticket)
        known = self._jobs.get(at_once=self._client.is_asking)
        if known is None:
            return None  # the controller is down; the run continues without it
        job = known.get(note["job"])
        if job is None or not is_job_of(job, request):  # forgotten, and perhaps another job has its number now
            job = SlurmJob(note["job"], "UNKNOWN", "", "", "", "")
        if not job.ended and job.state != "UNKNOWN":
            self._ended_s.pop(ticket, None)
            if record is None:
                self._watch(ticket, request, note, job)
            return None
        if ticket not in self._ended_s:
            self._ended_s[ticket] = time.monotonic()
            with contextlib.suppress(OSError):
                # Changing the directory makes network file systems refresh their view of it.
                write_note(ticket, {**note, "over": job.state})
        measured = record is not None and "usage" in record
        if not measured and time.monotonic() - self._ended_s[ticket] < _FILE_SYSTEM_DELAY_S:
            return None
        if record is None and job.state in _UNCERTAIN and self._is_alive(ticket):
            return None  # a controller that lost its state, or a second job in place of a forgotten one
        try:
            return self._settle(ticket, request, note, job)
        except UnreachableError:
            return None

    def _is_alive(self, ticket: str) -> bool:
        """Whether the supervisor's heartbeat has changed recently."""
        started = files.read_json(os.path.join(ticket, files.STARTED))
        if started is None:
            return False
        heartbeat, (before, since) = last_heartbeat_s(ticket, started), self._heartbeats.get(ticket, (-1.0, 0.0))
        if heartbeat != before:
            self._heartbeats[ticket] = (heartbeat, time.monotonic())
            return True
        return time.monotonic() - since < _FILE_SYSTEM_DELAY_S

    def _watch(self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: SlurmJob) -> None:
        """Cancel a job that can never start, waits too long, or does not stop when it is cancelled."""
        if job.state == "PENDING":
            waited = time.time() - note.get("submitted_s", time.time())
            limit = self._options.max_queue
            if job.never_starts or (job.reason in RARELY_STARTS and waited > _RARELY_STARTS_S):
                self._give_up(ticket, note, job, "job", why_never(job))
            elif limit is not None and waited > limit:
                sentence = f"no capacity: it waited {waited:.0f} s in the queue (Slurm's reason: {job.reason})"
                self._give_up(ticket, note, job, "infra", sentence)
            elif os.path.exists(os.path.join(ticket, files.CANCEL)):
                self._cancel_job(job.number, pending_only=True)
        elif os.path.exists(os.path.join(ticket, files.CANCEL)):
            since = self._cancelled_s.setdefault(ticket, time.monotonic())
            if time.monotonic() - since > request["grace_s"] + _CANCEL_S:
                self._cancel_job(job.number)

    def _give_up(self, ticket: str, note: dict[str, Any], job: SlurmJob, reason: Reason, sentence: str) -> None:
        """Cancel a pending job; the run is settled with this sentence when Slurm has cancelled it."""
        write_note(ticket, {**note, "ending": [reason, sentence]})
        self._cancel_job(job.number, pending_only=True)

    def _settle(self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: SlurmJob) -> OutcomeRecord:
        """Record what Slurm says about a run whose supervisor recorded nothing, or not the cause."""
        record = read_outcome(ticket)
        measured = record is not None and "usage" in record
        account = None if measured or not has_started(ticket) else ask_account(job.number, job_name(request))
        job = job if account is None else remembered(job, account)
        if record is not None:
            record = add_cause(record, job, account) if record.get("outside") else record
            files.write_atomically(os.path.join(ticket, files.OUTCOME), record)
            return record
        exit_code = 0 if job.state == "UNKNOWN" else self._client.exit_code(job.number)
        record = outcome_from_state(job, request, ticket, exit_code, account)
        cancelled = os.path.exists(os.path.join(ticket, files.CANCEL))
        if "ending" in note and not has_started(ticket):
            record = not_started(note["ending"][1], reason=note["ending"][0])
        elif cancelled and record["reason"] in ("infra", "user"):
            sentence = f"cancelled after {record['seconds']:.1f} s"
            record = {**record, "reason": "user", "detail": sentence}
        # A supervisor that is still alive (its node lost the connection to Slurm) stops its run when it sees this file.
        Path(ticket, files.CANCEL).touch()
        return runs.settle(ticket, record)

    def cancel(self, ticket: str) -> None:
        """Ask the supervisor to stop the run, or not to start it; `collect` cancels a pending job in Slurm."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()
            if not self._client.is_asking:
                self._jobs.expire()

    def _cancel_job(self, number: str, *, pending_only: bool = False) -> None:
        with contextlib.suppress(UnreachableError):
            self._client.cancel(number, pending_only=pending_only)
            self._jobs.expire()

    def owned_resources(self) -> list[OwnedResource]:
        """Pending and running jobs of every study, and run directories below the root."""
        active = [job for job in self._client.jobs(PATIENT_S).values() if not (job.ended or job.completing)]
        found = [owned_job(job.comment, job.number, job.state) for job in active]
        return [*(one for one in found if one is not None), *runs.run_directories(self._root)]

    def remove(self, resource: OwnedResource) -> None:
        """Cancel a job, or delete a directory."""
        if resource.kind is ResourceKind.JOB:
            self._client.cancel(resource.name, wait_s=PATIENT_S)
            self._jobs.expire()
        else:
            runs.remove_local(resource)


def _make(context: ExecutorContext, options: SlurmOptions) -> SlurmExecutor:
    if missing := _missing_tools():
        raise InputError(
            f"executor: {missing[0]!r} is not installed here; run Lynceus on a machine that can submit jobs to Slurm."
        )
    return SlurmExecutor(context, options)


def _missing_tools() -> list[str]:
    return [tool for tool in ("sbatch", "squeue", "scontrol", "scancel") if shutil.which(tool) is None]


def _not_found() -> str:
    missing = _missing_tools()
    return f"{', '.join(missing)} not found: run Lynceus on a machine that can submit jobs to Slurm" if missing else ""


PLUGIN = Plugin(
    _make,
    SlurmOptions,
    check_options,
    about="jobs of a Slurm cluster, with run directories on a shared disk",
    look_for=_not_found,
)
