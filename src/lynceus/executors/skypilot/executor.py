"""The SkyPilot executor: runs on clusters of any cloud, Kubernetes or Slurm. It never blocks on SkyPilot and loses track of no cluster."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.interface import LostRunError, Outage, OwnedResource, Request, ResourceKind
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.run_directory import (
    directory_of,
    prepare,
    read_request,
    remove_local,
    run_directories,
    settle,
    to_outcome,
)
from lynceus.executors.skypilot.bridge import Bridge, SkyError
from lynceus.executors.skypilot.clusters import PREFIX, Cluster, Clusters, new_name, owner, shape_of
from lynceus.executors.skypilot.messages import diagnose
from lynceus.executors.skypilot.options import SkyPilotOptions, machines, python_of, task_fields
from lynceus.executors.skypilot.payload import pack
from lynceus.executors.skypilot.run_tracker import Handle, RunTracker, TrackerContext
from lynceus.executors.skypilot.server_watch import ServerWatch
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.outcome_record import OutcomeRecord
from lynceus.executors.supervisor.status import read_outcome
from lynceus.trial.outcome import Outcome

_REMOTE_WORKDIR = "~/sky_workdir"
_CHECK_S = 1.0
"""Seconds between two checks for idle clusters."""
_RETRY_DOWN_S = 30.0
_CLOSE_S = 600.0
"""How long `close` waits until idle clusters are down, if the API server answers; it continues without us."""
_ANSWER_S = 600.0


class SkyPilotExecutor:
    """Runs a job on clusters of SkyPilot; run directories below `root` are the tickets."""

    def __init__(self, context: ExecutorContext, options: SkyPilotOptions) -> None:
        self._context, self._options = context, options
        self._root = context.root.resolve()
        self._clusters = Clusters(self._root)
        environment = {"SKYPILOT_API_SERVER_ENDPOINT": options.api_server} if options.api_server else {}
        self._bridge = Bridge(
            python_of(options, context.job.workdir), self._root / "skypilot" / "bridge.log", environment
        )
        self._bridge.check()
        self._server = f" at {options.api_server}" if options.api_server else ""
        self._watch = ServerWatch(self._bridge, self._server)
        self._tracker_context = TrackerContext(
            self._bridge, self._watch, self._clusters, options, self._task, self._uses_spot
        )
        self._trackers: dict[str, RunTracker] = {}
        self._downs: dict[str, Future[Any]] = {}
        self._down_not_before: dict[str, float] = {}
        self._checked_s = 0.0
        self._identities: set[str] = set()
        """Of the studies that this executor has runs of."""

    def outage(self) -> Outage | None:
        """How SkyPilot's API server fails to answer, and since when."""
        if not self._watch.answers:
            self._watch.look()
        return self._watch.outages.current()

    def launch(self, request: Request) -> str:
        """Prepare the run directory and note the cluster; later calls of `collect` take the run further."""
        self._identities.add(request.identity)
        directory = directory_of(self._root, request)
        prepare(directory, request, self._context.job, cwd=_REMOTE_WORKDIR)
        ticket = str(directory)
        if read_outcome(ticket) is None:
            tracker = self._tracker(ticket)
            if tracker.handle is None:
                tracker.begin(self._wanted(request))
            tracker.step()
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """The outcome of the run; if it has not ended, takes it a step further."""
        request = read_request(ticket)
        self._identities.add(request["identity"])
        record = read_outcome(ticket)
        if record is None:
            self._watch.look()
            tracker = self._tracker(ticket)
            if tracker.handle is None:
                raise LostRunError(f"{ticket} does not say which cluster the run should use")
            record = tracker.step()
            if record is not None:
                record = self._settle(ticket, request, record)
        self._check_clusters()
        return None if record is None else self._outcome(request, record)

    def _outcome(self, request: dict[str, Any], record: OutcomeRecord) -> Outcome:
        """Charges a boot only if machines were really started: a warm cluster needs none, whatever was planned."""
        boots, extra_s = record.get("boots", request["boots"]), record.get("extra_s", 0.0)
        return to_outcome(self._context.problem, {**request, "boots": boots}, record, extra_s=extra_s)

    def cancel(self, ticket: str) -> None:
        """Stop the run; its cluster is taken down, too, or waits for the next run."""
        if Path(ticket).is_dir():
            Path(ticket, files.CANCEL).touch()

    def owned_resources(self) -> list[OwnedResource]:
        """Run directories, and clusters that our list or SkyPilot itself knows."""
        known = {cluster.name: cluster for cluster in self._clusters.all()}
        found = [
            OwnedResource(ResourceKind.CLUSTER, one.name, one.study, one.identity, one.number, one.name)
            for one in known.values()
        ]
        local = run_directories(self._root)
        full_names = {one.identity: one.study for one in local}
        for record in self._result(self._bridge.call("clusters", prefix=PREFIX)):
            if record["name"] not in known:
                word, identity = owner(record["name"])
                study = full_names.get(identity, word)
                detail = f"{record['name']} ({record['status']})"
                found.append(OwnedResource(ResourceKind.CLUSTER, record["name"], study, identity, None, detail))
        return [*found, *local]

    def remove(self, resource: OwnedResource) -> None:
        """Take a cluster down and delete it from our list when SkyPilot confirms that; or delete a directory."""
        if resource.kind is not ResourceKind.CLUSTER:
            return remove_local(resource)
        self._clusters.change(resource.name, ends=True, number=None)
        self._result(self._bridge.call("down", cluster=resource.name))
        return self._clusters.delete(resource.name)

    def close(self) -> None:
        """Take idle clusters down and disconnect from SkyPilot. Runs continue; clusters that cannot be taken down now do it themselves.

        Waits only as long as SkyPilot's API server gives signs of life.
        """
        try:
            now = time.time()
            self._release_forgotten()
            for cluster in self._clusters.all():
                unused = cluster.ends or cluster.identity in self._identities
                if unused and self._clusters.retire(cluster.name, now):
                    self._take_down(cluster.name)
            self._watch.wait(list(self._downs.values()), _CLOSE_S)
            self._delete_ended()
        finally:
            self.leave()

    def leave(self) -> None:
        """Disconnect from SkyPilot only: idle clusters stay warm for the next process, and take themselves down later."""
        self._bridge.close()

    def _tracker(self, ticket: str) -> RunTracker:
        if ticket not in self._trackers:
            self._trackers[ticket] = RunTracker(Path(ticket), self._tracker_context)
        return self._trackers[ticket]

    def _wanted(self, request: Request) -> Cluster:
        problem = self._context.problem
        resources, nodes = machines(self._options, problem.space, request.row, self._context.resources)
        shape = shape_of(
            resources, nodes, [self._context.setup, task_fields(self._options, problem.space, request.row)]
        )
        return Cluster(
            new_name(request.study, request.identity, shape),
            request.study,
            request.identity,
            shape,
            request.number,
            float(problem.price[request.row]),
            time.time(),
        )

    def _task(self, ticket: Path) -> dict[str, Any]:
        request = read_request(str(ticket))
        context, space, row = self._context, self._context.problem.space, request["row"]
        staged, command = pack(ticket, request, context.job, self._root, workdir=self._options.workdir)
        resources, nodes = machines(self._options, space, row, context.resources)
        setup = context.setup if isinstance(context.setup, str | None) else shlex.join(context.setup)
        task = {"workdir": str(staged), "num_nodes": nodes, "resources": resources, "setup": setup, "run": command}
        fixed = {name: value for name, value in context.job.env.items() if "${" not in value}
        return {**task_fields(self._options, space, row), **task, "envs": fixed}

    def _uses_spot(self, ticket: Path) -> bool:
        row = read_request(str(ticket))["row"]
        return bool(
            machines(self._options, self._context.problem.space, row, self._context.resources)[0].get("use_spot")
        )

    def _settle(self, ticket: str, request: dict[str, Any], record: OutcomeRecord) -> OutcomeRecord:
        """Record the outcome with all machine time that is not charged yet, and release the cluster or take it down."""
        handle = self._tracker(ticket).handle
        assert handle is not None
        now = time.time()
        until_s = min(now, record.get("until_s", now))
        with self._clusters.pay(request["identity"], handle.cluster, until_s) as (own_s, idle_usd):
            billed = self._bill(request, record, handle, own_s, idle_usd)
            final = settle(ticket, {**billed, "paid_until_s": until_s})
        ended_on_node = "began_s" in record  # otherwise something may still run there
        if self._options.keep_warm > 0 and ended_on_node and record.get("reason") not in ("infra", "preempted"):
            self._clusters.release(handle.cluster, now)
        else:
            self._clusters.change(handle.cluster, number=None, ends=True)
            self._take_down(handle.cluster)
        self._trackers.pop(ticket, None)
        return final

    def _bill(
        self, request: dict[str, Any], record: OutcomeRecord, handle: Handle, own_s: float, idle_usd: float
    ) -> OutcomeRecord:
        """The record with what is charged besides the job's own seconds."""
        problem, cluster = self._context.problem, self._clusters.get(handle.cluster)
        up = cluster is not None and cluster.up
        # Without a machine there is no charge; a launch that was cancelled may have had one.
        free = not up and (record.get("free", False) or not (record.get("reason") == "user" and handle.asked_s > 0))
        price = float(problem.price[request["row"]])
        paid_s = (0.0 if free else own_s) + (idle_usd / price if price > 0 else 0.0)
        boots = bool(request["boots"]) and not handle.warm and not free
        ran_s = record["seconds"] + record.get("stopping_s", 0.0)
        extra_s = max(paid_s - ran_s - (problem.billing.boot_s if boots else 0.0), 0.0)
        return {
            **record,
            "extra_s": extra_s,
            "boots": boots,
            "free": free and not idle_usd,
            "cluster": handle.cluster,
        }

    def _check_clusters(self) -> None:
        """From time to time: take down clusters that were idle too long, and delete those that are gone."""
        now = time.time()
        if now - self._checked_s < _CHECK_S:
            return
        self._checked_s = now
        self._delete_ended()
        self._release_forgotten()
        for cluster in self._clusters.all():
            idle_s = now - cluster.idle_since_s if cluster.number is None and not cluster.ends else 0.0
            if cluster.identity in self._identities and idle_s > self._options.keep_warm:
                # It may have taken itself down while no Lynceus ran: it is charged until then.
                self._clusters.retire(
                    cluster.name, cluster.idle_since_s + min(idle_s, 60.0 * self._options.idle_minutes)
                )
            elif (
                cluster.ends and cluster.name not in self._downs and now >= self._down_not_before.get(cluster.name, 0.0)
            ):
                self._take_down(cluster.name)

    def _release_forgotten(self) -> None:
        """Release clusters whose run has ended, but whose process crashed before it could release them."""
        for cluster in self._clusters.all():
            if cluster.number is None:
                continue
            probe = Request(cluster.study, cluster.number, 0, {}, 0.0, False, cluster.identity)
            ticket = str(directory_of(self._root, probe))
            record = None if ticket in self._trackers else read_outcome(ticket)
            if record is not None and record.get("cluster") == cluster.name:
                accounted_s = max(cluster.accounted_s, record.get("paid_until_s", 0.0))
                self._clusters.change(cluster.name, number=None, ends=True, accounted_s=accounted_s)

    def _take_down(self, name: str) -> None:
        if name not in self._downs:
            self._downs[name] = self._bridge.call("down", cluster=name)

    def _delete_ended(self) -> None:
        for name, future in list(self._downs.items()):
            if future.done():
                del self._downs[name]
                if future.exception() is None:
                    self._clusters.delete(name)
                else:
                    self._down_not_before[name] = time.time() + _RETRY_DOWN_S

    def _result(self, future: Future[Any]) -> Any:
        """The answer to a request, which may take minutes, as long as the API server gives signs of life."""
        self._watch.wait([future], _ANSWER_S)
        try:
            return future.result(0.0)
        except SkyError as error:
            self._watch.failed(error)
            raise InfrastructureError(diagnose(error, self._server).sentence) from error
        except TimeoutError:
            outage = self.outage()
            sentence = f"SkyPilot has not answered for {_ANSWER_S:.0f} s" if outage is None else outage.detail
            raise InfrastructureError(f"{sentence}; try again later") from None
