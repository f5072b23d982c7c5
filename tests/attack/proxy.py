"""A network of our own in front of a PostgreSQL server: it drops, delays, truncates and refuses connections, and comes back."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

_CHUNK_BYTES = 65536


class Proxy:
    """Listens on loopback and passes bytes on to a Unix socket."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.delay_s = 0.0
        """How long every piece of data takes longer."""
        self.refuses = False
        self.truncate_after: int | None = None
        """After so many bytes, each connection is cut in the middle of what it says."""
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """Cut all connections, at once and without a farewell."""
        with self._lock:
            for pair in self._pairs:
                for one in pair:
                    with contextlib.suppress(OSError):
                        one.shutdown(socket.SHUT_RDWR)

    def heal(self) -> None:
        self.delay_s, self.refuses, self.truncate_after = 0.0, False, None

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            upstream = socket.socket(socket.AF_UNIX)
            try:
                upstream.connect(str(self._server))
            except OSError:
                client.close()
                upstream.close()
                continue
            threading.Thread(target=self._pass, args=(client, upstream), daemon=True).start()

    def _pass(self, client: socket.socket, upstream: socket.socket) -> None:
        pair = (client, upstream)
        with self._lock:
            self._pairs.add(pair)
        left = self.truncate_after
        try:
            for source, data in _readable(client, upstream):
                time.sleep(self.delay_s)
                target = upstream if source is client else client
                if left is not None:
                    target.sendall(data[:left])
                    left -= len(data)
                    if left <= 0:
                        return
                else:
                    target.sendall(data)
        except OSError:
            return
        finally:
            with self._lock:
                self._pairs.discard(pair)
            client.close()
            upstream.close()


def _readable(client: socket.socket, upstream: socket.socket) -> Iterator[tuple[socket.socket, bytes]]:
    with selectors.DefaultSelector() as selector:
        for one in (client, upstream):
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if not (data := source.recv(_CHUNK_BYTES)):
                    return
                yield source, data
