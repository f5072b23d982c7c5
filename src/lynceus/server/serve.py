"""Run the application on a port until it is interrupted."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from lynceus.errors import InfrastructureError, InputError, MissingExtraError

try:
    import uvicorn
    from fastapi import FastAPI
except ImportError:
    raise MissingExtraError("The dashboard and its API", "web") from None

from lynceus.server.connections import HEAD_S, IDLE_S, BoundedProtocol, Connections, Listener, connection_limit
from lynceus.server.log_limit import limit_logs
from lynceus.server.proxies import TrustedProxies

GRACE_S = 3
"""Seconds that requests may still take after an interruption."""
_QUEUED = 1024
"""Connections that the kernel keeps until they are accepted."""
_AT_ONCE = 64
"""Connections that are accepted before those that are open are looked after again."""
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("lynceus.server")


@dataclass(frozen=True)
class Certificate:
    """Files of a TLS certificate (with the certificates between it and its root) and of its private key, as PEM."""

    chain: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """The settings of TLS connections."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.chain, self.key, password=_no_password)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"dashboard: the certificate {self.chain} and the key {self.key} cannot be used: {reason}; give PEM files that "
                "belong together, the key without a password."
            ) from None
        return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def serve(
    app: FastAPI,
    host: str,
    port: int,
    *,
    certificate: Certificate | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Listen until SIGINT or SIGTERM; `started` is called with the URL when the server accepts requests."""
    context = None if certificate is None else certificate.context()
    proxies: TrustedProxies = app.state.guard.proxies
    listener = listen(host, port, Connections(connection_limit(), proxies.trusts))
    bare = host.strip("[]")
    shown = f"[{bare}]" if ":" in bare else bare
    url = f"{'http' if context is None else 'https'}://{shown}:{listener.getsockname()[1]}"
    try:
        Server(app, listener, context, lambda: None if started is None else started(url)).run()
    except KeyboardInterrupt:  # uvicorn raises the signal again after it has closed everything
        pass
    finally:
        listener.close()


def listen(host: str, port: int, connections: Connections) -> Listener:
    """A socket that listens on an address; IPv6 addresses may be in brackets."""
    bare = host.strip("[]")
    try:
        family, _, _, _, address = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = Listener(family, connections)
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: Exception) -> InfrastructureError:
    reason = getattr(error, "strerror", None) or error
    return InfrastructureError(
        f"dashboard: cannot listen on {host}:{port}: {reason}; choose another --host or --port (0 takes a free one)."
    )


class Server(uvicorn.Server):
    """uvicorn with limits on connections. It ends event streams before it waits for requests to end."""

    def __init__(
        self,
        app: FastAPI,
        listener: Listener,
        context: ssl.SSLContext | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app,
            loop="asyncio",  # another event loop would not accept connections through `Listener`
            ws="none",
            access_log=False,
            log_level=logging.WARNING,
            proxy_headers=False,  # `proxies.py` believes proxies that are named, and no others
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=IDLE_S,
        )
        super().__init__(config)
        self._app, self._listener, self._context, self._ready = app, listener, context, started
        events = app.state.context.events
        events.max_listeners = min(events.max_listeners, listener.connections.most // 2)
        limit_logs()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is told to stop."""
        super().run([self._listener, *(sockets or ())])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept requests."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_unhandled)
        self.servers = [
            await self._loop.create_server(
                self._protocol,
                sock=self._listener,
                ssl=self._context,
                ssl_handshake_timeout=None if self._context is None else HEAD_S,
                backlog=_AT_ONCE,
            )
        ]
        self._listener.listen(_QUEUED)
        self.started = True
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections once per second; called ten times as often."""
        if counter % 10 == 0:
            now = self._loop.time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedProtocol):
                    connection.check(now)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting requests."""
        self._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._app.state.context.events.close()))
        super().handle_exit(sig, frame)

    def _protocol(self) -> BoundedProtocol:
        return BoundedProtocol(
            self._listener.connections,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


def _unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """An error outside of any request; one line when the machine has no room for a connection."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES:
        _log.warning("A connection could not be accepted: %s.", error.strerror)
    else:
        loop.default_exception_handler(context)
