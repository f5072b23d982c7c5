"""Calls of Slurm's commands, and the meaning of their answers."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError

_TIMEOUT_S = 30.0
_PERMANENT = re.compile(
    r"invalid (?:partition|account|qos|feature|job|reservation|generic resource|wckey|burst|time|license)|invalid feature"
    r"|node configuration is not available|node count specification invalid|more processors requested|memory required"
    r"|unrecognized option|unable to process configuration|invalid numeric|invalid --|invalid .* specification"
    r"|time limit is invalid|access/permission denied|user not found|batch script|(?:qos|assoc)(?:max\w+perjob|min\w+)",
    re.IGNORECASE,
)
"""Refusals that do not change by waiting; the last ones are limits of a QOS or an account on a single job."""
_PREFIX = re.compile(r"^(?:\w+: )?(?:error: |fatal: )?(?:Batch job submission failed: |slurm_load_jobs error: )?")
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|SLURM_CONF|SLURM_CLUSTERS|SBATCH_\w+|KRB5\w*"
)
"""Environment variables of Slurm's commands. All others, including secrets, are not passed on."""

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


class UnreachableError(InfrastructureError):
    """The controller did not answer; it may or may not have carried the request out."""


class RefusedError(InfrastructureError):
    """The controller refused for now; a later attempt may succeed."""


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


def tool_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of Slurm's commands. It is small because sbatch passes it on and the controller stores it.

    >>> tool_environment({"HOME": "/h", "TOKEN": "secret", "SLURM_JOB_ID": "3", "SBATCH_ACCOUNT": "a"})
    {'HOME': '/h', 'SBATCH_ACCOUNT': 'a'}
    """
    passed_on = {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}
    passed_on.pop("SBATCH_EXPORT", None)
    return passed_on


def submit(arguments: Sequence[str], script: str, lock: int) -> str:
    """Submit a job; returns its id. `lock` is a descriptor that stays open as long as sbatch lives, even if Lynceus is killed."""
    done = _run(["sbatch", *arguments], script, lock)
    if done.returncode == 0 and (found := re.match(r"\d+", done.stdout.strip())):
        return found[0]
    message = _message(done)
    if _unreachable(message):
        raise UnreachableError(f"the Slurm controller cannot be reached ({message})")
    if _PERMANENT.search(message):
        raise InputError(
            f"Slurm refuses the job: {message}; correct the section executor, or exclude such configurations."
        )
    raise RefusedError(f"Slurm does not accept the job now: {message}")


def jobs() -> dict[str, SlurmJob]:
    """All jobs of this user that the controller knows, by id, including those that ended some minutes ago."""
    columns = "--format=%i|%T|%r|%N|%j|%k"
    done = _run(["squeue", "--noheader", "--all", "--states=all", f"--user={os.getuid()}", columns])
    if done.returncode:
        raise UnreachableError(f"the Slurm controller cannot be reached ({_message(done)})")
    found = {}
    for line in done.stdout.splitlines():
        parts = line.split("|", 5)
        if len(parts) == 6:
            found[parts[0]] = SlurmJob(*parts)
    return found


def exit_code(job: str) -> int:
    """The exit code of a job; 0 if Slurm no longer knows it."""
    done = _run(["scontrol", "--oneliner", "show", "job", job])
    if done.returncode and _unreachable(_message(done)):
        raise UnreachableError(f"the Slurm controller cannot be reached ({_message(done)})")
    code = re.search(r"\bExitCode=(\d+):(\d+)", done.stdout)
    return int(code[1]) if code else 0


def cancel(job: str, *, pending_only: bool = False) -> None:
    """Cancel a job; does nothing if it has ended."""
    done = _run(["scancel", "--quiet", *(["--state=PENDING"] if pending_only else []), job])
    if done.returncode and _unreachable(_message(done)):
        raise UnreachableError(f"the Slurm controller cannot be reached ({_message(done)})")


def _unreachable(message: str) -> bool:
    return (
        re.search(
            r"contact slurm|timed out|connect|zero bytes|communication|standby|resolve|munge", message, re.IGNORECASE
        )
        is not None
    )


def _message(done: subprocess.CompletedProcess[str]) -> str:
    """The error message of a command, without prefixes."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip() and not line.startswith("Try ")]
    if not lines:
        return f"{done.args[0]} ended with exit code {done.returncode}"
    return "; ".join(_PREFIX.sub("", line).rstrip(".") for line in lines[-2:])


def _run(command: Sequence[str], text: str | None = None, lock: int | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            env=tool_environment(),
            timeout=_TIMEOUT_S,
            pass_fds=() if lock is None else (lock,),
            check=False,
        )
    except FileNotFoundError:
        raise InputError(
            f"executor: {command[0]!r} is not installed here; run Lynceus on a machine that can submit jobs to Slurm."
        ) from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"the Slurm controller cannot be reached ({command[0]} did not answer in {_TIMEOUT_S:g} s)"
        ) from None
