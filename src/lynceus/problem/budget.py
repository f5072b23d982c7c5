"""How much the exploration may use."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.errors import InputError


@dataclass(frozen=True, slots=True)
class Budget:
    """What the exploration may use: of the whole study, whatever the number of workers."""

    usd: float = math.inf
    """Dollars for all runs together; never exceeded."""
    trials: int | None = None
    """The largest number of runs that are started; None for no limit."""
    wall_clock_s: float | None = None
    """Seconds from the start of the study after which no run is started; None for no limit."""

    def __post_init__(self) -> None:
        if math.isnan(self.usd) or self.usd <= 0:
            raise InputError(
                f"budget: {self.usd!r} dollars is no budget; give a positive amount, for example '25 USD'."
            )
        if self.trials is not None and self.trials < 1:
            raise InputError(f"budget: max_trials is {self.trials}; give at least 1.")
        if self.wall_clock_s is not None and not self.wall_clock_s > 0:
            raise InputError(
                f"budget: wall_clock is {self.wall_clock_s!r} seconds; give a positive duration, for example '12h'."
            )
