"""One run on its way through SkyPilot: asked for, submitted, ended.

Nothing here waits: each step looks at what has come in and asks for the next thing.

What must survive us is in `sky.json` in the run's directory. After a crash, SkyPilot is asked what became of the cluster and the job.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executor.directory import failed, read_request
from lynceus.executor.skypilot.bridge import Bridge, SkyError
from lynceus.executor.skypilot.clusters import Cluster, Clusters
from lynceus.executor.skypilot.options import SkyPilotOptions
from lynceus.executor.skypilot.payload import SENT, last_words, trouble, unpack
from lynceus.executor.skypilot.sentences import Meaning, meaning
from lynceus.supervisor import files

HANDLE = "sky.json"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 60.0
_CANCEL_S = 300.0
"""A job that was cancelled and of which nothing is heard for so long is settled without its last words."""
_AGAIN_S = 5.0
_MOST_SILENT = 3
_SEEN_S = 15.0
"""Seconds between two notes that a run is still there."""


@dataclass(frozen=True, slots=True)
class Handle:
    """What is written down of a run's way."""

    cluster: str
    warm: bool
    """Whether the cluster was running before."""
    job: int | None = None
    """SkyPilot's number of the job on its cluster, once that is known."""
    asked_s: float = 0.0
    """When the cluster or the job was asked for last, seconds since the epoch."""
    submitted_s: float = 0.0
    """When SkyPilot had taken the job."""
    seen_s: float = 0.0
    """When the job was last known to be on its cluster."""


@dataclass(frozen=True)
class Means:
    """What following a run takes."""

    bridge: Bridge
    clusters: Clusters
    options: SkyPilotOptions
    task: Callable[[Path], dict[str, Any]]
    """The task of a run, packed anew."""
    spot: Callable[[Path], bool]

    @property
    def server(self) -> str:
        """For sentences."""
        return f" at {self.options.api_server}" if self.options.api_server else ""


