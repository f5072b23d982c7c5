"""From a prepared run directory to a job in the queue: exactly once, however often it is tried and whichever process is killed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors import run_directory as runs
from lynceus.executors.command import absent_variables, environment
from lynceus.executors.placeholders import row_values
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.polling import RetryPauses
from lynceus.executors.resources import Resources
from lynceus.executors.slurm.client import RefusedError, SlurmClient, SlurmJob
from lynceus.executors.slurm.command import UnreachableError
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.slurm.scripts import ENVIRONMENT, batch_script, comment, job_name, sbatch_arguments
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import write_runner
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, not_started

_NOTE = "slurm.json"
"""In a run directory: whether sbatch was called, the job's id, since when there are problems, and why Lynceus cancels the job."""
_LOCK = "submit.lock"
_LATE_S = 2.0
"""How long a controller that was silent may take to show a job whose submission it had not answered."""
_NODE_ONLY = frozenset(
    {
        *("HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_SESSION_ID"),
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    }
)
"""Variables that a node or its scheduler sets for a job, which the environment of Lynceus must not overwrite."""


def read_note(ticket: str) -> dict[str, Any]:
    """What is noted about the job of a run."""
    return files.read_json(os.path.join(ticket, _NOTE)) or {}


def write_note(ticket: str, note: dict[str, Any]) -> None:
    """Replace what is noted about the job of a run."""
    files.write_atomically(os.path.join(ticket, _NOTE), note)


def has_started(ticket: str) -> bool:
    """Whether a supervisor has started the run."""
    return any(os.path.exists(os.path.join(ticket, name)) for name in (files.STARTED, files.OUTCOME))


def is_job_of(job: SlurmJob, request: dict[str, Any]) -> bool:
    """Whether a job is that of a run: by its comment, or by its name on sites that rewrite comments."""
    return job.comment == comment(request) or job.name == job_name(request)


