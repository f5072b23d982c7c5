"""Our end of the pipe to the porter: started when it is needed, and again, with growing pauses, when it or its cluster is gone."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lynceus
from lynceus.errors import InfrastructureError

_JOIN_S = 90.0
"""How long joining a cluster may take."""
_ANSWER_S = 5.0
"""How long we wait for an answer; one that comes later is let pass."""
_SILENT_S = 45.0
"""A porter that does not answer for so long is given up; another one asks again."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_CLOSE_S = 10.0


class AwayError(InfrastructureError):
    """The cluster cannot be asked now."""


class Line:
    """One porter at a time for one cluster."""

    def __init__(self, address: str) -> None:
        self._address, self._owner = address, os.getpid()
        self._porter: subprocess.Popen[bytes] | None = None
        self._joined = False
        self._began_s = 0.0
        self._rest = b""
        self._asked_s, self._owed = 0.0, 0
        self._pause_s, self._again_s = _FIRST_PAUSE_S, float("-inf")
        self._lost_s: float | None = None
        self._why = "it is being joined"

    @property
    def joined(self) -> bool:
        """Whether the cluster answers, as far as we know."""
        return self._joined

    @property
    def away_s(self) -> float:
        """Since how long the cluster cannot be reached."""
        return 0.0 if self._lost_s is None else time.monotonic() - self._lost_s

    def ask(self, do: str, **more: Any) -> Any:
        """The porter's answer; `AwayError` at once when there is nobody to ask."""
        self._be_there()
        while self._owed:
            self._next(0.0)
        self._asked_s = time.monotonic()
        self._send({"do": do, **more})
        self._owed = 1
        answer = self._next(_ANSWER_S)
        if "error" in answer:
            self._lose(answer["error"])
        self._lost_s = None
        return answer["answer"]

    def _next(self, patience_s: float) -> Any:
        """The next answer that is owed. Nobody is kept waiting for long: whoever asks again finds out then."""
        answer = self._answer(patience_s)
        if answer is None:
            silent_s = time.monotonic() - self._asked_s
            self._lost_s = self._asked_s if self._lost_s is None else self._lost_s
            if silent_s > _SILENT_S:
                self._lose(f"it has not answered for {silent_s:.0f} s")
            raise AwayError(f"it has not answered for {silent_s:.0f} s")
        self._owed -= 1
        return answer

    def ask_patiently(self, do: str, **more: Any) -> Any:
        """Like `ask`, but waits until the cluster is joined or known to be out of reach."""
        until = time.monotonic() + _JOIN_S
        while True:
            try:
                return self.ask(do, **more)
            except AwayError:
                if self._lost_s is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def close(self) -> None:
        """Let the porter go; runs go on."""
        porter, self._porter, self._joined = self._porter, None, False
        if porter is None:
            return
        for pipe in (porter.stdin, porter.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            porter.wait(_CLOSE_S if not self._lost_s else 0.0)
        except subprocess.TimeoutExpired:
            porter.kill()
            porter.wait()

    def _be_there(self) -> None:
        if os.getpid() != self._owner:  # we are a fork: the porter is our parent's
            self._owner, self._porter, self._joined = os.getpid(), None, False
        if self._porter is None:
            if time.monotonic() < self._again_s:
                raise AwayError(self._why)
            self._start()
        if not self._joined:
            answer = self._answer(0.0)
            if answer is None:
                if time.monotonic() - self._began_s > _JOIN_S:
                    self._lose(f"it has not let us join for {_JOIN_S:g} s")
                raise AwayError(self._why)
            if "error" in answer:
                self._lose(answer["error"])
            self._joined, self._lost_s, self._pause_s = True, None, _FIRST_PAUSE_S

    def _start(self) -> None:
        source = str(Path(lynceus.__file__).parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).strip(":"),
        }
        self._porter = subprocess.Popen(
            [sys.executable, "-m", "lynceus.executor.on_ray.porter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us
        )
        self._began_s, self._rest, self._owed = time.monotonic(), b"", 0
        self._send({"address": self._address, "parent": os.getpid()})

    def _send(self, asked: dict[str, Any]) -> None:
        assert self._porter is not None
        assert self._porter.stdin is not None
        try:
            data = json.dumps(asked).encode() + b"\n"
            while data:
                data = data[os.write(self._porter.stdin.fileno(), data) :]
        except OSError:
            self._lose("the connection broke")

    def _answer(self, patience_s: float) -> Any:
        """One answer; nothing when none comes in time."""
        assert self._porter is not None
        assert self._porter.stdout is not None
        until = time.monotonic() + patience_s
        while b"\n" not in self._rest:
            if not select.select([self._porter.stdout], [], [], max(until - time.monotonic(), 0.0))[0]:
                return None
            data = os.read(self._porter.stdout.fileno(), 1 << 16)
            if not data:
                self._lose("the connection broke")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _lose(self, why: str) -> None:
        """Give this porter up, and rest before the next."""
        now = time.monotonic()
        self._lost_s = now if self._lost_s is None else self._lost_s
        self._why = why
        self._again_s, self._pause_s = now + self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        self.close()
        raise AwayError(why)
