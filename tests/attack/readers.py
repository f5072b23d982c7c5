"""Everything that reads a study: the commands of the command line, the pages of the dashboard and its API."""

import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
import traceback
from unittest import mock

from lynceus.cli import main
from lynceus.cli.exit_codes import INTERRUPTED
from lynceus.server.app import create_app

COMMANDS = (
    ("status",),
    ("status", "--output", "json"),
    ("trials",),
    ("trials", "--output", "json"),
    ("best",),
    ("explain",),
    ("report",),
    ("export", "--to", "csv"),
    ("gc",),
)
DOCUMENTED = {0, 3, 4}
"""Found, nothing meets the constraints, infrastructure; 2 would be our own mistake."""
PATHS = (
    "/",
    "/studies/{name}",
    "/studies/{name}/trials/0",
    "/api/v1/health",
    "/api/v1/studies",
    "/api/v1/studies/{name}",
    "/api/v1/studies/{name}/view?since=0",
    "/api/v1/studies/{name}/trials",
    "/api/v1/studies/{name}/trials/0",
    "/api/v1/studies/{name}/best",
    "/api/v1/studies/{name}/explain",
    "/api/v1/studies/{name}/insight",
    "/api/v1/studies/{name}/importance",
    "/api/v1/studies/{name}/what-if?deadline=5s,20s",
    "/api/v1/studies/{name}/export?format=csv",
)


def check_readers(url: str, name: str) -> None:
    """All of them."""
    for turn in range(len(COMMANDS) + 1):
        check_reader(url, name, turn)


def check_reader(url: str, name: str, turn: int) -> None:
    """One of them: the commands and the pages take turns."""
    place = turn % (len(COMMANDS) + 1)
    if place == len(COMMANDS):
        check_pages(url, name)
        return
    command, *options = COMMANDS[place]
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run_command([command, name, "--storage", url, *options], folder)
    assert code in DOCUMENTED, f"{command} exited with {code}: {err}"
    assert "Traceback" not in err, f"{command}: {err}"
    assert "\x1b" not in out, f"{command} prints an escape sequence: {out!r}"


def run_command(arguments: list[str], folder: str) -> tuple[int, str, str]:
    """A command in this process: its exit code, output and errors."""
    out, err, before = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with (
            mock.patch.object(sys, "argv", ["lynceus", *arguments]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            main()
        code: object = 0
    except SystemExit as ended:
        code = ended.code
        if code == INTERRUPTED:
            raise KeyboardInterrupt from None
    except BaseException:
        traceback.print_exc(file=err)
        code = 1
    finally:
        os.chdir(before)
    out.seek(0)
    return int(code or 0) if isinstance(code, int | None) else 1, out.read(), err.getvalue()


def check_pages(url: str, name: str) -> None:
    app = create_app(url)

    async def ask_all() -> None:
        async with app.router.lifespan_context(app):
            for path in PATHS:
                status, body = await _get(app, path.format(name=name))
                assert status < 500, f"{path} answers {status}: {body[:500]!r}"
                if "json" in path or status >= 400:
                    json.loads(body)

    asyncio.run(ask_all())


async def _get(app: object, target: str) -> tuple[int, bytes]:
    """One request, as a server passes it to the application."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8080")],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8080),
    }
    status, body = 0, b""
    asked = asyncio.Event()

    async def receive() -> dict[str, object]:
        if asked.is_set():
            await asyncio.sleep(3600)  # the client stays connected
        asked.set()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        nonlocal status, body
        if message["type"] == "http.response.start":
            status = int(str(message["status"]))
        elif message["type"] == "http.response.body":
            body += bytes(message.get("body", b""))  # type: ignore[call-overload]

    await app(scope, receive, send)  # type: ignore[operator]
    return status, body
