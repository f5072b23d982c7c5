"""`lynceus run --detach`: a worker in the background, without a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from lynceus.cli.output import echo
from lynceus.errors import InfrastructureError

if TYPE_CHECKING:
    from lynceus.library.open_study import OpenStudy


def start_worker(one: OpenStudy, url: str, parallel: int, metrics: str | None = None) -> None:
    """Start `lynceus resume` in a session of its own; its output goes into a file."""
    from lynceus.jobfile.run_folder import study_folder

    log = study_folder(one.prepared.job, one.study) / "worker.log"
    command = [sys.executable, "-m", "lynceus.cli", "resume", one.name, "--parallel", str(parallel)]
    # The address of the storage may contain a password: the environment hides it from `ps`.
    environment = {**os.environ, "LYNCEUS_STORAGE": url} | ({} if metrics is None else {"LYNCEUS_METRICS": metrics})
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
    echo(
        f"{one.name}: searching in the background (process {worker}, {log}); "
        f"see: lynceus status {one.name}, stop it with: lynceus stop {one.name}"
    )
