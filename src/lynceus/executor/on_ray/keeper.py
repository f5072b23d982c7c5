"""The actor beside every run: it has the job supervised on its node, tells the cluster how the run stands, and leaves when it is over.

The class goes to the nodes by value: it uses Ray and the standard library, and nothing of Lynceus need be installed there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
import zlib
from typing import Any

from lynceus.executor.on_ray import node

NAMESPACE = "lynceus"
"""Of actors, placement groups and keys."""
BEAT_S = 1.0
_LINGER_S = 5.0
"""Whoever waits for the end is told of it before the actor goes."""
_RETRY_S = 2.0


def key_value_store() -> Any:
    """The cluster's own store; it lives on the head, so it outlives every other node."""
    from ray.experimental import internal_kv

    return internal_kv


def put(key: str, value: bytes, *, first: bool = False) -> bool:
    """Keep a value; with `first` only where none is kept yet. False: there is one already."""
    existed = key_value_store()._internal_kv_put(key.encode(), value, overwrite=not first, namespace=NAMESPACE.encode())
    return not (first and existed)


def get(key: str) -> bytes | None:
    """What is kept under a key."""
    found: bytes | None = key_value_store()._internal_kv_get(key.encode(), namespace=NAMESPACE.encode())
    return found


class Keeper:
    """Keeps one run on one node. The keeper of the first node leads those of the others."""

    def __init__(self, name: str, rank: int, lonely_s: float) -> None:
        self._name, self._rank = name, rank
        self._work = node.Work(rank)
        self._leading: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._heard_s = time.monotonic()
        threading.Thread(target=self._leave_when_lonely, args=(lonely_s,), daemon=True).start()

    async def start(self, parcel: dict[str, Any], private: dict[str, Any], mates: list[Any]) -> None:
        """Run the job, once, however often this is asked."""
        if self._leading is None:
            self._leading = asyncio.ensure_future(self._lead(parcel, private, mates))

    async def run(self, parcel: dict[str, Any], private: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
        """Run the job on a further node, for the leader; returns how it ended."""
        return await asyncio.to_thread(self._work.whole, parcel, private, nodes, self._name)

    async def cancel(self) -> None:
        """End the job: SIGTERM now, SIGKILL after its grace period."""
        self._work.cancel()

    async def seen(self) -> None:
        """The leader lives."""
        self._heard_s = time.monotonic()

    async def ended(self) -> None:
        """Returns when the run is over and its outcome is kept."""
        await self._over.wait()

    async def output(self, offsets: dict[str, int]) -> dict[str, bytes]:
        """What the job wrote since, for people who watch."""
        return await asyncio.to_thread(self._work.output, offsets)

    async def _lead(self, parcel: dict[str, Any], private: dict[str, Any], mates: list[Any]) -> None:
        try:
            nodes = await asyncio.to_thread(self._addresses)
            claim = json.dumps({"node": os.uname().nodename, "began_s": time.time(), "nodes": nodes}).encode()
            claimed = await asyncio.to_thread(lambda: put(f"{self._name}/claim", claim, first=True))
        except Exception:  # nothing has begun: whoever looks finds nothing here, and hands it over again
            await asyncio.to_thread(self._leave)
            return
        if claimed:
            beats = asyncio.ensure_future(self._beat(mates))
            try:
                told = await self._together(parcel, private, mates, nodes)
            except Exception as error:  # whatever it is, what was paid for must be told
                told = node.failed(f"its keeper failed: {type(error).__name__}: {error}", seconds=self._work.seconds())
            beats.cancel()
            await self._deliver(told)
        self._over.set()
        await asyncio.sleep(_LINGER_S)
        await asyncio.to_thread(self._leave)

    async def _together(
        self, parcel: dict[str, Any], private: dict[str, Any], mates: list[Any], nodes: list[str]
    ) -> dict[str, Any]:
        """The job on all nodes: it is over when the first node's command ends, or when another's fails."""
        own = asyncio.ensure_future(self.run(parcel, private, nodes))
        others = {asyncio.ensure_future(_of(mate.run.remote(parcel, private, nodes))): mate for mate in mates}
        blamed: dict[str, Any] | None = None
        open_ones = {own, *others}
        while not own.done():
            done, open_ones = await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
            for one in done - {own}:
                told = _told(one)
                if told["end"] != "finished" and blamed is None and not own.done():
                    where = nodes[1 + list(others).index(one)] if len(nodes) > 1 else "another node"
                    blamed = {**told, "detail": f"on {where}: {told['detail'] or told['end']}"}
                    self._work.cancel()
        for mate in others.values():
            mate.cancel.remote()
        if others:
            await asyncio.wait(list(others), timeout=parcel["record"]["grace_s"] + 10.0)
        told = own.result()
        if blamed is not None and told.get("reason") == "user":
            told |= {"end": blamed["end"], "reason": blamed.get("reason"), "detail": blamed["detail"]}
        return told

    async def _beat(self, mates: list[Any]) -> None:
        """Signs of life: to the cluster for whoever settles the run, to the other nodes so that they go on."""
        while True:
            with contextlib.suppress(Exception):
                seconds = str(self._work.seconds()).encode()
                await asyncio.to_thread(put, f"{self._name}/alive", seconds)
            for mate in mates:
                mate.seen.remote()
            await asyncio.sleep(BEAT_S)

    async def _deliver(self, told: dict[str, Any]) -> None:
        """The output first, the outcome last: who finds an outcome finds all. A head that is away for a moment is waited for."""
        parts = {stream: zlib.compress(data) for stream, data in self._work.output({}).items()}
        parts["outcome"] = json.dumps(told).encode()
        for part, data in parts.items():
            while True:
                try:
                    await asyncio.to_thread(put, f"{self._name}/{part}", data)
                    break
                except Exception:
                    await asyncio.sleep(_RETRY_S)
        await asyncio.to_thread(self._work.remove)

    def _addresses(self) -> list[str]:
        """Of the nodes of this run, in the order of their ranks."""
        ray = _ray()
        table = ray.util.placement_group_table(ray.util.get_placement_group(self._name))
        address = {one["NodeID"]: one["NodeManagerAddress"] for one in ray.nodes()}
        placed = table["bundles_to_node_id"]
        return [address[placed[bundle]] for bundle in sorted(placed)]

    def _leave_when_lonely(self, lonely_s: float) -> None:
        """Nobody started us, or our leader is gone: what we hold is given back."""
        while self._leading is None:
            time.sleep(BEAT_S)
            if time.monotonic() - self._heard_s > lonely_s and self._leading is None:
                self._leave()

    def _leave(self) -> None:
        """Give the nodes back; Ray then ends every keeper in them, and the kernel whatever they started."""
        ray = _ray()
        with contextlib.suppress(Exception):
            ray.util.remove_placement_group(ray.util.get_placement_group(self._name))
            time.sleep(_LINGER_S)
        os._exit(0)


def _ray() -> Any:
    import ray

    return ray


async def _of(reference: Any) -> dict[str, Any]:
    told: dict[str, Any] = await reference
    return told


def _told(one: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
    error = one.exception()
    return one.result() if error is None else node.failed(f"the node was lost ({type(error).__name__})")
