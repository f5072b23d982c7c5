"""Run the section `setup` of a job file."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping

from lynceus.errors import InfrastructureError
from lynceus.jobfile.executor import executor_section
from lynceus.jobfile.job import Job
from lynceus.jobfile.run_folder import study_folder
from lynceus.jobfile.secrets import hidden
from lynceus.study.view import StudyView


def run_setup(job: Job, study: StudyView, secrets: Mapping[str, str]) -> None:
    """Run `setup` on this machine before the first trial of a study, and again when it has changed. Its output is kept; it is free."""
    setup = job.spec.setup
    if executor_section(job)[0].setup == "own":
        return
    folder = study_folder(job, study)
    done, log = folder / "setup.done", folder / "setup.log"
    mark = hashlib.sha256(json.dumps(setup).encode()).hexdigest()
    if setup is None or (done.exists() and done.read_text(encoding="utf-8") in (mark, "")):
        return
    # No configuration has been chosen yet, so variables with `${name}` have no value.
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
            f"setup: it failed with exit code {ended.returncode}; see {log}, correct it, then resume."
        )
    done.write_text(mark, encoding="utf-8")
