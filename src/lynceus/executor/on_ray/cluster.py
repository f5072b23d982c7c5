"""Our runs on a cluster, as the driver sees them: placed, started, looked at, cleared away. Used by the porter only."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from dataclasses import dataclass, field
from typing import Any

from lynceus.executor.on_ray import keeper, node
from lynceus.executor.on_ray.names import PREFIX

_LONELY_S = 120.0
"""A keeper that nobody starts gives its nodes back after so long."""
_CALL_S = 10.0
_QUIET_S = 1.0
"""How often the cluster is asked about a run beyond whether its keeper has answered."""
_REMEMBERED_S = 600.0
"""How long it is remembered that a run was claimed and is over."""
_FORGOTTEN = ("request", "alive", "outcome", *node.STREAMS)


@dataclass
class _Known:
    """A run that this driver has met."""

    actor: Any = None
    ended: Any = None
    """The keeper's answer, when the run is over."""
    started: bool = False
    """Whether this driver has told the keeper to start."""
    asked_s: float = float("-inf")
    state: dict[str, Any] = field(default_factory=dict)
    fault: str = "infra"
    """Why its keeper died, as far as Ray told."""
    output: Any = None
    offsets: dict[str, int] = field(default_factory=dict)


class Cluster:
    """All operations on one cluster."""

    def __init__(self, ray: Any) -> None:
        for module in (keeper, node):
            ray.cloudpickle.register_pickle_by_value(module)
        self._ray = ray
        self._known: dict[str, _Known] = {}

    def launch(self, name: str, order: dict[str, Any], parcel: dict[str, Any], private: dict[str, Any]) -> None:
        """Place the run and let its keeper start it; nothing happens twice, however often this is asked."""
        keeper.put(f"{name}/request", json.dumps(parcel["record"]).encode(), first=True)
        if keeper.get(f"{name}/claim") is not None:
            return
        group = self._group(name) or self._ray.util.placement_group(
            order["bundles"],
            strategy="STRICT_SPREAD" if len(order["bundles"]) > 1 else "PACK",
            name=name,
            lifetime="detached",
        )
        ranks = range(len(order["bundles"]) if order["each_node"] else 1)
        actors = [self._keeper(name, rank, group, order) for rank in ranks]
        known = self._known[name] = _Known(actors[0])
        known.started = True
        actors[0].start.remote(parcel, private, actors[1:])

    def _keeper(self, name: str, rank: int, group: Any, order: dict[str, Any]) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = {} if order["job_uses_ray"] else order["bundles"][rank]
        return (
            self._ray.remote(keeper.Keeper)
            .options(
                name=f"{name}#{rank}",
                namespace=keeper.NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                max_restarts=0,
                num_cpus=bundle.get("CPU", 0),
                num_gpus=bundle.get("GPU", 0),
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, rank),
            )
            .remote(name, rank, _LONELY_S)
        )

    def look(self, name: str) -> dict[str, Any]:
        """How a run stands: `ended`, `running`, `queued`, `vanished`, or `absent` when it was never begun and must be launched."""
        known = self._known.setdefault(name, _Known())
        over = self._heard(known)
        now = time.monotonic()
        if not over and now - known.asked_s < _QUIET_S and known.state:
            return known.state
        known.asked_s = now
        known.state = self._looked(name, known)
        return known.state

    def _heard(self, known: _Known) -> bool:
        """Whether the keeper has something to say: that the run is over, or by dying."""
        if known.ended is None or not self._ray.wait([known.ended], timeout=0)[0]:
            return False
        reference, known.ended = known.ended, None
        try:
            self._ray.get(reference, timeout=_CALL_S)
        except self._ray.exceptions.ActorUnavailableError:
            return False  # perhaps a node that is just dying, perhaps a moment of bad network: ask again
        except (
            self._ray.exceptions.OutOfMemoryError
        ):  # the job used up the memory of the node, and Ray chose the keeper
            known.actor, known.fault = None, "oom"
        except self._ray.exceptions.RayError as error:
            known.actor, known.fault = None, "preempted" if getattr(error, "preempted", False) else "infra"
        return True

    def _looked(self, name: str, known: _Known) -> dict[str, Any]:
        if (told := keeper.get(f"{name}/outcome")) is not None:
            return {"state": "ended", "told": json.loads(told), **self._streams(name)}
        if known.actor is None:
            known.actor = self._actor(name)
        claimed = keeper.get(f"{name}/claim")
        if known.actor is None:
            if claimed is None:
                return {"state": "absent", "known": keeper.get(f"{name}/request") is not None}
            if (told := keeper.get(f"{name}/outcome")) is not None:  # it ended between our two questions
                return {"state": "ended", "told": json.loads(told), **self._streams(name)}
            return self._vanished(name, known)
        if known.ended is None:
            known.ended = known.actor.ended.remote()
        if claimed is None:
            return self._waiting(name, known)
        return {"state": "running", "seconds": _number(keeper.get(f"{name}/alive")), "output": self._fresh(known)}

    def _vanished(self, name: str, known: _Known) -> dict[str, Any]:
        claim = json.loads(keeper.get(f"{name}/claim") or b"{}")
        seconds = claim.get("seconds", _number(keeper.get(f"{name}/alive")))
        swept = "cleared_s" in claim
        return {
            "state": "vanished",
            "seconds": seconds,
            "node": claim.get("node"),
            "reason": known.fault,
            "swept": swept,
        }

    def _waiting(self, name: str, known: _Known) -> dict[str, Any]:
        """Placed nowhere yet, or about to begin."""
        if not known.started:
            return {"state": "absent", "known": True}
        group = self._group(name)
        table = {} if group is None else self._ray.util.placement_group_table(group)
        if table.get("state") in (None, "REMOVED"):
            known.actor = known.ended = None
            return {"state": "absent", "known": True}
        infeasible = table["state"] == "PENDING" and table.get("stats", {}).get("scheduling_state") == "INFEASIBLE"
        return {"state": "queued", "infeasible": infeasible}

    def _fresh(self, known: _Known) -> dict[str, str]:
        """Output that came since we last asked, without waiting for it."""
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

    def _streams(self, name: str) -> dict[str, Any]:
        parts = {stream: keeper.get(f"{name}/{stream}") for stream in node.STREAMS}
        whole = {stream: zlib.decompress(data) for stream, data in parts.items() if data is not None}
        return {"output": {stream: data.decode("utf-8", "surrogateescape") for stream, data in whole.items()}}

    def cancel(self, name: str) -> dict[str, Any]:
        """End a run; `never` when it had not begun and now never will."""
        if keeper.put(f"{name}/claim", b'{"node": "", "cancelled": true}', first=True):
            self._remove(name)
            return {"state": "never"}
        if (actor := self._actor(name)) is not None:
            actor.cancel.remote()
        return {"state": "told"}

    def clear(self, name: str) -> None:
        """Nothing of this run is needed any more: give back its nodes, forget what was kept of it.

        That it was claimed is remembered for a while: a driver that died in the middle of a launch, and is still at it, must not begin
        what is over.
        """
        self._known.pop(name, None)
        claim = json.loads(keeper.get(f"{name}/claim") or b"{}")
        if "cleared_s" not in claim:
            claim |= {"cleared_s": time.time(), "seconds": _number(keeper.get(f"{name}/alive"))}
            keeper.put(f"{name}/claim", json.dumps(claim).encode())
        self._remove(name)
        self._forget_run(name)

    def _forget_run(self, name: str) -> None:
        """All but that it was claimed."""
        for part in _FORGOTTEN:
            self.forget(f"{name}/{part}")

    def _cleared(self, name: str) -> bool:
        return "cleared_s" in json.loads(keeper.get(f"{name}/claim") or b"{}")

    def _remove(self, name: str) -> None:
        """Removing the group ends every actor in it, and with them their jobs."""
        if (group := self._group(name)) is not None:
            self._ray.util.remove_placement_group(group)
        if (actor := self._actor(name)) is not None:
            self._ray.kill(actor)

    def ship(self, key: str, packed: bytes | None) -> bool:
        """Whether the packed folder is on the cluster, after it was put there if it came along."""
        if packed is not None:
            return keeper.put(key, packed, first=True) or True
        return keeper.get(key) is not None

    def unship(self, study: str) -> None:
        """Forget the shipped folders of a study, unless one of its runs is still there; and what nobody needs to remember."""
        if not any(one.startswith(study) for one in self.names()):
            for key in self._keys(f"{study}/"):
                self.forget(key)
        for name, parts in self._parts().items():
            if parts == {"claim"}:
                claim = json.loads(keeper.get(f"{name}/claim") or b"{}")
                if time.time() - claim.get("cleared_s", 0.0) > _REMEMBERED_S:
                    self.forget(f"{name}/claim")

    def names(self) -> dict[str, str]:
        """Every run of ours that holds nodes, actors or notes on the cluster, with what it holds."""
        found: dict[str, list[str]] = {}
        for one in self._ray.util.placement_group_table().values():
            if one["name"].startswith(PREFIX) and one["state"] != "REMOVED":
                found.setdefault(one["name"], []).append(f"nodes {one['state'].lower()}")
        for actor in self._ray.util.list_named_actors(all_namespaces=True):
            if actor["namespace"] == keeper.NAMESPACE and actor["name"].startswith(PREFIX):
                found.setdefault(actor["name"].partition("#")[0], []).append("a keeper")
        for name, parts in self._parts().items():
            if parts == {"claim"}:
                continue
            if name not in found and self._cleared(name):
                self._forget_run(name)  # last words of a keeper that was ended, written after the run was cleared
            else:
                found.setdefault(name, []).append("notes")
        return {name: ", ".join(held) for name, held in found.items()}

    def _parts(self) -> dict[str, set[str]]:
        """What is kept of each run."""
        found: dict[str, set[str]] = {}
        for key in self._keys(PREFIX):
            name, _, part = key.partition("/")
            if "folder-" not in part:
                found.setdefault(name, set()).add(part)
        return found

    def shipped(self) -> list[str]:
        """Keys of shipped folders."""
        return [key for key in self._keys(PREFIX) if "/folder-" in key]

    def forget(self, key: str) -> None:
        """Remove one thing that is kept."""
        keeper.key_value_store()._internal_kv_del(key.encode(), namespace=keeper.NAMESPACE.encode())

    def offers(self) -> list[dict[str, float]]:
        """The resources of each living node."""
        hidden = ("node:", "object_store_memory")
        return [
            {name: amount for name, amount in one["Resources"].items() if not name.startswith(hidden)}
            for one in self._ray.nodes()
            if one["Alive"]
        ]

    def _keys(self, prefix: str) -> list[str]:
        store = keeper.key_value_store()
        return [one.decode() for one in store._internal_kv_list(prefix.encode(), namespace=keeper.NAMESPACE.encode())]

    def _group(self, name: str) -> Any:
        try:
            return self._ray.util.get_placement_group(name)
        except ValueError:
            return None

    def _actor(self, name: str) -> Any:
        try:
            return self._ray.get_actor(f"{name}#0", namespace=keeper.NAMESPACE)
        except ValueError:
            return None


def _number(value: bytes | None) -> float:
    return 0.0 if value is None else float(value)
