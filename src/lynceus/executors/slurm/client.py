"""Questions to the controller, asked with Slurm's commands, and the meaning of the answers. An answer that cannot be read is none."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.outage_log import OutageLog
from lynceus.executors.slurm.command import Answer, Command, UnreachableError
from lynceus.trial.text import clean_line

_WAIT_S = 3.0
"""How long a caller waits for an answer. The command goes on, and a later call finds its answer."""
_WAIT_IN_OUTAGE_S = 0.2
PATIENT_S = 8.0
"""How long callers wait that do not ask again."""
_HEADER = "JOBID|STATE|REASON|NODELIST|NAME|COMMENT"
_SHOWN, _LONGEST_MESSAGE = 60, 8192
_PERMANENT = re.compile(
    r"invalid (?:partition|account|qos|feature|job|reservation|generic resource|wckey|burst|time|license)|invalid feature"
    r"|node configuration is not available|node count specification invalid|more processors requested|memory required"
    r"|unrecognized option|unable to process configuration|invalid numeric|invalid --|invalid .* specification"
    r"|time limit is invalid|access/permission denied|user not found|batch script|(?:qos|assoc)(?:max\w+perjob|min\w+)",
    re.IGNORECASE,
)
"""Refusals that do not change by waiting; the last ones are limits of a QOS or an account on a single job."""
_PREFIX = re.compile(r"^(?:\w+: )?(?:error: |fatal: )?(?:Batch job submission failed: |slurm_load_jobs error: )?")
ENDED = frozenset(
    {
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "NODE_FAIL",
        "PREEMPTED",
        "OUT_OF_MEMORY",
        "BOOT_FAIL",
        "DEADLINE",
        "REVOKED",
    }
)
NEVER_STARTS = frozenset(
    {
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "BadConstraints",
        "InvalidAccount",
        "InvalidQOS",
        "AccountNotAllowed",
        "QOSNotAllowed",
    }
)
"""Reasons of a pending job that do not go away by themselves."""
_TOO_LARGE = re.compile(r"(?:QOS|Assoc)(?:Max\w+PerJob\w*|Min\w+)")
"""Limits of a QOS or an account on a single job. Limits on all jobs together go away when other jobs end."""
RARELY_STARTS = frozenset({"PartitionConfig"})
"""The job needs more than any node has, or more than those that are up have: after a minute, assume the former."""


class RefusedError(InfrastructureError):
    """The controller refused for now; a later attempt may succeed."""

    see = "slurm.md#troubleshooting"


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job as `squeue` shows it."""

    number: str
    state: str
    reason: str
    """Why it is pending, in Slurm's terms."""
    nodes: str
    name: str
    comment: str

    @property
    def ended(self) -> bool:
        """Whether it no longer runs."""
        return self.state in ENDED

    @property
    def never_starts(self) -> bool:
        """Whether it is pending for ever.

        >>> [SlurmJob("7", "PENDING", why, "", "", "").never_starts for why in ("QOSMaxCpuPerJobLimit", "QOSMaxJobsPerUserLimit")]
        [True, False]
        """
        return self.reason in NEVER_STARTS or _TOO_LARGE.fullmatch(self.reason) is not None

    @property
    def completing(self) -> bool:
        """Whether Slurm is already stopping it."""
        return self.state == "COMPLETING"


