"""The runs of Lynceus on a Ray cluster, as the driver sees them: launch, status, cancel, clear. Used in the driver process only."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from lynceus.executors.ray import actor as actor_module
from lynceus.executors.ray import node
from lynceus.executors.ray.names import PREFIX
from lynceus.executors.ray.run_state import RunState
from lynceus.executors.supervisor import files, outcome_record

_IDLE_TIMEOUT_S = 120.0
"""An actor that is not started releases its nodes after this time."""
_CALL_S = 10.0
_CHECK_S = 1.0
"""How often the cluster is asked about a run, unless its actor has answered."""
_REMEMBER_S = 600.0
"""How long the claim of a cleared run is kept."""
_RUN_KEYS = ("request", "alive", "outcome", *node.STREAMS)


@dataclass
class _KnownRun:
    """A run that this driver has seen."""

    actor: Any = None
    ended: Any = None
    """Reference to the actor's answer that the run has ended."""
    started: bool = False
    """Whether this driver has told the actor to start."""
    checked_s: float = float("-inf")
    status: dict[str, Any] = field(default_factory=dict)
    reason: str = "infra"
    """Why the actor died, as far as Ray says."""
    output: Any = None
    """Reference to output that was requested."""
    offsets: dict[str, int] = field(default_factory=dict)


