"""Outcomes and messages of runs whose supervisor could not record how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed

_GIB = 1 << 30


def lost_run(found: dict[str, Any], *, cancelled: bool) -> OutcomeRecord:
    """The outcome of a run whose actor died, from the cluster's last information about it."""
    seconds = float(found["seconds"])
    if cancelled:
        when = f"after {seconds:.1f} s" if seconds else "before it started"
        return failed(f"cancelled {when}", reason="user", seconds=seconds)
    if found["cleared"]:
        return failed("removed by lynceus gc; charged up to the last heartbeat", seconds=seconds)
    cause = {
        "preempted": f"the node {found['node']} was preempted",
        "oom": f"the node {found['node']} ran out of memory, and Ray stopped the run",
    }.get(found["reason"], f"the node {found['node']} or its actor was lost")
    return failed(f"{cause}; charged up to the last heartbeat", reason=found["reason"], seconds=seconds)


def no_capacity(bundles: Sequence[dict[str, float]], nodes: Sequence[dict[str, float]], waited_s: float) -> str:
    """What was requested, and what the nodes have.

    >>> no_capacity([{"CPU": 8, "memory": 2**31}], [{"CPU": 4.0}, {"CPU": 2.0, "m.large": 1.0}], 60)
    'the Ray cluster has no capacity: it waited 60 s for 1 node with 8 CPU, 2 GiB memory, but the nodes have 4 CPU; 2 CPU, 1 m.large'
    """
    wanted = f"{len(bundles)} node{'s' if len(bundles) > 1 else ''} with {_amounts(bundles[0])}"
    available = "; ".join(map(_amounts, nodes)) or "no resources"
    return f"the Ray cluster has no capacity: it waited {waited_s:g} s for {wanted}, but the nodes have {available}"


def _amounts(resources: dict[str, float]) -> str:
    return ", ".join(
        f"{amount / _GIB:.3g} GiB memory" if name == "memory" else f"{amount:g} {name}"
        for name, amount in resources.items()
    )
