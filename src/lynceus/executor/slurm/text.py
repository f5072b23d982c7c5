"""The texts that are sent to Slurm, by pure functions: arguments of sbatch, the batch script, the comment by which a run is found again."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from lynceus.executor.command import as_text
from lynceus.executor.executor import Belonging
from lynceus.executor.shape import Shape
from lynceus.executor.slurm.options import CHOSEN, SlurmOptions, chosen
from lynceus.supervisor.runner import EXIT_UNSEEN

ENVIRONMENT = "environment.json"
"""In a run directory from the launch until the supervisor has read it: the job's environment, for its owner's eyes only."""
_MARK = "lynceus"
_CATALOG = {"instance_type", "num_nodes", "vcpus"}
"""Columns of a space whose machines come from a catalog of prices."""
_SLACK_S = 60.0
"""What Slurm's own limit leaves to the supervisor, which ends the run by its own clock."""


def comment(request: Mapping[str, Any]) -> str:
    """What a job of ours carries: the run that it belongs to.

    >>> comment({"study": "a/b", "identity": "1f", "number": 3, "run": "c0ffee"})
    'lynceus/a%2Fb/1f/3/c0ffee'
    """
    parts = (str(request[name]) for name in ("study", "identity", "number", "run"))
    return "/".join([_MARK, *(quote(part, safe="") for part in parts)])


def job_name(request: Mapping[str, Any]) -> str:
    """The name under which people see a job, and by which it is found where a site rewrites comments.

    >>> job_name({"study": "a/b", "identity": "1f", "number": 3, "run": "c0ffee"})
    'lynceus-a_b-3-c0ffee'
    """
    study = re.sub(r"[^\w.\-]", "_", str(request["study"]), flags=re.ASCII)
    return f"lynceus-{study}-{request['number']}-{request['run']}"


def belonging(text: str, job: str, state: str) -> Belonging | None:
    """The job whose comment this is, if it is one of ours.

    >>> belonging("lynceus/a%2Fb/1f/3/c0ffee", "17", "RUNNING").study
    'a/b'
    """
    parts = [unquote(part) for part in text.split("/")]
    if len(parts) != 5 or parts[0] != _MARK or not parts[3].isdigit():
        return None
    return Belonging("job", job, parts[1], parts[2], int(parts[3]), detail=f"Slurm job {job}, {state.lower()}")


def sbatch_arguments(
    options: SlurmOptions, values: Mapping[str, object], shape: Shape, request: Mapping[str, Any]
) -> list[str]:
    """What sbatch is asked for a run; nothing secret, because everybody can read it."""
    asked = {**_by_default(values, shape), **chosen(options, values)}
    if not asked.keys().isdisjoint(("tasks", "tasks_per_node")) and values.keys() >= _CATALOG and options.cpus is None:
        del asked["cpus"]  # the processors of a whole machine are not those of one of its tasks
    found = [
        "--parsable",
        "--no-requeue",
        f"--job-name={job_name(request)}",
        f"--comment={comment(request)}",
        "--export=ALL",
        "--chdir=/",
        "--input=/dev/null",
        "--output=/dev/null",
        "--error=/dev/null",
        *(f"{CHOSEN[field]}={word}" for field, word in asked.items()),
        *(["--exclusive"] if options.exclusive else []),
    ]
    if request["cap_s"] is not None:
        found.append(f"--time={time_limit(request['cap_s'], request['grace_s'])}")
    return found + options.extra


def _by_default(values: Mapping[str, object], shape: Shape) -> dict[str, str]:
    """What is asked for when the section says nothing: what `resources` says."""
    if values.keys() >= _CATALOG:
        # Machines of a catalog: so many, each with its processors. Their memory is not asked for: nodes report a little less.
        return {"nodes": as_text(values["num_nodes"]), "cpus": str(math.ceil(float(str(values["vcpus"]))))}
    asked = {} if shape.cpus is None else {"cpus": str(math.ceil(shape.cpus))}
    return asked if shape.memory_bytes is None else {**asked, "memory": f"{max(shape.memory_bytes >> 20, 1)}M"}


def time_limit(cap_s: float, grace_s: float) -> int:
    """Slurm's own limit in its minutes, rounded up: a backstop for the supervisor's clock.

    >>> time_limit(5.0, 10.0), time_limit(3600.0, 10.0)
    (2, 62)
    """
    return math.ceil((cap_s + grace_s + _SLACK_S) / 60)


def batch_script(python: str, runner: str, directory: str) -> str:
    """What runs on the first node: the supervisor, and after it, if it was killed, whoever tells so."""
    place = shlex.quote(directory)
    start = f"{shlex.quote(python)} -I -S {shlex.quote(runner)}"
    return f"""#!/bin/sh
# The supervisor hears of SIGTERM, too, and tells how the run ended; this shell waits for it.
trap : TERM HUP INT
[ -e {place}/request.json ] && [ -e {shlex.quote(runner)} ] || exit {EXIT_UNSEEN}
{start} run {place} {place}/{ENVIRONMENT}
code=$?
[ -e {place}/outcome.json ] || {start} state {place} > /dev/null
exit $code
"""
