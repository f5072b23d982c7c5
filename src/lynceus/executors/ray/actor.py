"""The actor of a run: has the job supervised on its node, writes its state to the cluster's store, and exits when the run has ended.

The class is sent to the nodes by value. It uses Ray and the standard library only, so Lynceus need not be installed there. Keys and the
names and arguments of remote methods must not change: a newer Lynceus talks to the actors that an older one started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

from lynceus.executors.ray import node
from lynceus.executors.supervisor.outcome_record import failed

if TYPE_CHECKING:
    from lynceus.executors.supervisor.outcome_record import OutcomeRecord

NAMESPACE = "lynceus"
"""Of actors, placement groups and keys."""
HEARTBEAT_S = 1.0
_EXIT_DELAY_S = 5.0
"""Lets processes that wait for the end of the run receive their answer before the actor exits."""
_RETRY_S = 2.0
_CLAIM_TRIES = 10


def key_value_store() -> Any:
    """The cluster's own store. It is on the head, so it survives every other node."""
    from ray.experimental import internal_kv

    return internal_kv


def put(key: str, value: bytes, *, first: bool = False) -> bool:
    """Store a value; with `first` only if the key does not exist. Returns false if it does."""
    existed = key_value_store()._internal_kv_put(key.encode(), value, overwrite=not first, namespace=NAMESPACE.encode())
    return not (first and existed)


def get(key: str) -> bytes | None:
    """The value of a key; None if there is none."""
    found: bytes | None = key_value_store()._internal_kv_get(key.encode(), namespace=NAMESPACE.encode())
    return found


