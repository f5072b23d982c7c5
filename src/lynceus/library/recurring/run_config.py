"""What a run of a recurring job is to have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunConfig:
    """What one run of a job is to have, or every run until the next version."""

    job: str
    version: int
    params: Mapping[str, Any]
    run_id: str | None = None
    """None: it is for no run in particular."""
    canary: bool = False
    """Whether the run tries this version; it must be stopped after `timeout_s`."""
    timeout_s: float = math.inf
    """Seconds after which a canary is stopped; production runs of the adopted version never are."""
    instead_usd: float | None = None
    """Of a canary: what the adopted version is expected to cost."""
    reason: str = ""
    stale: bool = False
    """Whether the storage was away, and this is the last version that this host saw."""
