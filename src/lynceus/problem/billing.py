"""How running time becomes money: granularity, minimum, boot time and fees, and which runs reuse machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.space.column import BoolArray, FloatArray, IntArray
    from lynceus.space.table import Space

_ROUNDING = 1e-9
"""Relative slack when amounts are compared: 0.1 + 0.2 dollars must still fit into 0.3."""


@dataclass(frozen=True, slots=True)
class Billing:
    """How running time becomes money.

    >>> Billing(granularity_s=60, minimum_s=60, boot_s=45).charge(30.0, price_per_second=0.01)
    1.2
    """

    granularity_s: float = 0.0
    """Billed time is rounded up to a multiple of this many seconds; 0 bills continuously."""
    minimum_s: float = 0.0
    """The least number of seconds that is billed for a run."""
    boot_s: float = 0.0
    """Seconds billed before the job starts, when the machines have to be booted for it."""
    fee_usd: float = 0.0
    """Dollars paid once per boot, whatever the machines (set-up work, licences, data transfer)."""
    warm: tuple[str, ...] = ()
    """Columns that identify the machines: a run with the same values as the run before reuses its machines. Empty: every run boots."""
    grace_s: float = 0.0
    """Seconds that a run may go on after it was told to stop; they are reserved with its timeout, and charged if it uses them."""

    def __post_init__(self) -> None:
        for name in ("granularity_s", "minimum_s", "boot_s", "fee_usd", "grace_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"billing: {name} is {value!r}; give a finite number of at least 0.")

    @property
    def linear(self) -> bool:
        """Whether cost is simply time × price."""
        return not (self.granularity_s or self.minimum_s or self.boot_s or self.fee_usd)

    def charge(self, seconds: float, price_per_second: float, *, boots: bool = True) -> float:
        """Dollars for a run of `seconds` at a price. Plain floats: every decision sums up all observations, run by run."""
        if self.linear:
            return seconds * price_per_second
        billed = seconds + (self.boot_s if boots else 0.0)
        if self.granularity_s:
            # The slack keeps 120.00000000000001 s from being billed as three minutes.
            billed = math.ceil(billed / self.granularity_s - _ROUNDING) * self.granularity_s
        return max(billed, self.minimum_s) * price_per_second + (self.fee_usd if boots else 0.0)

    def largest_charge(self, timeout_s: float, price_per_second: float, *, boots: bool = True) -> float:
        """Dollars for a run that is stopped at its timeout and uses its grace period: what is reserved for it."""
        return self.charge(timeout_s + self.grace_s, price_per_second, boots=boots)

    def charges(self, seconds: FloatArray, price_per_second: FloatArray, *, boots: bool = True) -> FloatArray:
        """Like `charge`, for arrays that broadcast."""
        if self.linear:
            return seconds * price_per_second
        billed = seconds + (self.boot_s if boots else 0.0)
        if self.granularity_s:
            billed = np.ceil(billed / self.granularity_s - _ROUNDING) * self.granularity_s
        return np.maximum(billed, self.minimum_s) * price_per_second + (self.fee_usd if boots else 0.0)

    def seconds_for(
        self, dollars: FloatArray, price_per_second: FloatArray, *, boots: bool | BoolArray = True
    ) -> FloatArray:
        """The longest run that `dollars` pay for; −inf when they do not even cover its start. `boots` may differ by row."""
        if self.linear:
            return dollars / price_per_second
        billed = (dollars - np.where(boots, self.fee_usd, 0.0)) * (1 + _ROUNDING) / price_per_second
        covered = billed >= self.minimum_s
        if self.granularity_s:
            with np.errstate(invalid="ignore"):
                billed = np.floor(billed / self.granularity_s + _ROUNDING) * self.granularity_s
        seconds = np.where(np.isinf(billed), billed, billed - np.where(boots, self.boot_s, 0.0))
        return np.where(covered & (seconds >= 0), seconds, -np.inf)

    def timeouts_for(
        self, dollars: FloatArray, price_per_second: FloatArray, *, boots: bool | BoolArray = True
    ) -> FloatArray:
        """The longest timeout whose largest charge `dollars` pay for; negative when they do not cover the grace period."""
        return self.seconds_for(dollars, price_per_second, boots=boots) - self.grace_s


@lru_cache(maxsize=32)
def machine_groups(space: Space, warm: tuple[str, ...]) -> IntArray:
    """A number per configuration `[q]`, equal where two runs in a row use the same machines (equal values in the columns `warm`).

    All −1 when `warm` is empty, because then every run boots.
    """
    if not warm:
        return np.full(len(space), -1, dtype=np.int64)
    keys: dict[tuple[object, ...], int] = {}
    columns = [space.column(name) for name in warm]
    return np.array([keys.setdefault(key, len(keys)) for key in zip(*columns, strict=True)], dtype=np.int64)
