"""The process that talks to the cluster: Ray's driver, separate from Lynceus because Ray ends drivers whose cluster is gone.

It reads one JSON object per line from its standard input and answers each with one on its standard output, in order. It ends when the
pipe closes. When Ray ends it, the `client` starts another one.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import socket
import sys
import threading
import time
from typing import Any

from lynceus.executors.ray.actor import NAMESPACE
from lynceus.executors.ray.cluster import Cluster
from lynceus.trial.text import clean_line

_CONNECT_S = 5.0
_PARENT_S = 1.0


def main() -> None:
    """Connect to the cluster that the first line names, then carry out the requests of the other lines."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Ray prints must not be taken for an answer
    first = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with, args=(first["parent"],), daemon=True).start()
    try:
        ray: Any = load()
        _answer(answers, {"connecting": True})
        cluster = Cluster(connect(ray, first["address"]))
    except BaseException as error:  # Ray exits on some errors
        _answer(answers, {"error": _sentence(error)})
        return
    _answer(answers, {"connected": True})
    for line in sys.stdin:
        try:
            _answer(answers, {"answer": _call(cluster, json.loads(line))})
        except Exception as error:
            _answer(answers, {"error": _sentence(error)})


def load() -> Any:
    """Ray, which takes seconds to import."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    return importlib.import_module("ray")


def connect(ray: Any, address: str) -> Any:
    """Ray, connected to the cluster as a driver."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # Ray itself would try for minutes
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
        except OSError as error:
            raise ConnectionError(f"no answer from there ({error.strerror or error})") from None
    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
    return ray


def _end_with(parent: int) -> None:
    """End when Lynceus was killed, also in the middle of a call that the cluster does not answer."""
    while os.getppid() == parent:
        time.sleep(_PARENT_S)
    os._exit(1)


def _call(cluster: Cluster, request: dict[str, Any]) -> Any:
    method, name = request["method"], request.get("name", "")
    if method == "launch":
        payload = request["payload"]
        for field in ("files", "runner"):
            payload[field] = _decode(payload[field])
        return cluster.launch(name, request["order"], payload, request["private"])
    if method == "store_folder":
        return cluster.store_folder(name, base64.b64decode(request["packed"]))
    with_name = {
        "status": cluster.status,
        "cancel": cluster.cancel,
        "clear": cluster.clear,
        "delete": cluster.delete,
        "has_folder": cluster.has_folder,
        "delete_folders": cluster.delete_folders,
    }
    if method in with_name:
        return with_name[method](name)
    return {"node_resources": cluster.node_resources, "runs": cluster.runs, "folders": cluster.folders}[method]()


def _decode(packed: Any) -> Any:
    if isinstance(packed, dict):
        return {name: _decode(data) for name, data in packed.items()}
    return base64.b64decode(packed)


def _answer(answers: Any, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def _sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return clean_line(lines[0] if lines else type(error).__name__)


if __name__ == "__main__":
    main()