class RunActor:
    """One run on one node. The actor of the first node leads those of the others."""

    def __init__(self, name: str, rank: int, idle_timeout_s: float) -> None:
        self._name, self._rank = name, rank
        self._run = node.NodeRun(rank)
        self._leading: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._leader_seen_s = time.monotonic()
        threading.Thread(target=self._exit_when_idle, args=(idle_timeout_s,), daemon=True).start()

    async def start(self, payload: dict[str, Any], private: dict[str, Any], followers: list[Any]) -> None:
        """Run the job once, however often this is called."""
        if self._leading is None:
            self._leading = asyncio.ensure_future(self._lead(payload, private, followers))

    async def run(self, payload: dict[str, Any], private: dict[str, Any], nodes: list[str]) -> OutcomeRecord:
        """Run the job on this node; returns how it ended. Called by the leader."""
        return await asyncio.to_thread(self._run.execute, payload, private, nodes, self._name)

    async def cancel(self) -> None:
        """Stop the job: SIGTERM now, SIGKILL after its grace period."""
        self._run.cancel()

    async def seen(self) -> None:
        """The leader's heartbeat."""
        self._leader_seen_s = time.monotonic()

    async def ended(self) -> None:
        """Returns when the run has ended and its outcome is stored."""
        await self._over.wait()

    async def output(self, offsets: dict[str, int]) -> dict[str, bytes]:
        """What the job has written since these offsets, by stream."""
        return await asyncio.to_thread(self._run.output, offsets)

    async def _lead(self, payload: dict[str, Any], private: dict[str, Any], followers: list[Any]) -> None:
        try:
            nodes, claimed = await self._claim()
        except Exception:  # the run has not started: Lynceus will find no actor and launch it again
            await asyncio.to_thread(self._exit)
            return
        if claimed:
            heartbeats = asyncio.ensure_future(self._send_heartbeats(followers))
            try:
                record = await self._run_on_all(payload, private, followers, nodes)
            except Exception as error:  # whatever happened, the time used must be charged
                detail = f"the actor failed: {type(error).__name__}: {error}"
                record = failed(detail, seconds=self._run.seconds())
            heartbeats.cancel()
            await self._store(record)
        self._over.set()
        await asyncio.sleep(_EXIT_DELAY_S)
        await asyncio.to_thread(self._exit)

    async def _claim(self) -> tuple[list[str], bool]:
        """The addresses of the nodes, and whether the run is ours to start. A busy head that does not answer is asked again."""
        claim, left = b"", _CLAIM_TRIES
        while True:
            left -= 1
            try:
                nodes = await asyncio.to_thread(self._addresses)
                claim = claim or self._new_claim(nodes)
                claimed = await asyncio.to_thread(put, f"{self._name}/claim", claim, first=True)
                # The claim may be ours although we were told that there is one: the answer to an earlier attempt was lost.
                return nodes, claimed or await asyncio.to_thread(get, f"{self._name}/claim") == claim
            except Exception:
                if not left:
                    raise
                await asyncio.sleep(_RETRY_S)

    @staticmethod
    def _new_claim(nodes: list[str]) -> bytes:
        claim = {"node": os.uname().nodename, "began_s": time.time(), "nodes": nodes, "by": os.urandom(8).hex()}
        return json.dumps(claim).encode()

    async def _run_on_all(
        self, payload: dict[str, Any], private: dict[str, Any], followers: list[Any], nodes: list[str]
    ) -> OutcomeRecord:
        """Run the job on all nodes. It ends when the command of the first node ends, or when another one fails."""
        own = asyncio.ensure_future(self.run(payload, private, nodes))
        others = {asyncio.ensure_future(_result_of(one.run.remote(payload, private, nodes))): one for one in followers}
        first_failure: OutcomeRecord | None = None
        pending = {own, *others}
        while not own.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for one in done - {own}:
                record = _record_of(one)
                if record["end"] != "finished" and first_failure is None and not own.done():
                    where = nodes[1 + list(others).index(one)] if len(nodes) > 1 else "another node"
                    first_failure = {**record, "detail": f"on {where}: {record['detail'] or record['end']}"}
                    self._run.cancel()
        for follower in others.values():
            follower.cancel.remote()
        if others:
            await asyncio.wait(list(others), timeout=payload["record"]["grace_s"] + 10.0)
        record = own.result()
        if (
            first_failure is not None and record.get("reason") == "user"
        ):  # it was cancelled because the other one failed
            return {
                **record,
                "end": first_failure["end"],
                "reason": first_failure.get("reason"),
                "detail": first_failure["detail"],
            }
        return record

    async def _send_heartbeats(self, followers: list[Any]) -> None:
        """To the cluster's store, so that a lost run can be charged; to the other nodes, so that they continue."""
        while True:
            with contextlib.suppress(Exception):
                seconds = str(self._run.seconds()).encode()
                await asyncio.to_thread(put, f"{self._name}/alive", seconds)
            for follower in followers:
                follower.seen.remote()
            await asyncio.sleep(HEARTBEAT_S)

    async def _store(self, record: OutcomeRecord) -> None:
        """Store the output, then the outcome: if there is an outcome, the output is complete. Retries while the head is unavailable."""
        parts = {stream: zlib.compress(data) for stream, data in self._run.output({}).items()}
        parts["outcome"] = json.dumps(record).encode()
        for part, data in parts.items():
            while True:
                try:
                    await asyncio.to_thread(put, f"{self._name}/{part}", data)
                    break
                except Exception:
                    await asyncio.sleep(_RETRY_S)
        await asyncio.to_thread(self._run.remove)

    def _addresses(self) -> list[str]:
        """The addresses of this run's nodes, by rank."""
        ray = _ray()
        table = ray.util.placement_group_table(ray.util.get_placement_group(self._name))
        address = {one["NodeID"]: one["NodeManagerAddress"] for one in ray.nodes()}
        placed = table["bundles_to_node_id"]
        return [address[placed[bundle]] for bundle in sorted(placed)]

    def _exit_when_idle(self, timeout_s: float) -> None:
        """Release the nodes if this actor is never started, or if its leader is gone."""
        while self._leading is None:
            time.sleep(HEARTBEAT_S)
            if time.monotonic() - self._leader_seen_s > timeout_s and self._leading is None:
                self._exit()

    def _exit(self) -> None:
        """Remove the placement group; Ray then ends every actor in it, and the kernel what they started."""
        ray = _ray()
        with contextlib.suppress(Exception):
            ray.util.remove_placement_group(ray.util.get_placement_group(self._name))
            time.sleep(_EXIT_DELAY_S)
        os._exit(0)


def _ray() -> Any:
    import ray

    return ray


async def _result_of(reference: Any) -> OutcomeRecord:
    record: OutcomeRecord = await reference
    return record


def _record_of(one: asyncio.Future[OutcomeRecord]) -> OutcomeRecord:
    error = one.exception()
    return one.result() if error is None else failed(f"the node was lost ({type(error).__name__})")
