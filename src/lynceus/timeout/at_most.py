"""A cap that no run may exceed, whatever another cap says."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.history import Plan
from lynceus.parts import Cap
from lynceus.situation import Situation
from lynceus.timeout.cap import NoCap


@dataclass(frozen=True, slots=True)
class AtMost:
    """The least of a fixed time and another cap; it also binds runs that a design lets finish (hanging jobs burn money, too)."""

    seconds: float
    cap: Cap = field(default_factory=NoCap)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"a cap of {self.seconds!r} seconds lets nothing run")

    def __call__(self, situation: Situation, plan: Plan) -> float:
        """Seconds until the stop."""
        return min(self.seconds, self.cap(situation, plan))