class SlurmClient:
    """Asks one controller. No call waits long; what has no answer yet is asked on, not again, by the next call."""

    def __init__(self) -> None:
        self.outages = OutageLog()
        self._running: dict[str, Command] = {}

    def close(self) -> None:
        """Kill commands that still wait for the controller."""
        for one in self._running.values():
            one.kill()
        self._running.clear()

    @property
    def is_asking(self) -> bool:
        """Whether a question for the jobs has no answer yet."""
        return "squeue" in self._running

    def is_submitting(self, run: str) -> bool:
        """Whether an sbatch of this client for this run has no answer yet."""
        return f"sbatch {run}" in self._running

    def forget_submission(self, run: str) -> None:
        """Nobody waits for the submission of this run any more."""
        self.outages.answered(f"sbatch {run}")
        if (command := self._running.pop(f"sbatch {run}", None)) is not None:
            command.kill()

    def submit(self, run: str, arguments: Sequence[str] = (), script: str = "", lock: int | None = None) -> str:
        """Submit the job of a run; returns its id. `lock` is a descriptor that stays open as long as sbatch lives.

        A call for a run that `is_submitting` only asks for the answer.
        """
        key = f"sbatch {run}"
        answer = self._ask(key, ["sbatch", *arguments], script, lock)
        if answer.code == 0 and (found := re.fullmatch(r"(\d{1,18})(?:;.*)?", answer.out.strip())):
            self.outages.answered(key)
            return found[1]
        message = _message(answer)
        if answer.code == 0 or _unreachable(message) or not _is_own_message(answer):
            raise self._failed("sbatch", message if answer.code else _unreadable(answer), key)
        self.outages.answered(key)
        if _PERMANENT.search(message):
            raise InputError(
                f"Slurm refuses the job: {message}; correct the section executor, or exclude such configurations."
            )
        raise RefusedError(f"Slurm does not accept the job now: {message}")

    def jobs(self, wait_s: float = _WAIT_S) -> dict[str, SlurmJob]:
        """All jobs of this user that the controller knows, by id, including those that ended some minutes ago."""
        self._forget_answered("scancel")
        command = ["squeue", "--all", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%r|%N|%j|%k"]
        answer = self._ask("squeue", command, wait_s=wait_s)
        if answer.code:
            raise self._failed("squeue", _message(answer))
        lines = answer.out.split("\n")
        if lines[0].strip() != _HEADER:  # nothing at all is no answer either: it would end every run
            raise self._failed("squeue", _unreadable(answer))
        self.outages.answered("squeue", "scancel", "scontrol")
        fields = (line.split("|", 5) for line in lines[1:])  # names of other jobs may hold anything, also line ends
        return {parts[0]: SlurmJob(*parts) for parts in fields if len(parts) == 6 and parts[0][:1].isdigit()}

    def exit_code(self, job: str) -> int:
        """The exit code of a job; 0 if Slurm no longer knows it."""
        answer = self._ask(f"scontrol {job}", ["scontrol", "--oneliner", "show", "job", job])
        if answer.code and re.search("invalid job id", answer.err, re.IGNORECASE):
            return 0
        code = re.search(r"\bExitCode=(\d{1,3}):\d", answer.out)
        if answer.code or code is None:
            raise self._failed("scontrol", _message(answer) if answer.code else _unreadable(answer))
        self.outages.answered("scontrol")
        return int(code[1])

    def cancel(self, job: str, *, pending_only: bool = False, wait_s: float = _WAIT_S) -> None:
        """Cancel a job; does nothing if it has ended."""
        command = ["scancel", "--quiet", *(["--state=PENDING"] if pending_only else []), job]
        answer = self._ask(" ".join(command), command, wait_s=wait_s)
        if answer.code and (_unreachable(_message(answer)) or not _is_own_message(answer)):
            raise self._failed("scancel", _message(answer))
        self.outages.answered("scancel")

    def _ask(
        self, key: str, command: Sequence[str], text: str = "", lock: int | None = None, wait_s: float = _WAIT_S
    ) -> Answer:
        """The answer of a command that is started, or was started by an earlier call. `UnreachableError` if there is none yet."""
        asked_before, name = key in self._running, command[0]
        asked = key if name == "sbatch" else name
        try:
            if not asked_before:
                self._running[key] = Command(command, text, lock)
            in_outage = self.outages.current() is not None
            brief_s = 0.0 if asked_before else _WAIT_IN_OUTAGE_S if in_outage else _WAIT_S
            answer = self._running[key].answer(wait_s if wait_s > _WAIT_S else brief_s)
        except UnreachableError as error:
            self._running.pop(key, None)
            self.outages.failed(asked, str(error))
            raise _unreachable_error(str(error)) from None
        if answer is None:
            for_s = self._running[key].age_s
            problem = f"{name} has not answered for {for_s:.0f} s"
            self.outages.failed(asked, problem, for_s=for_s)
            raise _unreachable_error(problem)
        del self._running[key]
        return answer

    def _forget_answered(self, name: str) -> None:
        """Drop commands whose answer nobody came back for."""
        for key in [key for key, one in self._running.items() if one.name == name]:
            try:
                if self._running[key].answer(0.0) is None:
                    continue
            except UnreachableError as error:
                self.outages.failed(name, str(error))
            del self._running[key]

    def _failed(self, command: str, problem: str, key: str = "") -> UnreachableError:
        sentence = problem if problem.startswith(command) else f"{command}: {problem}"
        self.outages.failed(key or command, sentence)
        return _unreachable_error(sentence)


def _unreachable_error(problem: str) -> UnreachableError:
    return UnreachableError(f"the Slurm controller cannot be reached ({problem})")


def _unreachable(message: str) -> bool:
    return (
        re.search(
            r"contact slurm|timed out|connect|zero bytes|communication|standby|resolve|munge", message, re.IGNORECASE
        )
        is not None
    )


def _is_own_message(answer: Answer) -> bool:
    """Whether the command itself says why it failed: its messages start with its name."""
    return re.search(rf"^{answer.command}: ", answer.err, re.MULTILINE) is not None


def _unreadable(answer: Answer) -> str:
    shown = clean_line(answer.out[:_SHOWN], _SHOWN)
    return (
        f"{answer.command} answered {shown!r}, which cannot be read" if shown else f"{answer.command} answered nothing"
    )


def _message(answer: Answer) -> str:
    """The error message of a command, without prefixes."""
    lines = [line.strip() for line in answer.err[-_LONGEST_MESSAGE:].splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Try ")]
    if not lines:
        return f"{answer.command} ended with exit code {answer.code}"
    return clean_line("; ".join(_PREFIX.sub("", line).rstrip(".") for line in lines[-2:]))