class Following:
    """Looks after one run."""

    def __init__(self, ticket: Path, means: Means) -> None:
        self._ticket, self._means = ticket, means
        found = files.read_whole(str(ticket / HANDLE))
        self.handle = None if found is None else Handle(**found)
        self._doing = "watch" if self.handle is not None and self.handle.job is not None else "find"
        """What is asked of SkyPilot; after a crash we first have to find out what was."""
        self._future: Future[Any] | None = None
        self._not_before = self._trouble_since = 0.0
        self._pauses = 0
        self._cancelled_s = 0.0
        self._silent = 0
        """How often a job that had ended was found without a word of its node."""
        self._exists = False
        """Whether SkyPilot said that the cluster is there, in whatever state."""

    @property
    def job_name(self) -> str:
        """Finds the job again on its cluster."""
        return f"lynceus-{read_request(str(self._ticket))['run']}"

    def begin(self, wanted: Cluster) -> None:
        """Take a warm cluster or write a new one down; from then on the run can be found."""
        cluster = self._means.clusters.claim(wanted, self._means.options.keep_warm)
        self._keep(Handle(cluster.name, cluster.up))
        self._doing = "launch"

    def step(self) -> dict[str, Any] | None:
        """How the run ended, if it has."""
        if (self._ticket / files.CANCEL).exists() and (told := self._cancel()) is not None:
            return told
        if self._future is None:
            if time.time() >= self._not_before:
                self._ask()
            return None
        if not self._future.done():
            if self._doing == "watch" and time.time() - self._known().seen_s > _SEEN_S:
                self._keep(replace(self._known(), seen_s=time.time()))
            return None
        future, self._future = self._future, None
        try:
            answer = future.result()
        except SkyError as error:
            return self._troubled(meaning(error, self._means.server))
        if self._doing != "find":  # that one only shows that SkyPilot answers
            self._trouble_since, self._pauses = 0.0, 0
        return {"launch": self._launched, "find": self._found, "watch": self._watched}[self._doing](answer)

    def _ask(self) -> None:
        handle, bridge = self._known(), self._means.bridge
        if self._doing == "find":
            self._future = bridge.ask("find", cluster=handle.cluster, name=self.job_name)
        elif self._doing == "watch":
            self._future = bridge.ask("watch", cluster=handle.cluster, job=handle.job)
        else:
            self._keep(replace(handle, asked_s=time.time()))
            if not handle.warm and not self._exists:
                self._means.clusters.begin_anew(handle.cluster, time.time())
            self._future = bridge.ask(
                "launch",
                cluster=handle.cluster,
                task={**self._means.task(self._ticket), "name": self.job_name},
                idle_minutes=self._means.options.idle_minutes,
                warm=handle.warm,
            )

    def _launched(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        shutil.rmtree(self._ticket / SENT, ignore_errors=True)
        self._means.clusters.change(self._known().cluster, up=True)
        self._keep(replace(self._known(), job=answer["job"], submitted_s=time.time(), seen_s=time.time()))
        self._doing = "watch"
        return None

    def _found(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        """After a crash: go on where we were. A job that SkyPilot has twice runs once, its node sees to that."""
        if answer["launching"]:
            self._not_before = time.time() + _AGAIN_S
        elif answer.get("job") is not None:
            return self._launched(answer)
        elif answer["status"] == "PAST":
            return self._vanished("the cluster is gone")
        else:
            self._exists = bool(answer["status"])
            self._keep(replace(self._known(), warm=self._known().warm and answer["status"] == "UP"))
            self._doing = "launch"
        return None

    def _watched(self, answer: dict[str, Any]) -> dict[str, Any] | None:
        log, status = answer["log"], answer["status"]
        told = unpack(log, self._ticket)
        if told is not None:
            return {**told, "reason": "user"} if self._cancelled_s and told["end"] == "failed" else told
        (self._ticket / "sky.log").write_text(log, encoding="utf-8")
        self._silent += status == "SUCCEEDED"
        if why := trouble(log):
            return failed(why)
        if status == "CANCELLED" or self._cancelled_s:
            return self._ended_on_request()
        if status.startswith("FAILED"):
            words = last_words(log)
            return failed(f"SkyPilot says {status}" + (f": {words}" if words else ""))
        if self._silent >= _MOST_SILENT:
            return failed("the job has ended, but SkyPilot's log of it does not hold what the node told")
        self._keep(replace(self._known(), seen_s=time.time()))
        self._not_before = time.time() + _AGAIN_S  # the stream broke, the job goes on
        return None

    def _troubled(self, what: Meaning) -> dict[str, Any] | None:
        """Wait, start again, give up: a run that may still be running is never given up."""
        now = time.time()
        if self._cancelled_s and self._doing != "watch":
            return self._ended_on_request()
        if what.vanished and not what.passes and self._doing == "launch" and self._known().warm:
            self._keep(replace(self._known(), warm=False))  # it took itself down before we came
            return None
        self._trouble_since = self._trouble_since or now
        if not what.passes or now - self._trouble_since >= self._means.options.patience:
            return self._given_up(what)
        self._not_before = now + min(_FIRST_PAUSE_S * 2**self._pauses, _LONGEST_PAUSE_S)
        self._pauses += 1
        if self._doing == "launch" and what.unknown:
            self._doing = "find"  # whatever came of it
        return None

    def _given_up(self, what: Meaning) -> dict[str, Any]:
        if what.vanished:
            return self._vanished(what.sentence)
        if what.unknown or self._doing == "watch":
            self._trouble_since = 0.0
            raise InfrastructureError(f"{what.sentence}; what runs goes on, 'lynceus resume' finds it")
        return failed(what.sentence, reason="job" if what.blames_configuration else "infra")

    def _vanished(self, sentence: str) -> dict[str, Any]:
        handle = self._known()
        seconds = max(handle.seen_s - handle.submitted_s, 0.0) if handle.job is not None else 0.0
        preempted = self._means.spot(self._ticket)
        detail = f"the cloud took the machine back ({sentence})" if preempted else sentence
        told = failed(
            f"{detail}; charged up to when it was last seen",
            reason="preempted" if preempted else "infra",
            seconds=seconds,
        )
        return {**told, "until_s": max(handle.seen_s, handle.asked_s)}

    def _cancel(self) -> dict[str, Any] | None:
        """Ask SkyPilot to end it; whoever does not answer for long is settled anyway."""
        now = time.time()
        if self._cancelled_s:
            return self._ended_on_request() if now - self._cancelled_s > _CANCEL_S else None
        self._cancelled_s = now
        handle = self.handle
        if handle is not None and handle.job is not None:
            self._means.bridge.ask("cancel", cluster=handle.cluster, job=handle.job)
            return None
        return self._ended_on_request()

    def _ended_on_request(self) -> dict[str, Any]:
        return failed("ended on request", reason="user")

    def _keep(self, handle: Handle) -> None:
        self.handle = handle
        files.write_whole(str(self._ticket / HANDLE), asdict(handle))

    def _known(self) -> Handle:
        assert self.handle is not None
        return self.handle
