"""What the user allows for a recurring job: how far changes may go, when, and for how much money."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from lynceus.errors import InputError
from lynceus.recurring.excluded_times import ExcludedTime, local_time, zone


class Mode(enum.StrEnum):
    """How far changes may go."""

    OBSERVE = "observe"
    """Record and watch."""
    SUGGEST = "suggest"
    """Say what to change, what it would save, and what trying costs."""
    APPLY = "apply"
    """Try it on production runs, and adopt what proves itself."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user allows for a recurring job.

    >>> settings = Settings(mode=Mode.APPLY, exclude=("sat", "sun", "mon-fri 08:00-18:00"))
    >>> settings.excludes(1_795_000_000.0)  # a Wednesday at 10:26 UTC
    True
    """

    mode: Mode = Mode.OBSERVE
    deadline_s: float = math.inf
    """A run that takes longer is late; the tighter one of this and the study's own limit on time counts."""
    late_chance: float = 0.05
    """The largest chance to be late with which a configuration may be tried or adopted."""
    allowance_usd: float = 0.0
    """Dollars that canaries and searches may cost more than the adopted configuration, per calendar month of `timezone`."""
    exclude: tuple[str, ...] = ()
    """Days and hours at which no canary starts: `sat`, `2026-12-24`, `mon-fri 08:00-18:00`."""
    timezone: str = "UTC"
    held: bool = False
    """The kill switch: record and watch only, run what is adopted, whatever `mode` says."""
    canary_cap: float = 1.5
    """A canary is stopped once it costs so many times what the adopted configuration is expected to cost; at the deadline at the latest."""
    horizon_runs: int = 100
    """Runs over which a better configuration is expected to pay back what trying it costs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", _mode(self.mode))
        if not self.deadline_s > 0:
            raise InputError(f"deadline: got {self.deadline_s!r} seconds; give a duration above 0, or none.")
        if not 0 < self.late_chance < 1:
            raise InputError(f"late_chance: got {self.late_chance!r}; give a probability such as 0.05.")
        if not (math.isfinite(self.allowance_usd) and self.allowance_usd >= 0):
            raise InputError(f"allowance: got {self.allowance_usd!r} dollars per month; give an amount of at least 0.")
        if not (math.isfinite(self.canary_cap) and self.canary_cap >= 1):
            raise InputError(
                f"canary_cap: got {self.canary_cap!r}; give at least 1, such as 1.5 for one and a half times the usual cost."
            )
        if self.horizon_runs < 1:
            raise InputError(f"horizon_runs: got {self.horizon_runs!r}; give at least 1 run.")
        zone(self.timezone)
        for text in self.exclude:
            ExcludedTime.parse(text)

    def excludes(self, now_s: float) -> bool:
        """Whether nothing may be tried now."""
        local = local_time(now_s, self.timezone)
        return any(ExcludedTime.parse(text).contains(local) for text in self.exclude)

    def same_month(self, one_s: float, other_s: float) -> bool:
        """Whether two moments share an allowance."""
        one, other = local_time(one_s, self.timezone), local_time(other_s, self.timezone)
        return (one.year, one.month) == (other.year, other.month)


def _mode(mode: str) -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        raise InputError(f"mode: got {mode!r}; give one of {', '.join(Mode)}.") from None
