"""A real Ray cluster for tests: a head and further nodes as processes of this machine, started by a separate process.

Input lines: a JSON object, `{"add": {…}}`, `{"kill": NUMBER}` or `{"stop": true}`. Output lines: one JSON object for each.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ports import free_ports

_SMALL = {"object_store_memory": 80 << 20, "include_dashboard": False}


def serve(folder: str) -> None:
    """The separate process; only this one imports Ray."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    nodes: list[Any] = []
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if "add" in request:
            for_head = {"temp_dir": folder} if not nodes else {}
            nodes.append(_add(cluster, {**_SMALL, **for_head, **request["add"]}))
            answer = {"node": len(nodes) - 1, "address": cluster.address}
        elif "kill" in request:
            cluster.remove_node(nodes[request["kill"]], allow_graceful=False)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if "stop" in request:
            break
    cluster.shutdown()


def _add(cluster: Any, options: dict[str, Any], tries: int = 3) -> Any:
    """Add a node; retries because Ray waits only 30 s for it, which is not enough on a busy machine."""
    try:
        return cluster.add_node(**options)
    except Exception:
        if tries == 1:
            raise
        return _add(cluster, options, tries - 1)


class Bench:
    """The client of the separate process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ""
        self._clients: list[subprocess.Popen[bytes]] = []
        environment = {**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        environment |= {"RAY_gcs_server_port_wait_time_s": "120"}
        with (folder / "bench.log").open("wb") as log:
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )

    def add(self, **resources: Any) -> int:
        """Add a node and return its number; the first one is the head."""
        answer = self._call({"add": resources})
        self.address = answer["address"]
        return int(answer["node"])

    def kill(self, node: int) -> None:
        """Kill all processes of a node."""
        self._call({"kill": node})

    def client(self) -> str:
        """Start a Ray client server and return its address `ray://…`."""
        [port] = free_ports(1)
        command = [sys.executable, "-m", "ray.util.client.server", f"--address={self.address}", f"--port={port}"]
        self._clients.append(
            subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.folder
            )
        )
        return f"ray://127.0.0.1:{port}"

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        assert line, f"the cluster ended: {(self.folder / 'bench.log').read_text()[-2000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for client in self._clients:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        with contextlib.suppress(BrokenPipeError, AssertionError):
            self._call({"stop": True})
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()


@contextlib.contextmanager
def bench(**head: Any) -> Iterator[Bench]:
    """A cluster with one node, the head; skips the test if Ray is not installed."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'lynceus-opt[ray]'")
    folder = Path(tempfile.mkdtemp(prefix="lr-", dir="/tmp"))  # paths of sockets must be short
    running = Bench(folder)
    try:
        running.add(**head)
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    serve(sys.argv[1])
