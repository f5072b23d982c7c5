"""Rate limit for wrong tokens: each failure doubles the time for which further wrong tokens of an address are refused unseen.

A right token is always accepted: otherwise a stranger could lock out everyone behind the same proxy or address translation. So the limit
does not slow down an attacker who guesses on: the server compares as many tokens as it can read requests, some thousand per second on one
core. That is why a token needs `SHORTEST_TOKEN` characters of several kinds. A random one of 16 letters and digits is one of 5 * 10**28;
at 10,000 guesses per second half of them take 8 * 10**16 years. The limit ends the noise of programs with an old token, and tells the
user of the sign-in form to stop.
"""

from __future__ import annotations

import hashlib
import secrets
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


@dataclass(frozen=True)
class _Failures:
    count: int
    """Different wrong tokens."""
    last_s: float
    token: bytes
    """A keyed digest of the last one: a program that repeats an old token is not a guesser."""


@dataclass
class LoginLimits:
    """Failures by address. Every different wrong token after the free ones doubles the time for which the address is refused.

    >>> limits = LoginLimits()
    >>> for now in range(6):
    ...     limits.failed("10.0.0.7", f"guess {now}", float(now))
    >>> limits.failed("10.0.0.7", "guess 5", 5.0)  # the same one again does not count
    >>> limits.wait_s("10.0.0.7", 5.0), limits.wait_s("10.0.0.8", 5.0)
    (2.0, 0.0)
    """

    _failures: OrderedDict[str, _Failures] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def wait_s(self, address: str, now: float) -> float:
        """Seconds for which wrong tokens of this address are still refused; 0 when they are not."""
        with self._lock:
            known = self._failures.get(address)
        if known is None or known.count <= FREE_FAILURES or now - known.last_s > FORGOTTEN_S:
            return 0.0
        wait_s = min(FIRST_WAIT_S * 2.0 ** min(known.count - FREE_FAILURES - 1, 20), LONGEST_WAIT_S)
        return max(0.0, known.last_s + wait_s - now)

    def failed(self, address: str, token: str, now: float) -> None:
        """A wrong token came from this address."""
        digest = hashlib.blake2b(token.encode("utf-8", "replace"), key=self._key, digest_size=16).digest()
        with self._lock:
            known = self._failures.pop(address, None)
            if known is None or now - known.last_s > FORGOTTEN_S:
                known = _Failures(1, now, digest)
            elif known.token != digest:
                known = _Failures(known.count + 1, now, digest)
            self._failures[address] = known
            while len(self._failures) > MOST_ADDRESSES:
                self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """The right token came from this address."""
        with self._lock:
            self._failures.pop(address, None)
