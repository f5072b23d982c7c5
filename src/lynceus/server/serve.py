"""Run the application on a port until it is interrupted."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from types import FrameType

from lynceus.errors import InfrastructureError, MissingExtraError

try:
    import uvicorn
    from fastapi import FastAPI
except ImportError:
    raise MissingExtraError("The dashboard and its API", "web") from None

GRACE_S = 3
"""Seconds that requests may still take after an interruption."""


def serve(app: FastAPI, host: str, port: int, *, started: Callable[[str], None] | None = None) -> None:
    """Listen until SIGINT or SIGTERM; `started` is called with the URL when the server accepts requests."""
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level=logging.WARNING,
        proxy_headers=False,  # clients could choose the address for which wrong tokens are counted
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=30,
        limit_concurrency=2000,
    )
    try:
        _Server(config, app, lambda: None if started is None else started(url)).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again after it has closed everything
        pass
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise InfrastructureError(
            f"dashboard: cannot listen on {host}:{port}: {error.strerror or error}; choose another --port, or 0 for a free one."
        ) from None
    return listening


class _Server(uvicorn.Server):
    """Reports when it is ready, and ends event streams before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._app, self._started = app, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        if self.started:
            self._started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting requests."""
        self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._app.state.context.events.close()))
        super().handle_exit(sig, frame)
