"""From a prepared run directory to a job in the queue: once, however often it is tried and whoever is killed in between."""

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
from lynceus.executor import directory as runs
from lynceus.executor.command import environment
from lynceus.executor.plugin import Setting
from lynceus.executor.shape import Shape
from lynceus.executor.slurm import client
from lynceus.executor.slurm.options import SlurmOptions, row_values
from lynceus.executor.slurm.text import ENVIRONMENT, batch_script, comment, job_name, sbatch_arguments
from lynceus.supervisor import files
from lynceus.supervisor.bundle import place_runner

_NOTE = "slurm.json"
"""In a run directory: whether sbatch was called, the job's number, since when there is trouble, and why we end the job, if we do."""
_LOCK = "submit.lock"
FIRST_RETRY_S, SLOWEST_RETRY_S = 1.0, 30.0
_NODE_ONLY = frozenset(
    {
        *("HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_SESSION_ID"),
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    }
)
"""What a node or its scheduler sets for a job, and our shell must not overwrite."""


def read_note(ticket: str) -> dict[str, Any]:
    """What is noted about the job of a run."""
    return files.read_whole(os.path.join(ticket, _NOTE)) or {}


def remember(ticket: str, note: dict[str, Any]) -> None:
    """Note something about the job of a run."""
    files.write_whole(os.path.join(ticket, _NOTE), note)


def begun(ticket: str) -> bool:
    """Whether a supervisor has taken charge of the run."""
    return any(os.path.exists(os.path.join(ticket, name)) for name in (files.STARTED, files.OUTCOME))


def found(request: dict[str, Any]) -> client.SlurmJob | None:
    """The job of a run that was submitted by somebody who died before writing its number down."""
    known = client.jobs().values()
    ours = [job for job in known if job.comment == comment(request) or job.name == job_name(request)]
    return min(ours, key=lambda job: job.over, default=None)


class Submission:
    """Submits runs, and knows when to try again."""

    def __init__(self, setting: Setting, options: SlurmOptions) -> None:
        self._setting, self._options = setting, options
        self._root = setting.root.resolve()
        self._retry: dict[str, tuple[float, float]] = {}
        """Ticket → when to try again, and how long to wait after that."""

    def attempt(self, ticket: str) -> None:
        """Submit, or note since when that fails. `InputError` when it can never succeed."""
        note = read_note(ticket)
        try:
            with _alone(ticket) as lock:
                if lock is not None:
                    self._submit(ticket, note, lock)
                    return
            trouble = "another process is submitting it"
        except (client.UnreachableError, client.RefusedError) as error:
            trouble = str(error)
        except OSError as error:
            raise InfrastructureError(f"the run directory {ticket} cannot be written: {error.strerror}") from error
        self._wait(ticket)
        remember(ticket, {**read_note(ticket), "since_s": note.get("since_s", time.time()), "trouble": trouble})

    def again(self, ticket: str) -> dict[str, Any] | None:
        """Try again when it is time; how the run ended when patience is at its end, or somebody has cancelled it."""
        note = read_note(ticket)
        if os.path.exists(os.path.join(ticket, files.CANCEL)) and not begun(ticket):
            return self._withdrawn(ticket, note)
        if time.time() - note.get("since_s", time.time()) > self._options.patience:
            return runs.settle(ticket, runs.failed(f"not started: {note.get('trouble', 'it could not be submitted')}"))
        if time.monotonic() >= self._retry.get(ticket, (0.0, 0.0))[0]:
            try:
                self.attempt(ticket)
            except InputError as error:
                return runs.settle(ticket, runs.failed(str(error), reason="job"))
            except InfrastructureError as error:  # a full disk, on which nothing can be noted either
                self._wait(ticket)
                with contextlib.suppress(OSError):
                    remember(ticket, {**note, "since_s": note.get("since_s", time.time()), "trouble": str(error)})
        return None

    def _withdrawn(self, ticket: str, note: dict[str, Any]) -> dict[str, Any] | None:
        """A run that was cancelled before we know of its job: if there is one, it is ended like any other."""
        try:
            job = found(runs.read_request(ticket)) if note.get("tried") else None
        except client.UnreachableError:
            return None
        if job is None:
            return runs.settle(ticket, runs.failed("ended on request before it was submitted", reason="user"))
        remember(ticket, {**note, "job": job.number})
        return None

    def _wait(self, ticket: str) -> None:
        wait_s = min(2 * self._retry.get(ticket, (0.0, FIRST_RETRY_S / 2))[1], SLOWEST_RETRY_S)
        self._retry[ticket] = (time.monotonic() + wait_s, wait_s)

    def _submit(self, ticket: str, note: dict[str, Any], lock: int) -> None:
        request = runs.read_request(ticket)
        if note.get("tried") and (known := found(request)) is not None:
            remember(ticket, {"tried": True, "job": known.number, "submitted_s": time.time()})
            return
        runner = str(place_runner(self._root))
        values = row_values(self._setting.problem.space, request["row"])
        shape = Shape(request["cpus"], request["memory_bytes"])
        arguments = sbatch_arguments(self._options, values, shape, request)
        self._hand_over_environment(Path(ticket, ENVIRONMENT), request)
        remember(ticket, {**note, "tried": True})
        try:
            job = client.submit(arguments, batch_script(self._options.python, runner, ticket), lock)
        except InputError:
            Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
            raise
        remember(ticket, {"tried": True, "job": job, "submitted_s": time.time()})
        self._retry.pop(ticket, None)

    def _hand_over_environment(self, path: Path, request: dict[str, Any]) -> None:
        """The environment in a file that only its owner can read, and that the supervisor removes before the job starts."""
        base = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SLURMD_", "SBATCH_")) and name not in _NODE_ONLY
        }
        job = self._setting.job
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
def _alone(ticket: str) -> Iterator[int | None]:
    """A lock that lasts until our sbatch has ended, even if we are killed before; nothing when somebody has it."""
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
