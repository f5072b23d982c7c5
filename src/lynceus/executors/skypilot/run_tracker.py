"""One run on its way through SkyPilot: launched, submitted, ended.

Nothing here waits: each step looks at the answers that have arrived and makes the next request.

What must survive a crash is in `sky.json` in the run directory. After a crash, SkyPilot is asked for the state of the cluster and the job.
"""

from __future__ import annotations

import enum
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.run_directory import read_request
from lynceus.executors.skypilot.bridge import UNREADABLE, Bridge, SkyError
from lynceus.executors.skypilot.clusters import Cluster, Clusters
from lynceus.executors.skypilot.messages import Diagnosis, diagnose
from lynceus.executors.skypilot.options import SkyPilotOptions
from lynceus.executors.skypilot.payload import SENT, last_line, problem_in, unpack
from lynceus.executors.skypilot.server_watch import ServerWatch
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, not_started
from lynceus.trial.text import clean_text

HANDLE = "sky.json"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 60.0
_CANCEL_S = 300.0
"""A cancelled job that has not ended after this time is settled without its results."""
_RETRY_S = 5.0
_MAX_INCOMPLETE = 3
_SEEN_S = 15.0
"""Seconds between two notes that a run still exists."""
_LOG_CHARS = 1 << 20
"""How much of a log is kept that has no results."""


class Phase(enum.Enum):
    """What SkyPilot is asked next."""

    FIND = enum.auto()
    """After a crash: whether the cluster and the job exist."""
    LAUNCH = enum.auto()
    WATCH = enum.auto()


@dataclass(frozen=True, slots=True)
class Handle:
    """The contents of `sky.json`. Newer versions read the files of older ones, so fields must not be renamed."""

    cluster: str
    warm: bool
    """Whether the cluster was running before."""
    job: int | None = None
    """The id of the job on its cluster; None before it is submitted."""
    asked_s: float = 0.0
    """When the cluster or the job was last requested, seconds since the epoch."""
    submitted_s: float = 0.0
    """When SkyPilot had accepted the job, seconds since the epoch."""
    seen_s: float = 0.0
    """When the job was last known to be on its cluster, seconds since the epoch."""


@dataclass(frozen=True)
class TrackerContext:
    """What all trackers of an executor share."""

    bridge: Bridge
    watch: ServerWatch
    clusters: Clusters
    options: SkyPilotOptions
    task: Callable[[Path], dict[str, Any]]
    """Packs the task of a run."""
    uses_spot: Callable[[Path], bool]

    @property
    def server(self) -> str:
        """The API server's address for messages."""
        return f" at {self.options.api_server}" if self.options.api_server else ""


