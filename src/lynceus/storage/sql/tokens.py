"""The named tokens of a storage and the browser sessions that began with them: added, read and revoked."""

from __future__ import annotations

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from lynceus.errors import InputError
from lynceus.storage.access_token import AccessToken, Role, StoredToken, check_token_name, digest_of, new_secret
from lynceus.storage.serialization import storable
from lynceus.storage.sql.audit import AuditEntry, note_change
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tables import token_sessions, tokens

LONGEST_S = 100 * 365.25 * 86400
"""How long a token may be valid that is not valid for ever: a hundred years."""


class UnknownTokenError(InputError):
    """No token has this name."""


class TokenExistsError(InputError):
    """A new token has the name of another one."""


class TokenStore:
    """The tokens of a storage.

    >>> store = TokenStore(Storage("sqlite://"))  # in memory, for this example
    >>> token, secret = store.add("airflow", Role.RUNNER, by="ana")
    >>> token.name, str(token.role), secret.startswith("lyn_")
    ('airflow', 'runner', True)
    >>> [one.name for one in store.all()]
    ['airflow']
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def all(self) -> tuple[AccessToken, ...]:
        """Every token that was not revoked, by name; expired ones, too."""
        return tuple(one.token for one in self.stored())

    def stored(self) -> tuple[StoredToken, ...]:
        """The same with the digests of their secrets."""
        with self.storage._errors(), self.storage._engine.connect() as connection:
            return tuple(map(_stored, connection.execute(select(tokens).order_by(tokens.c.name))))

    def add(self, name: str, role: Role, *, by: str, lasts_s: float | None = None) -> tuple[AccessToken, str]:
        """A new token and its secret, which is stored nowhere and cannot be shown again. `lasts_s` is how long it is valid."""
        check_token_name(name)
        if lasts_s is not None and not 0 < lasts_s <= LONGEST_S:
            raise InputError(f"token: it cannot be valid for {lasts_s:g} s; give a duration such as 30d, or none.")
        secret = new_secret()
        with self.storage._writing() as connection:
            now = self.storage.clock.now(connection)
            token = AccessToken(name, role, now, storable(by), expires_s=None if lasts_s is None else now + lasts_s)
            try:
                connection.execute(insert(tokens).values(**_values(token), digest=digest_of(secret)))
            except IntegrityError:
                raise TokenExistsError(
                    f"token {name!r} exists already in {self.storage.shown_url}; choose another name, or replace it after: "
                    f"lynceus token revoke {name}."
                ) from None
            detail = {"role": str(role), "expires_s": token.expires_s}
            note_change(connection, AuditEntry(now, by, "token", name, detail))
        return token, secret

    def revoke(self, name: str, *, by: str) -> None:
        """Accept a token no longer, nor the browsers that have signed in with it."""
        with self.storage._writing() as connection:
            if connection.execute(delete(tokens).where(tokens.c.name == name)).rowcount == 0:
                known = ", ".join(connection.execute(select(tokens.c.name).order_by(tokens.c.name)).scalars()) or "none"
                raise UnknownTokenError(f"token {name[:100]!r} is not in {self.storage.shown_url}; known are: {known}.")
            now = self.storage.clock.now(connection)
            note_change(connection, AuditEntry(now, by, "token", name, {"role": None}))

    def mark_used(self, token_id: int) -> None:
        """Remember that a token was used now."""
        with self.storage._writing() as connection:
            now = self.storage.clock.now(connection)
            connection.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_s=now))

    def begin_session(self, one: StoredToken, lasts_s: float) -> str:
        """The secret of a new browser session; of a token that was revoked meanwhile it opens nothing."""
        secret = new_secret()
        with self.storage._writing() as connection:
            now = self.storage.clock.now(connection)
            connection.execute(delete(token_sessions).where(token_sessions.c.expires_s <= now))
            if _exists(connection, one):
                new = {"digest": digest_of(secret), "token_id": one.id, "expires_s": now + lasts_s}
                connection.execute(insert(token_sessions).values(**new))
        return secret

    def of_session(self, secret: str) -> StoredToken | None:
        """The token with which a browser has signed in; None when the session has ended, or never was."""
        mine = token_sessions.c.digest == digest_of(secret)
        with self.storage._errors(), self.storage._engine.connect() as connection:
            now = self.storage.clock.now(connection)
            wanted = select(tokens).join(token_sessions).where(mine, token_sessions.c.expires_s > now)
            row = connection.execute(wanted).one_or_none()
        return None if row is None else _stored(row)

    def end_session(self, secret: str) -> None:
        """Sign a browser out."""
        with self.storage._writing() as connection:
            connection.execute(delete(token_sessions).where(token_sessions.c.digest == digest_of(secret)))


def _exists(connection: Connection, one: StoredToken) -> bool:
    """Whether a token was not revoked; SQLite gives the number of the newest one again to the next."""
    mine = (tokens.c.id == one.id) & (tokens.c.digest == one.digest)
    return connection.execute(select(tokens.c.id).where(mine)).scalar() is not None


def _values(token: AccessToken) -> dict[str, object]:
    return {
        "name": token.name,
        "role": str(token.role),
        "created_s": token.created_s,
        "created_by": token.created_by,
        "last_used_s": token.last_used_s,
        "expires_s": token.expires_s,
    }


def _stored(row: Row[*tuple[object, ...]]) -> StoredToken:
    token = AccessToken(row.name, Role(row.role), row.created_s, row.created_by, row.last_used_s, row.expires_s)
    return StoredToken(row.id, token, row.digest)
