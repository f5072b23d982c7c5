"""Run directories: what Lynceus keeps about every run on its own machine, whichever executor runs it.

`root/study-identity/number` is the ticket of a run. It holds `request.json` from the launch on, `outcome.json` from the end on, the output,
and notes of the executor. `request.json`, `params.json` and `script` contain no path of the directory, so that they can be copied to a
node and run there.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.command import SCRIPT, JobCommand, arguments, write_params
from lynceus.executors.interface import LostRunError, OwnedResource, Request, ResourceKind
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor import files, limits, process_tree
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.status import read_outcome
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import End, FailureReason, Outcome

SHIPPED = (files.REQUEST, files.PARAMS, SCRIPT)
"""The files that a node needs; the script exists only if the job is one."""


def directory_of(root: Path, request: Request) -> Path:
    """The directory of a run. The identity distinguishes a new study from a deleted one of the same name."""
    name = re.sub(r"[^\w.\- ]", "_", request.study)
    return root / (f"{name}-{request.identity}" if request.identity else name) / str(request.number)


def prepare(
    directory: Path, request: Request, job: JobCommand, *, resources: Resources | None = None, cwd: str | None = None
) -> dict[str, Any]:
    """Write `request.json`, unless it exists; returns its contents.

    `cwd` is where the job runs on its node (`~` is the home directory there); by default the job's own working directory.
    """
    path = str(directory / files.REQUEST)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (before := files.read_json(path)) is not None:
            return before
        write_params(request.params, directory)
        record = _record(request, job, directory, resources or Resources(), cwd)
        files.write_atomically(path, record)
    except OSError as error:
        raise InfrastructureError(f"the run directory {directory} cannot be written: {error.strerror}") from error
    return record


def _record(
    request: Request, job: JobCommand, directory: Path, resources: Resources, cwd: str | None
) -> dict[str, Any]:
    argv, script = arguments(job, request.params, directory)
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
        "cpus": resources.cpus,
        "memory_bytes": resources.memory_bytes,
    }


def read_request(ticket: str) -> dict[str, Any]:
    """The contents of `request.json`."""
    request = files.read_json(os.path.join(ticket, files.REQUEST))
    if request is None:
        raise LostRunError(f"the run directory {ticket} no longer exists")
    return request


def settle(ticket: str, record: OutcomeRecord) -> OutcomeRecord:
    """Record how a run ended, unless that is recorded; returns the record that counts."""
    if not files.write_once(os.path.join(ticket, files.OUTCOME), record):
        return read_outcome(ticket) or record
    return record


def to_outcome(problem: Problem, request: Mapping[str, Any], record: OutcomeRecord, *, extra_s: float = 0.0) -> Outcome:
    """The outcome of a run with its charge; `extra_s` are further seconds of machines that were used for this run alone."""
    end, reason, detail = End(record["end"]), record.get("reason"), record.get("detail", "")
    missing = [name for name in problem.metrics if name not in record["metrics"]]
    if end is End.FINISHED and missing:
        # The model cannot learn from such a run. As a failure, the user notices it before it is repeated many times.
        end, reason = End.FAILED, "job"
        detail = "; ".join(filter(None, [f"the job finished but did not report {', '.join(missing)}", detail]))
    timeout_s = math.inf if request["cap_s"] is None else request["cap_s"]
    seconds = min(max(record["seconds"], 1e-6 if end is not End.FAILED else 0.0), timeout_s)
    price = float(problem.price[request["row"]])
    return Outcome(
        end,
        seconds,
        problem.billing.charge(seconds + extra_s, price, boots=request["boots"]),
        record["metrics"],
        tuple((moment, progress) for moment, progress in record["trace"]),
        FailureReason(str(reason)) if end is End.FAILED else None,
        detail,
    )


def run_directories(root: Path) -> list[OwnedResource]:
    """All run directories below a root, of every study."""
    found = []
    for path in sorted(root.glob("*/*")) if root.is_dir() else ():
        if path.name.isdigit() and path.is_dir():
            request = files.read_json(str(path / files.REQUEST)) or {}
            study, identity = request.get("study"), request.get("identity")
            if study is None or identity is None:  # `prepare` was interrupted
                study, _, identity = path.parent.name.rpartition("-")
            found.append(OwnedResource(ResourceKind.DIRECTORY, str(path), study, identity, int(path.name)))
    return found


def running_processes(directory: OwnedResource) -> list[OwnedResource]:
    """The living processes of a run on this machine, as one resource; an empty list if there are none."""
    request = files.read_json(os.path.join(directory.name, files.REQUEST)) or {}
    found = process_tree.processes_of(str(request["run"])) if "run" in request else set()
    if not found:
        return []
    numbers = ", ".join(map(str, sorted(found)))
    return [replace(directory, kind=ResourceKind.PROCESSES, detail=f"process {numbers}")]


def remove_local(resource: OwnedResource) -> None:
    """Kill the processes of a run on this machine, or delete its directory with its control groups."""
    if resource.kind is ResourceKind.PROCESSES:
        request = files.read_json(os.path.join(resource.name, files.REQUEST)) or {}
        if "run" in request:
            process_tree.kill_run(str(request["run"]), set())
    elif resource.kind is ResourceKind.DIRECTORY:
        started = files.read_json(os.path.join(resource.name, files.STARTED)) or {}
        limits.remove_groups(list(started.get("groups", ())))
        shutil.rmtree(resource.name, ignore_errors=True)
