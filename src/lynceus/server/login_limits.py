"""Rate limit for wrong tokens: each failure doubles the time that an address must wait."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

FREE_FAILURES = 5
"""Failures before the first wait."""
FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 900.0
FORGOTTEN_S = 3600.0
"""Failures are forgotten after an hour without a new one."""
MOST_ADDRESSES = 10_000
"""Addresses that are remembered; the one whose last failure is oldest is dropped first."""


@dataclass
class LoginLimits:
    """Failures by address. Every failure after the free ones doubles the time for which the address is refused.

    >>> limits = LoginLimits()
    >>> for now in range(6):
    ...     limits.failed("10.0.0.7", float(now))
    >>> limits.wait_s("10.0.0.7", 5.0), limits.wait_s("10.0.0.8", 5.0)
    (2.0, 0.0)
    """

    _failures: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_s(self, address: str, now: float) -> float:
        """Seconds that this address must still wait; 0 when it need not."""
        with self._lock:
            count, last = self._failures.get(address, (0, 0.0))
        if count <= FREE_FAILURES or now - last > FORGOTTEN_S:
            return 0.0
        return max(0.0, last + min(FIRST_WAIT_S * 2.0 ** min(count - FREE_FAILURES - 1, 20), LONGEST_WAIT_S) - now)

    def failed(self, address: str, now: float) -> None:
        """A wrong token came from this address."""
        with self._lock:
            count, last = self._failures.pop(address, (0, now))
            self._failures[address] = (1 if now - last > FORGOTTEN_S else count + 1, now)
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """The right token came from this address."""
        with self._lock:
            self._failures.pop(address, None)
