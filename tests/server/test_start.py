"""Starts of a server that are refused, each with one line."""

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dashboards import READ, WRITE, dashboard
from lynceus.cli.app import main
from lynceus.errors import InputError
from lynceus.server.access import Access, check_exposure
from lynceus.server.serve import Certificate
from lynceus.storage.sql.storage import Storage


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_addresses_need_a_read_token(host: str) -> None:
    with pytest.raises(InputError, match=r"a read token is needed; set LYNCEUS_READ_TOKEN"):
        check_exposure(host, Access(write_token=WRITE))
    check_exposure(host, Access(READ, WRITE))
    for mine in ("127.0.0.1", "127.0.0.9", "::1", "localhost"):
        check_exposure(mine, Access())


@pytest.fixture
def start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str]]:
    """Try to start a server that must fail; returns its exit code and its message."""

    def run(*arguments: str, **variables: str) -> tuple[Any, str]:
        with monkeypatch.context() as changed:
            changed.setattr(sys, "argv", ["lynceus", "dashboard", f"sqlite:///{folder}/s.db", *arguments])
            for name in ("LYNCEUS_READ_TOKEN", "LYNCEUS_WRITE_TOKEN", "LYNCEUS_TRUSTED_PROXY"):
                changed.delenv(name, raising=False)
            for name, value in variables.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return ended.value.code, capsys.readouterr().err

    return run


def test_a_failed_start_is_explained_in_one_line(folder: Path, start: Callable[..., tuple[Any, str]]) -> None:
    (folder / "empty").write_text("\n")
    Storage(f"sqlite:///{folder}/s.db").close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = [
            start("--host", "0.0.0.0"),
            start(LYNCEUS_WRITE_TOKEN="short"),
            start(LYNCEUS_WRITE_TOKEN=WRITE, LYNCEUS_READ_TOKEN=WRITE),
            start("--read-token-file", str(folder / "empty")),
            start("--write-token-file", str(folder / "nowhere")),
            start("--port", port),
            start(LYNCEUS_WRITE_TOKEN="ab" * 20),
            start("--host", "127.0.0.1.", "--port", "0"),
            start("--host", "x" * 300, LYNCEUS_READ_TOKEN=READ),
            start("--trusted-proxy", "10.0.0.0/99"),
            start(LYNCEUS_TRUSTED_PROXY="127.0.0.1, proxy.example"),
            start("--tls-cert", str(folder / "empty")),
            start("--tls-cert", str(folder / "empty"), "--tls-key", str(folder / "nowhere")),
            start("--tls-cert", str(folder / "empty"), "--tls-key", str(folder / "empty")),
        ]
    assert [code for code, _ in cases] == [2, 2, 2, 2, 2, 4, 2, 2, 4, 2, 2, 2, 2, 2]
    parts = [
        "read token is needed", "at least 16", "the same", "is empty", "cannot be read", "choose another --host or --port",
        "8 of them different", "read token is needed", "cannot listen", "'10.0.0.0/99' is neither", "'proxy.example' is neither",
        "--tls-key is missing", "cannot be used", "cannot be used",
    ]  # fmt: skip
    for (_, message), part in zip(cases, parts, strict=True):
        assert part in message
        assert message.startswith("lynceus: ")
        assert len(message.splitlines()) == 1
        assert WRITE not in message


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_a_missing_package_is_one_sentence(
    missing: str, start: Callable[..., tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lynceus.server.app", "lynceus.server.serve"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert start() == (
        2,
        "lynceus: The dashboard and its API need an optional package: pip install 'lynceus-opt[web]'\n",
    )


def test_the_printed_address_of_an_ipv6_server_works(folder: Path) -> None:
    with dashboard(f"sqlite:///{folder}/s.db", folder, options=("--host", "[::1]")) as server:
        assert urlsplit(server.url).hostname == "::1"
        assert server.get("health").status == 200


def test_a_bad_port_is_explained(start: Callable[..., tuple[Any, str]]) -> None:
    for port in ("99999", "-1", "http"):
        code, message = start("--port", port)
        assert (code, "--port" in message, "Traceback" in message) == (2, True, False)


@pytest.fixture
def certificate(folder: Path) -> tuple[str, str]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    key, chain = folder / "key.pem", folder / "cert.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, *named, "-keyout", str(key), "-out", str(chain)], check=True, capture_output=True)
    return str(chain), str(key)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_the_server_speaks_tls(folder: Path, certificate: tuple[str, str]) -> None:
    chain, key = certificate
    options = ("--tls-cert", chain, "--tls-key", key)
    with dashboard(f"sqlite:///{folder}/s.db", folder, read=READ, options=options) as server:
        parts = urlsplit(server.url)
        assert parts.scheme == "https"
        trusting = ssl.create_default_context(cafile=chain)
        body = json.dumps({"token": WRITE})
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=trusting)
        connection.request("POST", "/api/v1/session", body, {"Content-Type": "application/json", "Origin": server.url})
        answer = connection.getresponse()
        cookie = SimpleCookie(answer.headers["set-cookie"])["lynceus_session"]
        assert (answer.status, cookie["secure"], cookie["httponly"], cookie["samesite"]) == (200, True, True, "strict")
        connection.close()
        # Neither plain HTTP nor a handshake that never begins keeps others out.
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as silent:
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    assert b"200" not in plain.recv(100)
            connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=trusting)
            connection.request("GET", "/api/v1/health")
            assert connection.getresponse().status == 200
            connection.close()
            silent.close()
    assert not server.broken, "".join(server.stderr)


def test_a_key_with_a_password_is_refused_without_asking(folder: Path, certificate: tuple[str, str]) -> None:
    chain, key = certificate
    locked = folder / "locked.pem"
    subprocess.run(
        ["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    with pytest.raises(InputError, match=r"the key has a password; give PEM files"):
        Certificate(Path(chain), locked).context()
