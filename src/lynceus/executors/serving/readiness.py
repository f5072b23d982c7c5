"""Waiting until a server answers its HTTP check."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from lynceus.executors.serving.errors import AnswerError, MeasurementError
from lynceus.executors.serving.http_stream import request
from lynceus.executors.serving.server import Program

_FIRST_POLL_S, _SLOWEST_POLL_S = 0.05, 1.0
_ANSWER_S = 5.0
"""How long one check may take: a server that is busy loading weights may accept connections and not answer."""


def wait_until_ready(server: Program, port: int, ready: dict[str, Any]) -> float:
    """Seconds until the check succeeded; `MeasurementError` if the server ends before, or is not ready in time."""
    began, poll_s, last = time.monotonic(), _FIRST_POLL_S, "it was not asked"
    within_s = float(ready["within_s"])
    while True:
        left_s = began + within_s - time.monotonic()
        if left_s <= 0:
            raise MeasurementError(
                f"the server was not ready within {within_s:g} s: {ready['path']} on port {port}: {last}{server.last_line()}"
            )
        last = asyncio.run(_check(port, ready, min(_ANSWER_S, left_s)))
        if server.exit_code is not None:
            raise server.failure("before it was ready")
        if not last:
            return time.monotonic() - began
        time.sleep(min(poll_s, max(left_s, 0.0)))
        poll_s = min(1.5 * poll_s, _SLOWEST_POLL_S)


async def _check(port: int, ready: dict[str, Any], most_s: float) -> str:
    """What is wrong; empty if the server is ready."""

    async def ask() -> str:
        async with request(port, ready["path"]) as answer:
            await answer.body()
            wanted = ready.get("status")
            right = 200 <= answer.status < 300 if wanted is None else answer.status == wanted
            return "" if right else f"HTTP {answer.status}"

    try:
        return await asyncio.wait_for(ask(), most_s)
    except AnswerError as error:
        return str(error)
    except asyncio.TimeoutError:  # noqa: UP041 - the built-in one from Python 3.11 on
        return f"no answer within {most_s:.1f} s"
    except OSError as error:
        return os.strerror(error.errno).lower() if error.errno else str(error)
