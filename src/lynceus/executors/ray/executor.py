"""The Ray executor: launch, collect, cancel, clean up."""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus.executors.command import JobCommand, absent_variables, environment
from lynceus.executors.interface import Outage, OwnedResource, Request, ResourceKind
from lynceus.executors.plugin import ExecutorContext, Plugin
from lynceus.executors.ray.client import DriverClient, DriverUnavailableError
from lynceus.executors.ray.messages import lost_run, no_capacity
from lynceus.executors.ray.names import parse_name, run_name, study_prefix
from lynceus.executors.ray.options import RayOptions, bundles, check_options
from lynceus.executors.ray.run_state import RunState
from lynceus.executors.ray.working_directory import pack
from lynceus.executors.resources import Resources
from lynceus.executors.run_directory import (
    SHIPPED,
    directory_of,
    prepare,
    read_request,
    remove_local,
    run_directories,
    settle,
    to_outcome,
)
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import runner, runner_name
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, not_started
from lynceus.executors.supervisor.status import read_outcome
from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Outcome

_NOTES = "ray.json"
"""In a run directory as long as something of the run may be on the cluster."""
_MAX_STARTS = 5
_FIRST_PAUSE_S = 0.25
_FORCE_S = 30.0
"""A job that has not ended so long after its grace period is killed together with its actor."""


