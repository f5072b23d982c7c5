"""Authorization: the read and the write token, browser sessions and CSRF tokens.

A session that began with one of these two tokens is a signed cookie; the server stores only which of them were signed out (`sessions.py`).
Cookies of viewers are signed with the read token and cookies of admins with the write token, so the read token alone cannot forge the
session of an admin, and a new token ends all sessions of the old one. Sessions of named tokens are in the storage (`named_tokens.py`):
nothing that is stored there could sign them without letting its readers sign in.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass

from lynceus.errors import InputError
from lynceus.storage.access_token import PREFIX, Role

SHORTEST_TOKEN = 16
FEWEST_CHARACTERS = 8
"""Different characters in a token: `aaaaaaaaaaaaaaaa` is long, but one of the first guesses."""
SESSION_S = 12 * 3600.0
"""How long a browser stays signed in."""
COOKIE = "lynceus_session"


@dataclass(frozen=True)
class Access:
    """Tokens, and the host names that the server answers to.

    >>> access = Access(write_token="correct-horse-battery")
    >>> access.role_of("correct-horse-battery"), access.role_of("guess"), access.anonymous
    (<Role.ADMIN: 'admin'>, None, <Role.VIEWER: 'viewer'>)
    """

    read_token: str | None = None
    """Has the role viewer. None: every request may read, unless `closed`."""
    write_token: str | None = None
    """Has the role admin. None: only named tokens allow changes."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Values that the header Host may have. Any other value may be an attempt at DNS rebinding."""
    closed: bool = False
    """Reading needs a token, also without a read token: a named one, or the write token."""

    def __post_init__(self) -> None:
        for name, token in (("read", self.read_token), ("write", self.write_token)):
            if token is None:
                continue
            different = len(set(token))
            printable = token.isascii() and token.isprintable() and " " not in token
            if len(token) < SHORTEST_TOKEN or different < FEWEST_CHARACTERS or not printable:
                raise InputError(
                    f"the {name} token has {len(token)} characters, {different} of them different; give at least {SHORTEST_TOKEN} "
                    f"printable ASCII characters without spaces, {FEWEST_CHARACTERS} of them different, for example from: "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'."
                )
        if self.read_token is not None and self.read_token == self.write_token:
            raise InputError(
                "the read token and the write token are the same, so readers could write; use two different tokens."
            )

    @property
    def anonymous(self) -> Role | None:
        """The role of a request without any token; None: it may do nothing."""
        return None if self.closed or self.read_token is not None else Role.VIEWER

    def role_of(self, token: str) -> Role | None:
        """The role of the read or the write token; None for any other. Takes the same time for every wrong token."""
        given = token.encode("utf-8", "replace")
        found = None
        for role, expected in ((Role.VIEWER, self.read_token), (Role.ADMIN, self.write_token)):
            same = hmac.compare_digest(given, (expected or "").encode())
            if same and expected is not None:
                found = role
        return found

    def new_session(self, role: Role, now: float) -> str:
        """The cookie of a new session: role, expiry time, random text, signature."""
        payload = f"{role}.{int(now + SESSION_S)}.{secrets.token_urlsafe(12)}"
        return f"{payload}.{self._signature(role, 'session', payload)}"

    def session_role(self, cookie: str, now: float) -> Role | None:
        """The role of a session cookie; None when its signature is wrong or it has expired."""
        payload, _, signature = cookie.rpartition(".")
        try:
            name, expires, _ = payload.split(".")
            valid = float(expires) > now
            role = Role(name)
        except ValueError:
            return None
        if self._token(role) is None:
            return None
        genuine = hmac.compare_digest(signature.encode(), self._signature(role, "session", payload).encode())
        return role if genuine and valid else None

    def csrf_token(self, cookie: str) -> str:
        """What our own pages send with every change. Other sites cannot read it, even if the browser sends the cookie for them."""
        if cookie.startswith(PREFIX):  # the session of a named token: a secret itself
            return hmac.new(cookie.encode(), b"lynceus csrf", hashlib.sha256).hexdigest()
        role = Role(cookie.partition(".")[0])
        return self._signature(role, "csrf", cookie)

    def _token(self, role: Role) -> str | None:
        return {Role.VIEWER: self.read_token, Role.ADMIN: self.write_token}.get(role)

    def _signature(self, role: Role, purpose: str, text: str) -> str:
        key = hashlib.sha256(f"lynceus {purpose} {self._token(role)}".encode()).digest()
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def session_id(cookie: str) -> str:
    """The random text of a session cookie with a right signature.

    >>> session_id(Access(write_token="correct-horse-battery").new_session(Role.ADMIN, now=0.0)).isascii()
    True
    """
    return cookie.split(".")[2]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(host: str, access: Access) -> None:
    """Refuse to listen on the network where everybody may read."""
    if not is_loopback(host) and access.anonymous is not None:
        raise InputError(
            f"dashboard: {host} can be reached from other machines, so a read token is needed; set LYNCEUS_READ_TOKEN or give "
            "--read-token-file, or let named tokens alone read with --require-token, or leave --host out."
        )


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("LocalHost:8080"), host_name("[::1]:80"), host_name("::1")
    ('localhost', '::1', '::1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.lower() if header.count(":") > 1 else header.partition(":")[0].lower()
