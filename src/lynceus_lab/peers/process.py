"""The process of a peer library; messages are JSON, one per line."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, InputError
from lynceus_lab.peers.catalog import Peer, peers_python

_SERVER = Path(__file__).parent / "server.py"


class PeerProcess:
    """A process with a peer library, which answers messages."""

    def __init__(self, python: Path, library: str) -> None:
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "PYTHONHASHSEED": "0",  # SMAC3 iterates over sets: with random hashes, equal seeds suggest different rows
        }
        self._process = subprocess.Popen(
            [str(python), str(_SERVER), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        ready = self._receive()
        if "missing" in ready:
            self.close()
            raise InputError(
                f"peer: the environment of {python} has no {library} ({ready['missing']}); run 'make peers' to install it."
            )

    @classmethod
    def of(cls, peer: Peer) -> PeerProcess:
        """The process of a peer; started once, because some libraries take seconds to import."""
        python = peers_python(peer)
        if not _process_of(python, peer.library).alive:
            _process_of.cache_clear()
        return _process_of(python, peer.library)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def send(self, **message: Any) -> dict[str, Any]:
        """Send a message and return the answer."""
        if self._process.stdin is None or not self.alive:
            raise InfrastructureError("peer: its process has ended; run the cell again.")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        if self._process.stdout is None:
            raise InfrastructureError("peer: its process has no output; run the cell again.")
        line = self._process.stdout.readline()
        if not line:
            raise InfrastructureError(f"peer: its process ended with code {self._process.wait()}; run the cell again.")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise InfrastructureError(f"peer: {answer['error']}")
        return answer

    def close(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@lru_cache(maxsize=4)
def _process_of(python: Path, library: str) -> PeerProcess:
    process = PeerProcess(python, library)
    atexit.register(process.close)
    return process
