"""Whether SkyPilot's API server answers. Its other requests may rightly take minutes, so it is asked for a sign of life in between."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from typing import Any

from lynceus.executors.outage_log import OutageLog
from lynceus.executors.skypilot.bridge import Bridge, SkyError
from lynceus.executors.skypilot.messages import diagnose

_PING_S = 5.0
"""Seconds between two questions."""
_SILENT_S = 5.0
"""A server that has not answered for so long is unreachable."""
_START_S = 60.0
"""How long the process that talks to SkyPilot may take to start: it imports SkyPilot first."""
_REPLACE_S = 60.0
"""After such a silence, open requests have no hope: their process is replaced, and they are made anew."""
_LOOK_S = 0.1


class ServerWatch:
    """Sees when the server stops to answer, and when it answers again. Never waits, but for `wait`."""

    def __init__(self, bridge: Bridge, server: str) -> None:
        self._bridge, self._server = bridge, server
        self.outages = OutageLog()
        self._ping: Future[Any] | None = None
        self._asked_s = float("-inf")

    @property
    def answers(self) -> bool:
        """Whether the server answered when it was last asked."""
        return self.outages.current() is None

    def look(self) -> None:
        """Ask for a sign of life from time to time, and take note of the answer."""
        now = time.monotonic()
        if self._ping is None:
            if now - self._asked_s >= _PING_S:
                self._asked_s, self._ping = now, self._bridge.call("ping")
            return
        if self._ping.done():
            ping, self._ping = self._ping, None
            try:
                ping.result()
                self.outages.answered("server")
            except SkyError as error:
                self.failed(error)
            return
        silent_s = now - self._asked_s
        if silent_s > (_SILENT_S if self._bridge.is_ready else _START_S):
            self.outages.failed(
                "server", f"SkyPilot's API server{self._server} has not answered for {silent_s:.0f} s", for_s=silent_s
            )
        if silent_s > _REPLACE_S:
            self._bridge.replace()

    def failed(self, error: SkyError) -> None:
        """A request failed, and perhaps because the server does not answer."""
        what = diagnose(error, self._server)
        if what.state_unknown:
            self.outages.failed("server", what.sentence)

    def wait(self, futures: Sequence[Future[Any]], longest_s: float) -> None:
        """Wait for answers as long as the server gives signs of life."""
        until = time.monotonic() + longest_s
        while time.monotonic() < until:
            self.look()
            if not wait_for(futures, timeout=_LOOK_S).not_done or not self.answers:
                return
