"""Runs on a Ray cluster, from the side of Lynceus: what was asked for, what came of it, and what is left to clear away."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus.executor.command import LocalJob, environment
from lynceus.executor.directory import (
    SHIPPED,
    directories,
    directory_of,
    end_here,
    failed,
    kept,
    outcome,
    prepare,
    read_request,
    settle,
)
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.on_ray.line import AwayError, Line
from lynceus.executor.on_ray.names import named, run_name, study_name
from lynceus.executor.on_ray.options import RayOptions, bundles, check
from lynceus.executor.on_ray.sentences import no_capacity, vanished
from lynceus.executor.on_ray.shipping import pack
from lynceus.executor.plugin import Plugin, Setting
from lynceus.executor.shape import Shape
from lynceus.history import Outcome
from lynceus.problem import Problem
from lynceus.supervisor import files
from lynceus.supervisor.bundle import runner, runner_name
from lynceus.supervisor.output import read_output

_NOTES = "ray.json"
"""There as long as something of the run may be on the cluster."""
_MOST_STARTS = 5
_FORCE_S = 30.0
"""A job that has not ended so long after its grace period is ended with its keeper."""
_ON_CLUSTER, _SHIPPED_FOLDER = "Ray actor", "folder on Ray"


class RayExecutor:
    """Runs a job on the nodes of an existing Ray cluster."""

    def __init__(
        self,
        problem: Problem,
        job: LocalJob,
        root: str | Path = ".lynceus",
        options: RayOptions | None = None,
        shape: Callable[[int], Shape] | None = None,
        line: Line | None = None,
    ) -> None:
        """`line` is a connection that several executors share; whoever made it closes it."""
        self._problem, self._job = problem, job
        self._root = Path(root).resolve()
        self._options = RayOptions() if options is None else options
        self._shape = shape
        self._line = Line(self._options.address) if line is None else line
        self._owns_line = line is None
        self._waiting: dict[str, dict[str, Any]] = {}
        self._packed: tuple[str, bytes] | None = None
        self._studies: set[str] = set()
        self._starts: dict[str, int] = {}
        self._infeasible_s: dict[str, float] = {}
        self._cancelled_s: dict[str, float] = {}

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the cluster; runs go on. What was shipped for studies that have none there any more is removed."""
        if self._line.joined:
            with contextlib.suppress(AwayError):
                for study in self._studies:
                    self._line.ask("unship", name=study)
        if self._owns_line:
            self._line.close()

    # What every executor promises --------------------------------------------------------------------------------------

    def launch(self, request: Request) -> str:
        """Write down what is to run; hand it to the cluster now if it can be reached, otherwise when it can."""
        each = bundles(self._options, self._problem.space, request.row, self._shape)[0]
        directory = directory_of(self._root, request)
        memory = int(each["memory"]) if "memory" in each else None
        prepare(directory, request, self._job, shape=Shape(each.get("CPU"), memory) if self._options.limit else None)
        ticket = str(directory)
        if kept(ticket) is None:
            self._waiting[ticket] = read_request(ticket)
            with contextlib.suppress(AwayError):
                self._hand_over_waiting()
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended: what its supervisor told, or, if its node is gone, what the cluster last heard of it."""
        request = read_request(ticket)
        told = kept(ticket)
        try:
            self._hand_over_waiting()
            told = self._pursued(ticket, request) if told is None else told
            if told is not None:
                self._clear(ticket, request)
        except AwayError as error:
            if told is None and self._line.away_s > self._options.patience:
                raise InfrastructureError(
                    f"the Ray cluster {self._options.address} cannot be reached: {error}; what runs there goes on and is kept in mind; "
                    "resume the study when the cluster is back."
                ) from None
        return None if told is None else outcome(self._problem, request, told)

    def cancel(self, ticket: str) -> None:
        """End the run, or see to it that it never begins."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()
            with contextlib.suppress(AwayError):
                if kept(ticket) is None:
                    self._cancel(ticket, read_request(ticket))

    def output(self, ticket: str, stream: str = files.STDOUT) -> bytes:
        """What a run has written to `stdout` or `stderr`, as far as it has come to us."""
        return read_output(os.path.join(ticket, stream))

    def belongings(self) -> list[Belonging]:
        """Run directories here, and everything of ours on the cluster: nodes that are set aside, keepers, notes, shipped folders."""
        found = directories(self._root)
        try:
            for name, detail in self._line.ask_patiently("names").items():
                found.append(Belonging(_ON_CLUSTER, name, *named(name), detail))
            for key in self._line.ask_patiently("shipped"):
                found.append(Belonging(_SHIPPED_FOLDER, key, *named(key)))
        except AwayError as error:
            raise InfrastructureError(f"the Ray cluster {self._options.address} cannot be reached: {error}") from None
        return found

    def end(self, belonging: Belonging) -> None:
        """End what is on the cluster, or remove a directory."""
        if belonging.kind == _ON_CLUSTER:
            self._line.ask_patiently("clear", name=belonging.name)
        elif belonging.kind == _SHIPPED_FOLDER:
            self._line.ask_patiently("forget", name=belonging.name)
        else:
            end_here(belonging)

    # The way of one run ------------------------------------------------------------------------------------------------

    def _pursued(self, ticket: str, request: dict[str, Any]) -> dict[str, Any] | None:
        name = run_name(request)
        if Path(ticket, files.CANCEL).exists() and (told := self._cancel(ticket, request)) is not None:
            return told
        found = self._line.ask("look", name=name)
        state = found["state"]
        if state == "ended":
            for stream, text in found["output"].items():
                _write(Path(ticket, stream), text)
            return settle(ticket, found["told"])
        if state == "vanished":
            return settle(ticket, vanished(found, cancelled=Path(ticket, files.CANCEL).exists()))
        if state == "running":
            self._infeasible_s.pop(name, None)
            self._watched(ticket, name, found)
        elif state == "absent":
            return self._begun_again(ticket, request, on_cluster=found["known"])
        elif found["infeasible"]:
            return self._no_room(ticket, request)
        return None

    def _hand_over_waiting(self) -> None:
        """All runs that were launched while the cluster could not be reached: none must wait for questions about itself."""
        for ticket, request in list(self._waiting.items()):
            self._line.ask("look", name=run_name(request))  # raises before anything is prepared
            if kept(ticket) is None and os.path.exists(ticket) and not Path(ticket, files.CANCEL).exists():
                self._hand_over(ticket, request)
            del self._waiting[ticket]

    def _hand_over(self, ticket: str, request: dict[str, Any]) -> None:
        """Everything that the cluster needs to run it. Secrets are in one value of their own that only the keeper gets."""
        name = run_name(request)
        parts = {one: Path(ticket, one).read_bytes() for one in SHIPPED if Path(ticket, one).exists()}
        each = bundles(self._options, self._problem.space, request["row"], self._shape)
        parcel = {
            "record": request,
            "files": {one: base64.b64encode(data).decode() for one, data in parts.items()},
            "runner": base64.b64encode(runner()).decode(),
            "runner_name": runner_name(),
            "workdir": self._shipped(request) if self._options.workdir == "ship" else None,
            "folder": self._options.node_folder,
        }
        files.write_whole(os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": False})
        self._line.ask(
            "launch",
            name=name,
            order={
                "bundles": each,
                "each_node": self._options.each_node,
                "job_uses_ray": self._options.job_uses_ray,
            },
            parcel=parcel,
            private={
                "environment": environment(self._job, request, base={}),
                "secrets": list(self._job.secrets.values()),
            },
        )
        files.write_whole(os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": True})
        self._starts[name] = self._starts.get(name, 0) + 1

    def _shipped(self, request: dict[str, Any]) -> str:
        """The key under which the cluster holds the working directory."""
        if self._packed is None:
            self._line.ask("shipped")  # nobody packs for a cluster that is away
            self._packed = pack(self._job.workdir.resolve(), self._options.exclude, without=self._root)
        digest, packed = self._packed
        study = study_name(request)
        key = f"{study}/folder-{digest}"
        if not self._line.ask("ship", name=key, packed=None):
            self._line.ask("ship", name=key, packed=base64.b64encode(packed).decode())
        self._studies.add(study)
        return key

    def _begun_again(self, ticket: str, request: dict[str, Any], *, on_cluster: bool) -> dict[str, Any] | None:
        """Nothing runs and nothing ever ran, as far as the cluster knows: hand it over, unless the cluster itself is a new one."""
        notes = files.read_whole(os.path.join(ticket, _NOTES)) or {}
        if notes.get("placed") and not on_cluster:
            return settle(
                ticket,
                failed(
                    "the Ray cluster was restarted and knows nothing of the run; charged up to its last sign of life",
                    seconds=float(notes.get("seconds", 0.0)),
                ),
            )
        if self._starts.get(run_name(request), 0) >= _MOST_STARTS:
            return settle(ticket, failed(f"its keeper died before the job began, {_MOST_STARTS} times"))
        self._hand_over(ticket, request)
        return None

    def _watched(self, ticket: str, name: str, found: dict[str, Any]) -> None:
        """Keep what is seen of a running job: for people who watch, and for the case that the cluster forgets everything."""
        for stream, text in found["output"].items():
            if text:
                with open(os.path.join(ticket, stream), "ab") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        found["output"] = {}
        notes = files.read_whole(os.path.join(ticket, _NOTES)) or {}
        if found["seconds"] > notes.get("seconds", 0.0):
            files.write_whole(
                os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": True, "seconds": found["seconds"]}
            )

    def _no_room(self, ticket: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """No node is large enough. A cluster that grows may have one soon; one that does not is waited for only so long."""
        name = run_name(request)
        since = self._infeasible_s.setdefault(name, time.monotonic())
        if time.monotonic() - since < self._options.capacity_wait:
            return None
        if self._line.ask("cancel", name=name)["state"] != "never":
            return None
        each = bundles(self._options, self._problem.space, request["row"], self._shape)
        offers = self._line.ask("offers")
        return settle(ticket, failed(no_capacity(each, offers, self._options.capacity_wait)))

    def _cancel(self, ticket: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask once, then wait for the grace period; then end the keeper, and the job with it."""
        name = run_name(request)
        now = time.monotonic()
        if name not in self._cancelled_s:
            if self._line.ask("cancel", name=name)["state"] == "never":
                return settle(ticket, failed("ended on request before it began", reason="user"))
            self._cancelled_s[name] = now
        elif now - self._cancelled_s[name] > self._job.grace_s + _FORCE_S:
            found = self._line.ask("look", name=name)
            if found["state"] == "running":
                self._line.ask("clear", name=name)
                return settle(ticket, failed("ended on request, by force", reason="user", seconds=found["seconds"]))
        return None

    def _clear(self, ticket: str, request: dict[str, Any]) -> None:
        """It is settled here: the cluster may forget it."""
        path = os.path.join(ticket, _NOTES)
        if os.path.exists(path):
            self._line.ask("clear", name=run_name(request))
            os.unlink(path)


def _write(path: Path, text: str) -> None:
    passing = path.with_name(f"{path.name}.{os.getpid()}.new")
    passing.write_bytes(text.encode("utf-8", "surrogateescape"))
    passing.rename(path)


def _make(setting: Setting, options: RayOptions) -> RayExecutor:
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise MissingExtraError("Trials on Ray", "ray")
    return RayExecutor(setting.problem, setting.job, setting.root, options, setting.shape)


PLUGIN = Plugin(
    _make,
    options=RayOptions,
    check=check,
    about="nodes of an existing Ray cluster, with the configuration's resources",
)
