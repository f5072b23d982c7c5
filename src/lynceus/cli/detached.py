"""A worker in the background: the same search, without a terminal."""

from __future__ import annotations

import os
import sys

import typer

from lynceus.cli.opened import Opened
from lynceus.errors import InfrastructureError
from lynceus.job.execution import study_folder


def start_worker(one: Opened, url: str, parallel: int) -> None:
    """Start `lynceus resume` in its own session; what it says goes into a file."""
    log = study_folder(one.prepared.job, one.study) / "worker.log"
    command = [sys.executable, "-m", "lynceus.cli", "resume", one.name, "--parallel", str(parallel)]
    # The storage's address may hold a password: it travels by environment, where `ps` does not show it.
    environment = {**os.environ, "LYNCEUS_STORAGE": url}
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        worker = os.posix_spawn(sys.executable, command, environment, file_actions=files, setsid=True)
    except OSError as error:
        raise InfrastructureError(
            f"run --detach: the worker could not be started: {error}; check {log.parent}."
        ) from None
    typer.echo(
        f"{one.name}: searching in the background (process {worker}, {log}); lynceus status {one.name}, lynceus stop {one.name}"
    )