class Cluster:
    """All operations on one cluster."""

    def __init__(self, ray: Any) -> None:
        for module in (actor_module, node, files, outcome_record):  # Lynceus need not be installed on the nodes
            ray.cloudpickle.register_pickle_by_value(module)
        self._ray = ray
        self._known: dict[str, _KnownRun] = {}

    def launch(self, name: str, order: dict[str, Any], payload: dict[str, Any], private: dict[str, Any]) -> None:
        """Create the placement group and the actors of a run and start it; repeated calls start nothing twice."""
        actor_module.put(f"{name}/request", json.dumps(payload["record"]).encode(), first=True)
        if actor_module.get(f"{name}/claim") is not None:
            return
        group = self._living_group(name) or self._ray.util.placement_group(
            order["bundles"],
            strategy="STRICT_SPREAD" if len(order["bundles"]) > 1 else "PACK",
            name=name,
            lifetime="detached",
        )
        ranks = range(len(order["bundles"]) if order["each_node"] else 1)
        actors = [self._create_actor(name, rank, group, order) for rank in ranks]
        known = self._known[name] = _KnownRun(actors[0])
        known.started = True
        actors[0].start.remote(payload, private, actors[1:])

    def _create_actor(self, name: str, rank: int, group: Any, order: dict[str, Any]) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = {} if order["job_uses_ray"] else order["bundles"][rank]
        return (
            self._ray.remote(actor_module.RunActor)
            .options(
                name=f"{name}#{rank}",
                namespace=actor_module.NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                max_restarts=0,
                num_cpus=bundle.get("CPU", 0),
                num_gpus=bundle.get("GPU", 0),
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank),
            )
            .remote(name, rank, _IDLE_TIMEOUT_S)
        )

    def status(self, name: str) -> dict[str, Any]:
        """The state of a run (`RunState`), with its outcome, output or other details."""
        known = self._known.setdefault(name, _KnownRun())
        answered = self._actor_answered(known)
        now = time.monotonic()
        if not answered and now - known.checked_s < _CHECK_S and known.status:
            is_running = known.status["state"] is RunState.RUNNING
            return {**known.status, "output": {}} if is_running else known.status  # each piece of output is sent once
        known.checked_s = now
        known.status = self._check(name, known)
        return known.status

    def _actor_answered(self, known: _KnownRun) -> bool:
        """Whether the actor has reported the end of the run, or has died."""
        if known.ended is None or not self._ray.wait([known.ended], timeout=0)[0]:
            return False
        reference, known.ended = known.ended, None
        try:
            self._ray.get(reference, timeout=_CALL_S)
        except self._ray.exceptions.ActorUnavailableError:
            return False  # a node that is dying, or a network problem: ask again
        except self._ray.exceptions.OutOfMemoryError:  # the job used up the node's memory, and Ray killed the actor
            known.actor, known.reason = None, "oom"
        except self._ray.exceptions.RayError as error:
            known.actor, known.reason = None, "preempted" if getattr(error, "preempted", False) else "infra"
        return True

    def _check(self, name: str, known: _KnownRun) -> dict[str, Any]:
        if (record := actor_module.get(f"{name}/outcome")) is not None:
            return self._ended(name, record)
        if known.actor is None:
            known.actor = self._actor(name)
        claimed = actor_module.get(f"{name}/claim")
        if known.actor is None:
            if claimed is None:
                return {"state": RunState.ABSENT, "known": actor_module.get(f"{name}/request") is not None}
            if (record := actor_module.get(f"{name}/outcome")) is not None:  # it ended in the meantime
                return self._ended(name, record)
            return self._lost(name, known)
        if known.ended is None:
            known.ended = known.actor.ended.remote()
        if claimed is None:
            return self._waiting(name, known)
        seconds = _seconds(actor_module.get(f"{name}/alive"))
        return {"state": RunState.RUNNING, "seconds": seconds, "output": self._new_output(known)}

    def _ended(self, name: str, record: bytes) -> dict[str, Any]:
        parts = {stream: actor_module.get(f"{name}/{stream}") for stream in node.STREAMS}
        whole = {stream: zlib.decompress(data) for stream, data in parts.items() if data is not None}
        output = {stream: data.decode("utf-8", "surrogateescape") for stream, data in whole.items()}
        return {"state": RunState.ENDED, "outcome": json.loads(record), "output": output}

    def _lost(self, name: str, known: _KnownRun) -> dict[str, Any]:
        claim = self._claim(name)
        return {
            "state": RunState.LOST,
            "seconds": claim.get("seconds", _seconds(actor_module.get(f"{name}/alive"))),
            "node": claim.get("node"),
            "reason": known.reason,
            "cleared": "cleared_s" in claim,
        }

    def _waiting(self, name: str, known: _KnownRun) -> dict[str, Any]:
        """The status of a run that is not placed yet, or about to start."""
        if not known.started:
            return {"state": RunState.ABSENT, "known": True}
        group = self._group(name)
        table = {} if group is None else self._ray.util.placement_group_table(group)
        if table.get("state") in (None, "REMOVED"):
            known.actor = known.ended = None
            return {"state": RunState.ABSENT, "known": True}
        infeasible = table["state"] == "PENDING" and table.get("stats", {}).get("scheduling_state") == "INFEASIBLE"
        return {"state": RunState.QUEUED, "infeasible": infeasible}

    def _new_output(self, known: _KnownRun) -> dict[str, str]:
        """Output since the last request, without waiting for it."""
        found: dict[str, str] = {}
        if known.output is not None and self._ray.wait([known.output], timeout=0)[0]:
            reference, known.output = known.output, None
            with contextlib.suppress(self._ray.exceptions.RayError):
                for stream, data in self._ray.get(reference, timeout=_CALL_S).items():
                    found[stream] = data.decode("utf-8", "surrogateescape")
                    known.offsets[stream] = known.offsets.get(stream, 0) + len(data)
        if known.output is None:
            known.output = known.actor.output.remote(dict(known.offsets))
        return found

    def cancel(self, name: str) -> bool:
        """Cancel a run. Returns true if it had not started, and now never will."""
        if actor_module.put(f"{name}/claim", b'{"node": "", "cancelled": true}', first=True):
            self._remove(name)
            return True
        if (actor := self._actor(name)) is not None:
            actor.cancel.remote()
        return False

    def clear(self, name: str) -> None:
        """Release the nodes of a run and delete what is stored about it.

        Its claim is kept for a while: a driver that died during a launch may have left requests behind, and these must not start a run
        that has ended.
        """
        self._known.pop(name, None)
        claim = self._claim(name)
        if "cleared_s" not in claim:
            claim |= {"cleared_s": time.time(), "seconds": _seconds(actor_module.get(f"{name}/alive"))}
            actor_module.put(f"{name}/claim", json.dumps(claim).encode())
        self._remove(name)
        self._delete_keys(name)

    def _delete_keys(self, name: str) -> None:
        """Delete all keys of a run but its claim."""
        for part in _RUN_KEYS:
            self.delete(f"{name}/{part}")

    def _claim(self, name: str) -> dict[str, Any]:
        claim: dict[str, Any] = json.loads(actor_module.get(f"{name}/claim") or b"{}")
        return claim

    def _remove(self, name: str) -> None:
        """Removing the placement group ends every actor in it, and with them their jobs."""
        if (group := self._group(name)) is not None:
            self._ray.util.remove_placement_group(group)
        if (actor := self._actor(name)) is not None:
            self._ray.kill(actor)

    def has_folder(self, key: str) -> bool:
        """Whether a packed folder is on the cluster."""
        return actor_module.get(key) is not None

    def store_folder(self, key: str, packed: bytes) -> None:
        """Copy a packed folder to the cluster."""
        actor_module.put(key, packed, first=True)

    def delete_folders(self, study: str) -> None:
        """Delete the folders of a study, unless one of its runs is on the cluster; and claims that are no longer needed."""
        if not any(one.startswith(study) for one in self.runs()):
            for key in self._keys(f"{study}/"):
                self.delete(key)
        for name, parts in self._run_keys().items():
            if parts == {"claim"} and time.time() - self._claim(name).get("cleared_s", 0.0) > _REMEMBER_S:
                self.delete(f"{name}/claim")

    def runs(self) -> dict[str, str]:
        """Every run of Lynceus that has a placement group, actors or keys on the cluster, with a description of them."""
        found: dict[str, list[str]] = {}
        for one in self._ray.util.placement_group_table().values():
            if one["name"].startswith(PREFIX) and one["state"] != "REMOVED":
                found.setdefault(one["name"], []).append(f"placement group {one['state'].lower()}")
        for actor in self._ray.util.list_named_actors(all_namespaces=True):
            if actor["namespace"] == actor_module.NAMESPACE and actor["name"].startswith(PREFIX):
                found.setdefault(actor["name"].partition("#")[0], []).append("an actor")
        for name, parts in self._run_keys().items():
            if parts == {"claim"}:
                continue
            if name not in found and "cleared_s" in self._claim(name):
                self._delete_keys(name)  # written by an actor that was just being ended, after the run was cleared
            else:
                found.setdefault(name, []).append("records")
        return {name: ", ".join(parts) for name, parts in found.items()}

    def _run_keys(self) -> dict[str, set[str]]:
        """The keys of each run."""
        found: dict[str, set[str]] = {}
        for key in self._keys(PREFIX):
            name, _, part = key.partition("/")
            if "folder-" not in part:
                found.setdefault(name, set()).add(part)
        return found

    def folders(self) -> list[str]:
        """The keys of copied folders."""
        return [key for key in self._keys(PREFIX) if "/folder-" in key]

    def delete(self, key: str) -> None:
        """Delete a key."""
        actor_module.key_value_store()._internal_kv_del(key.encode(), namespace=actor_module.NAMESPACE.encode())

    def node_resources(self) -> list[dict[str, float]]:
        """The resources of each living node."""
        hidden = ("node:", "object_store_memory")
        return [
            {name: amount for name, amount in one["Resources"].items() if not name.startswith(hidden)}
            for one in self._ray.nodes()
            if one["Alive"]
        ]

    def _keys(self, prefix: str) -> list[str]:
        store = actor_module.key_value_store()
        return [
            one.decode() for one in store._internal_kv_list(prefix.encode(), namespace=actor_module.NAMESPACE.encode())
        ]

    def _group(self, name: str) -> Any:
        try:
            return self._ray.util.get_placement_group(name)
        except ValueError:
            return None

    def _living_group(self, name: str) -> Any:
        """A group that an actor, or Lynceus, has just removed is still found by its name, but whatever is put there dies."""
        group = self._group(name)
        table = {} if group is None else self._ray.util.placement_group_table(group)
        return None if table.get("state") in (None, "REMOVED") else group

    def _actor(self, name: str) -> Any:
        try:
            return self._ray.get_actor(f"{name}#0", namespace=actor_module.NAMESPACE)
        except ValueError:
            return None


def _seconds(value: bytes | None) -> float:
    return 0.0 if value is None else float(value)
