"""What is said of runs that nobody could supervise to their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lynceus.executor.directory import failed

_GIB = 1 << 30


def vanished(found: dict[str, Any], *, cancelled: bool) -> dict[str, Any]:
    """The end of a run whose keeper died, from what the cluster last heard of it."""
    seconds = float(found["seconds"])
    if cancelled:
        when = f"after {seconds:.1f} s" if seconds else "before it began"
        return failed(f"ended on request {when}", reason="user", seconds=seconds)
    if found["swept"]:
        return failed("it was swept away (lynceus gc); charged up to its last sign of life", seconds=seconds)
    what = {
        "preempted": f"the node {found['node']} was taken back",
        "oom": f"the node {found['node']} ran out of memory, and Ray ended the run",
    }.get(found["reason"], f"the node {found['node']} or its keeper was lost")
    return failed(f"{what}; charged up to its last sign of life", reason=found["reason"], seconds=seconds)


def no_capacity(each: Sequence[dict[str, float]], offers: Sequence[dict[str, float]], waited_s: float) -> str:
    """What was wanted in vain, and what there is.

    >>> no_capacity([{"CPU": 8, "memory": 2**31}], [{"CPU": 4.0}, {"CPU": 2.0, "m.large": 1.0}], 60)
    'the Ray cluster has no capacity for it: 1 node with 8 CPU, 2 GiB memory wanted for 60 s, but its nodes have 4 CPU; 2 CPU, 1 m.large'
    """
    wanted = f"{len(each)} node{'s' if len(each) > 1 else ''} with {_amounts(each[0])}"
    has = "; ".join(map(_amounts, offers)) or "nothing"
    return f"the Ray cluster has no capacity for it: {wanted} wanted for {waited_s:g} s, but its nodes have {has}"


def _amounts(resources: dict[str, float]) -> str:
    return ", ".join(
        f"{amount / _GIB:.3g} GiB memory" if name == "memory" else f"{amount:g} {name}"
        for name, amount in resources.items()
    )
