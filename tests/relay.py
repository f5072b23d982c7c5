"""A port of this machine that forwards to another one, and can hang, answer garbage or refuse instead."""

import contextlib
import random
import socket
import threading
from collections.abc import Iterator

from ports import free_ports


class Relay:
    """Refuses connections until it is opened."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("ray://").partition(":")
        self._target = (host, int(port))
        [self._port] = free_ports(1)
        self._scheme = "ray://" if target.startswith("ray://") else ""
        self._server: socket.socket | None = None
        self._open: list[socket.socket] = []
        self._flows = threading.Event()
        self._garbage = False

    @property
    def address(self) -> str:
        """With the scheme of the target."""
        return f"{self._scheme}127.0.0.1:{self._port}"

    def open(self) -> None:
        """Forward."""
        self._flows.set()
        self._garbage = False
        if self._server is None:
            self._server = socket.create_server(("127.0.0.1", self._port))
            threading.Thread(target=self._serve, args=(self._server,), daemon=True).start()

    def cut(self) -> None:
        """Close all connections and refuse new ones."""
        if self._server is not None:
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
        self._server = None
        self._close_all()

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        self.cut()
        try:
            yield
        finally:
            self.open()

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Accept connections and everything that is sent, but answer nothing."""
        self._flows.clear()
        try:
            yield
        finally:
            self._flows.set()

    @contextlib.contextmanager
    def babbling(self) -> Iterator[None]:
        """Answer every connection with random bytes."""
        self._garbage = True
        self._close_all()
        try:
            yield
        finally:
            self._garbage = False
            self._close_all()

    def _close_all(self) -> None:
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open = []

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            if self._garbage:
                with contextlib.suppress(OSError):
                    near.sendall(random.Random(7).randbytes(4096))
                self._open.append(near)
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relay(target: str) -> Iterator[Relay]:
    """A relay that is closed at the end."""
    made = Relay(target)
    try:
        yield made
    finally:
        made.open()
        made.cut()
