"""The Slurm executor: launch, collect, cancel, and what is left over."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, InputError
from lynceus.executor import directory as runs
from lynceus.executor.command import LocalJob, environment
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.plugin import Plugin, Setting
from lynceus.executor.shape import Shape
from lynceus.executor.slurm import client
from lynceus.executor.slurm.endings import end_of, refined, why_never
from lynceus.executor.slurm.options import SlurmOptions, check_options, row_values
from lynceus.executor.slurm.text import ENVIRONMENT, batch_script, belonging, comment, job_name, sbatch_arguments
from lynceus.history import Outcome
from lynceus.problem import Problem
from lynceus.supervisor import files
from lynceus.supervisor.bundle import place_runner
from lynceus.supervisor.look import last_sign_s
from lynceus.supervisor.output import read_output

_NOTE = "slurm.json"
"""In a run directory: whether sbatch was called, the job's number, since when there is trouble, and why we end the job, if we do."""
_SUBMIT_LOCK = "submit.lock"
_FIRST_RETRY_S, _SLOWEST_RETRY_S = 1.0, 30.0
_LAST_WORDS_S = 3.0
"""How long after a job's end its outcome may still be on its way through a network file system."""
_STUBBORN_S = 30.0
"""A supervisor that was asked to end its run and has not done so after the grace period and this, is ended by Slurm."""
_SURE_S = 60.0
_NODE_ONLY = ("HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_")


