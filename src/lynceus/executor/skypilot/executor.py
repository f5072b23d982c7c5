"""Runs on clusters that SkyPilot starts: any cloud, Kubernetes, Slurm. Nothing here waits for SkyPilot, and no cluster is forgotten."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executor.directory import (
    directories,
    directory_of,
    end_here,
    kept,
    outcome,
    prepare,
    read_request,
    settle,
)
from lynceus.executor.executor import Belonging, LostRunError, Request
from lynceus.executor.plugin import Setting
from lynceus.executor.skypilot.bridge import Bridge, SkyError
from lynceus.executor.skypilot.clusters import PREFIX, Cluster, Clusters, new_name, owner, shape_of
from lynceus.executor.skypilot.following import Following, Handle, Means
from lynceus.executor.skypilot.options import SkyPilotOptions, further, machines, python_of
from lynceus.executor.skypilot.payload import pack
from lynceus.executor.skypilot.sentences import meaning
from lynceus.history import Outcome
from lynceus.supervisor import files
from lynceus.supervisor.output import read_output

_REMOTE_WORKDIR = "~/sky_workdir"
_LOOK_S = 1.0
_DOWN_AGAIN_S = 30.0
_CLOSE_S = 600.0
"""How long we wait, when we leave, for the end of clusters that nobody needs; the API server goes on without us."""
_GC_S = 600.0


class SkyPilotExecutor:
    """Runs a job on clusters of SkyPilot; run directories below `root` are the tickets."""

    def __init__(self, setting: Setting, options: SkyPilotOptions) -> None:
        self._setting, self._options = setting, options
        self._root = setting.root.resolve()
        self._clusters = Clusters(self._root)
        environment = {"SKYPILOT_API_SERVER_ENDPOINT": options.api_server} if options.api_server else {}
        self._bridge = Bridge(
            python_of(options, setting.job.workdir), self._root / "skypilot" / "bridge.log", environment
        )
        self._bridge.check()
        self._means = Means(self._bridge, self._clusters, options, self._task, self._spot)
        self._following: dict[str, Following] = {}
        self._downs: dict[str, Future[Any]] = {}
        self._down_not_before: dict[str, float] = {}
        self._swept_s = 0.0
        self._identities: set[str] = set()
        """Of the studies that we work for."""

    def __enter__(self) -> SkyPilotExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def launch(self, request: Request) -> str:
        """Write down what is to run and on which cluster; SkyPilot is asked from then on, by `collect`."""
        self._identities.add(request.identity)
        directory = directory_of(self._root, request)
        prepare(directory, request, self._setting.job, cwd=_REMOTE_WORKDIR)
        ticket = str(directory)
        if kept(ticket) is None:
            following = self._follow(ticket)
            if following.handle is None:
                following.begin(self._wanted(request))
            following.step()
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """How the run ended; takes the run a step further if it has not."""
        request = read_request(ticket)
        self._identities.add(request["identity"])
        told = kept(ticket)
        if told is None:
            following = self._follow(ticket)
            if following.handle is None:
                raise LostRunError(f"{ticket} does not say which cluster the run was to use")
            told = following.step()
            if told is not None:
                told = self._settled(ticket, request, told)
        self._sweep()
        return None if told is None else self._outcome(request, told)

    def _outcome(self, request: dict[str, Any], told: dict[str, Any]) -> Outcome:
        """With the boot that really was one: a warm cluster boots nothing, whatever was expected."""
        boots = told.get("boots", request["boots"])
        seen = outcome(self._setting.problem, {**request, "boots": boots}, told, extra_s=told.get("extra_s", 0.0))
        return replace(seen, charged_usd=0.0) if told.get("free") else seen

    def cancel(self, ticket: str) -> None:
        """End the run; its cluster is ended too, or waits for the next one."""
        if Path(ticket).is_dir():
            Path(ticket, files.CANCEL).touch()

    def output(self, ticket: str, stream: str = files.STDOUT) -> bytes:
        """What a run wrote to `stdout` or `stderr`; it comes from the cluster when the run has ended."""
        return read_output(str(Path(ticket) / stream))

    def belongings(self) -> list[Belonging]:
        """Run directories; clusters that the ledger or SkyPilot itself knows."""
        known = {cluster.name: cluster for cluster in self._clusters.all()}
        found = [
            Belonging("cluster", one.name, one.study, one.identity, one.number, one.name) for one in known.values()
        ]
        kept_here = directories(self._root)
        whole_names = {one.identity: one.study for one in kept_here}
        for record in self._answered(self._bridge.ask("clusters", prefix=PREFIX)):
            if record["name"] not in known:
                word, identity = owner(record["name"])
                study = whole_names.get(identity, word)
                detail = f"{record['name']} ({record['status']})"
                found.append(Belonging("cluster", record["name"], study, identity, None, detail))
        return [*found, *kept_here]

    def end(self, belonging: Belonging) -> None:
        """Take a cluster down, and strike it out when SkyPilot confirms; or remove a directory."""
        if belonging.kind != "cluster":
            return end_here(belonging)
        self._clusters.change(belonging.name, ends=True, number=None)
        self._answered(self._bridge.ask("down", cluster=belonging.name))
        return self._clusters.strike_out(belonging.name)

    def close(self) -> None:
        """End idle clusters and let go of SkyPilot; runs go on, and clusters that we fail to end take themselves down."""
        try:
            now = time.time()
            self._set_free()
            for cluster in self._clusters.all():
                unwanted = cluster.ends or cluster.identity in self._identities
                if unwanted and self._clusters.retire(cluster.name, now):
                    self._take_down(cluster.name)
            wait_for(list(self._downs.values()), timeout=_CLOSE_S)
            self._strike_out_ended()
        finally:
            self.leave()

    def leave(self) -> None:
        """Let go of SkyPilot only: idle clusters stay warm for whoever comes next, and take themselves down if nobody does."""
        self._bridge.close()

    def _follow(self, ticket: str) -> Following:
        if ticket not in self._following:
            self._following[ticket] = Following(Path(ticket), self._means)
        return self._following[ticket]

    def _wanted(self, request: Request) -> Cluster:
        problem = self._setting.problem
        resources, nodes = machines(self._options, problem.space, request.row, self._setting.shape)
        shape = shape_of(resources, nodes, [self._setting.setup, further(self._options, problem.space, request.row)])
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
        setting, space, row = self._setting, self._setting.problem.space, request["row"]
        staged, command = pack(ticket, request, setting.job, self._root, workdir=self._options.workdir)
        resources, nodes = machines(self._options, space, row, setting.shape)
        setup = setting.setup if isinstance(setting.setup, str | None) else _joined(setting.setup)
        task = {"workdir": str(staged), "num_nodes": nodes, "resources": resources, "setup": setup, "run": command}
        fixed = {name: value for name, value in setting.job.env.items() if "${" not in value}
        return {**further(self._options, space, row), **task, "envs": fixed}

    def _spot(self, ticket: Path) -> bool:
        row = read_request(str(ticket))["row"]
        return bool(machines(self._options, self._setting.problem.space, row, self._setting.shape)[0].get("use_spot"))

    def _settled(self, ticket: str, request: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
        """Write the end down with all machine time that nobody has paid for yet, and give the cluster back."""
        handle = self._follow(ticket).handle
        assert handle is not None
        now = time.time()
        until_s = min(now, told.get("until_s", now))
        with self._clusters.paying(request["identity"], handle.cluster, until_s) as (own_s, idle_usd):
            final = settle(
                ticket, {**told, **self._bill(request, told, handle, own_s, idle_usd), "paid_until_s": until_s}
            )
        told_by_node = "began_s" in told  # otherwise something may still run there
        if self._options.keep_warm > 0 and told_by_node and told.get("reason") not in ("infra", "preempted"):
            self._clusters.release(handle.cluster, now)
        else:
            self._clusters.change(handle.cluster, number=None, ends=True)
            self._take_down(handle.cluster)
        self._following.pop(ticket, None)
        return final

    def _bill(
        self, request: dict[str, Any], told: dict[str, Any], handle: Handle, own_s: float, idle_usd: float
    ) -> dict[str, Any]:
        """What is charged besides the job's own seconds."""
        problem, cluster = self._setting.problem, self._clusters.get(handle.cluster)
        up = cluster is not None and cluster.up
        # Nobody charges for a machine that there was not; a launch that we broke off may have had one.
        free = not up and not (told.get("reason") == "user" and handle.asked_s > 0)
        price = float(problem.price[request["row"]])
        paid_s = (0.0 if free else own_s) + (idle_usd / price if price > 0 else 0.0)
        boots = bool(request["boots"]) and not handle.warm and not free
        extra_s = max(paid_s - told["seconds"] - (problem.tariff.boot_s if boots else 0.0), 0.0)
        return {"extra_s": extra_s, "boots": boots, "free": free and not idle_usd, "cluster": handle.cluster}

    def _sweep(self) -> None:
        """Now and then: end clusters that were idle too long, and strike out those that are gone."""
        now = time.time()
        if now - self._swept_s < _LOOK_S:
            return
        self._swept_s = now
        self._strike_out_ended()
        self._set_free()
        for cluster in self._clusters.all():
            idle_s = now - cluster.idle_since_s if cluster.number is None and not cluster.ends else 0.0
            if cluster.identity in self._identities and idle_s > self._options.keep_warm:
                # One that nobody watched has taken itself down long ago: its time ended then.
                self._clusters.retire(
                    cluster.name, cluster.idle_since_s + min(idle_s, 60.0 * self._options.idle_minutes)
                )
            elif (
                cluster.ends and cluster.name not in self._downs and now >= self._down_not_before.get(cluster.name, 0.0)
            ):
                self._take_down(cluster.name)

    def _set_free(self) -> None:
        """A crash between the end of a run and the release of its cluster left it taken for ever."""
        for cluster in self._clusters.all():
            if cluster.number is None:
                continue
            probe = Request(cluster.study, cluster.number, 0, {}, 0.0, False, cluster.identity)
            ticket = str(directory_of(self._root, probe))
            told = None if ticket in self._following else kept(ticket)
            if told is not None and told.get("cluster") == cluster.name:
                accounted_s = max(cluster.accounted_s, told.get("paid_until_s", 0.0))
                self._clusters.change(cluster.name, number=None, ends=True, accounted_s=accounted_s)

    def _take_down(self, name: str) -> None:
        if name not in self._downs:
            self._downs[name] = self._bridge.ask("down", cluster=name)

    def _strike_out_ended(self) -> None:
        for name, future in list(self._downs.items()):
            if future.done():
                del self._downs[name]
                if future.exception() is None:
                    self._clusters.strike_out(name)
                else:
                    self._down_not_before[name] = time.time() + _DOWN_AGAIN_S

    def _answered(self, future: Future[Any]) -> Any:
        try:
            return future.result(_GC_S)
        except SkyError as error:
            raise InfrastructureError(meaning(error, self._means.server).sentence) from error
        except TimeoutError:
            raise InfrastructureError(f"SkyPilot has not answered for {_GC_S:.0f} s; try again later") from None


def _joined(setup: tuple[str, ...]) -> str:
    return shlex.join(setup)
