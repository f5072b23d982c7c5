"""Export the best configuration for other tools: a shell, a SkyPilot task, an environment file, Spark defaults."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from lynceus.executors.command import absent_variables, variables
from lynceus.executors.placeholders import as_text, fill
from lynceus.jobfile.command_line import command_line, quoted, served_at, with_interpreter, without_variables
from lynceus.jobfile.executor import job_command
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.trial.text import clean_line

_SPARK = {
    "executors": "spark.executor.instances",
    "num_executors": "spark.executor.instances",
    "executor_cores": "spark.executor.cores",
    "cores_per_executor": "spark.executor.cores",
    "executor_memory": "spark.executor.memory",
    "driver_memory": "spark.driver.memory",
    "partitions": "spark.sql.shuffle.partitions",
    "shuffle_partitions": "spark.sql.shuffle.partitions",
    "parallelism": "spark.default.parallelism",
}
"""Spark's settings by common names of parameters; names that start with `spark.` stay as they are."""


def env_file(prepared: PreparedStudy, row: int, heading: str) -> str:
    """Lines for `set -a; . file`: the variables that Lynceus passes to the job; those that the configuration lacks are unset."""
    params = prepared.problem.space.point(row)
    lines = [f"# {clean_line(heading)}", *_unset(prepared, params)]
    lines += [f"{name}={quoted(value)}" for name, value in variables_of(prepared, params).items()]
    return "\n".join(lines) + "\n"


def shell_line(prepared: PreparedStudy, row: int, heading: str) -> str:
    """The command line that runs a configuration, under a comment."""
    params = prepared.problem.space.point(row)
    return f"# {clean_line(heading)}\n{command_line(prepared.job, params)}\n"


def spark_defaults(prepared: PreparedStudy, row: int, heading: str) -> str:
    """A spark-defaults.conf; other parameters become comments."""
    lines = [f"# {clean_line(heading)}"]
    for name, value in prepared.problem.space.point(row).items():
        setting = name if name.startswith("spark.") else _SPARK.get(name.lower().replace("-", "_"))
        text = as_text(value).replace("\\", "\\\\").replace("\n", "\\n")
        lines.append(f"{setting} {text}" if setting else f"# {name} {text}")
    return "\n".join(lines) + "\n"


def skypilot_task(prepared: PreparedStudy, row: int, heading: str) -> str:
    """A SkyPilot task that runs a configuration; it names secrets without values, for which SkyPilot asks at launch."""
    task = task_of(prepared, row)
    return f"# {clean_line(heading)}\n" + yaml.safe_dump(task, sort_keys=False, allow_unicode=True, width=120)


def task_of(prepared: PreparedStudy, row: int) -> dict[str, Any]:
    """The fields of that task."""
    job, params = prepared.job, prepared.problem.space.point(row)
    resources: dict[str, Any] = {}
    if prepared.job.spec.resources.from_catalog:
        resources["infra"] = as_text(params["infra"])
    if "instance_type" in params:
        resources["instance_type"] = as_text(params["instance_type"])
        if params.get("use_spot") is True:
            resources["use_spot"] = True
    else:
        if prepared.cpus is not None:
            resources["cpus"] = f"{prepared.cpus[row]:g}+"
        if prepared.memory_gib is not None:
            resources["memory"] = f"{prepared.memory_gib[row]:g}+"
    task: dict[str, Any] = {"name": job.name, "workdir": job.spec.workdir}
    if resources:
        task["resources"] = resources
    nodes = params.get("num_nodes", params.get("nodes"))
    if isinstance(nodes, int):
        task["num_nodes"] = nodes
    task["envs"] = variables_of(prepared, params)
    if job.spec.secrets:
        task["secrets"] = dict.fromkeys(job.spec.secrets)
    if job.spec.setup is not None:
        task["setup"] = job.spec.setup if isinstance(job.spec.setup, str) else shlex.join(job.spec.setup)
    script = job.command
    if not isinstance(script, str) or job.spec.shell:
        run = without_variables(job, params)
    else:  # SkyPilot runs it with bash and ignores an interpreter line
        run = with_interpreter(script) if script.startswith("#!") else script
    task["run"] = "\n".join([*_unset(prepared, params), run])
    return task


def _unset(prepared: PreparedStudy, params: Mapping[str, object]) -> list[str]:
    """A shell command that unsets variables of parameters which a configuration lacks; an empty list if it has all of them."""
    absent = absent_variables(job_command(prepared.job, dict.fromkeys(prepared.job.spec.secrets, "")), params)
    return [f"unset {' '.join(absent)}"] if absent else []


def variables_of(prepared: PreparedStudy, params: Mapping[str, object]) -> dict[str, str]:
    """The variables that pass values to a run, as during the search."""
    command = job_command(prepared.job, dict.fromkeys(prepared.job.spec.secrets, ""))
    found = {**variables(command, params), **{name: fill(text, params) for name, text in command.env.items()}}
    at = {name: str(value) for name, value in served_at(prepared.job).items()}
    return {**found, **at} if isinstance(command.run, str) else found