class RunTracker:
    """Takes one run from its launch to its end."""

    def __init__(self, ticket: Path, context: TrackerContext) -> None:
        self._ticket, self._context = ticket, context
        found = files.read_json(str(ticket / HANDLE))
        self._handle = None if found is None else Handle(**found)
        self._phase = Phase.WATCH if self._handle is not None and self._handle.job is not None else Phase.FIND
        self._future: Future[Any] | None = None
        self._not_before = self._problem_since = 0.0
        self._pauses = 0
        self._cancelled_s = 0.0
        self._cancelling: Future[Any] | None = None
        self._cancel_again_s = 0.0
        self._incomplete = 0
        """How often the log of an ended job lacked the results of its node."""
        self._cluster_exists = False
        """Whether SkyPilot knows the cluster, in whatever state."""

    @property
    def handle(self) -> Handle | None:
        """Where the run is; None before `begin`."""
        return self._handle

    @property
    def job_name(self) -> str:
        """By which the job is found again on its cluster."""
        return f"lynceus-{read_request(str(self._ticket))['run']}"

    def begin(self, wanted: Cluster) -> None:
        """Claim a warm cluster or note a new one; from then on the run can be found again."""
        cluster = self._context.clusters.claim(wanted, self._context.options.keep_warm)
        self._write_handle(Handle(cluster.name, cluster.up))
        self._phase = Phase.LAUNCH

    def step(self) -> OutcomeRecord | None:
        """Take the next step; returns how the run ended, None if it has not."""
        if (self._ticket / files.CANCEL).exists() and (record := self._cancel()) is not None:
            return record
        if self._future is None:
            if time.time() >= self._not_before:
                self._request()
            return None
        if not self._future.done():
            unseen_s = time.time() - self._known().seen_s
            if self._phase is Phase.WATCH and unseen_s > _SEEN_S and self._context.watch.answers:
                self._write_handle(replace(self._known(), seen_s=time.time()))
            return None
        future, self._future = self._future, None
        try:
            answer = _checked(self._phase, future.result())
        except SkyError as error:
            self._context.watch.failed(error)
            return self._handle_error(diagnose(error, self._context.server))
        if self._phase is not Phase.FIND:  # an answer to that shows only that SkyPilot answers
            self._problem_since, self._pauses = 0.0, 0
        handlers = {Phase.LAUNCH: self._launched, Phase.FIND: self._found, Phase.WATCH: self._watched}
        return handlers[self._phase](answer)

    def _request(self) -> None:
        handle, bridge = self._known(), self._context.bridge
        if self._phase is Phase.FIND:
            self._future = bridge.call("find", cluster=handle.cluster, name=self.job_name)
        elif self._phase is Phase.WATCH:
            self._future = bridge.call("watch", cluster=handle.cluster, job=handle.job)
        else:
            self._write_handle(replace(handle, asked_s=time.time()))
            if not handle.warm and not self._cluster_exists:
                self._context.clusters.restart_accounting(handle.cluster, time.time())
            self._future = bridge.call(
                "launch",
                cluster=handle.cluster,
                task={**self._context.task(self._ticket), "name": self.job_name},
                idle_minutes=self._context.options.idle_minutes,
                warm=handle.warm,
            )

    def _launched(self, answer: dict[str, Any]) -> OutcomeRecord | None:
        shutil.rmtree(self._ticket / SENT, ignore_errors=True)
        self._context.clusters.change(self._known().cluster, up=True)
        self._write_handle(replace(self._known(), job=answer["job"], submitted_s=time.time(), seen_s=time.time()))
        self._phase = Phase.WATCH
        return None

    def _found(self, answer: dict[str, Any]) -> OutcomeRecord | None:
        """After a crash: continue where the run was. If SkyPilot has its job twice, the node runs it only once."""
        if self._cancelled_s and answer.get("job") is None:
            nothing = not answer["launching"] and not answer["status"]
            return not_started("cancelled before it started", reason="user") if nothing else _cancelled()
        if answer["launching"]:
            self._not_before = time.time() + _RETRY_S
        elif answer.get("job") is not None:
            return self._launched(answer)
        elif answer["status"] == "PAST":
            return self._cluster_lost("the cluster no longer exists")
        else:
            self._cluster_exists = bool(answer["status"])
            self._write_handle(replace(self._known(), warm=self._known().warm and answer["status"] == "UP"))
            self._phase = Phase.LAUNCH
        return None

    def _watched(self, answer: dict[str, Any]) -> OutcomeRecord | None:
        log, status = answer["log"], answer["status"]
        record = unpack(log, self._ticket)
        if record is not None:
            return {**record, "reason": "user"} if self._cancelled_s and record["end"] == "failed" else record
        (self._ticket / "sky.log").write_text(clean_text(log[-_LOG_CHARS:]), encoding="utf-8")
        self._incomplete += status == "SUCCEEDED"
        if problem := problem_in(log):
            return failed(problem)
        if status == "CANCELLED" or self._cancelled_s:
            return _cancelled()
        if status.startswith("FAILED"):
            line = last_line(log)
            return failed(f"SkyPilot reports {status}" + (f": {line}" if line else ""))
        if self._incomplete >= _MAX_INCOMPLETE:
            return failed("the job has ended, but SkyPilot's log does not contain its results")
        self._write_handle(replace(self._known(), seen_s=time.time()))
        self._not_before = time.time() + _RETRY_S  # the log stream broke, the job continues
        return None

    def _handle_error(self, what: Diagnosis) -> OutcomeRecord | None:
        """Wait, start again, or give up. A run that may still be running is never given up."""
        now = time.time()
        if self._cancelled_s and self._phase is not Phase.WATCH and not what.state_unknown:
            return _cancelled()
        if what.cluster_gone and not what.transient and self._phase is Phase.LAUNCH and self._known().warm:
            self._write_handle(replace(self._known(), warm=False))  # it took itself down before we used it
            return None
        if what.disk_full and self._phase is Phase.LAUNCH:
            return failed(what.sentence)  # another machine is needed; this one is taken down
        self._problem_since = self._problem_since or now
        if not what.transient or now - self._problem_since >= self._context.options.patience:
            return self._give_up(what)
        self._not_before = now + min(_FIRST_PAUSE_S * 2**self._pauses, _LONGEST_PAUSE_S)
        self._pauses += 1
        if self._phase is Phase.LAUNCH and what.state_unknown:
            self._phase = Phase.FIND  # the launch may have succeeded
        return None

    def _give_up(self, what: Diagnosis) -> OutcomeRecord:
        if what.cluster_gone:
            return self._cluster_lost(what.sentence)
        if what.state_unknown or self._phase is Phase.WATCH:
            self._problem_since = 0.0
            raise InfrastructureError(f"{what.sentence}; runs continue, 'lynceus resume' finds them")
        return failed(what.sentence, reason="job" if what.blames_configuration else "infra")

    def _cluster_lost(self, sentence: str) -> OutcomeRecord:
        handle = self._known()
        seconds = max(handle.seen_s - handle.submitted_s, 0.0) if handle.job is not None else 0.0
        preempted = self._context.uses_spot(self._ticket)
        detail = f"the machine was preempted ({sentence})" if preempted else sentence
        record = failed(
            f"{detail}; charged up to when it was last seen",
            reason="preempted" if preempted else "infra",
            seconds=seconds,
        )
        return {**record, "until_s": max(handle.seen_s, handle.asked_s)}

    def _cancel(self) -> OutcomeRecord | None:
        """Ask SkyPilot to cancel the job; if it does not do so for long, the run is settled anyway."""
        handle, now = self._known(), time.time()
        self._cancelled_s = self._cancelled_s or now
        if handle.job is not None:
            self._cancel_job(handle.cluster, handle.job)
            return _cancelled() if now - self._cancelled_s > _CANCEL_S and self._context.watch.answers else None
        if self._phase is Phase.LAUNCH and self._future is None:  # nothing was requested, or no machine was to be had
            return not_started("cancelled before it started", reason="user")
        # A server that does not answer may have received the request: whether there is a machine to pay is known later.
        return _cancelled() if self._phase is Phase.LAUNCH and self._context.watch.answers else None

    def _cancel_job(self, cluster: str, job: int) -> None:
        """Ask once; and again, from time to time, if that failed."""
        asked = self._cancelling
        if asked is not None and (not asked.done() or asked.exception() is None or time.time() < self._cancel_again_s):
            return
        self._cancelling = self._context.bridge.call("cancel", cluster=cluster, job=job)
        self._cancel_again_s = time.time() + _RETRY_S

    def _write_handle(self, handle: Handle) -> None:
        self._handle = handle
        files.write_atomically(str(self._ticket / HANDLE), asdict(handle))

    def _known(self) -> Handle:
        assert self._handle is not None
        return self._handle


def _cancelled() -> OutcomeRecord:
    return failed("cancelled", reason="user")


def _checked(phase: Phase, answer: Any) -> dict[str, Any]:
    """An answer that has what its phase needs; `SkyError` for anything else, which must not settle a run."""
    found: dict[str, Any] = answer if isinstance(answer, dict) else {}
    job, status = found.get("job"), found.get("status")
    if phase is Phase.LAUNCH:
        complete = isinstance(job, int)
    elif phase is Phase.WATCH:
        complete = isinstance(found.get("log"), str) and isinstance(status, str)
    else:
        complete = found.get("launching") is True or (isinstance(status, str) and isinstance(job, int | None))
    if not complete:
        raise SkyError([UNREADABLE], str(answer)[:100])
    return found
