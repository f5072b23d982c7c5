"""One call of a command of Slurm. It runs on its own: callers wait briefly for its answer, and ask again later."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InfrastructureError

_LONGEST_S = 45.0
"""A command that takes longer is killed. Slurm's own commands give up after a few tens of seconds."""
_MOST_BYTES = 64 << 20
"""A command that prints more is killed; a hundred thousand jobs need a fifth of it."""
_KILLED_S = 1.0
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|SLURM_CONF|SLURM_CLUSTERS|SBATCH_\w+|KRB5\w*"
)
"""Environment variables of Slurm's commands. All others, including secrets, are not passed on."""

_NOT_PASSED_ON = frozenset({"SBATCH_EXPORT", "SBATCH_WAIT", "SBATCH_ARRAY_INX"})
"""Options of sbatch that would pass secrets on, make it wait for the end of the job, or submit many jobs."""


class UnreachableError(InfrastructureError):
    """The controller did not answer, or not in a way that can be read; it may or may not have carried the request out."""

    see = "slurm.md#troubleshooting"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command printed, and its exit code."""

    command: str
    code: int
    out: str
    err: str


def tool_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of Slurm's commands. It is small because sbatch passes it on and the controller stores it.

    >>> tool_environment({"HOME": "/h", "TOKEN": "secret", "SLURM_JOB_ID": "3", "SBATCH_ACCOUNT": "a"})
    {'HOME': '/h', 'SBATCH_ACCOUNT': 'a'}
    """
    passed_on = {name: value for name, value in environment.items() if _PASSED_ON.fullmatch(name)}
    return {name: value for name, value in passed_on.items() if name not in _NOT_PASSED_ON}


class Command:
    """A running command, in its own process group, so that it can be killed with everything that it started."""

    def __init__(self, arguments: Sequence[str], text: str = "", lock: int | None = None) -> None:
        """`text` is its input. `lock` is a descriptor that stays open as long as it lives, even if Lynceus is killed."""
        self.name, self._began_s = arguments[0], time.monotonic()
        self._out, self._err = bytearray(), bytearray()
        try:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=tool_environment(),
                pass_fds=() if lock is None else (lock,),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # not installed any more, too many processes, a NUL in an argument
            raise UnreachableError(f"{self.name} cannot be started: {error}") from None
        stdin, self._selector = self._process.stdin, selectors.DefaultSelector()
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError), stdin:
            stdin.write(text.encode())  # less than a pipe holds
        for pipe, kept in ((self._process.stdout, self._out), (self._process.stderr, self._err)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, kept)

    @property
    def age_s(self) -> float:
        """For how long it has run."""
        return time.monotonic() - self._began_s

    def answer(self, wait_s: float) -> Answer | None:
        """Its answer; None if it runs longer than we wait. `UnreachableError` if it had to be killed."""
        until = min(time.monotonic() + wait_s, self._began_s + _LONGEST_S)
        while True:
            left_s = max(until - time.monotonic(), 0.0)
            self._read(left_s)
            if self._has_ended(left_s):
                self._read(0.0)
                self._end()
                out, err = (bytes(part).decode("utf-8", "replace") for part in (self._out, self._err))
                return Answer(self.name, self._process.returncode, out, err)
            if len(self._out) + len(self._err) > _MOST_BYTES:
                self.kill()
                raise UnreachableError(f"{self.name} printed more than {_MOST_BYTES >> 20} MiB")
            if self.age_s >= _LONGEST_S:
                self.kill()
                raise UnreachableError(f"{self.name} did not answer in {_LONGEST_S:.0f} s")
            if time.monotonic() >= until:
                return None

    def _has_ended(self, left_s: float) -> bool:
        if not self._selector.get_map() and left_s:  # it closed its output, and so is about to end
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(left_s)
        return self._process.poll() is not None

    def _read(self, wait_s: float) -> None:
        """Read what it has printed; waits for more if there is nothing."""
        if not self._selector.get_map():
            return
        for key, _ in self._selector.select(wait_s):
            try:
                data = os.read(key.fd, 1 << 20)
            except BlockingIOError:
                continue
            key.data.extend(data)
            if not data:
                self._selector.unregister(key.fileobj)

    def kill(self) -> None:
        """Kill it with everything that it started, unless it has ended. The controller may carry the request out all the same."""
        if self._process.poll() is None:
            self._kill_group()
            with contextlib.suppress(
                subprocess.TimeoutExpired
            ):  # blocked in the kernel, by a disk that does not answer
                self._process.wait(_KILLED_S)
        self._end()

    def _end(self) -> None:
        """Close our ends of its pipes. If something that it started still holds the others, that is killed."""
        if self._selector.get_map():
            self._kill_group()
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
