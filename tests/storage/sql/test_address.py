"""Passwords of databases are never stored with a study and never shown."""

import pytest
from sqlalchemy import text

from lynceus.errors import InfrastructureError, InputError
from lynceus.storage.sql.address import hide_passwords, parse_address, shown_address, without_credentials
from lynceus.storage.sql.storage import Storage, upgrade


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:hush@127.0.0.1:1/db",
        "postgresql+psycopg://me:h%75sh@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=hush",
        "postgresql://me@127.0.0.1:1/db?pass%77ord=hush",
        "postgresql://me@127.0.0.1:1/db?sslpassword=hush&connect_timeout=1",
        "postgresql://me:hush@127.0.0.1:1/db?password=hush&passfile=/hush",
        "postgresql://127.0.0.1:1/db?PASSWORD=hush",
    ],
)
def test_an_unreachable_server_is_one_sentence_without_the_password(address: str) -> None:
    for open_storage in (Storage, upgrade):
        with pytest.raises(InfrastructureError) as raised:
            open_storage(address)
        assert "hush" not in str(raised.value)
        assert "\n" not in str(raised.value)
    assert "hush" not in shown_address(address)
    assert "127.0.0.1:1/db" in shown_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:p@ss/w:rd@host:port/db",
        "postgresql://me:p@hush@host/db",
        "postgresql://me:hush@host:99999/db",
        "postgresql://me:hush@[::1/db",
        "me:hush@host/db",
        "mysql://me:hush@host/db",
        "postgresql+asyncpg://me:hush@host/db",
        "postgresql+nonsense://me:hush@host/db",
        "postgresql//me:hush@host?password=hush",
        "postgresql://me:hush\x1b[2J@ho st:x/db",
        "sqlite:///file:hush?mode=ro&uri=true&password=hush",
        "",
    ],
)
def test_a_malformed_address_is_one_sentence_without_the_password(address: str) -> None:
    for use in (Storage, upgrade, shown_address):
        with pytest.raises(InputError) as raised:
            use(address)
        said = str(raised.value)
        assert not any(secret in said.replace("file:hush", "") for secret in ("hush", "p@ss", "w:rd"))
        assert said.startswith("storage: ")
        assert "\n" not in said
        assert "\x1b" not in said


def test_messages_of_drivers_are_scrubbed() -> None:
    address = parse_address("postgresql://me:s%3Fcret@db/x?sslpassword=other")
    assert address.scrub("no s?cret, no s%3Fcret, not other") == "no ***, no ***, not ***"
    assert hide_passwords("host=db password='a b' user=me") == "host=db password=*** user=me"


STORED = {
    "postgresql+psycopg://me:hush@db:5432/x": "postgresql+psycopg://me@db:5432/x",
    "postgresql://me@db/x?password=hush&sslmode=require": "postgresql://me@db/x?sslmode=require",
    "postgresql://me@db/x?sslmode=require": "postgresql://me@db/x?sslmode=require",
    "sqlite:///a b.db": "sqlite:///a b.db",
    "postgresql://me:hush@db:port/x": "postgresql://me:***@db:port/x",
}


def test_a_document_is_stored_without_credentials(storage: Storage) -> None:
    assert without_credentials({}) == {}
    for number, (given, stored) in enumerate(STORED.items()):
        name = f"nightly-{number}"
        document = {"job": {"name": name, "storage": given, "run": "true"}, "folder": "/srv"}
        storage.create_study(name, document=document, fingerprint="f", policy={})
        assert storage.load_study(name).document["job"]["storage"] == stored
        assert "hush" not in stored_documents(storage)
        assert storage.revise(name, document=document).document["job"]["storage"] == stored
        assert "hush" not in stored_documents(storage)


def stored_documents(storage: Storage) -> str:
    with storage._engine.connect() as connection:
        return str(connection.execute(text("SELECT document FROM studies")).all())


def test_a_document_that_holds_a_password_is_read_without_it(storage: Storage) -> None:
    """As an earlier program may still write it."""
    storage.create_study("nightly", document={}, fingerprint="f", policy={})
    with storage._engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text("""UPDATE studies SET document = '{"job": {"storage": "postgresql://me:hush@db/x"}}'""")
        )
    assert storage.load_study("nightly").document == {"job": {"storage": "postgresql://me@db/x"}}


def test_the_password_is_not_in_a_representation() -> None:
    with pytest.raises(InfrastructureError) as raised:
        Storage("postgresql://me:hush@127.0.0.1:1/db")
    assert "hush" not in repr(raised.value)
    assert "hush" not in str(raised.value.__cause__)
    assert "hush" not in repr(parse_address("postgresql://me:hush@db/x?password=hush"))
