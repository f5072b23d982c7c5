"""A process that only forks supervisors: starting one takes a millisecond instead of the start of a Python interpreter.

It reads one JSON object per line from its standard input, `{"directory", "environment", "secrets"}`, and ends when the pipe closes, that
is, when the worker that started it ends. Supervisors have their own sessions and continue.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback

from lynceus.executors.supervisor.files import LOG
from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.supervise import supervise


def main() -> None:
    """Fork a supervisor for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker, which then closes the pipe
    gc.freeze()  # so that supervisors, which live for one run, share our memory and do not copy it
    for line in sys.stdin.buffer:
        if os.fork() == 0:
            _become_supervisor(line)


def _become_supervisor(line: bytes) -> None:
    """Never returns."""
    secrets: list[str] = []
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asked = json.loads(line)
        secrets = asked["secrets"]
        devnull = os.open(os.devnull, os.O_RDWR)
        log = os.open(os.path.join(asked["directory"], LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(devnull, 0)
        os.dup2(devnull, 1)
        os.dup2(log, 2)
        os.close(log)
        supervise(asked["directory"], asked["environment"], secrets)
    except BaseException:
        hidden = Secrets(one.encode("utf-8", "surrogateescape") for one in secrets)
        os.write(2, hidden.masked_text(traceback.format_exc()).encode("utf-8", "backslashreplace"))
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
