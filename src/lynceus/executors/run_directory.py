"""Run directories: what Lynceus keeps about every run on its own machine, whichever executor runs it.

`root/study-identity/number` is the ticket of a run. It holds `request.json` from the launch on, `outcome.json` from the end on, the output,
and notes of the executor. `request.json`, `params.json` and `script` contain no path of the directory, so that they can be copied to a
node and run there.
"""

from __future__ import annotations

import glob
import math
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.command import SCRIPT, JobCommand, Target, arguments, write_params
from lynceus.executors.databases_in_use import open_databases
from lynceus.executors.interface import LostRunError, OwnedResource, Request, ResourceKind
from lynceus.executors.resources import Resources
from lynceus.executors.serve import serve_record, with_unit_costs
from lynceus.executors.supervisor import files, limits, scratch
from lynceus.executors.supervisor.ending import end_by_force, running_runs
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.status import is_supervised, read_outcome
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus.trial.text import clean_line, clean_name
from lynceus.trial.usage import Usage

SHIPPED = (files.REQUEST, files.PARAMS, SCRIPT)
"""The files that a node needs; the script exists only if the job is one."""

_MARKED = frozenset({"study", "identity", "number"})
_REQUESTED = _MARKED | {"run", "argv", "cap_s"}
"""What `request.json` contains in run directories of earlier versions, which have no marker."""


def directory_of(root: Path, request: Request) -> Path:
    """The directory of a run. The identity distinguishes a new study from a deleted one of the same name."""
    name = re.sub(r"[^\w.\- ]", "_", request.study)
    folder = root / (f"{name}-{request.identity}" if request.identity else name)
    if request.identity and not folder.is_dir():  # a study that was renamed keeps its folder
        folder = next((one for one in sorted(root.glob(f"*-{glob.escape(request.identity)}")) if one.is_dir()), folder)
    return folder / str(request.number)


def prepare(
    directory: Path, request: Request, job: JobCommand, *, resources: Resources | None = None, cwd: str | None = None
) -> dict[str, Any]:
    """Write `request.json`, unless it exists; returns its contents.

    `cwd` is where the job runs on its node (`~` is the home directory there); by default the job's own working directory.
    """
    path = str(directory / files.REQUEST)
    try:
        _make_private(directory)
        if (before := files.read_json(path)) is not None:
            return before
        owner = {"v": 1, "study": request.study, "identity": request.identity, "number": request.number}
        files.write_atomically(str(directory / files.MARKER), owner)
        write_params(request.params, directory)
        record = _record(request, job, directory, resources or Resources(), cwd)
        for name in (files.PARAMS, SCRIPT):
            if (directory / name).exists():
                (directory / name).chmod(0o700 if name == SCRIPT else 0o600)
        files.write_atomically(path, record)
    except OSError as error:
        raise InfrastructureError(f"the run directory {directory} cannot be written: {error.strerror}") from error
    return record


def _make_private(directory: Path) -> None:
    """Make a run directory and the folder of its study, which only their owner can read: outputs may contain anything."""
    directory.parent.parent.mkdir(parents=True, exist_ok=True)
    for one in (directory.parent, directory):
        one.mkdir(mode=0o700, exist_ok=True)


def _record(
    request: Request, job: JobCommand, directory: Path, resources: Resources, cwd: str | None
) -> dict[str, Any]:
    argv, script = arguments(job, request.params, directory)
    served = None if job.serve is None else serve_record(job.serve, request.params, shell=job.shell)
    return {
        "v": 1,
        "run": secrets.token_hex(8),
        "boot": files.boot_id(),
        "study": request.study,
        "identity": request.identity,
        "number": request.number,
        "row": request.row,
        "boots": request.boots,
        "params": dict(request.params),
        "argv": argv,
        "script": script,
        "cwd": str(job.workdir.resolve()) if cwd is None else cwd,
        "cap_s": None if math.isinf(request.timeout_s) else request.timeout_s,
        "grace_s": job.grace_s,
        "output_bytes": job.output_bytes,
        "patterns": dict(job.metrics),
        "limits": [{"name": one.metric, "bound": one.bound, "at_least": one.at_least} for one in request.limits],
        "ends_when": request.ends_when,
        "cpus": resources.cpus,
        "memory_bytes": resources.memory_bytes,
        "scratch": _scratch(job, directory),
        **({} if served is None else {"serve": served}),
        **({"curves": [_curve(one) for one in job.targets]} if job.targets else {}),
    }


def _curve(target: Target) -> dict[str, Any]:
    return {
        "metric": target.metric,
        "target": target.bound,
        "above": target.at_least,
        "end_s": target.end_s,
        "error_rate": target.error_rate,
    }


def _scratch(job: JobCommand, directory: Path) -> dict[str, Any] | None:
    """What the supervisor has to know about the scratch directory; None if the run has none."""
    wanted = job.scratch
    if wanted.where == "none":
        return None
    record: dict[str, Any] = {"where": wanted.where}
    if wanted.copy or wanted.link:
        record |= {
            "copy": list(wanted.copy),
            "link": list(wanted.link),
            "without": not_brought_in(job, directory.parent.parent),
        }
    return {**record, "keep": True} if wanted.keep else record


def not_brought_in(job: JobCommand, root: Path) -> list[str]:
    """Paths of the working directory that no pattern brings into a scratch directory: our own files, and databases in use."""
    workdir = job.workdir.resolve()
    try:
        found = open_databases(os.listdir(workdir))
    except OSError:
        found = set()
    if root.resolve().is_relative_to(workdir):
        found.add(str(root.resolve().relative_to(workdir)))
    return sorted(found)


