"""`lynceus dashboard`: all studies in a browser, live, and the HTTP API."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import echo
from lynceus.errors import InputError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from lynceus.server.access import Access
    from lynceus.server.serve import Certificate

_LONGEST_TOKEN = 1 << 16
"""Bytes of a token that are read."""


_TrustedProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed; or set "
        "LYNCEUS_TRUSTED_PROXY. May be repeated."
    ),
]
_ReadTokenOption = Annotated[
    Path | None, typer.Option(help="A file with the token for reading; or set LYNCEUS_READ_TOKEN.")
]
_WriteTokenOption = Annotated[
    Path | None, typer.Option(help="A file with the token for everything; or set LYNCEUS_WRITE_TOKEN.")
]
_RequireTokenOption = Annotated[
    bool,
    typer.Option(
        "--require-token", help="Reading needs a token, also without a read token: lynceus token add makes one."
    ),
]
_CertificateOption = Annotated[
    Path | None, typer.Option(help="A PEM file with the server's TLS certificate and those between it and its root.")
]
_KeyOption = Annotated[Path | None, typer.Option(help="A PEM file with the private key of --tls-cert.")]


def dashboard(
    address: Annotated[
        str | None, typer.Argument(metavar="STORAGE", help="The database with the studies, like --storage.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; other machines need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    read_token_file: _ReadTokenOption = None,
    write_token_file: _WriteTokenOption = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A name under which a proxy reaches the server. May be repeated."),
    ] = None,
    require_token: _RequireTokenOption = False,
    trusted_proxy: _TrustedProxyOption = None,
    tls_cert: _CertificateOption = None,
    tls_key: _KeyOption = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    storage: StorageOption = None,
) -> None:
    """Show all studies in a browser, live, and serve the HTTP API.

    Without tokens, only this machine can read, and nothing can be changed.
    """
    from lynceus.library.find import storage_url
    from lynceus.server.access import Access, check_exposure
    from lynceus.server.app import create_app
    from lynceus.server.proxies import TrustedProxies
    from lynceus.server.serve import serve
    from lynceus.storage.sql.storage import Storage

    access = Access(
        _token("read", read_token_file),
        _token("write", write_token_file),
        _names(host, allowed_host or ()),
        closed=require_token,
    )
    check_exposure(host, access)
    proxies = TrustedProxies.parse(trusted_proxy or _words(os.environ.get("LYNCEUS_TRUSTED_PROXY", "")))
    certificate = _certificate(tls_cert, tls_key)
    url = storage_url(address or storage)
    if access.write_token is None:
        Storage(
            url, create=False
        ).close()  # without a write token a new storage would stay empty: the address is misspelt
    app = create_app(url, access=access, proxies=proxies)
    changes = _changes(app, access)
    serve(app, host, port, certificate=certificate, started=lambda url: _announce(url, changes, open_browser))


def _certificate(chain: Path | None, key: Path | None) -> Certificate | None:
    from lynceus.server.serve import Certificate

    if chain is None and key is None:
        return None
    if chain is None or key is None:
        missing = "--tls-cert" if chain is None else "--tls-key"
        raise InputError(f"dashboard: {missing} is missing; TLS needs a certificate and its key.")
    return Certificate(chain, key)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _token(kind: str, file: Path | None) -> str | None:
    """A token from a file or the environment, never from the arguments, which every user of the machine can read."""
    variable = f"LYNCEUS_{kind.upper()}_TOKEN"
    if file is None:
        return os.environ.get(variable) or None
    try:
        with file.open("rb") as opened:  # also a pipe, as in <(pass show token)
            token = opened.read(_LONGEST_TOKEN).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            f"--{kind}-token-file: {file} cannot be read as text; give a file that holds the token."
        ) from None
    if not token:
        raise InputError(f"--{kind}-token-file: {file} is empty; write the token into it.")
    return token


def _names(host: str, allowed: list[str] | tuple[str, ...]) -> frozenset[str]:
    """The host names that the server answers to: those of this machine, the address it listens on, and the allowed ones."""
    names = {"localhost", "127.0.0.1", "::1", host.strip("[]").lower(), *(name.lower() for name in allowed)}
    if host.strip("[]") in ("0.0.0.0", "::"):
        own = socket.gethostname()
        names |= {own.lower(), socket.getfqdn().lower()}
        names |= _addresses(own)
    return frozenset(names)


def _addresses(name: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except OSError:
        return set()


def _changes(app: FastAPI, access: Access) -> str:
    """Who may change anything."""
    if access.write_token is not None:
        return "changes need the write token, or a named one"
    if app.state.guard.tokens.store.all():
        return "changes need a named token"
    return "read-only (there is no write token)"


def _announce(url: str, changes: str, open_browser: bool) -> None:
    echo(f"{url}  ·  {changes}  ·  API: {url}/api/v1/openapi.json  ·  Ctrl-C stops the server", err=True)
    if open_browser:
        typer.launch(url)