class RayExecutor:
    """Runs a job on the nodes of an existing Ray cluster."""

    def __init__(
        self,
        problem: Problem,
        job: JobCommand,
        root: str | Path = ".lynceus",
        options: RayOptions | None = None,
        resources: Callable[[int], Resources] | None = None,
        client: DriverClient | None = None,
    ) -> None:
        """`client` is a connection that several executors share; its owner closes it."""
        self._problem, self._job = problem, job
        self._root = Path(root).resolve()
        self._options = RayOptions() if options is None else options
        self._resources = resources
        self._client = DriverClient(self._options.address) if client is None else client
        self._owns_client = client is None
        self._not_launched: dict[str, dict[str, Any]] = {}
        """Ticket → request of runs that the cluster does not know yet."""
        self._packed: tuple[str, bytes] | None = None
        self._studies: set[str] = set()
        self._starts: dict[str, int] = {}
        self._started_s: dict[str, float] = {}
        self._infeasible_s: dict[str, float] = {}
        self._cancelled_s: dict[str, float] = {}

    def outage(self) -> Outage | None:
        """How the cluster fails to answer, and since when."""
        return self._client.outages.current()

    def close(self) -> None:
        """Disconnect from the cluster; runs continue. Copied folders of studies that have no run there are deleted."""
        if self._client.connected and self.outage() is None:
            with contextlib.suppress(DriverUnavailableError):
                for study in self._studies:
                    self._client.call("delete_folders", name=study)
        if self._owns_client:
            self._client.close()

    # The interface of executors -----------------------------------------------------------------------------------------

    def launch(self, request: Request) -> str:
        """Prepare the run directory; launch the run on the cluster now if it is reachable, otherwise later."""
        bundle = bundles(self._options, self._problem.space, request.row, self._resources)[0]
        directory = directory_of(self._root, request)
        memory = int(bundle["memory"]) if "memory" in bundle else None
        limits = Resources(bundle.get("CPU"), memory) if self._options.limit else None
        prepare(directory, request, self._job, resources=limits)
        ticket = str(directory)
        if read_outcome(ticket) is None:
            self._not_launched[ticket] = read_request(ticket)
            with contextlib.suppress(DriverUnavailableError):
                self._launch_pending()
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """What the supervisor recorded, or, if its node was lost, what the cluster last knew about the run."""
        request = read_request(ticket)
        record = read_outcome(ticket)
        try:
            self._launch_pending()
            record = self._check(ticket, request) if record is None else record
            if record is not None:
                self._clear(ticket, request)
        except DriverUnavailableError as error:
            if record is None and self._client.unreachable_s > self._options.patience:
                raise InfrastructureError(
                    f"the Ray cluster {self._options.address} cannot be reached: {error}; its runs continue and stay open in the study; "
                    "resume the study when the cluster is back."
                ) from None
        return None if record is None else to_outcome(self._problem, request, record)

    def cancel(self, ticket: str) -> None:
        """Stop the run, or prevent it from starting."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()
            with contextlib.suppress(DriverUnavailableError):
                if read_outcome(ticket) is None:
                    self._cancel(ticket, read_request(ticket))

    def owned_resources(self) -> list[OwnedResource]:
        """Run directories, and everything of Lynceus on the cluster: placement groups, actors, records, copied folders."""
        found = run_directories(self._root)
        try:
            for name, detail in self._client.call_when_connected("runs").items():
                found.append(OwnedResource(ResourceKind.ACTOR, name, *parse_name(name), detail))
            for key in self._client.call_when_connected("folders"):
                found.append(OwnedResource(ResourceKind.COPIED_FOLDER, key, *parse_name(key)))
        except DriverUnavailableError as error:
            raise InfrastructureError(f"the Ray cluster {self._options.address} cannot be reached: {error}") from None
        return found

    def remove(self, resource: OwnedResource) -> None:
        """Stop a run and delete what is stored about it on the cluster, or delete a directory."""
        if resource.kind is ResourceKind.ACTOR:
            self._client.call_when_connected("clear", name=resource.name)
        elif resource.kind is ResourceKind.COPIED_FOLDER:
            self._client.call_when_connected("delete", name=resource.name)
        else:
            remove_local(resource)

    # One run ------------------------------------------------------------------------------------------------------------

    def _check(self, ticket: str, request: dict[str, Any]) -> OutcomeRecord | None:
        name = run_name(request)
        if Path(ticket, files.CANCEL).exists() and (record := self._cancel(ticket, request)) is not None:
            return record
        found = self._client.call("status", name=name)
        state = RunState(found["state"])
        if state is RunState.ENDED:
            for stream, text in found["output"].items():
                _write(Path(ticket, stream), text)
            return settle(ticket, found["outcome"])
        if state is RunState.LOST:
            return settle(ticket, lost_run(found, cancelled=Path(ticket, files.CANCEL).exists()))
        if state is RunState.RUNNING:
            self._infeasible_s.pop(name, None)
            self._save_progress(ticket, name, found)
        elif state is RunState.ABSENT:
            return self._relaunch(ticket, request, on_cluster=found["known"])
        elif found["infeasible"]:
            return self._wait_for_capacity(ticket, request)
        return None

    def _launch_pending(self) -> None:
        """Launch all runs that were requested while the cluster was unreachable, whichever run the caller asks about."""
        for ticket, request in list(self._not_launched.items()):
            self._client.call("status", name=run_name(request))  # raises before the payload is prepared
            if read_outcome(ticket) is None and os.path.exists(ticket) and not Path(ticket, files.CANCEL).exists():
                self._launch_on_cluster(ticket, request)
            del self._not_launched[ticket]

    def _launch_on_cluster(self, ticket: str, request: dict[str, Any]) -> None:
        """Send everything that the cluster needs for a run. Secrets are in a separate value that only the actors receive."""
        name = run_name(request)
        parts = {one: Path(ticket, one).read_bytes() for one in SHIPPED if Path(ticket, one).exists()}
        payload = {
            "record": request,
            "files": {one: base64.b64encode(data).decode() for one, data in parts.items()},
            "runner": base64.b64encode(runner()).decode(),
            "runner_name": runner_name(),
            "workdir": self._copy_workdir(request) if self._options.workdir == "ship" else None,
            "folder": self._options.node_folder,
        }
        files.write_atomically(os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": False})
        self._client.call(
            "launch",
            name=name,
            order={
                "bundles": bundles(self._options, self._problem.space, request["row"], self._resources),
                "each_node": self._options.each_node,
                "job_uses_ray": self._options.job_uses_ray,
            },
            payload=payload,
            private={
                "environment": environment(self._job, request, base={}),
                "secrets": list(self._job.secrets.values()),
                "without": absent_variables(self._job, request["params"]),
            },
        )
        files.write_atomically(os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": True})
        self._starts[name] = self._starts.get(name, 0) + 1
        self._started_s[name] = time.monotonic()

    def _copy_workdir(self, request: dict[str, Any]) -> str:
        """The key under which the cluster has the working directory; copies it there if necessary."""
        if self._packed is None:
            self._client.call("folders")  # raises before the directory is packed for an unreachable cluster
            self._packed = pack(self._job.workdir.resolve(), self._options.exclude, without=self._root)
        digest, packed = self._packed
        study = study_prefix(request)
        key = f"{study}/folder-{digest}"
        if not self._client.call("has_folder", name=key):
            self._client.call("store_folder", name=key, packed=base64.b64encode(packed).decode())
        self._studies.add(study)
        return key

    def _relaunch(self, ticket: str, request: dict[str, Any], *, on_cluster: bool) -> OutcomeRecord | None:
        """Launch a run that never started as far as the cluster knows, unless the cluster itself was restarted."""
        notes = files.read_json(os.path.join(ticket, _NOTES)) or {}
        if notes.get("placed") and not on_cluster:
            detail = "the Ray cluster was restarted and does not know the run; charged up to the last heartbeat"
            return settle(ticket, failed(detail, seconds=float(notes.get("seconds", 0.0))))
        if self._starts.get(run_name(request), 0) >= _MAX_STARTS:
            return settle(ticket, not_started(f"its actor died {_MAX_STARTS} times before the job started"))
        if not self._start_is_due(run_name(request)):
            return None
        self._launch_on_cluster(ticket, request)
        return None

    def _start_is_due(self, name: str) -> bool:
        """Starts of one run are spaced out, each twice as far as the one before: a cluster may need seconds to recover."""
        starts = self._starts.get(name, 0)
        return starts == 0 or time.monotonic() - self._started_s.get(name, 0.0) >= _FIRST_PAUSE_S * 2**starts

    def _save_progress(self, ticket: str, name: str, found: dict[str, Any]) -> None:
        """Save the output and the running time of a running job, for display and in case the cluster is restarted."""
        for stream, text in found["output"].items():
            if text:
                with open(os.path.join(ticket, stream), "ab") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
        notes = files.read_json(os.path.join(ticket, _NOTES)) or {}
        if found["seconds"] > notes.get("seconds", 0.0):
            files.write_atomically(
                os.path.join(ticket, _NOTES), {"v": 1, "name": name, "placed": True, "seconds": found["seconds"]}
            )

    def _wait_for_capacity(self, ticket: str, request: dict[str, Any]) -> OutcomeRecord | None:
        """No node is large enough. A cluster with an autoscaler may get one soon; the run fails after `capacity_wait`."""
        name = run_name(request)
        since = self._infeasible_s.setdefault(name, time.monotonic())
        if time.monotonic() - since < self._options.capacity_wait:
            return None
        if not self._client.call("cancel", name=name):
            return None
        wanted = bundles(self._options, self._problem.space, request["row"], self._resources)
        available = self._client.call("node_resources")
        return settle(ticket, not_started(no_capacity(wanted, available, self._options.capacity_wait)))

    def _cancel(self, ticket: str, request: dict[str, Any]) -> OutcomeRecord | None:
        """Request cancellation once and wait for the grace period; then kill the actor, and the job with it."""
        name = run_name(request)
        now = time.monotonic()
        if name not in self._cancelled_s:
            if self._client.call("cancel", name=name):
                return settle(ticket, not_started("cancelled before it started", reason="user"))
            self._cancelled_s[name] = now
        elif now - self._cancelled_s[name] > self._job.grace_s + _FORCE_S:
            found = self._client.call("status", name=name)
            if found["state"] == RunState.RUNNING:
                self._client.call("clear", name=name)
                return settle(ticket, failed("cancelled, by force", reason="user", seconds=found["seconds"]))
        return None

    def _clear(self, ticket: str, request: dict[str, Any]) -> None:
        """The outcome is saved here, so it can be deleted on the cluster."""
        path = os.path.join(ticket, _NOTES)
        if os.path.exists(path):
            self._client.call("clear", name=run_name(request))
            os.unlink(path)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    temporary.write_bytes(text.encode("utf-8", "surrogateescape"))
    temporary.rename(path)


def _require_ray() -> None:
    if find_spec("ray") is None:
        raise MissingExtraError("Trials on Ray", "ray")


def _make(context: ExecutorContext, options: RayOptions) -> RayExecutor:
    _require_ray()
    return RayExecutor(context.problem, context.job, context.root, options, context.resources)


PLUGIN = Plugin(
    _make,
    options=RayOptions,
    check=check_options,
    about="nodes of an existing Ray cluster, with the resources of the configuration",
    require=_require_ray,
)
