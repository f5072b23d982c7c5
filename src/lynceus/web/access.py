"""Who may do what: tokens, browser sessions, and the token that tells a page of ours from a page of somebody else.

Nothing is kept on the server: a session is a signed note in a cookie. Notes of readers are signed with the read token and notes of
writers with the write token, so that whoever knows only the read token cannot make a writer's note.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass

from lynceus.errors import InputError

SHORTEST_TOKEN = 16
SESSION_S = 12 * 3600.0
"""How long a browser stays signed in."""
COOKIE = "lynceus_session"


class Role(enum.StrEnum):
    """What a request may do."""

    NOBODY = "nobody"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Access:
    """Tokens, and the names under which the server is reached.

    >>> access = Access(write_token="correct-horse-battery")
    >>> access.role_of("correct-horse-battery"), access.role_of("guess"), access.without_token
    (<Role.WRITE: 'write'>, None, <Role.READ: 'read'>)
    """

    read_token: str | None = None
    """Needed to read; nothing: whoever reaches the server may read."""
    write_token: str | None = None
    """Needed to change anything; nothing: nobody may."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Names that the header Host may have. A foreign name means that a page elsewhere was pointed at this server."""

    def __post_init__(self) -> None:
        for name, token in (("read", self.read_token), ("write", self.write_token)):
            if token is None:
                continue
            if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
                raise InputError(
                    f"the {name} token has {len(token)} characters; give at least {SHORTEST_TOKEN} letters, digits or signs without "
                    "blanks, for example from: python -c 'import secrets; print(secrets.token_urlsafe(32))'."
                )
        if self.read_token is not None and self.read_token == self.write_token:
            raise InputError(
                "the read token and the write token are the same; whoever may read could write, so make two."
            )

    @property
    def without_token(self) -> Role:
        """What a request without any token may do."""
        return Role.READ if self.read_token is None else Role.NOBODY

    def role_of(self, token: str) -> Role | None:
        """What the bearer of a token may do; nothing: the token is wrong. Takes the same time for every wrong token."""
        given = token.encode("utf-8", "replace")
        found = None
        for role, known in ((Role.READ, self.read_token), (Role.WRITE, self.write_token)):
            same = hmac.compare_digest(given, (known or "").encode())
            if same and known is not None:
                found = role
        return found

    # Sessions ----------------------------------------------------------------------------------------------------------

    def new_session(self, role: Role, now: float) -> str:
        """A note for the cookie of a browser: role, end, luck, signature."""
        note = f"{role}.{int(now + SESSION_S)}.{secrets.token_urlsafe(12)}"
        return f"{note}.{self._signed(role, 'session', note)}"

    def session_role(self, cookie: str, now: float) -> Role | None:
        """What the bearer of a note may do; nothing: it is no note of ours, or it is too old."""
        note, _, signature = cookie.rpartition(".")
        try:
            role, until, _ = note.split(".")
            alive = float(until) > now
            known = Role(role)
        except ValueError:
            return None
        if known is Role.NOBODY or self._token(known) is None:
            return None
        true = hmac.compare_digest(signature.encode(), self._signed(known, "session", note).encode())
        return known if true and alive else None

    def csrf_token(self, cookie: str) -> str:
        """What a page of ours sends with every change. Pages elsewhere cannot read it, although a browser may send them our cookie."""
        role = Role(cookie.partition(".")[0])
        return self._signed(role, "csrf", cookie)

    def _token(self, role: Role) -> str | None:
        return self.write_token if role is Role.WRITE else self.read_token

    def _signed(self, role: Role, purpose: str, text: str) -> str:
        key = hashlib.sha256(f"lynceus {purpose} {self._token(role)}".encode()).digest()
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether an address reaches only this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(host: str, access: Access) -> None:
    """Refuse to show studies to a network without a token."""
    if not is_loopback(host) and access.read_token is None:
        raise InputError(
            f"dashboard: {host} can be reached from other machines, so a read token is needed; set LYNCEUS_READ_TOKEN or give "
            "--read-token-file, or leave --host out."
        )


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("LocalHost:8080"), host_name("[::1]:80"), host_name("::1")
    ('localhost', '::1', '::1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.lower() if header.count(":") > 1 else header.partition(":")[0].lower()
