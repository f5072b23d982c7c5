"""What one host keeps of recurring jobs, so that it goes on without the storage.

The last version that it saw is served while the storage is away. A run is written down before it starts and when it ends, and forgotten
only once the storage has it: whatever is killed in between, the next command of this host finds it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.supervisor import files
from lynceus.prices.store import home
from lynceus.storage.sql.address import parse_address
from lynceus.storage.worker import lives, myself

_VERSION = "version.json"
_RUNS = "runs"


@dataclass(frozen=True)
class SeenVersion:
    """The version in production when this host last asked."""

    job: str
    identity: str
    number: int
    params: Mapping[str, Any]
    document: Mapping[str, Any]
    """The job file, as a study stores it."""
    seen_s: float
    """Seconds since the epoch, by this host's clock."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What `lynceus config` prints, by format: nothing need be computed again while the version stays."""


@dataclass(frozen=True)
class HostRun:
    """A run that this host began and the storage does not know yet."""

    run_id: str
    facts: Mapping[str, Any]
    """The production run as JSON, see `lynceus.storage.job_serialization`; complete once it `ended`."""
    ended: bool
    worker: str = field(default_factory=myself)
    """The process that looks after it."""
    ticket: str | None = None
    """How the executor finds it; None before it was launched, and for runs made elsewhere."""
    extra: tuple[str, ...] = ()
    """Arguments that were appended to the command."""

    @property
    def abandoned(self) -> bool:
        """Whether the process that looked after it is gone."""
        return lives(self.worker) is False


class HostState:
    """The files of one host about the jobs of one storage."""

    def __init__(self, storage_url: str, folder: Path | None = None) -> None:
        address = parse_address(storage_url)
        # A password may change without making it another storage; a file is known by its whole path.
        shown = address.shown if address.file is None else str(Path(address.file).resolve())
        digest = hashlib.sha256(shown.encode()).hexdigest()[:16]
        self._folder = (home() if folder is None else folder) / "jobs" / digest

    def remember(self, seen: SeenVersion) -> None:
        """Keep the version that is in production. A host that cannot write serves jobs all the same, while the storage answers."""
        with contextlib.suppress(OSError):
            self._write(self.folder(seen.job) / _VERSION, asdict(seen))

    def last_seen(self, job: str) -> SeenVersion | None:
        """The version that was in production when this host last asked; None if it never did."""
        found = files.read_json(str(self.folder(job) / _VERSION))
        try:
            return None if found is None else SeenVersion(**found)
        except TypeError:  # written by another version of Lynceus
            return None

    def forget(self, job: str) -> None:
        """The job no longer exists."""
        with contextlib.suppress(OSError):
            (self.folder(job) / _VERSION).unlink()

    def keep_run(self, job: str, run: HostRun) -> None:
        """Write a run down, or what is new about it. An error if that is impossible: a run that nobody knows of must not start."""
        path = self._run(job, run.run_id)
        try:
            self._write(path, asdict(run))
            files.sync(str(path))
        except OSError as error:
            raise InfrastructureError(
                f"job {job!r}: {path} cannot be written ({error.strerror}); check permissions and free space, then try again."
            ) from None

    def runs(self, job: str) -> list[HostRun]:
        """Runs that the storage does not know yet, oldest first."""
        found = []
        for path in sorted((self.folder(job) / _RUNS).glob("*.json")):
            record = files.read_json(str(path))
            with contextlib.suppress(TypeError, KeyError):  # damaged by a power failure, or of another version
                if record is not None:
                    found.append(replace(HostRun(**record), extra=tuple(record["extra"])))
        return sorted(found, key=lambda run: float(run.facts.get("started_s") or 0.0))

    def forget_run(self, job: str, run_id: str) -> None:
        """The storage has it."""
        with contextlib.suppress(OSError):
            self._run(job, run_id).unlink()

    def set_aside_run(self, job: str, run_id: str) -> None:
        """The storage refuses it: it is tried no more, and its file stays for whoever wants to know why."""
        path = self._run(job, run_id)
        with contextlib.suppress(OSError):
            path.rename(path.with_suffix(".refused"))

    def folder(self, job: str) -> Path:
        """Where this host keeps what it knows of a job."""
        readable = re.sub(r"[^\w.\-]", "_", job)[:60]
        return self._folder / f"{readable}-{hashlib.sha256(job.encode()).hexdigest()[:8]}"

    def _run(self, job: str, run_id: str) -> Path:
        return self.folder(job) / _RUNS / f"{hashlib.sha256(run_id.encode()).hexdigest()[:32]}.json"

    def _write(self, path: Path, record: Mapping[str, Any]) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(path.parent, 0o700)
        files.write_atomically(str(path), record)
