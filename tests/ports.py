"""Ports for servers of tests that must know theirs before they start."""

import contextlib
import itertools
import os
import socket

# Below the range from which the kernel gives ports away (32768 and up), and five hundred of them for every worker of xdist: between
# asking and binding nobody else takes them.
_next = itertools.count(20_000 + 500 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def free_ports(count: int) -> list[int]:
    """Ports of this machine that are free, and stay so."""
    found: list[int] = []
    while len(found) < count:
        port = next(_next)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found
