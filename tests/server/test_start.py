"""Starts of a server that are refused, each with one line."""

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboards import READ, WRITE
from lynceus.cli.app import main
from lynceus.errors import InputError
from lynceus.server.access import Access, check_exposure
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
            for name in ("LYNCEUS_READ_TOKEN", "LYNCEUS_WRITE_TOKEN"):
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
        ]
    assert [code for code, _ in cases] == [2, 2, 2, 2, 2, 4]
    parts = ["read token is needed", "at least 16", "the same", "is empty", "cannot be read", "choose another --port"]
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
        "lynceus: The dashboard and its API need an optional package: pip install -e '.[web]' in the project's folder.\n",
    )
