"""A shell on a terminal, as a user has it: commands are typed, questions are answered."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_READY = re.compile(rb"\x1e(\d+)\x1f")
_QUESTION = b"Go ahead? [y/N]: "


@dataclass
class Shell:
    """An interactive bash. What is set or activated stays set for the next command."""

    terminal: int
    answered: int = 0
    """How often the shell answered yes to the question before money is spent."""

    def run(self, command: str, timeout_s: float) -> tuple[int, str]:
        """Type a command; its exit code and what the terminal showed."""
        os.write(self.terminal, f"{command}\n".encode())
        return self.ready(timeout_s, command)

    def ready(self, timeout_s: float, command: str = "") -> tuple[int, str]:
        """Wait for the prompt, which carries the exit code."""
        seen, asked, until = b"", 0, time.monotonic() + timeout_s
        while (prompt := _READY.search(seen)) is None:
            left_s = until - time.monotonic()
            if left_s <= 0 or not select.select([self.terminal], [], [], left_s)[0]:
                raise TimeoutError(
                    f"{command!r} did not end within {timeout_s:g} s; the terminal shows:\n{seen.decode()}"
                )
            seen += os.read(self.terminal, 65536)
            if seen.count(_QUESTION) > asked:
                asked += 1
                self.answered += 1
                os.write(self.terminal, b"y\n")
        return int(prompt[1]), seen[: prompt.start()].decode()


@contextmanager
def shell(folder: Path, environment: Mapping[str, str], columns: int = 120) -> Iterator[Shell]:
    """A bash in `folder`, on a terminal with so many columns; it ends with all its children."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    whole = {**environment, "PS1": "\x1e$?\x1f", "PS2": "", "TERM": "xterm-256color"}
    command = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    bash = subprocess.Popen(
        command,
        cwd=folder,
        env=whole,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_own_terminal,
    )
    os.close(theirs)
    try:
        session = Shell(ours)
        session.ready(60)
        yield session
    finally:
        with suppress(ProcessLookupError):
            os.killpg(bash.pid, signal.SIGHUP)
            os.killpg(bash.pid, signal.SIGKILL)
        bash.wait()
        os.close(ours)


def _own_terminal() -> None:
    """Make standard input the terminal that controls this process, as a login does."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
