"""Slurm's commands, and what their answers mean."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError

_TIMEOUT_S = 30.0
_FOR_EVER = re.compile(
    r"invalid (?:partition|account|qos|feature|job|reservation|generic resource|wckey|burst|time|license)|invalid feature"
    r"|node configuration is not available|node count specification invalid|more processors requested|memory required"
    r"|unrecognized option|unable to process configuration|invalid numeric|invalid --|invalid .* specification"
    r"|time limit is invalid|access/permission denied|user not found|batch script|(?:qos|assoc)(?:max\w+perjob|min\w+)",
    re.IGNORECASE,
)
"""Refusals that waiting does not change; the last are limits of a QOS or an account on a single job."""
_PREFIX = re.compile(r"^(?:\w+: )?(?:error: |fatal: )?(?:Batch job submission failed: |slurm_load_jobs error: )?")
_KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|SLURM_CONF|SLURM_CLUSTERS|SBATCH_\w+|KRB5\w*"
)
"""Variables with which Slurm's commands run. All others, secrets among them, stay with us."""

OVER = frozenset(
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
NEVER = frozenset(
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
"""Reasons of a waiting job that do not pass by themselves."""
_TOO_LARGE = re.compile(r"(?:QOS|Assoc)(?:Max\w+PerJob\w*|Min\w+)")
"""Limits of a QOS or an account on a single job: those on all jobs together pass when others end."""
HARDLY_EVER = frozenset({"PartitionConfig"})
"""More than any node has, or than the nodes that are up now have: after a minute it is the former."""


class UnreachableError(InfrastructureError):
    """The controller did not answer: perhaps it did what it was asked, perhaps not."""


class RefusedError(InfrastructureError):
    """The controller refused, but may do it later."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """How a job stands."""

    number: str
    state: str
    reason: str
    """Why it waits, as Slurm's word."""
    nodes: str
    name: str
    comment: str

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in OVER

    @property
    def never_starts(self) -> bool:
        """Whether it waits for what does not come.

        >>> [SlurmJob("7", "PENDING", why, "", "", "").never_starts for why in ("QOSMaxCpuPerJobLimit", "QOSMaxJobsPerUserLimit")]
        [True, False]
        """
        return self.reason in NEVER or _TOO_LARGE.fullmatch(self.reason) is not None

    @property
    def ending(self) -> bool:
        """Whether Slurm is about to end it already."""
        return self.state == "COMPLETING"


def tool_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Enough for Slurm's commands; what sbatch sees, it hands on to be stored by the controller.

    >>> tool_environment({"HOME": "/h", "TOKEN": "secret", "SLURM_JOB_ID": "3", "SBATCH_ACCOUNT": "a"})
    {'HOME': '/h', 'SBATCH_ACCOUNT': 'a'}
    """
    kept = {name: value for name, value in environment.items() if _KEPT.fullmatch(name)}
    kept.pop("SBATCH_EXPORT", None)
    return kept


def submit(arguments: Sequence[str], script: str, lock: int) -> str:
    """The number of the new job. `lock` is a descriptor that stays open as long as sbatch lives, even if we do not."""
    done = _run(["sbatch", *arguments], script, lock)
    if done.returncode == 0 and (found := re.match(r"\d+", done.stdout.strip())):
        return found[0]
    said = _said(done)
    if _unreachable(said):
        raise UnreachableError(f"the Slurm controller cannot be reached ({said})")
    if _FOR_EVER.search(said):
        raise InputError(f"Slurm refuses the job: {said}; correct the section executor, or forbid such configurations.")
    raise RefusedError(f"Slurm does not take the job now: {said}")


def jobs() -> dict[str, SlurmJob]:
    """All jobs of this user that the controller knows, also those that are over for some minutes, by number."""
    form = "--format=%i|%T|%r|%N|%j|%k"
    done = _run(["squeue", "--noheader", "--all", "--states=all", f"--user={os.getuid()}", form])
    if done.returncode:
        raise UnreachableError(f"the Slurm controller cannot be reached ({_said(done)})")
    found = {}
    for line in done.stdout.splitlines():
        parts = line.split("|", 5)
        if len(parts) == 6:
            found[parts[0]] = SlurmJob(*parts)
    return found


def exit_code(job: str) -> int:
    """With which code a job ended; 0 when that is not known any more."""
    done = _run(["scontrol", "--oneliner", "show", "job", job])
    if done.returncode and _unreachable(_said(done)):
        raise UnreachableError(f"the Slurm controller cannot be reached ({_said(done)})")
    code = re.search(r"\bExitCode=(\d+):(\d+)", done.stdout)
    return int(code[1]) if code else 0


def cancel(job: str, *, waiting_only: bool = False) -> None:
    """End a job; one that is over is no matter."""
    done = _run(["scancel", "--quiet", *(["--state=PENDING"] if waiting_only else []), job])
    if done.returncode and _unreachable(_said(done)):
        raise UnreachableError(f"the Slurm controller cannot be reached ({_said(done)})")


def _unreachable(said: str) -> bool:
    return (
        re.search(
            r"contact slurm|timed out|connect|zero bytes|communication|standby|resolve|munge", said, re.IGNORECASE
        )
        is not None
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """What a tool complains about, without its prefixes."""
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
