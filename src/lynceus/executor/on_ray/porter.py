"""The process that speaks to the cluster: Ray's driver, apart from everything that must not end with it.

It reads one JSON object per line from its standard input and answers each with one on its standard output, in order; it ends with the pipe.
Ray ends a driver whose cluster is gone; then this process ends, and whoever holds the pipe starts another.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import socket
import sys
from typing import Any

from lynceus.executor.on_ray.cluster import Cluster
from lynceus.executor.on_ray.keeper import NAMESPACE

_KNOCK_S = 5.0


def main() -> None:
    """Join the cluster that the first line names, then do what the others say."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Ray prints must not be taken for an answer
    first = json.loads(sys.stdin.readline())
    try:
        cluster = Cluster(joined(first["address"]))
    except Exception as error:
        _answer(answers, {"error": _sentence(error)})
        return
    _answer(answers, {"joined": True})
    for line in sys.stdin:
        if os.getppid() != first["parent"]:
            return  # nobody wants this any more
        try:
            _answer(answers, {"answer": _do(cluster, json.loads(line))})
        except Exception as error:
            _answer(answers, {"error": _sentence(error)})


def joined(address: str) -> Any:
    """Ray, as a driver of the cluster."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # Ray itself would try for minutes
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
        except OSError as error:
            raise ConnectionError(f"nobody answers there ({error.strerror or error})") from None
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    ray: Any = importlib.import_module("ray")
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
    return ray


def _do(cluster: Cluster, asked: dict[str, Any]) -> Any:
    what, name = asked["do"], asked.get("name", "")
    if what == "look":
        return cluster.look(name)
    if what == "launch":
        parcel = asked["parcel"]
        for field in ("files", "runner"):
            parcel[field] = _bytes(parcel[field])
        return cluster.launch(name, asked["order"], parcel, asked["private"])
    if what == "ship":
        return cluster.ship(name, None if asked["packed"] is None else base64.b64decode(asked["packed"]))
    plain = {
        "cancel": cluster.cancel,
        "clear": cluster.clear,
        "forget": cluster.forget,
        "unship": cluster.unship,
    }
    if what in plain:
        return plain[what](name)
    return {"offers": cluster.offers, "names": cluster.names, "shipped": cluster.shipped}[what]()


def _bytes(packed: Any) -> Any:
    if isinstance(packed, dict):
        return {name: _bytes(data) for name, data in packed.items()}
    return base64.b64decode(packed)


def _answer(answers: Any, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def _sentence(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


if __name__ == "__main__":
    main()
