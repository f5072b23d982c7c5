"""The pair of a cap and a fill."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.parts import Cap, Fill
from lynceus.timeout.cap import NoCap
from lynceus.timeout.fill import LowerBound


@dataclass(frozen=True)
class Timeout:
    """When runs are stopped, and what is told then. A budget may stop a run even without a cap, so a fill is always there."""

    cap: Cap = field(default_factory=NoCap)
    fill: Fill = field(default_factory=LowerBound)