class SlurmExecutor:
    """Runs a job in directories below the root, which all nodes see; `root/study-identity/number` is the ticket."""

    def __init__(self, setting: Setting, options: SlurmOptions | None = None) -> None:
        self._setting, self._options = setting, options or SlurmOptions()
        self._problem, self._job = setting.problem, setting.job
        self._root = setting.root.resolve()
        check_options(self._options, self._problem.space)
        self._jobs: dict[str, client.SlurmJob] | None = None
        """What the controller last said; nothing when it could not be asked."""
        self._asked_s = -float("inf")
        self._retry: dict[str, tuple[float, float]] = {}
        """Ticket → when to try again, and how long to wait after that."""
        self._over_s: dict[str, float] = {}
        """Ticket → when its job was first seen to be over."""
        self._signs: dict[str, tuple[float, float]] = {}
        """Ticket → the last sign of life of a job that the controller has forgotten, and when it was seen."""
        self._silent_s = 0.0

    def close(self) -> None:
        """There is nothing to let go of: jobs go on."""

    def launch(self, request: Request) -> str:
        """Prepare the directory, from then on the run can be found; then submit it. What may pass is tried again by `collect`."""
        directory = runs.directory_of(self._root, request)
        shape = Shape() if self._setting.shape is None else self._setting.shape(request.row)
        runs.prepare(directory, request, self._job, shape=shape)
        ticket = str(directory)
        if not self._note(ticket).get("job") and not self._begun(ticket):
            self._try_to_submit(ticket, directory)
        return ticket

    def _begun(self, ticket: str) -> bool:
        return any(os.path.exists(os.path.join(ticket, name)) for name in (files.STARTED, files.OUTCOME))

    def _try_to_submit(self, ticket: str, directory: Path) -> None:
        """Submit, or note since when that fails."""
        note = self._note(ticket)
        try:
            with self._alone(ticket) as lock:
                if lock is not None:
                    self._submit(ticket, directory, note, lock)
                    return
            trouble = "another process is submitting it"
        except (client.UnreachableError, client.RefusedError) as error:
            trouble = str(error)
        except OSError as error:
            raise InfrastructureError(f"the run directory {ticket} cannot be written: {error.strerror}") from error
        wait_s = min(2 * self._retry.get(ticket, (0.0, _FIRST_RETRY_S / 2))[1], _SLOWEST_RETRY_S)
        self._retry[ticket] = (time.monotonic() + wait_s, wait_s)
        self._remember(ticket, {**self._note(ticket), "since_s": note.get("since_s", time.time()), "trouble": trouble})

    @contextlib.contextmanager
    def _alone(self, ticket: str) -> Iterator[int | None]:
        """A lock that lasts until our sbatch has ended, even if we are killed before; nothing when somebody has it."""
        lock = os.open(os.path.join(ticket, _SUBMIT_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            yield lock
        finally:
            os.close(lock)

    def _submit(self, ticket: str, directory: Path, note: dict[str, Any], lock: int) -> None:
        request = runs.read_request(ticket)
        if note.get("tried") and (known := self._found(request)) is not None:
            self._remember(ticket, {"tried": True, "job": known.number, "submitted_s": time.time()})
            return
        runner = place_runner(self._root)
        arguments = sbatch_arguments(
            self._options,
            row_values(self._problem.space, request["row"]),
            Shape(request["cpus"], request["memory_bytes"]),
            request,
        )
        self._hand_over_environment(directory, request)
        self._remember(ticket, {**note, "tried": True})
        try:
            job = client.submit(arguments, batch_script(self._options.python, str(runner), ticket), lock)
        except InputError:
            (directory / ENVIRONMENT).unlink(missing_ok=True)
            raise
        self._remember(ticket, {"tried": True, "job": job, "submitted_s": time.time()})
        self._retry.pop(ticket, None)
        self._asked_s = -float("inf")

    def _found(self, request: dict[str, Any]) -> client.SlurmJob | None:
        """The job of a run that was submitted by somebody who died before writing its number down."""
        known = client.jobs().values()
        ours = [job for job in known if job.comment == comment(request) or job.name == job_name(request)]
        return min(ours, key=lambda job: job.over, default=None)

    def _hand_over_environment(self, directory: Path, request: dict[str, Any]) -> None:
        """The environment in a file that only its owner can read, and that the supervisor removes before the job starts."""
        base = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SLURMD_", "SBATCH_")) and name not in _NODE_ONLY
        }
        given = {
            "environment": environment(self._job, request, base),
            "secrets": list(self._job.secrets.values()),
            "without": ["SLURM_EXPORT_ENV"],
        }
        path = directory / ENVIRONMENT
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(given).encode("utf-8", "surrogateescape"))

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended: what its supervisor wrote down, or, if it could not, what Slurm says."""
        told = runs.kept(ticket)
        request = runs.read_request(ticket)
        if told is None or told.get("outside"):
            told = self._look(ticket, request, told)
        if told is None:
            return None
        Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
        self._over_s.pop(ticket, None)
        return runs.outcome(self._problem, request, told)

    def _look(self, ticket: str, request: dict[str, Any], told: dict[str, Any] | None) -> dict[str, Any] | None:
        note = self._note(ticket)
        if "job" not in note:
            return self._not_yet_submitted(ticket, note)
        known = self._known_jobs()
        if known is None:
            return None  # the controller is away; the run goes on without it
        job = known.get(note["job"], client.SlurmJob(note["job"], "UNKNOWN", "", "", "", ""))
        if not job.over and job.state != "UNKNOWN":
            self._over_s.pop(ticket, None)
            if told is None:
                self._watch(ticket, request, note, job)
            return None
        if ticket not in self._over_s:
            self._over_s[ticket] = time.monotonic()
            with contextlib.suppress(
                OSError
            ):  # a change of the directory lets network file systems look again what is in it
                self._remember(ticket, {**note, "over": job.state})
        first = self._over_s[ticket]
        if told is None and time.monotonic() - first < _LAST_WORDS_S:
            return None
        if job.state == "UNKNOWN" and self._still_alive(ticket):
            return None  # a controller that lost its memory; the supervisor needs none
        try:
            return self._settle_for(ticket, request, note, job)
        except client.UnreachableError:
            return None

    def _still_alive(self, ticket: str) -> bool:
        """Whether the supervisor gives signs of life, seen by two looks."""
        started = files.read_whole(os.path.join(ticket, files.STARTED))
        if started is None:
            return False
        sign, (before, since) = last_sign_s(ticket, started), self._signs.get(ticket, (-1.0, 0.0))
        if sign != before:
            self._signs[ticket] = (sign, time.monotonic())
            return True
        return time.monotonic() - since < _LAST_WORDS_S

    def _not_yet_submitted(self, ticket: str, note: dict[str, Any]) -> dict[str, Any] | None:
        """Try again when it is time; give up when patience is at its end."""
        since = note.get("since_s", time.time())
        if os.path.exists(os.path.join(ticket, files.CANCEL)) and not self._begun(ticket):
            try:
                job = self._found(runs.read_request(ticket)) if note.get("tried") else None
            except client.UnreachableError:
                return None
            if job is None:
                return runs.settle(ticket, runs.failed("ended on request before it was submitted", reason="user"))
            self._remember(ticket, {**note, "job": job.number})
            self._cancel_job(job.number)
            return None
        if time.time() - since > self._options.patience:
            return runs.settle(ticket, runs.failed(f"not started: {note.get('trouble', 'it could not be submitted')}"))
        if time.monotonic() >= self._retry.get(ticket, (0.0, 0.0))[0]:
            try:
                self._try_to_submit(ticket, Path(ticket))
            except InputError as error:
                return runs.settle(ticket, runs.failed(str(error), reason="job"))
            except InfrastructureError as error:
                self._retry[ticket] = (time.monotonic() + _SLOWEST_RETRY_S, _SLOWEST_RETRY_S)
                self._remember_trouble(ticket, note, str(error))
        return None

    def _remember_trouble(self, ticket: str, note: dict[str, Any], trouble: str) -> None:
        with contextlib.suppress(OSError):
            self._remember(ticket, {**note, "since_s": note.get("since_s", time.time()), "trouble": trouble})

    def _watch(self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: client.SlurmJob) -> None:
        """A job that waits or runs: end it if it waits in vain, or does not end as it was told."""
        if job.state == "PENDING":
            waited = time.time() - note.get("submitted_s", time.time())
            limit = self._options.max_queue
            if job.reason in client.NEVER or (job.reason in client.HARDLY_EVER and waited > _SURE_S):
                self._give_up(ticket, note, job, "job", why_never(job))
            elif limit is not None and waited > limit:
                sentence = f"no capacity: it waited {waited:.0f} s in the queue (Slurm's reason: {job.reason})"
                self._give_up(ticket, note, job, "infra", sentence)
            elif os.path.exists(os.path.join(ticket, files.CANCEL)):
                self._cancel_job(job.number, waiting_only=True)
        elif _age_s(os.path.join(ticket, files.CANCEL)) > request["grace_s"] + _STUBBORN_S:
            self._cancel_job(job.number)

    def _give_up(self, ticket: str, note: dict[str, Any], job: client.SlurmJob, reason: str, sentence: str) -> None:
        """Cancel a waiting job; it is settled with this sentence when Slurm has done so."""
        self._remember(ticket, {**note, "ending": [reason, sentence]})
        self._cancel_job(job.number, waiting_only=True)

    def _settle_for(
        self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: client.SlurmJob
    ) -> dict[str, Any]:
        """Slurm's word for the end of a run whose supervisor said nothing, or not enough."""
        told = runs.kept(ticket)
        if told is not None:
            told = refined(told, job) if told.get("outside") else told
            files.write_whole(os.path.join(ticket, files.OUTCOME), told)
            return told
        code = 0 if job.state == "UNKNOWN" else client.exit_code(job.number)
        ending = end_of(job, request, ticket, code)
        asked = os.path.exists(os.path.join(ticket, files.CANCEL))
        if "ending" in note and not self._begun(ticket):
            ending = runs.failed(note["ending"][1], reason=note["ending"][0])
        elif asked and ending["reason"] in ("infra", "user"):
            ending = runs.failed(
                f"ended on request after {ending['seconds']:.1f} s", reason="user", seconds=ending["seconds"]
            )
        # A supervisor that lives on beyond Slurm's knowledge (its node lost touch) ends its run when it sees this.
        Path(ticket, files.CANCEL).touch()
        return runs.settle(ticket, ending)

    def cancel(self, ticket: str) -> None:
        """Ask the supervisor to end the run; take it out of the queue if it waits there."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()
            if (job := self._note(ticket).get("job")) and not self._begun(ticket):
                self._cancel_job(job, waiting_only=True)

    def _cancel_job(self, number: str, *, waiting_only: bool = False) -> None:
        with contextlib.suppress(client.UnreachableError):
            client.cancel(number, waiting_only=waiting_only)
            self._asked_s = -float("inf")

    def output(self, ticket: str, stream: str = files.STDOUT) -> bytes:
        """What a run has written to `stdout` or `stderr` so far, as far as it is kept."""
        return read_output(os.path.join(ticket, stream))

    def belongings(self) -> list[Belonging]:
        """Jobs of ours that wait or run and that nobody has ended yet, of every study; and run directories below the root."""
        alive = [job for job in client.jobs().values() if not (job.over or job.ending)]
        found = [belonging(job.comment, job.number, job.state) for job in alive]
        return [*(one for one in found if one is not None), *runs.directories(self._root)]

    def end(self, belonging: Belonging) -> None:
        """Cancel a job, or remove a directory."""
        if belonging.kind == "job":
            client.cancel(belonging.name)
            self._asked_s = -float("inf")
        else:
            runs.end_here(belonging)

    def _known_jobs(self) -> dict[str, client.SlurmJob] | None:
        """What the controller says, asked at most every `poll` seconds, less often when it does not answer."""
        if time.monotonic() - self._asked_s >= self._options.poll:
            try:
                self._jobs, self._silent_s = client.jobs(), 0.0
                self._asked_s = time.monotonic()
            except client.UnreachableError:
                # Such a question takes seconds by itself, in which nobody asks for other runs.
                self._jobs, self._silent_s = None, min(2 * self._silent_s + _FIRST_RETRY_S, _SLOWEST_RETRY_S)
                self._asked_s = time.monotonic() + self._silent_s
        return self._jobs

    def _note(self, ticket: str) -> dict[str, Any]:
        return files.read_whole(os.path.join(ticket, _NOTE)) or {}

    def _remember(self, ticket: str, note: dict[str, Any]) -> None:
        files.write_whole(os.path.join(ticket, _NOTE), note)


def _age_s(path: str) -> float:
    """Seconds since a file was made; less than nothing when it is not there."""
    try:
        return time.time() - os.path.getmtime(path)
    except OSError:
        return -1.0


def slurm_executor(
    problem: Problem, job: LocalJob, root: str | Path, options: SlurmOptions | None = None
) -> SlurmExecutor:
    """An executor without a job file."""
    return SlurmExecutor(Setting(problem, job, Path(root)), options)


def _make(setting: Setting, options: SlurmOptions) -> SlurmExecutor:
    absent = [tool for tool in ("sbatch", "squeue", "scontrol", "scancel") if shutil.which(tool) is None]
    if absent:
        raise InputError(
            f"executor: {absent[0]!r} is not installed here; run Lynceus on a machine that can submit jobs to Slurm."
        )
    return SlurmExecutor(setting, options)


PLUGIN = Plugin(
    _make, SlurmOptions, check_options, about="jobs of a Slurm cluster, with run directories on a shared disk"
)
