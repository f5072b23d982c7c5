"""A worker in the background: the same search, without a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import typer

from lynceus.cli.opened import Opened
from lynceus.errors import InfrastructureError
from lynceus.job.execution import study_folder


def start_worker(one: Opened, url: str, parallel: int) -> None:
    """Start `lynceus resume` in its own session; what it says goes into a file."""
    log = study_folder(one.prepared.job, one.study) / "worker.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            # The storage's address may hold a password: it travels by environment, where `ps` does not show it.
            worker = subprocess.Popen(
                [sys.executable, "-m", "lynceus.cli", "resume", one.name, "--parallel", str(parallel)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={**os.environ, "LYNCEUS_STORAGE": url},
            )
    except OSError as error:
        raise InfrastructureError(
            f"run --detach: the worker could not be started: {error}; check {log.parent}."
        ) from None
    typer.echo(
        f"{one.name}: searching in the background (process {worker.pid}, {log}); lynceus status {one.name}, lynceus stop {one.name}"
    )
