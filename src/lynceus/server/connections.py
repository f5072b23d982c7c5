"""Connections: how many there may be, how long a client may take, and which one goes when there are too many.

A client can connect and send nothing, send one byte a minute, or never read its response. Each such connection costs a file descriptor,
so the number of connections stays below the limit of the process, and a connection that waits for its client makes room for a new one.
A connection whose request is complete is never closed for another one.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from lynceus.server.proxies import network_of

HEAD_S = 10.0
"""Seconds from the connection, or from the first byte of a further request, to the end of the headers."""
BODY_S = 60.0
"""Seconds from the headers to the end of the body."""
IDLE_S = 30
"""Seconds that a connection stays open between two requests."""
STALLED_S = 30.0
"""Seconds after which a client that reads less than `SLOWEST_BYTES_PER_S` of its response is disconnected."""
SLOWEST_BYTES_PER_S = 1000.0
MOST_CONNECTIONS = 1000
RESERVED_FILES = 256
"""File descriptors that are kept for the database, for outputs of trials, and for connections that are just being closed."""

_log = logging.getLogger("lynceus.server")
_REFUSAL = "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}"
_FULL = (errno.EMFILE, errno.ENFILE)


def connection_limit() -> int:
    """How many connections this process can have, after its limit of open files was raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(min(MOST_CONNECTIONS, soft - RESERVED_FILES), soft // 4)


@dataclass
class Connections:
    """The open connections of a server."""

    most: int
    is_proxy: Callable[[str], bool] = lambda _: False
    """Whether an address belongs to a trusted proxy: many clients come from there."""
    _open: Counter[str] = field(default_factory=Counter)
    """Open connections by address."""
    _waiting: OrderedDict[BoundedProtocol, None] = field(default_factory=OrderedDict)
    """Connections that wait for their client; those that have waited longest come first."""

    def admit(self, address: str) -> bool:
        """Whether there is room for one more connection, if necessary in place of one that waits for its client."""
        source = network_of(address)
        if self._open[source] >= max(self.most // 2, 1) and not self.is_proxy(address):
            return self._close_one(lambda one: one.source == source)
        return self._open.total() < self.most or self._close_one(lambda _: True)

    def opened(self, address: str) -> None:
        """A connection was accepted."""
        self._open[network_of(address)] += 1

    def closed(self, address: str) -> None:
        """A connection was closed."""
        self._open[network_of(address)] -= 1
        self._open += Counter()  # without zeros

    def waits(self, one: BoundedProtocol, *, for_client: bool) -> None:
        """A connection waits for its client from now on, or it does not."""
        self._waiting.pop(one, None)
        if for_client:
            self._waiting[one] = None

    def _close_one(self, eligible: Callable[[BoundedProtocol], bool]) -> bool:
        found = next((one for one in self._waiting if eligible(one)), None)
        _log.warning("There are too many connections (%d may be open); those that wait longest are closed.", self.most)
        if found is None:
            return False
        del self._waiting[found]
        found.transport.abort()
        return True


class Listener(socket.socket):
    """A listening socket that closes a new connection at once when there is no room for it.

    asyncio accepts connections in bursts and logs a traceback for each one that finds no free file descriptor; this socket keeps one
    descriptor in reserve, with which it can accept and close such a connection.
    """

    def __init__(self, family: int, connections: Connections) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.connections = connections
        self._reserve: int | None = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that is admitted; BlockingIOError when there is none."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as error:
                if error.errno not in _FULL or not self._turn_away():
                    raise
                continue
            if self.connections.admit(address[0]):
                return _Accepted(connection, address[0], self.connections), address
            connection.close()

    def close(self) -> None:
        """Close it, and the descriptor in reserve."""
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
        super().close()

    def _turn_away(self) -> bool:
        """Accept and close one connection with the descriptor in reserve; False when there is none."""
        if self._reserve is None:
            return False
        _log.warning("This process has no free file descriptor; new connections are closed.")
        os.close(self._reserve)
        self._reserve = None
        try:
            super().accept()[0].close()
        finally:
            with contextlib.suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY)
        return True


class _Accepted(socket.socket):
    """A connection that is counted until it is closed."""

    def __init__(self, accepted: socket.socket, address: str, connections: Connections) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._address, self._connections = address, connections
        self._counted = True
        connections.opened(address)

    def close(self) -> None:
        """Close it."""
        super().close()
        if self._counted:
            self._counted = False
            self._connections.closed(self._address)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 with a time limit for everything that a client has to do."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._all = connections
        self.source = ""
        """The network that the client belongs to."""
        self._since: float | None = None
        """When the client began what it is doing; None while it need not do anything."""
        self._phase: object = None
        self._unread: tuple[int, float] | None = None
        """Bytes that the client had not read, and when."""

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.source = network_of(self.client[0] if self.client else "")
        self._enter(h11.IDLE)

    def data_received(self, data: bytes) -> None:
        """Bytes of a client."""
        if self._phase is h11.IDLE and self._since is None:
            self._since = self.loop.time()
        super().data_received(data)
        self._update()

    def on_response_complete(self) -> None:
        """A response was handed over to the network."""
        super().on_response_complete()
        self._update()
        if self._phase is h11.IDLE and not self.conn.trailing_data[0]:
            self._since = None  # from here to the next request, the limit is IDLE_S

    def connection_lost(self, exc: Exception | None) -> None:
        """A client is gone."""
        self._all.waits(self, for_client=False)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def check(self, now: float) -> None:
        """Close the connection if its client has been too slow."""
        if self._since is not None and now - self._since > (HEAD_S if self._phase is h11.IDLE else BODY_S):
            _log.warning("Requests came too slowly, and their connections were closed.")
            self._refuse("408 Request Timeout", "The request came too slowly.")
        unread = self.transport.get_write_buffer_size()
        before, since = self._unread or (unread, now)
        if not unread or before - unread > SLOWEST_BYTES_PER_S * max(now - since, 1.0):
            self._unread = (unread, now) if unread else None
        elif self._unread is None:
            self._unread = (unread, now)
        elif now - since > STALLED_S:
            _log.warning("Responses were read too slowly, and their connections were closed.")
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; in the middle of a response there is nothing left to say."""
        self._refuse("400 Bad Request", msg)

    def _refuse(self, status: str, sentence: str) -> None:
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        self.transport.write(_REFUSAL.format(status, len(sentence), sentence).encode())
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """A client that wants another protocol gets a normal response, and no line in the log."""

    def _update(self) -> None:
        """Note what the client has to do next."""
        phase: object = self.conn.their_state
        if phase not in (h11.IDLE, h11.SEND_BODY):
            phase = None
        if phase is not self._phase:
            self._enter(phase)

    def _enter(self, phase: object) -> None:
        self._phase, self._since = phase, None if phase is None else self.loop.time()
        self._all.waits(self, for_client=phase is not None)
