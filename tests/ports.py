"""Ports for test servers that need to know their port before they start."""

import contextlib
import itertools
import os
import socket

# Below the range of ephemeral ports (32768 and up), and five hundred of them for every xdist worker, so that no other process takes a
# port between the check and its use.
_next = itertools.count(20_000 + 500 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def free_ports(count: int) -> list[int]:
    """Ports of this machine that are free and stay free."""
    found: list[int] = []
    while len(found) < count:
        port = next(_next)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found
