"""Named tokens for the server: who holds one, what it allows, and how its secret is checked.

Only the SHA-256 of a secret is stored. A slow hash, as passwords need, would gain nothing: a password is guessed because people choose it
from few, while a secret here is 32 random bytes, and nobody tries 2**255 of them at any speed. It would only make every request slow.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from lynceus.errors import InputError

PREFIX = "lyn_"
"""Secret scanners find a token that was committed or logged by this: `lyn_[A-Za-z0-9_-]{43}`."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


class Role(enum.StrEnum):
    """What a holder of a token may do; each role may also do what the roles before it may."""

    VIEWER = "viewer"
    """Read."""
    RUNNER = "runner"
    """Create studies, order runs, record results."""
    ADMIN = "admin"
    """Delete, set budgets, manage tokens."""

    def allows(self, needed: Role) -> bool:
        """Whether this role may do what needs another one.

        >>> Role.RUNNER.allows(Role.VIEWER), Role.RUNNER.allows(Role.ADMIN)
        (True, False)
        """
        roles = list(Role)
        return roles.index(self) >= roles.index(needed)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A named token, without its secret. Moments are seconds since the epoch."""

    name: str
    role: Role
    created_s: float
    created_by: str
    """The user of a command, or the token of a client; empty when it is not known."""
    last_used_s: float | None = None
    """To the minute; None: never."""
    expires_s: float | None = None
    """None: never."""

    def expired(self, now_s: float) -> bool:
        """Whether its time is over."""
        return self.expires_s is not None and now_s >= self.expires_s


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the storage has it."""

    id: int
    token: AccessToken
    digest: str = field(repr=False)
    """The SHA-256 of its secret, as hexadecimal digits."""

    def has_secret(self, digest: str) -> bool:
        """Whether this is the digest of its secret; takes the same time for every wrong one."""
        return hmac.compare_digest(self.digest, digest)


def new_secret() -> str:
    """A secret that nobody can guess.

    >>> re.fullmatch("lyn_[A-Za-z0-9_-]{43}", new_secret()) is not None
    True
    """
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def check_token_name(name: str) -> None:
    """Refuse a text that cannot name a token."""
    if _NAME.fullmatch(name) is None:
        raise InputError(
            f"token: got the name {name[:60]!r}; give up to 100 letters, digits and . _ @ -, such as ana or airflow."
        )
