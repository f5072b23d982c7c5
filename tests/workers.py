"""Real worker processes for tests that kill them, forked by a process that has imported everything, see `crash_worker.py`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("crash_worker.py")


class Workers:
    """Starts worker processes and waits for them."""

    def __init__(self, log: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._log = log.open("wb")
        self._server = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
        )
        self._codes: dict[int, int] = {}

    def start(self, task: dict[str, Any]) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(task) + "\n")
        self._server.stdin.flush()
        return self._read("pid")

    def wait(self, pid: int) -> int:
        """The exit code of a worker."""
        while pid not in self._codes:
            self._read("exit")
        return self._codes.pop(pid)

    def _read(self, kind: str) -> int:
        assert self._server.stdout is not None
        while True:
            word, pid, *code = self._server.stdout.readline().split()
            if code:
                self._codes[int(pid)] = int(code[0])
            if word == kind:
                return int(pid)

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._log.close()
