"""The texts that are sent to Slurm: options of sbatch, the batch script, the comment by which a run is found again. Pure functions."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from lynceus.executors.interface import OwnedResource, ResourceKind
from lynceus.executors.placeholders import as_text
from lynceus.executors.resources import Resources
from lynceus.executors.slurm.options import SBATCH_OPTIONS, SlurmOptions, requested
from lynceus.executors.supervisor.commands import EXIT_NO_DIRECTORY

ENVIRONMENT = "environment.json"
"""The job's environment, readable by its owner only. It is in the run directory from the launch until the supervisor has read it."""
_MARK = "lynceus"
_LONGEST_NAME = 100
_CATALOG_COLUMNS = {"instance_type", "num_nodes", "vcpus"}
"""Columns of a space whose machines come from a price catalog."""
_SLACK_S = 60.0
"""How much later than the supervisor Slurm's own time limit stops the job."""


def comment(request: Mapping[str, Any]) -> str:
    """The comment of a job, which identifies its run.

    >>> comment({"study": "a/b", "identity": "1f", "number": 3, "run": "c0ffee"})
    'lynceus/a%2Fb/1f/3/c0ffee'
    """
    parts = (str(request[name]) for name in ("study", "identity", "number", "run"))
    return "/".join([_MARK, *(quote(part, safe="") for part in parts)])


def job_name(request: Mapping[str, Any]) -> str:
    """The name of a job, for display, and to find it on sites that rewrite comments.

    >>> job_name({"study": "a/b", "identity": "1f", "number": 3, "run": "c0ffee"})
    'lynceus-a_b-3-c0ffee'
    """
    study = re.sub(r"[^\w.\-]", "_", str(request["study"])[:_LONGEST_NAME], flags=re.ASCII)
    return f"lynceus-{study}-{request['number']}-{request['run']}"


def owned_job(text: str, job: str, state: str) -> OwnedResource | None:
    """The job with this comment; None if Lynceus did not submit it.

    >>> owned_job("lynceus/a%2Fb/1f/3/c0ffee", "17", "RUNNING").study
    'a/b'
    """
    parts = [unquote(part) for part in text.split("/")]
    if len(parts) != 5 or parts[0] != _MARK or not parts[3].isdigit():
        return None
    detail = f"Slurm job {job}, {state.lower()}"
    return OwnedResource(ResourceKind.JOB, job, parts[1], parts[2], int(parts[3]), detail)


def sbatch_arguments(
    options: SlurmOptions, values: Mapping[str, object], resources: Resources, request: Mapping[str, Any]
) -> list[str]:
    """The arguments of sbatch for a run. They contain no secrets, because every user of the cluster can read them."""
    asked = {**_defaults(values, resources), **requested(options, values)}
    has_tasks = not asked.keys().isdisjoint(("tasks", "tasks_per_node"))
    if has_tasks and values.keys() >= _CATALOG_COLUMNS and options.cpus is None:
        del asked["cpus"]  # the CPUs of a whole machine are not those of one of its tasks
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
        *(f"{SBATCH_OPTIONS[field]}={word}" for field, word in asked.items()),
        *(["--exclusive"] if options.exclusive else []),
    ]
    if request["cap_s"] is not None:
        found.append(f"--time={time_limit(request['cap_s'], request['grace_s'])}")
    return found + options.extra


def _defaults(values: Mapping[str, object], resources: Resources) -> dict[str, str]:
    """What is requested if the section `executor` does not say otherwise."""
    if values.keys() >= _CATALOG_COLUMNS:
        # Machines of a catalog. Their memory is not requested: nodes report a little less than the catalog.
        return {"nodes": as_text(values["num_nodes"]), "cpus": str(math.ceil(float(str(values["vcpus"]))))}
    asked = {} if resources.cpus is None else {"cpus": str(math.ceil(resources.cpus))}
    return asked if resources.memory_bytes is None else {**asked, "memory": f"{max(resources.memory_bytes >> 20, 1)}M"}


def time_limit(timeout_s: float, grace_s: float) -> int:
    """Slurm's own limit in minutes, rounded up: a backstop in case the supervisor fails.

    >>> time_limit(5.0, 10.0), time_limit(3600.0, 10.0)
    (2, 62)
    """
    return math.ceil((timeout_s + grace_s + _SLACK_S) / 60)


def batch_script(python: str, runner: str, directory: str) -> str:
    """What runs on the first node: the supervisor, then `state`, which records the outcome if the supervisor was killed."""
    place = shlex.quote(directory)
    start = f"{shlex.quote(python)} -I -S {shlex.quote(runner)}"
    return f"""#!/bin/sh
# The supervisor receives SIGTERM, too, and records how the run ended; this shell waits for it.
trap : TERM HUP INT
[ -e {place}/request.json ] && [ -e {shlex.quote(runner)} ] || exit {EXIT_NO_DIRECTORY}
{start} run {place} {place}/{ENVIRONMENT}
code=$?
[ -e {place}/outcome.json ] || {start} state {place} > /dev/null
exit $code
"""
