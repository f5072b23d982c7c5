"""The teardown ledger: every cluster that may exist is written down before it is asked for, and struck out when it is known to be gone."""

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

from lynceus.supervisor import files

PREFIX = "lyn-"
_NAMED = re.compile(r"lyn-(?P<study>.*)-(?P<identity>[0-9a-f]+)-[0-9a-f]{6}-[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that may exist."""

    name: str
    study: str
    identity: str
    shape: str
    """Equal for tasks that can use each other's machines."""
    number: int | None
    """The trial that uses it; nothing: it is idle, or to be ended."""
    price_per_s: float
    """Dollars per second."""
    accounted_s: float
    """Up to this moment (seconds since the epoch) its time has been charged to runs."""
    idle_since_s: float = 0.0
    """Since when nobody uses it."""
    ends: bool = False
    """Whether it is to be ended, as soon as that can be done."""
    up: bool = False
    """Whether SkyPilot has ever said that it runs."""


def shape_of(resources: Mapping[str, Any], nodes: int, setup: object) -> str:
    """A short text that is equal for equal machines with equal set-up."""
    text = json.dumps([resources, nodes, setup], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def new_name(study: str, identity: str, shape: str) -> str:
    """A name that nothing had before; it says whose it is even when the ledger is lost.

    >>> new_name("nightly sessions", "0a1b2c3d", "ffee00")[:-4]
    'lyn-nightly-session-0a1b2c3d-ffee00-'
    """
    word = re.sub(r"[^a-z0-9]+", "-", study.lower())[:15].strip("-") or "study"
    return f"{PREFIX}{word}-{identity or '00000000'}-{shape}-{secrets.token_hex(2)}"


def owner(name: str) -> tuple[str, str]:
    """Study (perhaps shortened) and identity, from a cluster's name alone."""
    match = _NAMED.fullmatch(name)
    return ("", "") if match is None else (match["study"], match["identity"])


def _idles(cluster: Cluster) -> bool:
    return cluster.number is None and not cluster.ends and cluster.up


class Clusters:
    """The ledger of one run root: a small file per cluster, and a lock for those who choose among them."""

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
        found = (files.read_whole(str(path)) for path in sorted(self._folder.glob("*.json")))
        return [Cluster(**record) for record in found if record is not None]

    def get(self, name: str) -> Cluster | None:
        """One of them."""
        record = files.read_whole(self._path(name))
        return None if record is None else Cluster(**record)

    def note(self, cluster: Cluster) -> None:
        """Write a cluster down as it is."""
        with self._locked():
            self._written(cluster)

    def claim(self, wanted: Cluster, most_idle_s: float) -> Cluster:
        """An idle warm cluster of the same study and shape, from now on that trial's; or a new one, written down.

        One that the trial took before a crash is still its own.
        """
        with self._locked():
            for cluster in self.all():
                if (cluster.identity, cluster.number) == (wanted.identity, wanted.number) and not cluster.ends:
                    return cluster
            for cluster in self.all():
                same = (cluster.identity, cluster.shape) == (wanted.identity, wanted.shape)
                if _idles(cluster) and same and wanted.accounted_s - cluster.idle_since_s < most_idle_s:
                    return self._written(replace(cluster, number=wanted.number))
            return self._written(wanted)

    def release(self, name: str, now_s: float) -> None:
        """Its run has ended, it waits for another one."""
        self.change(name, number=None, idle_since_s=now_s)

    def begin_anew(self, name: str, now_s: float) -> None:
        """It is about to be started, perhaps again: what was idle of a former life is owed, from now on it counts anew."""
        with self._locked():
            cluster = self.get(name)
            if cluster is None:
                return
            if cluster.up:
                self._owe(cluster, now_s)
            self._written(replace(cluster, up=False, accounted_s=now_s))

    def change(self, name: str, **changes: Any) -> Cluster | None:
        """Write something new down of a cluster that is still in the ledger."""
        with self._locked():
            cluster = self.get(name)
            return None if cluster is None else self._written(replace(cluster, **changes))

    @contextlib.contextmanager
    def paying(self, identity: str, name: str, now_s: float) -> Iterator[tuple[float, float]]:
        """What a run that ends now has to pay: seconds of its own cluster, and dollars for a study's idle ones, paid by nobody yet.

        They count as paid when the block ends well, that is, when the run's end has been written down.
        """
        with self._locked():
            due = [one for one in self.all() if one.identity == identity and (one.name == name or _idles(one))]
            passed = {one.name: max(now_s - one.accounted_s, 0.0) for one in due}
            idle_usd = sum(passed[one.name] * one.price_per_s for one in due if one.name != name)
            yield passed.get(name, 0.0), idle_usd + self._owed(identity)
            for one in due:
                self._written(replace(one, accounted_s=max(now_s, one.accounted_s)))
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._debts(identity))

    def retire(self, name: str, idle_until_s: float) -> bool:
        """An idle cluster is to be ended: its idle time is owed by the study's next run. False when somebody uses it after all."""
        with self._locked():
            cluster = self.get(name)
            if cluster is None or cluster.number is not None:
                return False
            if _idles(cluster):
                self._owe(cluster, idle_until_s)
            self._written(replace(cluster, ends=True))
            return True

    def _owe(self, cluster: Cluster, until_s: float) -> None:
        owed = self._owed(cluster.identity) + max(until_s - cluster.accounted_s, 0.0) * cluster.price_per_s
        files.write_whole(self._debts(cluster.identity), {"usd": owed})

    def _owed(self, identity: str) -> float:
        return float((files.read_whole(self._debts(identity)) or {"usd": 0.0})["usd"])

    def _debts(self, identity: str) -> str:
        return str(self._folder / f"idle-{identity or 'nobody'}.owed")

    def strike_out(self, name: str) -> None:
        """It is known to be gone."""
        with self._locked(), contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _written(self, cluster: Cluster) -> Cluster:
        files.write_whole(self._path(cluster.name), asdict(cluster))
        files.make_durable(self._path(cluster.name))
        return cluster

    def _path(self, name: str) -> str:
        return str(self._folder / f"{name}.json")
