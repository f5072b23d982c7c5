"""Addresses of databases: read, shown and stored without their passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from lynceus.errors import InputError, MissingExtraError
from lynceus.trial.text import clean_line

HIDDEN = "***"
_HINT = "write for example sqlite:///lynceus.db or postgresql+psycopg://user@host/lynceus"
_SECRET = re.compile(r"pass|pwd|secret|token", re.IGNORECASE)
"""Names of parameters whose values are hidden: password, sslpassword, passfile and what other drivers call them."""
_WRITTEN_SECRET = re.compile(r"([\w%-]*(?:pass|pwd|secret|token)[\w%-]*\s*=\s*)('[^']*'|[^\s&;'\"]+)", re.IGNORECASE)
_WRITTEN_USER = re.compile(r"((?://|^)[^:/@\s]*):(?!//).*@", re.DOTALL)
"""User and password in a text that need not be a valid address; a password may itself hold any of its signs."""


@dataclass(frozen=True)
class Address:
    """Where a storage is."""

    url: URL

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @property
    def shown(self) -> str:
        """The address for messages and documents: no password, wherever it is written."""
        secret = [name for name in self.url.query if _SECRET.search(name)]
        url = self.url.update_query_dict(dict.fromkeys(secret, HIDDEN))
        return hide_passwords(url.render_as_string(hide_password=True)).replace(quote_plus(HIDDEN), HIDDEN)

    @property
    def file(self) -> str | None:
        """The file of an SQLite database; None for one in memory and for a server."""
        file = self.url.database if self.is_sqlite else None
        return None if file in ("", ":memory:") else file

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a SQLite database, otherwise PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    def scrub(self, text: str) -> str:
        """A message of a driver, without the passwords of this address."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            for written in {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}:
                text = text.replace(written, HIDDEN)
        return hide_passwords(text)

    def _secrets(self) -> Iterator[str]:
        if self.url.password:
            yield str(self.url.password)
        for name, values in self.url.query.items():
            if _SECRET.search(name):
                yield from (value for value in ([values] if isinstance(values, str) else values) if value)


def parse_address(text: str) -> Address:
    """The address of a storage; whatever is wrong with it, the message shows no password."""
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except ArgumentError:
        raise InputError(f"storage: {_quoted(text)} is not a database address; {_HINT}.") from None
    except (ValueError, UnicodeError):  # a port that is no number, a broken IPv6 address
        raise InputError(f"storage: host or port of {_quoted(text)} cannot be read; {_HINT}.") from None
    if backend not in ("sqlite", "postgresql"):
        raise InputError(f"storage: {clean_line(url.drivername, 60)!r} is not supported; {_HINT}.")
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InputError(f"storage: the driver {clean_line(url.drivername, 60)!r} is not supported; {_HINT}.")
    if backend == "sqlite" and (str(url.database or "").startswith("file:") or "uri" in url.query):
        raise InputError(f"storage: {_quoted(text)} names a file by a URI; write its path, like sqlite:///lynceus.db.")
    if backend == "postgresql" and "@" in f"{url.host}{url.database}":
        raise InputError(f"storage: {_quoted(text)} has a second '@'; write %40 for one in a user name or a password.")
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise InputError(f"storage: port {url.port} of {_quoted(text)} is not between 1 and 65535; {_HINT}.")
    try:
        url.get_dialect().import_dbapi()
    except (ImportError, NoSuchModuleError):
        raise MissingExtraError("PostgreSQL storages", "postgres") from None
    return Address(url)


def shown_address(text: str) -> str:
    """An address for messages, without its password.

    >>> shown_address("postgresql://me:hush@db/studies?sslpassword=hush")
    'postgresql+psycopg://me:***@db/studies?sslpassword=***'
    """
    return parse_address(text).shown


def hide_passwords(text: str) -> str:
    """Any text without what looks like the password of an address.

    >>> hide_passwords("postgresql://me:p@ss@db:x/studies?password=hush&a=b")
    'postgresql://me:***@db:x/studies?password=***&a=b'
    """
    return _WRITTEN_SECRET.sub(rf"\g<1>{HIDDEN}", _WRITTEN_USER.sub(rf"\g<1>:{HIDDEN}@", text))


def without_credentials(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a study as it is stored: the address of the storage without user's password and secret parameters."""
    job = document.get("job")
    if not isinstance(job, dict):
        return document
    changed = dict(job)
    if isinstance(address := job.get("storage"), str):
        changed["storage"] = _bare(address)
    if isinstance(past := job.get("history"), list | dict):
        changed["history"] = [_bare_past(one) for one in past] if isinstance(past, list) else _bare_past(past)
    return {**document, "job": changed}


def _bare_past(past: Any) -> Any:
    """An entry of `history` whose storage is written without its password."""
    if isinstance(past, dict) and isinstance(address := past.get("storage"), str):
        return {**past, "storage": _bare(address)}
    return past


def _bare(text: str) -> str:
    try:
        url = make_url(text)
        secret = [name for name in url.query if _SECRET.search(name)]
        if url.password is None and not secret:
            return text if unquote(hide_passwords(text)) == unquote(text) else hide_passwords(text)
        bare = url._replace(password=None).difference_update_query(secret)
        return hide_passwords(bare.render_as_string(hide_password=False))
    except (ArgumentError, ValueError):
        return hide_passwords(text)


def _quoted(text: str) -> str:
    return repr(clean_line(hide_passwords(text), 120))
