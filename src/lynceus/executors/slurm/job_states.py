"""From the state of a Slurm job to the outcome of its run, for runs whose supervisor could not record it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from lynceus.executors.slurm.accounting import JobAccount
from lynceus.executors.slurm.client import SlurmJob
from lynceus.executors.slurm.scripts import time_limit
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.commands import EXIT_DISK_FULL, EXIT_NO_DIRECTORY
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, Reason, failed, not_started, timed_out
from lynceus.executors.supervisor.status import last_heartbeat_s

_FAILURES: dict[str, tuple[Reason, str]] = {
    "NODE_FAIL": ("infra", "the node failed ({node}); charged up to the last heartbeat"),
    "PREEMPTED": ("preempted", "Slurm preempted the job ({node})"),
    "OUT_OF_MEMORY": ("oom", "out of memory, according to Slurm ({node})"),
    "CANCELLED": ("user", "cancelled in Slurm (scancel) after {seconds:.1f} s"),
    "BOOT_FAIL": ("infra", "the nodes could not be booted ({node})"),
    "DEADLINE": ("infra", "Slurm stopped the job at its deadline"),
    "REVOKED": ("infra", "Slurm moved the job to another cluster"),
    "UNKNOWN": (
        "infra",
        "Slurm no longer knows job {job}, and the run left no outcome; charged up to the last heartbeat",
    ),
}
"""State → reason and sentence."""


def remembered(job: SlurmJob, account: JobAccount) -> SlurmJob:
    """A job that the controller no longer knows, with the state in its account, if that says why it ended."""
    if job.state != "UNKNOWN" or account.state not in (*_FAILURES, "TIMEOUT"):
        return job
    return replace(job, state=account.state, nodes=account.nodes)


def outcome_from_state(
    job: SlurmJob, request: dict[str, Any], ticket: str, exit_code: int, account: JobAccount | None = None
) -> OutcomeRecord:
    """How a run ended that left no outcome."""
    started = files.read_json(os.path.join(ticket, files.STARTED))
    seconds = 0.0 if started is None else last_heartbeat_s(ticket, started)
    node = job.nodes or "no node"
    if job.state == "TIMEOUT" and started is not None and request["cap_s"] is not None:
        # Its supervisor could not stop it, so it ran until Slurm did.
        ran_s = max(seconds, 60.0 * time_limit(request["cap_s"], request["grace_s"]))
        return _with_usage(timed_out(ran_s), account)
    if job.state in _FAILURES:
        reason, sentence = _FAILURES[job.state]
        detail = sentence.format(node=node, seconds=seconds, job=job.number)
    else:
        reason, detail = "infra", _why_without_outcome(job, node, ticket, exit_code, has_started=started is not None)
    if started is None:
        return not_started(detail, reason=reason)
    return _with_usage(failed(detail, reason=reason, seconds=seconds), account)


def _with_usage(record: OutcomeRecord, account: JobAccount | None) -> OutcomeRecord:
    return record if account is None or account.usage is None else {**record, "usage": account.usage}


def _why_without_outcome(job: SlurmJob, node: str, ticket: str, exit_code: int, *, has_started: bool) -> str:
    if exit_code == EXIT_NO_DIRECTORY:
        return (
            f"{node} cannot see the run directory {ticket}; set executor.run_directory to a disk that all nodes share"
        )
    if exit_code == EXIT_DISK_FULL:
        return f"the disk of the run directory {ticket} is full, according to {node}; free some space"
    if exit_code in (126, 127) and not has_started:
        return f"{node} has no Python for the supervisor; set executor.python to a Python of version 3.8 or later"
    return f"the supervisor on {node} ended without an outcome (Slurm: {job.state}, exit code {exit_code})"


def add_cause(record: OutcomeRecord, job: SlurmJob, account: JobAccount | None = None) -> OutcomeRecord:
    """The outcome of a run that was stopped from outside, with the cause that only Slurm knows."""
    record = _with_usage(record, account)
    if job.state not in ("PREEMPTED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY"):
        return {**record, "outside": False}
    if job.state == "TIMEOUT":
        return {**record, "outside": False, "detail": f"{record.get('detail', '')}: Slurm's time limit"}
    reason, sentence = _FAILURES[job.state]
    detail = sentence.format(node=job.nodes or record.get("node", ""), seconds=record["seconds"], job=job.number)
    return {**record, "reason": reason, "detail": detail, "outside": False}


def why_never(job: SlurmJob) -> str:
    """The message for a pending job that will never start."""
    return f"the job can never start (Slurm's reason: {job.reason}); correct the section executor, or exclude such configurations"
