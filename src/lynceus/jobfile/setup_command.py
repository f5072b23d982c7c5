"""Run the section `setup` of a job file: once per study and machine, however many workers start."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lynceus.errors import InfrastructureError
from lynceus.jobfile.executor import executor_section
from lynceus.jobfile.job import Job
from lynceus.jobfile.run_folder import study_folder
from lynceus.jobfile.secrets import hidden
from lynceus.study.view import StudyView

_POLL_S = 0.2
_OUTPUT_BYTES = 1 << 20
_LAST_OUTPUT_S = 2.0
_WAITING = "another worker on this machine runs setup; waiting until it is done."


def run_setup(job: Job, study: StudyView, secrets: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Run `setup` on this machine before the first trial of a study, and again when it has changed. Its output is kept; it is free.

    Workers that start meanwhile wait for it. If it does not finish, the next worker runs it again.
    """
    run_setup_in(study_folder(job, study), study.name, job, secrets, say)


def run_setup_in(folder: Path, name: str, job: Job, secrets: Mapping[str, str], say: Callable[[str], None]) -> None:
    """The same for whatever has this folder and this name: a study, or a recurring job."""
    setup = job.spec.setup
    if setup is None or executor_section(job)[0].setup == "own":
        return
    machine = re.sub(r"[^\w.-]", "_", os.uname().nodename)
    done, mark = folder / f"setup-{machine}.done", hashlib.sha256(json.dumps(setup).encode()).hexdigest()

    def is_done() -> bool:
        # Earlier versions kept one file for all machines.
        return any(_text(file) in (mark, "") for file in (done, folder / "setup.done"))

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f"setup-{machine}.lock", is_done, lambda: say(f"{name}: {_WAITING}")) as lock:
            if lock is not None:
                _run(job, secrets, folder / "setup.log", lock)
                temporary = done.with_suffix(".new")
                temporary.write_text(mark, encoding="utf-8")
                temporary.replace(done)
    except OSError as error:
        raise InfrastructureError(
            f"setup: {folder} cannot be written: {error.strerror}; correct executor.run_directory, then resume."
        ) from None


@contextlib.contextmanager
def _alone(path: Path, is_done: Callable[[], bool], waits: Callable[[], None]) -> Iterator[int | None]:
    """A lock that one worker holds; None once the work is done. The command inherits it, so that it is held until that has ended, too."""
    if is_done():
        yield None
        return
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        said = False
        while not _taken(lock):
            if is_done():
                break
            if not said:
                waits()
                said = True
            time.sleep(_POLL_S)
        yield None if is_done() else lock
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _run(job: Job, secrets: Mapping[str, str], log: Path, lock: int) -> None:
    setup = job.spec.setup
    assert setup is not None
    # No configuration has been chosen yet, so variables with `${name}` have no value.
    fixed = {name: value for name, value in job.spec.envs.items() if "${" not in value}
    command = ["/bin/sh", "-e", "-c", setup] if isinstance(setup, str) else list(setup)
    try:
        process = subprocess.Popen(
            command,
            cwd=job.workdir,
            env={**os.environ, **fixed, **secrets},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InfrastructureError(
            f"setup: {command[0]!r} could not be run: {reason}; correct setup, then resume."
        ) from None
    output = _Output(process)
    try:
        code = process.wait()
    except BaseException:
        process.kill()
        raise
    log.write_text(hidden(output.text(), secrets), encoding="utf-8")
    if code != 0:
        raise InfrastructureError(f"setup: it failed with exit code {code}; see {log}, correct it, then resume.")


class _Output:
    """The last part of what a process prints. Something that it leaves in the background may hold the pipe open for ever."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._kept = process, bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while piece := os.read(pipe.fileno(), 1 << 16):
                self._kept += piece
                del self._kept[:-_OUTPUT_BYTES]

    def text(self) -> str:
        """What was printed until the process ended."""
        self._reader.join(_LAST_OUTPUT_S)
        return bytes(self._kept).decode("utf-8", "replace")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