def read_request(ticket: str) -> dict[str, Any]:
    """The contents of `request.json`; `LostRunError` if it no longer exists."""
    request = files.read_json(os.path.join(ticket, files.REQUEST))
    if request is None:
        record = read_outcome(ticket)
        seconds = None if record is None else record["seconds"] + record.get("stopping_s", 0.0)
        raise LostRunError(f"the run directory {ticket} no longer exists", seconds)
    return request


def settle(ticket: str, record: OutcomeRecord) -> OutcomeRecord:
    """Record how a run ended, unless that is recorded; returns the record that counts."""
    if not files.write_once(os.path.join(ticket, files.OUTCOME), record):
        return read_outcome(ticket) or record
    return record


def to_outcome(problem: Problem, request: Mapping[str, Any], record: OutcomeRecord, *, extra_s: float = 0.0) -> Outcome:
    """The outcome of a run with its charge; `extra_s` are further seconds of machines that were used for this run alone.

    The time is the true one, also beyond the timeout. The seconds that the run took to stop are charged, too.
    """
    end, reason, detail = End(record["end"]), record.get("reason"), clean_line(record.get("detail", ""))
    metrics = {clean_name(name): value for name, value in record["metrics"].items()}
    for name in ("seconds", "stopping_s"):
        if not 0.0 <= (value := float(record.get(name, 0.0))) < math.inf:  # type: ignore[arg-type]
            raise ValueError(f"its outcome.json says that {name} is {value!r}, which makes no sense")
    price = float(problem.price[request["row"]])
    if request.get("serve"):
        metrics = with_unit_costs(metrics, price)
    timeout_s = math.inf if request["cap_s"] is None else request["cap_s"]
    if end is End.FINISHED and record["seconds"] > timeout_s:
        end = End.TIMEOUT
    missing = [name for name in problem.metrics if name not in metrics]
    if end is End.FINISHED and missing:
        # The model cannot learn from such a run. As a failure, the user notices it before it is repeated many times.
        end, reason = End.FAILED, "job"
        how = "call lynceus.report, or have it read from the output with a pattern under 'metrics' in the job file that fits what it prints"
        detail = "; ".join(filter(None, [f"the job finished but did not report {', '.join(missing)}: {how}", detail]))
    seconds = max(record["seconds"], 1e-6 if end is not End.FAILED else 0.0)
    charged_s = seconds + record.get("stopping_s", 0.0) + extra_s
    charged_usd = problem.billing.charge(charged_s, price, boots=request["boots"])
    return Outcome(
        end,
        seconds,
        0.0 if record.get("free") else charged_usd,
        metrics,
        tuple((moment, progress) for moment, progress in record["trace"]),
        FailureReason(str(reason)) if end is End.FAILED else None,
        detail,
        usage=Usage.read(record.get("usage")),
    )


def run_directories(root: Path) -> list[OwnedResource]:
    """All run directories below a root, of every study, and scratch directories in them that are not to be kept.

    Folders that Lynceus did not make are not among them.
    """
    found = []
    for path in sorted(root.glob("*/*")) if root.is_dir() else ():
        if path.name.isdigit() and (owner := _owner(path)) is not None:
            found += [OwnedResource(ResourceKind.SCRATCH, one, *owner, int(path.name)) for one in _left_scratch(path)]
            found.append(OwnedResource(ResourceKind.DIRECTORY, str(path), *owner, int(path.name)))
    return found


def _left_scratch(path: Path) -> list[str]:
    """Scratch directories that nobody removes any more: a living supervisor removes that of its run."""
    left = scratch.in_use(str(path))
    if not left or is_supervised(str(path)):
        return []
    request = files.read_json(str(path / files.REQUEST)) or {}
    return [] if (request.get("scratch") or {}).get("keep") else left


def _owner(path: Path) -> tuple[str, str] | None:
    """The study and the identity of the run that a directory was made for; None if Lynceus did not make it."""
    if path.is_symlink() or not path.is_dir():
        return None
    for name, needed in ((files.MARKER, _MARKED), (files.REQUEST, _REQUESTED)):
        found = files.read_json(str(path / name))
        if found is not None and needed <= found.keys() and str(found["number"]) == path.name:
            return str(found["study"]), str(found["identity"])
    return None


def running_processes(directories: list[OwnedResource]) -> list[OwnedResource]:
    """The living processes of runs on this machine, with their supervisors: one resource for each run that has any."""
    found = running_runs()
    return [
        replace(one, kind=ResourceKind.PROCESSES, detail=f"process {', '.join(map(str, sorted(found[one.name])))}")
        for one in directories
        if one.name in found
    ]


def remove_local(resource: OwnedResource) -> None:
    """Kill the processes of a run on this machine with its supervisor, or delete its directory or what it left in its scratch directory;
    nothing that Lynceus did not make."""
    if resource.kind is ResourceKind.SCRATCH:
        if _owner(Path(resource.name).parent) is not None and resource.name in scratch.in_use(
            str(Path(resource.name).parent)
        ):
            scratch.remove_tree(resource.name)
        return
    if resource.kind not in (ResourceKind.PROCESSES, ResourceKind.DIRECTORY) or _owner(Path(resource.name)) is None:
        return
    if resource.kind is ResourceKind.PROCESSES or is_supervised(resource.name):
        end_by_force(resource.name)
    if resource.kind is ResourceKind.DIRECTORY:
        started = files.read_json(os.path.join(resource.name, files.STARTED)) or {}
        limits.remove_groups(list(started.get("groups", ())))
        scratch.remove_tree(resource.name)
