"""Real worker processes for the tests that kill them, quickly forked by a process that has imported everything."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("crash_worker.py")


class Workers:
    """Real worker processes, quickly forked (see `crash_worker.py`)."""

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

    def start(self, asked: dict[str, Any]) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return self._read("pid")

    def wait(self, pid: int) -> int:
        """How a worker ended."""
        while pid not in self._codes:
            self._read("exit")
        return self._codes.pop(pid)

    def _read(self, wanted: str) -> int:
        assert self._server.stdout is not None
        while True:
            word, pid, *code = self._server.stdout.readline().split()
            if code:
                self._codes[int(pid)] = int(code[0])
            if word == wanted:
                return int(pid)

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
        self._log.close()
