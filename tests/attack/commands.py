"""Real `lynceus` processes without their start-up time: a server that has imported everything and forks one per command.

Run as a program it is that server. Input lines: JSON with `arguments`, `folder`, `clock_s` (how wrong the clock of the process is) and
`output` (a file). Output lines: `pid N`, and `exit N CODE` when a process ended.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

_real_time = time.time
_offset_s = 0.0


class Commands:
    """Starts commands, each in a process of its own."""

    def __init__(self, log: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._log = log.open("wb")
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
        )
        self._codes: dict[int, int] = {}

    def start(self, *arguments: str, folder: Path, output: Path, clock_s: float = 0.0) -> int:
        task = {"arguments": arguments, "folder": str(folder), "output": str(output), "clock_s": clock_s}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(task) + "\n")
        self._server.stdin.flush()
        while True:
            word, pid, *code = self._line()
            if code:
                self._codes[pid] = code[0]
            if word == "pid":
                return pid

    def wait(self, pid: int, seconds: float = 90.0) -> int | None:
        """The exit code of a process; None if it has not ended in time."""
        assert self._server.stdout is not None
        until = time.monotonic() + seconds
        while pid not in self._codes:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._server.stdout], [], [], left)[0]:
                return None
            _, ended, *code = self._line()
            self._codes[ended] = code[0]
        return self._codes[pid]

    def ended(self, pid: int) -> bool:
        return self.wait(pid, 0.0005) is not None

    def _line(self) -> tuple[Any, ...]:
        assert self._server.stdout is not None
        word, *numbers = self._server.stdout.readline().split()
        return word, *map(int, numbers)

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._log.close()


def _wrong_time() -> float:
    return _real_time() + _offset_s


def _run(task: dict[str, Any]) -> int:
    global _offset_s
    _offset_s = task["clock_s"]
    os.setsid()
    _die_with_parent()
    output = os.open(task["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(task["folder"])
    sys.argv = ["lynceus", *task["arguments"]]
    from lynceus.cli import main

    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        sys.stdout.flush()
        return 1
    sys.stdout.flush()
    return 0


def _die_with_parent() -> None:
    """No command outlives the server, and the server ends when its input does: an aborted test leaves nothing."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _serve() -> None:
    children: set[int] = set()
    lines = os.fdopen(0, "rb", buffering=0)
    while True:
        if select.select([lines], [], [], 0.005 if children else None)[0]:
            line = lines.readline()
            if not line:
                return
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = _run(json.loads(line))
                finally:
                    os._exit(code)
            children.add(child)
            print("pid", child, flush=True)
        for child in list(children):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                children.remove(child)
                print("exit", child, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    time.time = _wrong_time  # before anything keeps a reference to it
    import lynceus.analysis.answer
    import lynceus.cli.app
    import lynceus.executors.local
    import lynceus.library.leftovers
    import lynceus.library.open_study
    import lynceus.policy.presets
    import lynceus.reports.page
    import lynceus.storage.sql.storage
    import lynceus.study.run_loop  # noqa: F401

    _serve()
