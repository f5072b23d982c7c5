"""From a checked job to something that runs it: the executor that the job file names, with everything around the command."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lynceus.errors import InfrastructureError
from lynceus.executor.command import LocalJob, as_text, shown, variable
from lynceus.executor.directory import directory_of
from lynceus.executor.executor import Executor, Request
from lynceus.executor.interrupting import Interrupting
from lynceus.executor.plugin import Setting
from lynceus.executor.shape import Shape
from lynceus.job.executors import executor_section
from lynceus.job.job import Job
from lynceus.job.prepare import Prepared
from lynceus.job.secrets import hidden
from lynceus.study import Study

_GIB = 1 << 30


def local_job(job: Job, secrets: Mapping[str, str]) -> LocalJob:
    """The command with everything around it."""
    spec = job.spec
    return LocalJob(
        spec.run if isinstance(spec.run, str) else tuple(spec.run),
        shell=spec.shell,
        workdir=job.workdir,
        env=spec.envs,
        secrets=secrets,
        metrics=spec.metrics,
        grace_s=spec.trial.grace,
    )


def run_root(job: Job) -> Path:
    """Where the outputs of trials are kept."""
    return job.file(job.spec.executor.run_directory)


def study_folder(job: Job, study: Study) -> Path:
    """The part of `run_root` that belongs to a study: one directory per trial, by number."""
    first = Request(study.name, 0, 0, {}, math.inf, True, study.identity)
    return directory_of(run_root(job).resolve(), first).parent


def setting_of(prepared: Prepared, secrets: Mapping[str, str]) -> Setting:
    """What every executor is made from."""

    def shape(row: int) -> Shape:
        memory = None if prepared.memory_gib is None else int(prepared.memory_gib[row] * _GIB)
        return Shape(None if prepared.cpus is None else float(prepared.cpus[row]), memory)

    limited = prepared.cpus is not None or prepared.memory_gib is not None
    job, setup = prepared.job, prepared.job.spec.setup
    return Setting(
        prepared.problem,
        local_job(job, secrets),
        run_root(job).resolve(),
        shape if limited else None,
        tuple(setup) if isinstance(setup, list) else setup,
    )


@contextmanager
def executor_of(prepared: Prepared, secrets: Mapping[str, str]) -> Iterator[Executor]:
    """Runs trials where the job file says, for as long as the context lasts; runs outlive it."""
    plugin, options = executor_section(prepared.job)
    executor = plugin.make(setting_of(prepared, secrets), options)
    spot = prepared.job.spec.resources.spot
    try:
        yield Interrupting(executor, prepared.problem, prepared.job.spec.seed) if spot.rehearse else executor
    finally:
        close = getattr(executor, "close", None)
        if close is not None:
            close()


def command_line(job: Job, params: Mapping[str, object]) -> str:
    """What a person would type to run a configuration by hand; values are quoted."""
    script = job.spec.run
    if not isinstance(script, str) or job.spec.shell:
        return shown(local_job(job, {}), params)
    variables = []
    for name, value in params.items():
        for key in (name, variable(name)):
            if re.search(rf"\b{re.escape(key)}\b", script):
                variables.append(f"{key}={shlex.quote(as_text(value))}")
    if script.startswith("#!"):
        return " ".join([*variables, with_its_interpreter(script)])
    return " ".join([*variables, "sh -e -c", shlex.quote(script.strip())])


def with_its_interpreter(script: str) -> str:
    """A command line for a script whose first line names its interpreter: only a file can be run by that."""
    steps = 'f=$(mktemp) && printf "%s\\n" "$1" > "$f" && chmod +x "$f" && "$f"; e=$?; rm -f "$f"; exit $e'
    return f"sh -c {shlex.quote(steps)} sh {shlex.quote(script.rstrip())}"


def run_setup(job: Job, study: Study, secrets: Mapping[str, str]) -> None:
    """Run `setup` for a study on this machine, before its first trial and when it has changed; its output is kept, nothing is charged."""
    setup = job.spec.setup
    if executor_section(job)[0].setup == "own":
        return
    folder = study_folder(job, study)
    done, log = folder / "setup.done", folder / "setup.log"
    mark = hashlib.sha256(json.dumps(setup).encode()).hexdigest()
    if setup is None or (done.exists() and done.read_text(encoding="utf-8") in (mark, "")):
        return
    # There is no configuration yet that `${name}` could stand for.
    fixed = {name: value for name, value in job.spec.envs.items() if "${" not in value}
    command = ["/bin/sh", "-e", "-c", setup] if isinstance(setup, str) else list(setup)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ended = subprocess.run(
            command,
            cwd=job.workdir,
            env={**os.environ, **fixed, **secrets},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log.write_text(hidden(ended.stdout.decode("utf-8", "replace"), secrets), encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(
            f"setup: {command[0]!r} could not be run: {error.strerror}; correct setup, then resume."
        ) from None
    if ended.returncode != 0:
        raise InfrastructureError(
            f"setup: it ended with exit code {ended.returncode}; see {log}, correct it, then resume."
        )
    done.write_text(mark, encoding="utf-8")
