"""The list of clusters: every cluster is written to disk before it is requested, and deleted when it is known to be gone.

The files stay readable for newer versions, so the fields of `Cluster` must not be renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lynceus.executors.supervisor import files

PREFIX = "lyn-"
_NAME = re.compile(r"lyn-(?P<study>.*)-(?P<identity>[0-9a-f]+)-[0-9a-f]{6}-[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that may exist."""

    name: str
    study: str
    identity: str
    shape: str
    """Equal for tasks that can use the same machines."""
    number: int | None
    """The trial that uses it; None if it is idle, or to be taken down."""
    price_per_s: float
    """Dollars per second."""
    accounted_s: float
    """Its time is charged to runs up to this moment, seconds since the epoch."""
    idle_since_s: float = 0.0
    """Since when no run uses it, seconds since the epoch."""
    ends: bool = False
    """Whether it is to be taken down as soon as possible."""
    up: bool = False
    """Whether SkyPilot has ever reported it as running."""


def shape_of(resources: Mapping[str, Any], nodes: int, setup: object) -> str:
    """A short digest that is equal for equal machines with equal setup."""
    text = json.dumps([resources, nodes, setup], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def new_name(study: str, identity: str, shape: str) -> str:
    """A new unique name. It identifies the study even if the list is lost.

    >>> new_name("nightly sessions", "0a1b2c3d", "ffee00")[:-4]
    'lyn-nightly-session-0a1b2c3d-ffee00-'
    """
    word = re.sub(r"[^a-z0-9]+", "-", study.lower())[:15].strip("-") or "study"
    return f"{PREFIX}{word}-{identity or '00000000'}-{shape}-{secrets.token_hex(2)}"


def owner(name: str) -> tuple[str, str]:
    """Study (perhaps shortened) and identity, from a cluster's name alone; empty if it is not a name of ours."""
    match = _NAME.fullmatch(name)
    return ("", "") if match is None else (match["study"], match["identity"])


def _is_idle(cluster: Cluster) -> bool:
    return cluster.number is None and not cluster.ends and cluster.up


class Clusters:
    """The clusters of one run root: a small file for each, and a lock for processes that choose among them."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "skypilot"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def all(self) -> list[Cluster]:
        """Every cluster that may exist."""
        found = (files.read_json(str(path)) for path in sorted(self._folder.glob("*.json")))
        return [Cluster(**record) for record in found if record is not None]

    def get(self, name: str) -> Cluster | None:
        """One of them; None if it is not in the list."""
        record = files.read_json(self._path(name))
        return None if record is None else Cluster(**record)

    def claim(self, wanted: Cluster, max_idle_s: float) -> Cluster:
        """Assign an idle warm cluster of the same study and shape to a trial; if there is none, add a new one.

        A cluster that the trial claimed before a crash is still its own.
        """
        with self._locked():
            for cluster in self.all():
                if (cluster.identity, cluster.number) == (wanted.identity, wanted.number) and not cluster.ends:
                    return cluster
            for cluster in self.all():
                same = (cluster.identity, cluster.shape) == (wanted.identity, wanted.shape)
                if _is_idle(cluster) and same and wanted.accounted_s - cluster.idle_since_s < max_idle_s:
                    return self._write(replace(cluster, number=wanted.number))
            return self._write(wanted)

    def release(self, name: str, now_s: float) -> None:
        """Its run has ended; it waits for another one."""
        self.change(name, number=None, idle_since_s=now_s)

    def restart_accounting(self, name: str, now_s: float) -> None:
        """It is about to be started, perhaps again: idle time so far is charged to the next run, and counting starts anew."""
        with self._locked():
            cluster = self.get(name)
            if cluster is None:
                return
            if cluster.up:
                self._add_debt(cluster, now_s)
            self._write(replace(cluster, up=False, accounted_s=now_s))

    def change(self, name: str, **changes: Any) -> Cluster | None:
        """Change fields of a cluster; None if it is no longer in the list."""
        with self._locked():
            cluster = self.get(name)
            return None if cluster is None else self._write(replace(cluster, **changes))

    @contextlib.contextmanager
    def pay(self, identity: str, name: str, now_s: float) -> Iterator[tuple[float, float]]:
        """What a run that ends now has to pay: seconds of its own cluster, and dollars for the study's idle clusters.

        They count as paid if the block succeeds, that is, when the outcome of the run is recorded.
        """
        with self._locked():
            due = [one for one in self.all() if one.identity == identity and (one.name == name or _is_idle(one))]
            passed = {one.name: max(now_s - one.accounted_s, 0.0) for one in due}
            idle_usd = sum(passed[one.name] * one.price_per_s for one in due if one.name != name)
            yield passed.get(name, 0.0), idle_usd + self._debt(identity)
            for one in due:
                self._write(replace(one, accounted_s=max(now_s, one.accounted_s)))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._debt_file(identity))

    def retire(self, name: str, idle_until_s: float) -> bool:
        """Mark an idle cluster to be taken down and charge its idle time to the study's next run. False if a run uses it."""
        with self._locked():
            cluster = self.get(name)
            if cluster is None or cluster.number is not None:
                return False
            if _is_idle(cluster):
                self._add_debt(cluster, idle_until_s)
            self._write(replace(cluster, ends=True))
            return True

    def _add_debt(self, cluster: Cluster, until_s: float) -> None:
        usd = self._debt(cluster.identity) + max(until_s - cluster.accounted_s, 0.0) * cluster.price_per_s
        files.write_atomically(self._debt_file(cluster.identity), {"usd": usd})

    def _debt(self, identity: str) -> float:
        """Dollars for idle time that no run has paid yet."""
        return float((files.read_json(self._debt_file(identity)) or {"usd": 0.0})["usd"])

    def _debt_file(self, identity: str) -> str:
        return str(self._folder / f"idle-{identity or 'nobody'}.owed")

    def delete(self, name: str) -> None:
        """Delete a cluster that is known to be gone."""
        with self._locked(), contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _write(self, cluster: Cluster) -> Cluster:
        files.write_atomically(self._path(cluster.name), asdict(cluster))
        files.sync(self._path(cluster.name))
        return cluster

    def _path(self, name: str) -> str:
        return str(self._folder / f"{name}.json")
