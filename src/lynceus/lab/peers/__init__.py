"""Libraries that people use today, on the same tables and from the same initial samples.

A peer lives in an environment of its own (`make peers`) and is spoken to through a pipe, one JSON text per line, so that the tool's
environment stays as small as it is. It is driven by its own ask and tell; every run goes to its end, because a peer knows no timeouts.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import distributions
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lynceus.choose import LatinHypercube
from lynceus.document.complaint import hint
from lynceus.errors import InfrastructureError, InputError
from lynceus.history import End, History, Observation, Order, Outcome, Plan, Told
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay, Step, Until
from lynceus.replay.score import TOLERANCE, true_value
from lynceus.situation import IntArray, Situation

_SERVER = Path(__file__).parent / "server.py"


@dataclass(frozen=True, slots=True)
class Peer:
    """A library and the way in which it is used."""

    name: str
    library: str
    summary: str
    builds_on: tuple[str, ...] = ()
    """Packages other than the library itself whose version may change what it suggests."""


PEERS: Mapping[str, Peer] = MappingProxyType(
    {
        peer.name: peer
        for peer in (
            Peer(
                "optuna-tpe",
                "optuna",
                "Optuna: tree-structured Parzen estimators on log cost, the deadline as a constraint",
            ),
            Peer(
                "optuna-gp", "optuna", "Optuna: Gaussian process on log cost, the deadline as a constraint", ("torch",)
            ),
            Peer(
                "smac-rf",
                "smac",
                "SMAC3: random forest on log cost; late runs are told as the dearest so far",
                ("ConfigSpace", "scikit-learn"),
            ),
            Peer(
                "botorch-cei",
                "botorch",
                "BoTorch: log expected improvement of log cost under the deadline",
                ("gpytorch", "torch"),
            ),
            Peer("botorch-ceipc", "botorch", "BoTorch: the same per unit of expected cost", ("gpytorch", "torch")),
        )
    }
)
"""Every peer by name."""


def peer_named(name: str) -> Peer:
    """A peer; a mistake when there is none of that name."""
    if name not in PEERS:
        raise InputError(f"there is no peer {name!r}{hint(name, PEERS)}")
    return PEERS[name]


@lru_cache(maxsize=8)
def versions(peer: Peer) -> Mapping[str, str]:
    """What is installed of a library and of what it builds on, package by package."""
    folders = _peers_python(peer).parents[1].glob("lib/python*/site-packages")
    found = distributions(path=[str(folder) for folder in folders])
    wanted = (peer.library, *peer.builds_on)
    return MappingProxyType({one.name: one.version for one in found if one.name in wanted})


def replay_peer(job: ReplayJob, peer: Peer, seed: int, *, until: Until = "optimum") -> Replay:
    """Let a peer explore the table once: the Latin hypercube of our presets, then whatever the peer asks for."""
    goal = {"optimum": 1.0, "end": 0.0}[until] if isinstance(until, str) else until
    speak = _Conversation.with_(peer)
    speak.say(start=_told_of(job, peer, seed))
    steps: list[Step] = []
    open_rows = set(range(len(job.problem.space)))
    most = job.problem.budget.trials or len(open_rows)
    spent, cno = 0.0, math.inf
    design = _initial_rows(job, seed)
    while open_rows and len(steps) < most and cno > goal * (1 + TOLERANCE):
        began = time.perf_counter()
        asked = not design
        row = int(speak.say(ask=sorted(open_rows))["row"]) if asked else design.pop(0)
        thought = time.perf_counter() - began
        if row not in open_rows:
            raise InfrastructureError(f"peer {peer.name}: it asked for row {row}, which is not open.")
        seconds = float(job.measurements.seconds[row])
        charged = job.problem.cost(row, seconds)
        if spent + charged > job.problem.budget.usd:
            break
        spent += charged
        open_rows.remove(row)
        value = true_value(job.problem, job.measurements, row)
        cno = cno if value is None else min(cno, job.optimum.cno(value))
        speak.say(tell={"row": row, "seconds": seconds, "usd": charged})
        steps.append(
            Step(job.problem.space.point(row), "COMPLETE", charged, spent, cno, thought, row, seconds, seconds, asked)
        )
    reached = cno <= goal * (1 + TOLERANCE)
    return Replay(
        peer.name, seed, tuple(steps), "the goal was reached" if reached else "the end", None if reached else cno
    )


def _initial_rows(job: ReplayJob, seed: int) -> list[int]:
    """The rows that our own presets start with for this seed."""
    design, rows = LatinHypercube(), []
    history: History = ()
    while (plan := design(Situation.present(job.problem, history), None, seed)) is not None:
        rows.append(plan.row)
        seconds = float(job.measurements.seconds[plan.row])
        order = Order(len(history), plan.row, math.inf, 0.0, Plan(plan.row, why="initial"))
        history = (*history, Observation(order, Outcome(End.FINISHED, seconds, 0.0), Told(seconds)))
    return rows


def _told_of(job: ReplayJob, peer: Peer, seed: int) -> dict[str, Any]:
    """What a peer is told of a job: the points, their features, the deadline. Nothing of what runs take."""
    space, deadline = job.problem.space, job.problem.deadline_s
    free = independent(space.codes)
    return {
        "peer": peer.name,
        "seed": seed,
        "parameters": [
            {"name": one.name, "ordered": type(one).__name__ != "Categorical", "values": len(one.values)}
            for one in (space.parameters[place] for place in free)
        ],
        "codes": space.codes[:, free].tolist(),
        "features": space.features.tolist(),
        "kinds": list(space.feature_kinds),
        "deadline": deadline if math.isfinite(deadline) else None,
    }


def independent(codes: IntArray) -> list[int]:
    """Places of the parameters that tell all points `[rows, parameters]` apart; the others follow from them, as a machine's disk does.

    Libraries search the product of what they are given; nobody would give them parameters that are not free.

    >>> independent(np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1]]))
    [0, 1]
    """
    kept = list(range(codes.shape[1]))
    for place in reversed(kept):
        rest = [other for other in kept if other != place]
        if rest and len(np.unique(codes[:, rest], axis=0)) == len(codes):
            kept = rest
    return kept


class _Conversation:
    """A peer's process, spoken to line by line."""

    def __init__(self, python: Path, library: str) -> None:
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "PYTHONHASHSEED": "0",  # SMAC3 walks over sets: with random hashes the same seed asks for other rows
        }
        self._process = subprocess.Popen(
            [str(python), str(_SERVER), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        ready = self._hear()
        if "missing" in ready:
            self.close()
            raise InputError(
                f"peer: the environment of {python} has no {library} ({ready['missing']}); run 'make peers' to install it."
            )

    @classmethod
    def with_(cls, peer: Peer) -> _Conversation:
        """The conversation of this process with a library; started once, because some take seconds to import."""
        python = _peers_python(peer)
        if not _conversation(python, peer.library).alive:
            _conversation.cache_clear()
        return _conversation(python, peer.library)

    @property
    def alive(self) -> bool:
        """Whether its process still listens."""
        return self._process.poll() is None

    def say(self, **message: Any) -> dict[str, Any]:
        """Say one thing and hear the answer."""
        if self._process.stdin is None or not self.alive:
            raise InfrastructureError("peer: its process has ended; run the cell again.")
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> dict[str, Any]:
        if self._process.stdout is None:
            raise InfrastructureError("peer: its process cannot be heard.")
        line = self._process.stdout.readline()
        if not line:
            raise InfrastructureError(f"peer: its process ended with code {self._process.wait()}.")
        heard: dict[str, Any] = json.loads(line)
        if "error" in heard:
            raise InfrastructureError(f"peer: {heard['error']}")
        return heard

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@lru_cache(maxsize=4)
def _conversation(python: Path, library: str) -> _Conversation:
    import atexit

    conversation = _Conversation(python, library)
    atexit.register(conversation.close)
    return conversation


def _peers_python(peer: Peer) -> Path:
    """The interpreter of the peers' environment: `LYNCEUS_PEERS`, else `.venv-peers` here or beside the project."""
    named = os.environ.get("LYNCEUS_PEERS")
    folders = [Path(named)] if named else [Path(".venv-peers"), Path(__file__).resolve().parents[4] / ".venv-peers"]
    for folder in folders:
        python = folder / "bin" / "python"
        if python.is_file():
            return python.absolute()
    raise InputError(
        f"peer {peer.name!r} needs {peer.library} in an environment of its own; run 'make peers', or set LYNCEUS_PEERS to its folder."
    )
