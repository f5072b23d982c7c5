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
from lynceus.executors.command import environment
from lynceus.executors.placeholders import row_values
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.resources import Resources
from lynceus.executors.slurm import client
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.executors.slurm.scripts import ENVIRONMENT, batch_script, comment, job_name, sbatch_arguments
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import write_runner
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed

_NOTE = "slurm.json"
"""In a run directory: whether sbatch was called, the job's id, since when there are problems, and why Lynceus cancels the job."""
_LOCK = "submit.lock"
FIRST_RETRY_S, SLOWEST_RETRY_S = 1.0, 30.0
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


def find_job(request: dict[str, Any]) -> client.SlurmJob | None:
    """The job of a run that was submitted by a process that died before it noted the job's id."""
    known = client.jobs().values()
    matching = [job for job in known if job.comment == comment(request) or job.name == job_name(request)]
    return min(matching, key=lambda job: job.ended, default=None)


class Submission:
    """Submits runs and retries."""

    def __init__(self, context: ExecutorContext, options: SlurmOptions) -> None:
        self._context, self._options = context, options
        self._root = context.root.resolve()
        self._retry: dict[str, tuple[float, float]] = {}
        """Ticket → when to try again, and how long to wait after that."""

    def attempt(self, ticket: str) -> None:
        """Submit, or note since when that fails. `InputError` if it can never succeed."""
        note = read_note(ticket)
        try:
            with _exclusive(ticket) as lock:
                if lock is not None:
                    self._submit(ticket, note, lock)
                    return
            problem = "another process is submitting it"
        except (client.UnreachableError, client.RefusedError) as error:
            problem = str(error)
        except OSError as error:
            raise InfrastructureError(f"the run directory {ticket} cannot be written: {error.strerror}") from error
        self._wait(ticket)
        write_note(ticket, {**read_note(ticket), "since_s": note.get("since_s", time.time()), "trouble": problem})

    def retry(self, ticket: str) -> OutcomeRecord | None:
        """Try again when it is time. Returns an outcome if the run was cancelled, or if `patience` is exhausted."""
        note = read_note(ticket)
        if os.path.exists(os.path.join(ticket, files.CANCEL)) and not has_started(ticket):
            return self._cancelled(ticket, note)
        if time.time() - note.get("since_s", time.time()) > self._options.patience:
            return runs.settle(ticket, failed(f"not started: {note.get('trouble', 'it could not be submitted')}"))
        if time.monotonic() >= self._retry.get(ticket, (0.0, 0.0))[0]:
            try:
                self.attempt(ticket)
            except InputError as error:
                return runs.settle(ticket, failed(str(error), reason="job"))
            except InfrastructureError as error:  # a full disk, on which a note cannot be written either
                self._wait(ticket)
                with contextlib.suppress(OSError):
                    write_note(ticket, {**note, "since_s": note.get("since_s", time.time()), "trouble": str(error)})
        return None

    def _cancelled(self, ticket: str, note: dict[str, Any]) -> OutcomeRecord | None:
        """The outcome of a run that was cancelled before it was submitted; None if it has a job after all, which is then noted."""
        try:
            job = find_job(runs.read_request(ticket)) if note.get("tried") else None
        except client.UnreachableError:
            return None
        if job is None:
            return runs.settle(ticket, failed("cancelled before it was submitted", reason="user"))
        write_note(ticket, {**note, "job": job.number})
        return None

    def _wait(self, ticket: str) -> None:
        wait_s = min(2 * self._retry.get(ticket, (0.0, FIRST_RETRY_S / 2))[1], SLOWEST_RETRY_S)
        self._retry[ticket] = (time.monotonic() + wait_s, wait_s)

    def _submit(self, ticket: str, note: dict[str, Any], lock: int) -> None:
        request = runs.read_request(ticket)
        if note.get("tried") and (known := find_job(request)) is not None:
            write_note(ticket, {"tried": True, "job": known.number, "submitted_s": time.time()})
            return
        runner = str(write_runner(self._root))
        values = row_values(self._context.problem.space, request["row"])
        resources = Resources(request["cpus"], request["memory_bytes"])
        arguments = sbatch_arguments(self._options, values, resources, request)
        self._write_environment(Path(ticket, ENVIRONMENT), request)
        write_note(ticket, {**note, "tried": True})
        try:
            job = client.submit(arguments, batch_script(self._options.python, runner, ticket), lock)
        except InputError:
            Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
            raise
        write_note(ticket, {"tried": True, "job": job, "submitted_s": time.time()})
        self._retry.pop(ticket, None)

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
            "without": ["SLURM_EXPORT_ENV"],
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