class Submission:
    """Submits runs and retries."""

    def __init__(self, context: ExecutorContext, options: SlurmOptions, client: SlurmClient) -> None:
        self._context, self._options, self._client = context, options, client
        self._root = context.root.resolve()
        self._pauses = RetryPauses()
        self._absent_s: dict[str, float] = {}
        """Ticket → when the controller, after it had not answered an sbatch, first answered without knowing the job."""

    def attempt(self, ticket: str) -> None:
        """Submit, or note since when that fails. `InputError` if it can never succeed."""
        note = read_note(ticket)
        unanswered = False
        try:
            if self._client.is_submitting(ticket):
                self._submitted(ticket, self._client.submit(ticket))
                return
            if self._client.outages.current() is not None:
                self._client.jobs()  # fails before anything is submitted to a controller that does not answer
            with _exclusive(ticket) as lock:
                if lock is not None and self._submit(ticket, note, lock):
                    return
            problem = "another process is submitting it" if lock is None else "the controller was silent until now"
        except RefusedError as error:
            problem = str(error)
        except UnreachableError as error:
            problem, unanswered = str(error), bool(read_note(ticket).get("tried"))
        except OSError as error:
            raise InfrastructureError(f"the run directory {ticket} cannot be written: {error.strerror}") from error
        self._wait(ticket)
        known = {**read_note(ticket), "since_s": note.get("since_s", time.time()), "trouble": problem}
        write_note(ticket, {**known, "unanswered": True} if unanswered else known)

    def retry(self, ticket: str) -> OutcomeRecord | None:
        """Try again when it is time. Returns an outcome if the run was cancelled, or if `patience` is exhausted."""
        note, record = read_note(ticket), None
        started = has_started(ticket)
        if os.path.exists(os.path.join(ticket, files.CANCEL)) and not started:
            record = self._cancelled(ticket, note)
        elif time.time() - note.get("since_s", time.time()) > self._options.patience and not started:
            sentence = f"not started: {note.get('trouble', 'it could not be submitted')}"
            record = runs.settle(ticket, not_started(sentence))
        elif self._client.is_submitting(ticket) or self._pauses.is_due(ticket):
            record = self._again(ticket, note)
        return record

    def _again(self, ticket: str, note: dict[str, Any]) -> OutcomeRecord | None:
        try:
            self.attempt(ticket)
        except InputError as error:
            return runs.settle(ticket, not_started(str(error), reason="job"))
        except InfrastructureError as error:  # a full disk, on which a note cannot be written either
            self._wait(ticket)
            with contextlib.suppress(OSError):
                write_note(ticket, {**note, "since_s": note.get("since_s", time.time()), "trouble": str(error)})
        return None

    def _cancelled(self, ticket: str, note: dict[str, Any]) -> OutcomeRecord | None:
        """The outcome of a run that was cancelled before it was submitted; None if it has a job after all, which is then noted."""
        try:
            if self._client.is_submitting(ticket):
                self._submitted(ticket, self._client.submit(ticket))
                return None
            job = self._find_job(runs.read_request(ticket)) if note.get("tried") else None
        except UnreachableError:
            return None
        except (InputError, RefusedError):
            job = None
        if job is None:
            return runs.settle(ticket, not_started("cancelled before it was submitted", reason="user"))
        write_note(ticket, {**note, "job": job.number})
        return None

    def _find_job(self, request: dict[str, Any]) -> SlurmJob | None:
        """The job of a run that was submitted without its id becoming known here."""
        matching = [job for job in self._client.jobs().values() if is_job_of(job, request)]
        return min(matching, key=lambda job: job.ended, default=None)

    def _wait(self, ticket: str) -> None:
        self._pauses.failed(ticket, answered=self._client.outages.current() is None)

    def _submit(self, ticket: str, note: dict[str, Any], lock: int) -> bool:
        """Submit the job, unless it is in the queue already. False if it is too early to say whether it is."""
        request = runs.read_request(ticket)
        if note.get("tried"):
            if (known := self._find_job(request)) is not None:
                self._submitted(ticket, known.number)
                return True
            since_s = self._absent_s.setdefault(ticket, time.monotonic())
            if note.get("unanswered") and time.monotonic() - since_s < _LATE_S:
                return False  # an sbatch that it has only received may be carried out after our question
        self._absent_s.pop(ticket, None)
        runner = str(write_runner(self._root))
        values = row_values(self._context.problem.space, request["row"])
        resources = Resources(request["cpus"], request["memory_bytes"])
        arguments = sbatch_arguments(self._options, values, resources, request)
        self._write_environment(Path(ticket, ENVIRONMENT), request)
        write_note(ticket, {**note, "tried": True})
        try:
            job = self._client.submit(ticket, arguments, batch_script(self._options.python, runner, ticket), lock)
        except InputError:
            Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
            raise
        self._submitted(ticket, job)
        return True

    def _submitted(self, ticket: str, job: str) -> None:
        write_note(ticket, {"tried": True, "job": job, "submitted_s": time.time()})
        self.forget(ticket)

    def forget(self, ticket: str) -> None:
        """The run has a job, or has ended: nothing is submitted for it any more."""
        self._client.forget_submission(ticket)
        self._pauses.forget(ticket)
        self._absent_s.pop(ticket, None)

    def _write_environment(self, path: Path, request: dict[str, Any]) -> None:
        """Write the environment to a file that only its owner can read and that the supervisor removes before the job starts."""
        base = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SLURMD_", "SBATCH_")) and name not in _NODE_ONLY
        }
        job = self._context.job
        given = {
            "environment": environment(job, request, base),
            "secrets": list(job.secrets.values()),
            "without": ["SLURM_EXPORT_ENV", *absent_variables(job, request["params"])],
        }
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(given).encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _exclusive(ticket: str) -> Iterator[int | None]:
    """A lock that is held until our sbatch has ended, even if we are killed before; None if another process holds it."""
    lock = os.open(os.path.join(ticket, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield lock
    finally:
        os.close(lock)
