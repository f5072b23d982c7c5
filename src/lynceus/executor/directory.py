"""Run directories: what is written down of every run on the side of Lynceus, whoever runs it.

`root/study-identity/number` is the ticket of a run. It holds `request.json` from the launch on, `outcome.json` from the end on, the output,
and whatever an executor notes for itself. `request.json`, `params.json` and `script` name no path of the directory, so that they can be
copied to a node and run there.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executor.command import SCRIPT, LocalJob, arguments, write_params
from lynceus.executor.executor import Belonging, LostRunError, Request
from lynceus.executor.shape import Shape
from lynceus.history import End, Outcome, Reason
from lynceus.problem import Problem
from lynceus.supervisor import files, limits, tree

SHIPPED = (files.REQUEST, files.PARAMS, SCRIPT)
"""What a node needs of a run directory; the script is there only if the job is one."""


def directory_of(root: Path, request: Request) -> Path:
    """Where the files of a run are. The identity keeps a new study apart from a deleted one of the same name."""
    name = re.sub(r"[^\w.\- ]", "_", request.study)
    return root / (f"{name}-{request.identity}" if request.identity else name) / str(request.number)


def prepare(
    directory: Path, request: Request, job: LocalJob, *, shape: Shape | None = None, cwd: str | None = None
) -> dict[str, Any]:
    """Write down what is to run, once; returns what was written, now or before.

    `cwd` is where the job runs on its node (`~` is the home there); by default the job's own working directory.
    """
    path = str(directory / files.REQUEST)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (before := files.read_whole(path)) is not None:
            return before
        write_params(request.params, directory)
        record = _record(request, job, directory, shape or Shape(), cwd)
        files.write_whole(path, record)
    except OSError as error:
        raise InfrastructureError(f"the run directory {directory} cannot be written: {error.strerror}") from error
    return record


def _record(request: Request, job: LocalJob, directory: Path, shape: Shape, cwd: str | None) -> dict[str, Any]:
    argv, script = arguments(job, request.params, directory)
    return {
        "v": 1,
        "run": secrets.token_hex(8),
        "boot": files.boot(),
        "study": request.study,
        "identity": request.identity,
        "number": request.number,
        "row": request.row,
        "boots": request.boots,
        "params": dict(request.params),
        "argv": argv,
        "script": script,
        "cwd": str(job.workdir.resolve()) if cwd is None else cwd,
        "cap_s": None if math.isinf(request.cap_s) else request.cap_s,
        "grace_s": job.grace_s,
        "output_bytes": job.output_bytes,
        "patterns": dict(job.metrics),
        "cpus": shape.cpus,
        "memory_bytes": shape.memory_bytes,
    }


def read_request(ticket: str) -> dict[str, Any]:
    """What was asked for."""
    request = files.read_whole(os.path.join(ticket, files.REQUEST))
    if request is None:
        raise LostRunError(f"the run directory {ticket} is gone")
    return request


def kept(ticket: str) -> dict[str, Any] | None:
    """How the run ended, if that is known."""
    return files.read_whole(os.path.join(ticket, files.OUTCOME))


def settle(ticket: str, told: dict[str, Any]) -> dict[str, Any]:
    """Write down how a run ended, unless that is known; returns what counts from now on."""
    path = os.path.join(ticket, files.OUTCOME)
    if not files.write_first(path, told):
        return files.read_whole(path) or told
    return told


def failed(detail: str, *, reason: str = "infra", seconds: float = 0.0) -> dict[str, Any]:
    """The end of a run that nobody supervised to its end."""
    return {
        "v": 1,
        "end": "failed",
        "reason": reason,
        "seconds": seconds,
        "metrics": {},
        "trace": [],
        "detail": detail,
        "ended_s": time.time(),
    }


def outcome(problem: Problem, request: dict[str, Any], told: dict[str, Any], *, extra_s: float = 0.0) -> Outcome:
    """What a supervisor told, as facts with their price; `extra_s` are further seconds of machines that were ours alone."""
    end, reason, detail = End(told["end"]), told.get("reason"), told.get("detail", "")
    missing = [name for name in problem.metrics if name not in told["metrics"]]
    if end is End.FINISHED and missing:
        # Nothing can be learnt of such a run; as a failure it is noticed before it is repeated for much money.
        end, reason = End.FAILED, Reason.JOB
        detail = "; ".join(filter(None, [f"it ended well but did not report {', '.join(missing)}", detail]))
    cap_s = math.inf if request["cap_s"] is None else request["cap_s"]
    seconds = min(max(told["seconds"], 1e-6 if end is not End.FAILED else 0.0), cap_s)
    price = float(problem.price[request["row"]])
    return Outcome(
        end,
        seconds,
        problem.tariff.charge(seconds + extra_s, price, boots=request["boots"]),
        told["metrics"],
        tuple((moment, progress) for moment, progress in told["trace"]),
        Reason(str(reason)) if end is End.FAILED else None,
        detail,
    )


def directories(root: Path) -> list[Belonging]:
    """All run directories below a root, of every study."""
    found = []
    for path in sorted(root.glob("*/*")) if root.is_dir() else ():
        if path.name.isdigit() and path.is_dir():
            request = files.read_whole(str(path / files.REQUEST)) or {}
            study, identity = request.get("study"), request.get("identity")
            if study is None or identity is None:  # it was never prepared to the end
                study, _, identity = path.parent.name.rpartition("-")
            found.append(Belonging("directory", str(path), study, identity, int(path.name)))
    return found


def processes_of(directory: Belonging) -> list[Belonging]:
    """Living processes of a run on this machine, if there are any."""
    request = files.read_whole(os.path.join(directory.name, files.REQUEST)) or {}
    found = tree.of_run(str(request["run"])) if "run" in request else set()
    if not found:
        return []
    numbers = ", ".join(map(str, sorted(found)))
    return [replace(directory, kind="processes", detail=f"process {numbers}")]


def end_here(belonging: Belonging) -> None:
    """End the processes of a run on this machine, or remove its directory with its control groups."""
    if belonging.kind == "processes":
        request = files.read_whole(os.path.join(belonging.name, files.REQUEST)) or {}
        if "run" in request:
            tree.end_run(str(request["run"]), set())
    elif belonging.kind == "directory":
        started = files.read_whole(os.path.join(belonging.name, files.STARTED)) or {}
        limits.remove_groups(list(started.get("groups", ())))
        shutil.rmtree(belonging.name, ignore_errors=True)
