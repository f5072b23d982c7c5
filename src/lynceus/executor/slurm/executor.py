"""The Slurm executor: launch, collect, cancel, and what is left over."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.executor import directory as runs
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.plugin import Plugin, Setting
from lynceus.executor.shape import Shape
from lynceus.executor.slurm import client
from lynceus.executor.slurm.endings import end_of, refined, why_never
from lynceus.executor.slurm.options import SlurmOptions, check_options
from lynceus.executor.slurm.submission import FIRST_RETRY_S, SLOWEST_RETRY_S, Submission, begun, read_note, remember
from lynceus.executor.slurm.text import ENVIRONMENT, belonging
from lynceus.history import Outcome
from lynceus.problem import Problem
from lynceus.supervisor import files
from lynceus.supervisor.look import last_sign_s
from lynceus.supervisor.output import read_output

_LAST_WORDS_S = 3.0
"""How long after a job's end its outcome may still be on its way through a network file system."""
_STUBBORN_S = 30.0
"""A supervisor that was asked to end its run and has not done so after the grace period and this, is ended by Slurm."""
_SURE_S = 60.0
_DOUBTFUL = ("UNKNOWN", "COMPLETED", "FAILED")
"""States in which a supervisor may live on all the same."""


class SlurmExecutor:
    """Runs a job in directories below the root, which all nodes see; `root/study-identity/number` is the ticket."""

    def __init__(self, setting: Setting, options: SlurmOptions | None = None) -> None:
        self._setting, self._options = setting, options or SlurmOptions()
        self._problem, self._job = setting.problem, setting.job
        self._root = setting.root.resolve()
        check_options(self._options, self._problem.space)
        self._submission = Submission(setting, self._options)
        self._jobs: dict[str, client.SlurmJob] | None = None
        """What the controller last said; nothing when it could not be asked."""
        self._asked_s = -float("inf")
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
        if not read_note(ticket).get("job") and not begun(ticket):
            self._submission.attempt(ticket)
            self._asked_s = -float("inf")
        return ticket

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
        note = read_note(ticket)
        if "job" not in note:
            return self._submission.again(ticket)
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
                remember(ticket, {**note, "over": job.state})
        first = self._over_s[ticket]
        if told is None and time.monotonic() - first < _LAST_WORDS_S:
            return None
        if told is None and job.state in _DOUBTFUL and self._still_alive(ticket):
            return None  # a controller that lost its memory, perhaps a second job in place of a forgotten one
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

    def _watch(self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: client.SlurmJob) -> None:
        """A job that waits or runs: end it if it waits in vain, or does not end as it was told."""
        if job.state == "PENDING":
            waited = time.time() - note.get("submitted_s", time.time())
            limit = self._options.max_queue
            if job.never_starts or (job.reason in client.HARDLY_EVER and waited > _SURE_S):
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
        remember(ticket, {**note, "ending": [reason, sentence]})
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
        if "ending" in note and not begun(ticket):
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
            if (job := read_note(ticket).get("job")) and not begun(ticket):
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
                self._jobs, self._silent_s = None, min(2 * self._silent_s + FIRST_RETRY_S, SLOWEST_RETRY_S)
                self._asked_s = time.monotonic() + self._silent_s
        return self._jobs


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
