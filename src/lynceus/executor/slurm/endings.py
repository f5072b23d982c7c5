"""What is told of a run whose supervisor could not tell it: the state in which Slurm left the job, in a sentence."""

from __future__ import annotations

import os
from typing import Any

from lynceus.executor.directory import failed
from lynceus.executor.slurm.client import SlurmJob
from lynceus.supervisor import files
from lynceus.supervisor.look import last_sign_s
from lynceus.supervisor.runner import EXIT_FULL, EXIT_UNSEEN

_ENDS: dict[str, tuple[str, str]] = {
    "NODE_FAIL": ("infra", "its node vanished ({node}); charged up to the last sign of life"),
    "PREEMPTED": ("preempted", "Slurm took its nodes back for another job ({node})"),
    "OUT_OF_MEMORY": ("oom", "out of memory, says Slurm ({node})"),
    "CANCELLED": ("user", "cancelled in Slurm (scancel) after {seconds:.1f} s"),
    "BOOT_FAIL": ("infra", "its nodes could not be booted ({node})"),
    "DEADLINE": ("infra", "Slurm ended it at its deadline"),
    "REVOKED": ("infra", "Slurm moved it to another cluster"),
    "UNKNOWN": (
        "infra",
        "Slurm knows nothing of job {job} any more, and it left no outcome; charged up to the last sign of life",
    ),
}
"""State → reason and sentence."""


def end_of(job: SlurmJob, request: dict[str, Any], ticket: str, code: int) -> dict[str, Any]:
    """How a run ended that left no outcome."""
    started = files.read_whole(os.path.join(ticket, files.STARTED))
    seconds = 0.0 if started is None else last_sign_s(ticket, started)
    node = job.nodes or "no node"
    if job.state == "TIMEOUT" and started is not None and request["cap_s"] is not None:
        return {**failed("", seconds=request["cap_s"]), "end": "capped", "reason": None}
    if job.state in _ENDS:
        reason, sentence = _ENDS[job.state]
        return failed(sentence.format(node=node, seconds=seconds, job=job.number), reason=reason, seconds=seconds)
    if code == EXIT_UNSEEN:
        detail = (
            f"{node} does not see the run directory {ticket}; set executor.run_directory to a disk that all nodes share"
        )
    elif code == EXIT_FULL:
        detail = f"the disk of the run directory {ticket} is full, as {node} sees it; make room"
    elif code in (126, 127) and started is None:
        detail = f"{node} has no Python to run the supervisor; set executor.python to one of version 3.8 or later"
    else:
        detail = f"its supervisor ended without a word on {node} (Slurm: {job.state}, exit code {code})"
    return failed(detail, seconds=seconds)


def refined(told: dict[str, Any], job: SlurmJob) -> dict[str, Any]:
    """What a supervisor told of a run that was ended from outside, with the reason that only Slurm knows."""
    if job.state not in ("PREEMPTED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY"):
        return {**told, "outside": False}
    if job.state == "TIMEOUT":
        return {**told, "outside": False, "detail": f"{told.get('detail', '')}: Slurm's time limit"}
    reason, sentence = _ENDS[job.state]
    detail = sentence.format(node=job.nodes or told.get("node", ""), seconds=told["seconds"], job=job.number)
    return {**told, "reason": reason, "detail": detail, "outside": False}


def why_never(job: SlurmJob) -> str:
    """A waiting job that will never start."""
    return f"it can never start: Slurm's reason is {job.reason}; correct the section executor, or forbid such configurations"
